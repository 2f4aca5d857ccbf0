//! This project's own reader as a subject.

use gguf_assay_cases::{
    CheckpointValue, FileValue, MappedName, ModuleValue, NamesValue, TensorValue, WeightValue,
    sha256,
};
use gguf_assay_checkpoint::{Checkpoint, Folder, Group, Judgement, QuantizedModule, judge};
use gguf_assay_format::{ByteOrder, OwnedValue, Profile, read};
use gguf_assay_names::{Architecture, CheckpointMap, CheckpointTensor, Finding, Map};
use gguf_assay_quant::dequantize;
use serde_json::Value as Json;

use crate::{
    About, CheckpointRequest, DequantizeRequest, Failure, NamesGiven, NamesRequest, ReadRequest,
    Subject, UnpackRequest,
};

/// The reader of the crate `gguf-assay-format`, under the profile that it is asked for, the
/// dequantizer of `gguf-assay-quant`, the maps of `gguf-assay-names`, and the judge and unpacker of
/// `gguf-assay-checkpoint`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Subject for Reference {
    fn about(&self) -> About {
        About {
            ops: ["read", "dequantize", "map_names", "judge_checkpoint", "unpack"]
                .map(String::from)
                .to_vec(),
            big_endian: true,
            ..About::new("reference", env!("CARGO_PKG_VERSION"))
        }
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        let mut numbers = vec![0.0; request.elements()];
        dequantize(request.tensor_type, &request.bytes, request.byte_order, &mut numbers)?;
        Ok(numbers)
    }

    fn map_names(&mut self, request: &NamesRequest) -> Result<NamesValue, Failure> {
        match &request.given {
            NamesGiven::File { path, .. } => to_transformers(&std::fs::read(path)?),
            NamesGiven::Checkpoint { config, parameters } => {
                to_gguf(&request.architecture, config, parameters)
            }
        }
    }

    fn judge_checkpoint(
        &mut self,
        request: &CheckpointRequest,
    ) -> Result<CheckpointValue, Failure> {
        let checkpoint = Checkpoint::open(Folder::new(&request.path))?;
        Ok(judged(&in_order(&checkpoint, request.tp)?))
    }

    fn unpack(&mut self, request: &UnpackRequest) -> Result<WeightValue, Failure> {
        let checkpoint = Checkpoint::open(Folder::new(&request.path))?;
        let judgement = in_order(&checkpoint, None)?;
        let mut modules = judgement.modules.iter();
        let Some(module) = modules.find(|module| module.name == request.module) else {
            let message = format!("{} is no quantized module", request.module);
            return Err(Failure::Rejected { message, kind: "NotUnpacked".into() });
        };
        let weight = checkpoint.unpack(module).map_err(|error| Failure::Rejected {
            message: format!("{}: {error}", module.name),
            kind: "NotUnpacked".into(),
        })?;
        Ok(WeightValue { shape: weight.shape, numbers: weight.numbers })
    }

    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure> {
        let bytes = std::fs::read(&request.path)?;
        let gguf = read(&bytes, request.profile)?;
        let metadata = gguf.metadata.iter();
        let tensors = gguf.tensors.iter().map(|tensor| TensorValue {
            name: tensor.name.0.into(),
            type_name: tensor.tensor_type.map(|t| t.name.into()),
            dims: Some(tensor.dims.iter().collect()),
            offset: Some(tensor.offset),
            sha256: gguf.tensor_bytes(tensor).map(|data| {
                // Cases in big-endian order have tensors of plain numbers only.
                let width = tensor.tensor_type.map_or(1, |t| t.block_bytes as usize);
                match gguf.byte_order {
                    ByteOrder::Little => sha256(data),
                    ByteOrder::Big => {
                        let numbers = data.chunks(width.max(1));
                        let little: Vec<u8> =
                            numbers.flat_map(|number| number.iter().rev().copied()).collect();
                        sha256(&little)
                    }
                }
            }),
        });
        Ok(FileValue {
            version: Some(gguf.version),
            tensors: Some(tensors.collect()),
            metadata: Some(
                metadata.map(|entry| (entry.key.0.into(), OwnedValue::from(entry.value))).collect(),
            ),
        })
    }
}

/// The parameters and the config that a file stands for.
fn to_transformers(bytes: &[u8]) -> Result<NamesValue, Failure> {
    let gguf = read(bytes, Profile::Ggml)?;
    let map = Map::of(&gguf)?;
    refuse(unfit(&map.findings))?;
    let mut names = Vec::new();
    for parameter in &map.parameters {
        let from: Vec<String> = (parameter.sources.iter())
            .filter_map(|source| Some(map.tensors.get(source.tensor)?.name.clone()))
            .collect();
        for (expert, name) in (0..).zip(parameter.names()) {
            let values = map.read(&gguf, parameter, expert)?;
            names.push(MappedName {
                name,
                from: Some(from.clone()),
                numbers: values.f32s(),
                shape: Some(values.shape),
            });
        }
    }
    Ok(NamesValue { names, config: Some(map.config) })
}

/// The tensors that a checkpoint comes to.
fn to_gguf(
    architecture: &str,
    config: &Json,
    parameters: &[(String, Vec<u64>)],
) -> Result<NamesValue, Failure> {
    let architecture = Architecture::find(architecture)?;
    let parameters: Vec<CheckpointTensor> = (parameters.iter())
        .map(|(name, shape)| CheckpointTensor { name: name.clone(), shape: shape.clone() })
        .collect();
    let map = CheckpointMap::of(architecture, &parameters, config);
    refuse(unfit(&map.findings))?;
    let names = map.tensors.into_iter().map(|tensor| MappedName {
        from: Some(
            (tensor.sources.iter())
                .filter_map(|source| Some(parameters.get(source.parameter)?.name.clone()))
                .collect(),
        ),
        name: tensor.name,
        shape: Some(tensor.dims),
        numbers: None,
    });
    Ok(NamesValue { names: names.collect(), config: None })
}

/// Findings of names, with their rules.
fn unfit(findings: &[Finding]) -> impl Iterator<Item = String> {
    findings.iter().map(|finding| format!("{}: {finding}", finding.rule()))
}

/// Everything that does not fit, as one refusal.
fn refuse(findings: impl Iterator<Item = String>) -> Result<(), Failure> {
    let lines: Vec<String> = findings.collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(Failure::Rejected { message: lines.join("; "), kind: "Finding".into() })
}

/// The judgement of a checkpoint, unless something is wrong with it.
fn in_order(checkpoint: &Checkpoint<Folder>, tp: Option<u32>) -> Result<Judgement, Failure> {
    let options = gguf_assay_checkpoint::Options { tp: tp.map(u64::from), ..Default::default() };
    let judgement = judge(checkpoint, &options);
    let faults = judgement.findings.iter().filter(|finding| finding.is_fault());
    refuse(faults.map(ToString::to_string))?;
    Ok(judgement)
}

/// What a checkpoint is.
fn judged(judgement: &Judgement) -> CheckpointValue {
    let modules = &judgement.modules;
    CheckpointValue {
        method: judgement.method.map(|method| method.name.to_owned()),
        bits: shared(modules.iter().map(|module| module.bits)),
        group_size: shared(modules.iter().map(group_size)),
        symmetric: shared(modules.iter().map(|module| module.symmetric)).flatten(),
        experts: judgement.experts.as_ref().map(|experts| experts.layout.name().to_owned()),
        modules: Some(modules.iter().map(module_value).collect()),
    }
}

fn module_value(module: &QuantizedModule) -> ModuleValue {
    ModuleValue {
        name: module.name.clone(),
        in_features: module.in_features,
        out_features: module.out_features,
        bits: Some(module.bits),
        group_size: Some(group_size(module)),
        layout: Some(module.layout.name.to_owned()),
    }
}

/// How many codes share a scale, -1 for all of a row.
fn group_size(module: &QuantizedModule) -> i64 {
    match module.group {
        Group::Size(size) => i64::try_from(size).unwrap_or(i64::MAX),
        Group::Row => -1,
    }
}

/// What all have, if they have one.
fn shared<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}
