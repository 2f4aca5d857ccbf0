//! A failing input becomes a regression: what is kept is small, fails in the same way, and names its
//! rule. The target is this test itself, called with arguments: one that has faults.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs};

use gguf_assay_fuzz::{Input, Target, replay};

/// Refuses an `x` among others, ends the process at a `y`.
fn faulty(bytes: &[u8]) {
    assert!(!bytes.contains(&b'x') || bytes.len() < 3, "an x");
    if bytes.contains(&b'y') {
        std::process::abort();
    }
    assert!(bytes != [b'x'], "x alone: another fault");
}

const TARGET: Target = Target {
    name: "faulty",
    run: faulty,
    rule: |bytes| format!("{} bytes", bytes.len()),
    input: Input::File,
};

fn main() -> ExitCode {
    // The runner of tests gives it flags, it itself files.
    if env::args().skip(1).any(|arg| Path::new(&arg).is_file()) {
        return replay(TARGET, env::args_os());
    }
    let folder = env::temp_dir().join(format!("gguf-assay-regression-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let shrink = |bytes: &[u8]| {
        let input = folder.join("input");
        fs::write(&input, bytes).unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        let output = command.arg("--shrink").arg("--to").arg(&folder).arg(&input).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let kept = || {
        let entries = fs::read_dir(folder.join("faulty")).into_iter().flatten();
        let mut files: Vec<_> =
            entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
        files.sort();
        files
    };

    assert!(shrink(b"abc").contains("nothing found"));
    assert!(kept().is_empty());
    // Not `x` alone, which fails at another place.
    let said = shrink(&[&[b'a'; 50][..], b"x", &[b'b'; 50]].concat());
    assert!(said.contains("an x") && said.contains("rule: 3 bytes"), "{said}");
    assert_eq!(kept(), [b"x\0\0".to_vec()]);
    let said = shrink(b"0123456789y");
    assert!(said.contains("signal: 6"), "{said}");
    assert_eq!(kept(), [b"x\0\0".to_vec(), b"y".to_vec()]);

    fs::remove_dir_all(&folder).unwrap();
    println!("test result: ok. a panic and an abort were shrunk and kept");
    ExitCode::SUCCESS
}
