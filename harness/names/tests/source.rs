//! The recorded table of llama.cpp's names (`llama-arch.toml`) against the source that the oracle
//! pins. `GGUF_ASSAY_RECORD=1 cargo test -p gguf-assay-names --test source` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

/// The package that carries the source.
const PACKAGE: &str = "llama-cpp-sys-4";

fn main() {
    let arguments = Arguments::from_args();
    let trial = match source() {
        Ok((folder, label)) => Trial::test("recorded names", move || recorded(&folder, &label)),
        Err(why) => {
            Trial::test(format!("recorded names: {why}"), || Ok(())).with_ignored_flag(true)
        }
    };
    libtest_mimic::run(&arguments, vec![trial]).exit();
}

/// The folder `src` of the pinned llama.cpp, and what the package is called.
fn source() -> Result<(PathBuf, String), String> {
    let pin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oracle/pin/Cargo.toml");
    let run = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(pin)
        .output()
        .map_err(|_| "cargo does not start")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&run.stdout).map_err(|_| "the pinned package is not at hand")?;
    let packages = metadata["packages"].as_array().ok_or("cargo names no packages")?;
    let package = packages.iter().find(|package| package["name"] == PACKAGE);
    let package = package.ok_or("the pin names another package")?;
    let manifest = package["manifest_path"].as_str().ok_or("the package has no path")?;
    let label = format!("{PACKAGE} {}", package["version"].as_str().unwrap_or_default());
    Ok((Path::new(manifest).with_file_name("llama.cpp").join("src"), label))
}

fn recorded(folder: &Path, label: &str) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("llama-arch.toml");
    let text = table(folder, label)?;
    if std::env::var_os("GGUF_ASSAY_RECORD").is_some() {
        fs::write(&path, &text)?;
        return Ok(());
    }
    if fs::read_to_string(&path)? != text {
        return Err(
            "llama-arch.toml is not what the source has; GGUF_ASSAY_RECORD=1 writes it".into()
        );
    }
    Ok(())
}

fn table(folder: &Path, label: &str) -> Result<String, Failed> {
    let declared = fs::read_to_string(folder.join("llama-arch.cpp"))?;
    let architectures = entries(&declared, "LLM_ARCH_NAMES")?;
    let tensors = entries(&declared, "LLM_TENSOR_NAMES")?;
    let keys = entries(&declared, "LLM_KV_NAMES")?;
    let pattern = |name: &str| name.replacen("%d", "N", 1).replacen("%d", "E", 1);
    let tensors: BTreeMap<String, String> =
        tensors.into_iter().map(|(id, name)| (id, pattern(&name))).collect();

    let mut text = format!(
        "# The names that llama.cpp declares, read from its source by tests/source.rs: do not edit.\n\
         source = \"{label}, llama.cpp/src/llama-arch.cpp and src/models\"\n\n"
    );
    let names: BTreeSet<&str> = architectures
        .iter()
        .map(|(_, name)| name.as_str())
        .filter(|name| *name != "(unknown)")
        .collect();
    list(&mut text, "architectures", &names);
    list(&mut text, "tensors", &tensors.values().map(String::as_str).collect());
    let keys: BTreeSet<&str> =
        keys.iter().map(|(_, key)| key.strip_prefix("%s.").unwrap_or(key)).collect();
    list(&mut text, "keys", &keys);

    text += "\n# What the code that loads each architecture asks for.\n[tensors_of]\n";
    let classes = classes(&fs::read_to_string(folder.join("llama-model.cpp"))?);
    let mut models = String::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder.join("models"))?.flatten().map(|f| f.path()).collect();
    files.sort();
    for file in files {
        models += &fs::read_to_string(file)?;
    }
    let mut rows = BTreeMap::new();
    for (id, name) in &architectures {
        let Some(class) = classes.get(id) else { continue };
        let asked: BTreeSet<&str> = asked_for(&models, class)
            .iter()
            .filter_map(|id| tensors.get(id).map(String::as_str))
            .collect();
        rows.insert(name, asked);
    }
    for (name, asked) in rows {
        let asked: Vec<String> = asked.iter().map(|name| format!("{name:?}")).collect();
        let _ = writeln!(text, "{name:?} = [{}]", asked.join(", "));
    }
    Ok(text)
}

fn list(text: &mut String, name: &str, items: &BTreeSet<&str>) {
    let _ = writeln!(text, "{name} = [");
    for item in items {
        let _ = writeln!(text, "  {item:?},");
    }
    text.push_str("]\n");
}

/// The entries `{ IDENTIFIER, "text" }` of a table of the source.
fn entries(source: &str, table: &str) -> Result<Vec<(String, String)>, Failed> {
    let start = source.find(&format!(" {table} = {{")).ok_or(format!("there is no {table}"))?;
    let body = &source[start..];
    let body = &body[..body.find("\n};").ok_or(format!("{table} does not end"))?];
    let rows = body.lines().filter_map(|line| {
        let (id, rest) = line.trim().strip_prefix('{')?.split_once(',')?;
        let text = rest.split('"').nth(1)?;
        Some((id.trim().to_owned(), text.to_owned()))
    });
    let rows: Vec<_> = rows.collect();
    if rows.len() < 100 {
        Err(format!("{table} has {} entries", rows.len()).into())
    } else {
        Ok(rows)
    }
}

/// The class that loads each architecture.
fn classes(source: &str) -> BTreeMap<String, String> {
    let mut classes = BTreeMap::new();
    let mut open = Vec::new();
    for line in source.lines() {
        let line = line.trim();
        if let Some(id) = line.strip_prefix("case ").and_then(|rest| rest.strip_suffix(':')) {
            open.push(id.to_owned());
        } else if let Some(rest) = line.strip_prefix("return new ") {
            let class = rest.split('(').next().unwrap_or_default();
            classes.extend(open.drain(..).map(|id| (id, class.to_owned())));
        } else {
            open.clear();
        }
    }
    classes
}

/// The tensors that a class, or the one that it derives from, creates.
fn asked_for(models: &str, class: &str) -> BTreeSet<String> {
    let start = format!("void {class}::load_arch_tensors(");
    let Some(start) = models.find(&start) else {
        let derived = format!("struct {class} : public ");
        let base = models.find(&derived).and_then(|at| {
            models[at + derived.len()..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
        });
        return base.map(|base| asked_for(models, base)).unwrap_or_default();
    };
    let body = &models[start..];
    let body = &body[..body.find("\n}").unwrap_or(body.len())];
    let words = body.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let mut ids = BTreeSet::new();
    for word in words {
        // Two helpers of llama-model.cpp create several.
        let more: &[&str] = match word {
            "create_tensor_qkv" => &["ATTN_QKV", "ATTN_Q", "ATTN_K", "ATTN_V"],
            "create_tensor_gate_up_exps" => &["FFN_GATE_UP_EXPS", "FFN_GATE_EXPS", "FFN_UP_EXPS"],
            word if word.starts_with("LLM_TENSOR_") => {
                ids.insert(word.to_owned());
                &[]
            }
            _ => &[],
        };
        ids.extend(more.iter().map(|id| format!("LLM_TENSOR_{id}")));
    }
    // Some begin with what another class does.
    for (at, _) in body.match_indices("::load_arch_tensors(ml)") {
        let other = body[..at].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
        ids.extend(other.map(|other| asked_for(models, other)).unwrap_or_default());
    }
    ids
}
