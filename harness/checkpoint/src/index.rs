//! Which files hold the weights: `model.safetensors`, or what the index names.

use std::collections::{BTreeMap, BTreeSet};

use gguf_assay_format::printable;
use serde_json::Value as Json;

use crate::checkpoint::{CONFIG, Shard};
use crate::files::Files;
use crate::finding::{Finding, Findings, Refusal};
use crate::json;
use crate::rule;

/// The file that is loaded alone where it is there.
const SINGLE: &str = "model.safetensors";

/// The index of the files where there are several.
const INDEX: &str = "model.safetensors.index.json";

const SAFETENSORS: &str = ".safetensors";

/// The index of a checkpoint's files.
#[derive(Debug)]
pub(crate) struct Index {
    /// Its own name.
    file: String,
    /// The file of each tensor. Files that are not of this folder are left out.
    weight_map: BTreeMap<String, String>,
    total_size: Option<u64>,
}

/// The files that are loaded.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Their names, those alone that are there, in order.
    pub(crate) names: Vec<String>,
    pub(crate) index: Option<Index>,
}

impl Weights {
    /// Finds them among the names of a folder, by the order in which transformers 5.24.0 looks
    /// (`modeling_utils.py`, `_get_resolved_checkpoint_files`): what `transformers_weights` of the
    /// config names, `model.safetensors`, what the index names.
    pub(crate) fn find<F: Files>(
        files: &F,
        names: &BTreeSet<String>,
        config: Option<&Json>,
        findings: &mut Findings,
    ) -> Weights {
        let named = config.and_then(|config| config.get("transformers_weights")?.as_str());
        if let Some(name) = named.filter(|name| !names.contains(*name)) {
            let found = format!("no file {}", printable(name, 200));
            let finding = Finding::new(&rule::CKPT_011, found, "the file").in_file(CONFIG);
            findings.add(finding.of_field("transformers_weights"));
        }
        let named = named.filter(|name| names.contains(*name));
        let single = named.filter(|name| name.ends_with(SAFETENSORS));
        let single = single.or(names.get(SINGLE).map(String::as_str));
        let index = named.filter(|name| name.ends_with(".safetensors.index.json"));
        let index = match index.or(names.get(INDEX).map(String::as_str)) {
            Some(file) => Index::read(files, file, findings),
            None => None,
        };
        let all = names.iter().filter(|name| name.ends_with(SAFETENSORS));
        let mut weights = match (single, &index) {
            (Some(single), _) => vec![single.to_owned()],
            (None, Some(index)) => {
                index.files().filter(|name| names.contains(*name)).map(str::to_owned).collect()
            }
            (None, None) => loose(&all.clone().map(String::as_str).collect::<Vec<_>>()),
        };
        if single.is_none() && index.is_none() {
            findings.extend(nothing_named(&weights));
        }
        if let (Some(single), Some(index)) = (single, &index)
            && let Some(other) = index.files().find(|name| *name != single)
        {
            let found = format!("{single}, and an index that names {}", printable(other, 200));
            let expected = "one of the two: vLLM 0.9.0 goes by the index (weight_utils.py, \
                            filter_duplicate_safetensors_files)";
            findings.add(Finding::new(&rule::CKPT_018, found, expected).in_file(&index.file));
        }
        weights.sort();
        let numbered = numbered(names, &weights, index.as_ref(), findings);
        let loaded: BTreeSet<&String> = weights.iter().collect();
        for name in all.filter(|name| !loaded.contains(name) && !numbered.contains(name.as_str())) {
            let found = format!("a file that is none of {}", loaded_in_words(&weights));
            findings.add(Finding::new(&rule::CKPT_017, found, "no such file").in_file(name));
        }
        // An index beside the one file is of no use unless it names that file.
        let index = index
            .filter(|index| single.is_none_or(|single| index.files().all(|name| name == single)));
        Weights { names: weights, index }
    }
}

fn loaded_in_words(weights: &[String]) -> String {
    match weights {
        [one] => format!("the one that is loaded, {}", printable(one, 200)),
        _ => format!("the {} that are loaded", weights.len()),
    }
}

/// The files that may be taken for the weights where nothing names them: all but those of adapters,
/// and of what Mistral ships beside.
fn loose<'a>(all: &[&'a str]) -> Vec<String> {
    let weights = all.iter().filter(|name| !name.starts_with("adapter"));
    let is_consolidated = |name: &&&&'a str| name.starts_with("consolidated");
    let others: Vec<&&str> = weights.clone().filter(|name| !is_consolidated(&name)).collect();
    let taken: Vec<&&str> = if others.is_empty() { weights.collect() } else { others };
    taken.into_iter().map(|name| (*name).to_owned()).collect()
}

fn nothing_named(weights: &[String]) -> Option<Finding> {
    let expected = format!("{SINGLE} or {INDEX}");
    let refusal = Refusal {
        loader: "transformers 5.24.0",
        says: "Error no file named model.safetensors, or pytorch_model.bin, found in directory",
    };
    match weights.first() {
        None => {
            let finding = Finding::new(&rule::CKPT_007, "no safetensors file", expected);
            Some(finding.refused_by(&[refusal]))
        }
        Some(first) => {
            let found = format!("{} files that nothing names", weights.len());
            let finding = Finding::new(&rule::CKPT_008, found, expected).in_file(first);
            Some(finding.refused_by(&[refusal]))
        }
    }
}

/// What stands before and after the number of a numbered file, and the number:
/// `model-00002-of-00003.safetensors`.
fn number(name: &str) -> Option<((&str, &str), u64)> {
    let (first, total) = name.strip_suffix(SAFETENSORS)?.rsplit_once("-of-")?;
    let (prefix, number) = first.rsplit_once('-')?;
    // No longer than numbers are.
    total.parse::<u64>().ok().filter(|_| total.len() <= 20)?;
    Some(((prefix, total), number.parse().ok()?))
}

/// Looks whether numbered files are all there, and gives those that are beside the loaded ones and
/// of the same series.
fn numbered<'n>(
    names: &'n BTreeSet<String>,
    weights: &[String],
    index: Option<&Index>,
    findings: &mut Findings,
) -> BTreeSet<&'n str> {
    let mut series: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
    let in_index = index.into_iter().flat_map(Index::files);
    for (of, number) in weights.iter().map(String::as_str).chain(in_index).filter_map(number) {
        series.entry(of).or_default().insert(number);
    }
    let mut beside = BTreeSet::new();
    if let Some(index) = index {
        let loaded: BTreeSet<&str> = index.files().collect();
        for name in names.iter().filter(|name| !loaded.contains(name.as_str())) {
            if let Some((of, number)) = number(name)
                && let Some(numbers) = series.get_mut(&of)
                && !weights.contains(name)
            {
                numbers.insert(number);
                beside.insert(name.as_str());
                let found = "a file of the series that the index does not name";
                let expected = format!("its tensors in {}", index.file);
                findings.add(Finding::new(&rule::CKPT_016, found, expected).in_file(name));
            }
        }
    }
    for ((prefix, total), numbers) in series {
        let Ok(count) = total.parse::<u64>() else { continue };
        // Some count from 0, and then up to the last or up to the count: gpt-oss as it was published
        // has 00000, 00001 and 00002 of 00002.
        let first = if numbers.contains(&0) { 0 } else { 1 };
        let last = if first == 0 { count.saturating_sub(1) } else { count };
        let there = u64::try_from(numbers.range(first..=last.max(first)).count()).unwrap_or(0);
        let missing = last.saturating_sub(first).saturating_add(1).saturating_sub(there);
        if missing == 0 {
            continue;
        }
        let Some(lowest) = (first..=last).find(|number| !numbers.contains(number)) else {
            continue;
        };
        let width = total.len();
        let name = format!("{prefix}-{lowest:0width$}-of-{total}{SAFETENSORS}");
        let found = format!("{there} of {count} files; {missing} are missing, the first is {name}");
        findings.add(Finding::new(&rule::CKPT_016, found, "all of them").in_file(name));
    }
    beside
}

impl Index {
    fn read<F: Files>(files: &F, file: &str, findings: &mut Findings) -> Option<Index> {
        let json = json::read(files, file, findings)?;
        let kind = |field: &str| json.get(field).map_or("no such field", json::kind);
        let wrong = |field: &str, found: &str, expected: &str| {
            let finding = Finding::new(&rule::CKPT_009, found, expected);
            finding.in_file(file).of_field(field)
        };
        let metadata = json.get("metadata").and_then(Json::as_object);
        if metadata.is_none() {
            let refusal = Refusal { loader: "transformers 5.24.0", says: "KeyError: 'metadata'" };
            let finding = wrong("metadata", kind("metadata"), "an object");
            findings.add(match json.get("metadata") {
                None => finding.refused_by(&[refusal]),
                Some(_) => finding,
            });
        }
        let Some(map) = json.get("weight_map").and_then(Json::as_object) else {
            findings.add(wrong("weight_map", kind("weight_map"), "an object"));
            return None;
        };
        let mut weight_map = BTreeMap::new();
        for (tensor, name) in map {
            let Some(name) = name.as_str() else {
                let finding = wrong("weight_map", json::kind(name), "the name of a file");
                findings.add(finding.of_tensor(tensor));
                continue;
            };
            if name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == ".." {
                let found = printable(name, 200);
                let expected = "the name of a file in the same folder";
                let finding = Finding::new(&rule::CKPT_010, found, expected).in_file(file);
                findings.add(finding.of_field("weight_map").of_tensor(tensor));
                continue;
            }
            weight_map.insert(tensor.clone(), name.to_owned());
        }
        let total_size = metadata.and_then(|metadata| metadata.get("total_size"));
        if let Some(total_size) = total_size.filter(|size| !size.is_u64()) {
            let found = printable(&total_size.to_string(), 80);
            let finding = Finding::new(&rule::CKPT_015, found, "a whole number of bytes");
            findings.add(finding.in_file(file).of_field("metadata.total_size"));
        }
        let total_size = total_size.and_then(Json::as_u64);
        Some(Index { file: file.into(), weight_map, total_size })
    }

    /// The files that it names, each as often as it is named.
    fn mentions(&self) -> impl Iterator<Item = &str> {
        self.weight_map.values().map(String::as_str)
    }

    /// The files that it names, each once.
    fn files(&self) -> impl Iterator<Item = &str> {
        self.mentions().collect::<BTreeSet<_>>().into_iter()
    }

    /// The file of a tensor.
    pub(crate) fn file_of(&self, tensor: &str) -> Option<&str> {
        self.weight_map.get(tensor).map(String::as_str)
    }

    /// Holds the index against the files that are there. `names` are those of the folder.
    pub(crate) fn compare(
        &self,
        names: &BTreeSet<String>,
        shards: &[Shard],
        findings: &mut Findings,
    ) {
        let mut mentions: BTreeMap<&str, u64> = BTreeMap::new();
        for name in self.mentions() {
            let count = mentions.entry(name).or_default();
            *count = count.saturating_add(1);
        }
        for (name, count) in mentions.iter().filter(|(name, _)| !names.contains(**name)) {
            let found = format!("no such file; the index has {count} tensors of it");
            let finding = Finding::new(&rule::CKPT_011, found, "the file");
            findings.add(finding.in_file(*name));
        }
        // Where each tensor is, whatever the index says.
        let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for shard in shards {
            for tensor in shard.names() {
                owners.entry(tensor).or_default().push(&shard.name);
            }
        }
        let legible: BTreeSet<&str> = shards.iter().map(|shard| shard.name.as_str()).collect();
        for (tensor, file) in &self.weight_map {
            let owners = owners.get(tensor.as_str()).map(Vec::as_slice).unwrap_or_default();
            if owners.contains(&file.as_str()) || !legible.contains(file.as_str()) {
                continue;
            }
            let found = match owners.first() {
                Some(owner) => format!("it is in {}", printable(owner, 200)),
                None => "no such tensor".into(),
            };
            let expected = format!("what {} says", self.file);
            let finding = Finding::new(&rule::CKPT_012, found, expected);
            findings.add(finding.in_file(file).of_tensor(tensor));
        }
        for (tensor, owners) in &owners {
            if self.file_of(tensor).is_none()
                && let Some(owner) = owners.first()
            {
                let found = format!("it is in {}, and not in the index", printable(owner, 200));
                let finding = Finding::new(&rule::CKPT_013, found, "its name in weight_map");
                findings.add(finding.in_file(&self.file).of_tensor(*tensor));
            }
        }
        let is_whole = mentions.keys().all(|name| legible.contains(name))
            && shards.iter().all(|shard| shard.header.illegible.is_empty());
        let tensors = shards.iter().flat_map(|shard| &shard.header.tensors);
        let sum = tensors.fold(0u64, |sum, tensor| sum.saturating_add(tensor.len));
        if let Some(total_size) = self.total_size.filter(|size| is_whole && *size != sum) {
            let found = format!("{total_size} bytes");
            let finding = Finding::new(&rule::CKPT_015, found, format!("{sum} bytes"));
            findings.add(finding.in_file(&self.file).of_field("metadata.total_size"));
        }
    }
}
