//! Embeds the corpus: lists the TOML files below `corpus/`, and the pairs in `corpus/names/pairs`, so that
//! a new file needs no new code.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("corpus");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut source = String::from("&[\n");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root).expect("found below it").to_str().expect("UTF-8 names");
        let name = name.replace('\\', "/");
        source += &format!("    ({name:?}, include_str!({:?})),\n", file.display().to_string());
    }
    source += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("embedded.rs"), source).expect("OUT_DIR is writable");
    fs::write(out.join("pairs.rs"), pairs(&root.join("names/pairs"))).expect("OUT_DIR is writable");
}

/// The list of the pairs: name, and the contents of the four files.
fn pairs(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the pairs are there").flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let mut source = String::from("&[\n");
    for pair in folders {
        println!("cargo:rerun-if-changed={}", pair.display());
        let name = pair.file_name().and_then(|name| name.to_str()).expect("UTF-8 names");
        let include = |how: &str, file: &str| {
            let path = pair.join(file);
            if path.exists() {
                format!("{how}!({:?})", path.display().to_string())
            } else {
                "&[]".to_owned()
            }
        };
        source += &format!(
            "    ({name:?}, {}, {}, {}, {}),\n",
            include("include_str", "config.json"),
            include("include_str", "source.json"),
            include("include_bytes", "model.gguf"),
            include("include_bytes", "inexact.safetensors"),
        );
    }
    source += "]\n";
    source
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("the corpus is there").flatten() {
        let path = entry.path();
        // The built files lie in folders without TOML; there is no need to look into each.
        if path.is_dir() && folder.ends_with("corpus") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml")
            && (path.parent() != Some(folder)
                || !folder.ends_with("corpus")
                || path.ends_with("withdrawn.toml"))
        {
            files.push(path);
        }
    }
}
