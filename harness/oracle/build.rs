//! Compiles the container and type code of ggml from the source that `pin/Cargo.toml` names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

/// Compile from this llama.cpp or ggml checkout instead of the pinned package.
const OVERRIDE: &str = "GGUF_ASSAY_GGML_SOURCE";

/// The package that carries the source.
const PACKAGE: &str = "llama-cpp-sys-4";

const PIN: &str = "pin/Cargo.toml";

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    println!("cargo::rerun-if-changed={PIN}");
    println!("cargo::rerun-if-changed=pin/Cargo.lock");
    println!("cargo::rerun-if-changed=src/shim.c");
    println!("cargo::rerun-if-changed=src/guard.cpp");
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            for line in message.lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let Source { ggml, label } = match env::var_os(OVERRIDE) {
        Some(dir) if !dir.is_empty() => checkout(Path::new(&dir))?,
        _ => pinned()?,
    };
    let version = version(&ggml.join("CMakeLists.txt"))?;
    println!("cargo::rustc-env=GGUF_ASSAY_GGML_VERSION={version}");
    println!("cargo::rustc-env=GGUF_ASSAY_GGML_LABEL={label}");

    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this by cargo")?);
    // cmake would make this file out of `ggml-version.h.in`.
    let header = format!(
        "#pragma once\n#define GGML_VERSION \"{version}\"\n#define GGML_COMMIT \"{label}\"\n"
    );
    fs::write(out.join("ggml-version.h"), header)
        .map_err(|e| format!("cannot write ggml-version.h into {}: {e}", out.display()))?;
    let failed = |e| {
        format!(
            "{label} did not compile: {e}\n\
             It takes a C11 and a C++17 compiler and nothing else: install gcc and g++ (Debian, \
             Ubuntu: apt install g++) or clang, or name yours in the variables CC and CXX."
        )
    };
    compile(&ggml, &out).map_err(failed)?;
    if env::var_os("CARGO_FEATURE_NATIVE").is_some() {
        compile_native(&ggml, &out)?.map_err(failed)?;
    }
    let compiler = compiler().map_err(failed)?;
    println!("cargo::rustc-env=GGUF_ASSAY_C_COMPILER={compiler}");
    Ok(())
}

struct Source {
    /// The folder with `include/` and `src/`.
    ggml: PathBuf,
    /// What reports call it.
    label: String,
}

fn checkout(dir: &Path) -> Result<Source, String> {
    let ggml = [dir.join("ggml"), dir.to_owned(), dir.join("llama.cpp/ggml")]
        .into_iter()
        .find(|ggml| ggml.join("src/gguf.cpp").is_file())
        .ok_or_else(|| {
            format!(
                "{OVERRIDE} is {}, and neither ggml/src/gguf.cpp nor src/gguf.cpp is in there.\n\
                 Set it to the absolute path of a llama.cpp or ggml checkout, or unset it.",
                dir.display()
            )
        })?;
    println!("cargo::rerun-if-changed={}", ggml.join("src").display());
    println!("cargo::rerun-if-changed={}", ggml.join("include").display());
    println!("cargo::rerun-if-changed={}", ggml.join("CMakeLists.txt").display());

    // The path itself stays out of the label, which ends up in reports.
    let commit = Command::new("git")
        .arg("-C")
        .arg(&ggml)
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|run| run.status.success())
        .and_then(|run| String::from_utf8(run.stdout).ok());
    let label = match commit {
        Some(commit) => format!("local checkout {}", commit.trim()),
        None => "local checkout".to_owned(),
    };
    Ok(Source { ggml, label })
}

fn pinned() -> Result<Source, String> {
    // Offline first: with the package at hand, no build waits for the network.
    let metadata = metadata(&["--offline"]).or_else(|_| metadata(&[])).map_err(|e| {
        format!(
            "cannot get {PACKAGE}, the package that carries ggml's source: {e}\n\
             With a network, run: cargo fetch --manifest-path harness/oracle/{PIN}\n\
             Without one, set {OVERRIDE} to the absolute path of a llama.cpp or ggml checkout."
        )
    })?;
    let found = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == PACKAGE)
        .and_then(|package| {
            Some((package["manifest_path"].as_str()?, package["version"].as_str()?))
        });
    let Some((manifest, version)) = found else {
        return Err(format!(
            "{PIN} no longer names {PACKAGE}; build.rs has to name the same package"
        ));
    };
    let ggml = Path::new(manifest).with_file_name("llama.cpp").join("ggml");
    if !ggml.join("src/gguf.cpp").is_file() {
        return Err(format!(
            "there is no src/gguf.cpp in {}: cargo's copy of {PACKAGE} is damaged, or this version \
             keeps ggml elsewhere.\nDelete that copy and build again.",
            ggml.display()
        ));
    }
    Ok(Source { ggml, label: format!("{PACKAGE} {version}") })
}

fn metadata(extra: &[&str]) -> Result<serde_json::Value, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path", PIN])
        .args(extra)
        .output()
        .map_err(|e| format!("cannot start cargo: {e}"))?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).trim().to_owned());
    }
    serde_json::from_slice(&run.stdout).map_err(|e| format!("cannot read cargo's answer: {e}"))
}

fn version(cmake: &Path) -> Result<String, String> {
    let text = fs::read_to_string(cmake)
        .map_err(|e| format!("cannot read ggml's version from {}: {e}", cmake.display()))?;
    let part = |name: &str| {
        let start = format!("set({name} ");
        text.lines()
            .find_map(|line| line.trim().strip_prefix(&start)?.strip_suffix(')'))
            .filter(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
            .ok_or_else(|| format!("{} sets no number {name}", cmake.display()))
    };
    let major = part("GGML_VERSION_MAJOR")?;
    let minor = part("GGML_VERSION_MINOR")?;
    let patch = part("GGML_VERSION_PATCH")?;
    Ok(format!("{major}.{minor}.{patch}"))
}

/// What all compiled files of ggml share.
fn common(ggml: &Path, out: &Path) -> cc::Build {
    let mut common = cc::Build::new();
    common
        .include(out)
        .include(ggml.join("include"))
        .include(ggml.join("src"))
        .opt_level(3)
        .warnings(false)
        .flag_if_supported("-w")
        .flag_if_supported("-ffp-contract=off")
        // Failed asserts quote `__FILE__`: the same words on every machine.
        .flag_if_supported(format!("-fmacro-prefix-map={}=ggml", ggml.display()));
    common
}

/// The C files, with what they lack.
fn c_files(ggml: &Path) -> [PathBuf; 3] {
    [ggml.join("src/ggml.c"), ggml.join("src/ggml-quants.c"), "src/shim.c".into()]
}

fn compile(ggml: &Path, out: &Path) -> Result<(), cc::Error> {
    let src = ggml.join("src");
    let mut c = common(ggml, out);
    // An exception may pass through C: see guard.cpp.
    c.flag_if_supported("-fexceptions");
    c.std("gnu11").files(c_files(ggml));
    let mut cpp = common(ggml, out);
    cpp.cpp(true).std("gnu++17").files([src.join("gguf.cpp"), src.join("ggml-threading.cpp")]);
    cpp.file("src/guard.cpp");

    // One archive, since the C and the C++ part need each other.
    let mut objects = c.try_compile_intermediates()?;
    objects.extend(cpp.try_compile_intermediates()?);
    cc::Build::new().cpp(true).objects(objects).try_compile("gguf_assay_ggml")
}

/// The C part a second time, for this very machine. Its functions get other names, so that both
/// copies fit into one program.
fn compile_native(ggml: &Path, out: &Path) -> Result<Result<(), cc::Error>, String> {
    let mut names = BTreeSet::new();
    for path in c_files(ggml) {
        let text = fs::read_to_string(&path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        names.extend(functions(&text).map(str::to_owned));
    }
    let defines = names.iter().map(|name| format!("#define {name} native_{name}\n"));
    let header = out.join("native.h");
    fs::write(&header, defines.collect::<String>())
        .map_err(|e| format!("cannot write {}: {e}", header.display()))?;
    Ok(common(ggml, out)
        .std("gnu11")
        .flag("-march=native")
        .flag("-include")
        .flag(&header)
        .files(c_files(ggml))
        .try_compile("gguf_assay_ggml_native"))
}

/// The functions of ggml that a text of C defines or calls, and no others that a linker would find
/// twice. Two are in the C++ part, of which there is one copy.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    const PREFIXES: [&str; 6] = ["ggml_", "gguf_", "dequantize_", "quantize_", "iq2xs_", "iq3xs_"];
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '(');
    let names =
        words.flat_map(|word| word.split_inclusive('(').filter_map(|w| w.strip_suffix('(')));
    names.filter(|name| {
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && !name.starts_with("ggml_critical_section_")
    })
}

/// The C compiler's name for itself, without its path.
fn compiler() -> Result<String, cc::Error> {
    let run = cc::Build::new().try_get_compiler()?.to_command().arg("--version").output();
    let text = run.ok().and_then(|run| String::from_utf8(run.stdout).ok()).unwrap_or_default();
    Ok(text.lines().next().unwrap_or("unknown").trim().to_owned())
}
