//! Package clients: how they are run, and what is said when they fail.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use anyhow::{Result, anyhow, bail};

/// Runs a client to its end and gives what it wrote to standard output.
///
/// `what` is said of a failure; `install` is what to do when the client is not there.
pub(super) fn run(command: &mut Command, what: &str, install: &str) -> Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("{name} is not found; {install}"),
        _ => anyhow!("cannot start {name}: {error}"),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    // Clients differ in where they write what.
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let hint = if gguf_assay_subjects::is_offline(&text) {
        "\nThe package registry cannot be reached: is this machine offline?"
    } else if text.contains("No module named pip") {
        "\nThis Python has no pip; on Debian and Ubuntu it is the package python3-pip"
    } else if text.contains("require a different python version") {
        "\nThis Python does not do for the package; name another in GGUF_ASSAY_PYTHON"
    } else {
        ""
    };
    bail!("{what} ({})\n{}{hint}", output.status, tail(&text))
}

/// The last lines, each cut: pip lists every version that there ever was in one.
fn tail(text: &str) -> String {
    const LINES: usize = 8;
    const CHARS: usize = 300;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let cut: Vec<String> =
        last.iter().map(|line| gguf_assay_format::printable(line, CHARS)).collect();
    cut.join("\n")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(&mut command, "it was not done", "").unwrap_err().to_string()
    }

    #[test]
    fn a_failure_shows_the_end_of_what_the_client_says() {
        let error = sh("for i in $(seq 20); do echo line $i; done; echo why >&2; exit 3");
        assert!(error.starts_with("it was not done (exit status: 3)\nline 14\n"), "{error}");
        assert!(error.ends_with("line 20\nwhy"), "{error}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = sh("echo 'Could not resolve host: x' >&2; exit 1");
        assert!(error.ends_with("is this machine offline?"), "{error}");
        let error = sh("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
        assert!(error.contains("has no pip"), "{error}");
        let error =
            sh("echo 'ERROR: Ignored versions that require a different python version'; false");
        assert!(error.ends_with("GGUF_ASSAY_PYTHON"), "{error}");

        let mut command = Command::new("no-such-client");
        let error = run(&mut command, "", "install it").unwrap_err().to_string();
        assert_eq!(error, "no-such-client is not found; install it");
    }
}
