//! Embeds the subjects' folders, so that a new reader is a new folder and no new code.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed={}", root.display());
    let mut source = String::from("&[\n");
    for folder in sorted(&root).into_iter().filter(|folder| folder.join("subject.toml").is_file()) {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        source += &format!("    Embedded {{ name: {name:?}, files: {} }},\n", files(&folder));
    }
    source += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("folders.rs"), source).expect("OUT_DIR is writable");
    for shared in ["javascript", "python"] {
        let source = files(&root.join(shared));
        fs::write(out.join(format!("{shared}.rs")), source).expect("OUT_DIR is writable");
    }
}

/// The files below a folder as Rust: a slice of names and texts.
fn files(folder: &Path) -> String {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    let mut source = String::from("&[");
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(folder).expect("found below it").to_string_lossy();
        let name = name.replace('\\', "/");
        source += &format!("({name:?}, include_str!({:?})), ", path.display().to_string());
    }
    source + "]"
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for path in sorted(folder) {
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        // What a build or a run by hand leaves behind is not part of a subject.
        if name.starts_with('.') || ["target", "__pycache__", "node_modules"].contains(&&*name) {
            continue;
        }
        if path.is_dir() { collect(&path, paths) } else { paths.push(path) }
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of this package");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
