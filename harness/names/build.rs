//! Embeds the data: lists the TOML files of each folder so that a new file needs no new code.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for folder in ["architectures", "shared"] {
        let source = listing(&root.join(folder));
        fs::write(out.join(folder).with_extension("rs"), source).expect("OUT_DIR is writable");
    }
}

/// `&[("stem", include_str!("path")), …]`, sorted.
fn listing(folder: &Path) -> String {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("the data are there").flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort_by(|a, b| a.file_stem().cmp(&b.file_stem()));
    let mut source = String::from("&[\n");
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8 names");
        source += &format!("    ({stem:?}, include_str!({:?})),\n", file.display().to_string());
    }
    source + "]\n"
}
