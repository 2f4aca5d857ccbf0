//! Readers under test, in this process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use gguf_assay_cases::{
    CheckpointCase, CheckpointValue, FileValue, NamesCase, NamesInput, NamesValue, WeightValue,
};
use gguf_assay_format::{ByteOrder, OwnedValue, Profile, TensorType};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::CaseFiles;

/// What a subject says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The reader's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The language it is written in.
    #[serde(default)]
    pub language: String,
    /// Where it lives.
    #[serde(default)]
    pub home: String,
    /// The operations that it has: `read`, `dequantize`, `map_names`, `judge_checkpoint`, `unpack`.
    #[serde(default)]
    pub ops: Vec<String>,
    /// The tensor types that it dequantizes, in ggml's spelling; all, if it lists none.
    #[serde(default)]
    pub types: Vec<String>,
    /// Whether it dequantizes big-endian blocks, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub big_endian: bool,
}

impl About {
    /// A reader in Rust of this name and version, which can `read`.
    pub fn new(name: &str, version: &str) -> About {
        About {
            name: name.into(),
            version: version.into(),
            language: "rust".into(),
            ops: vec!["read".into()],
            ..About::default()
        }
    }
}

/// A file to read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Where the file lies.
    pub path: PathBuf,
    /// Whose rules the run goes by, for readers that can be told.
    pub profile: Profile,
    /// Whether the file is large: the reader is given more time.
    pub large: bool,
}

/// Blocks to dequantize.
#[derive(Clone, Debug)]
pub struct DequantizeRequest {
    /// The type of the blocks.
    pub tensor_type: &'static TensorType,
    /// Whole blocks.
    pub bytes: Vec<u8>,
    /// Their byte order; big-endian blocks are only for a subject that says that it takes them.
    pub byte_order: ByteOrder,
}

impl DequantizeRequest {
    /// How many numbers the blocks stand for.
    pub fn elements(&self) -> usize {
        let t = self.tensor_type;
        self.bytes.len() / t.block_bytes.max(1) as usize * t.block_len as usize
    }
}

/// Names to map.
#[derive(Clone, Debug)]
pub struct NamesRequest {
    /// The architecture, in llama.cpp's spelling.
    pub architecture: String,
    /// The side that is given, to be mapped to the other.
    pub given: NamesGiven,
}

impl NamesRequest {
    /// What a case asks; a file is laid into the folder of `files`.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, or what the file system says.
    pub fn of(case: &NamesCase, files: &CaseFiles) -> Result<NamesRequest, String> {
        let input = case.input().map_err(|e| e.to_string())?;
        let architecture = input.architecture();
        let given = match input {
            NamesInput::File { description, file } => NamesGiven::File {
                path: files.built(&case.id, || Ok(file))?,
                metadata: description.metadata,
                tensors: (description.tensors.into_iter())
                    .map(|tensor| (String::from_utf8_lossy(&tensor.name).into_owned(), tensor.dims))
                    .collect(),
            },
            NamesInput::Checkpoint { config, parameters, .. } => {
                NamesGiven::Checkpoint { config, parameters }
            }
        };
        Ok(NamesRequest { architecture, given })
    }
}

/// One side: a file, or a checkpoint.
#[derive(Clone, Debug)]
pub enum NamesGiven {
    /// A GGUF file, to be mapped to transformers.
    File {
        /// Where it lies.
        path: PathBuf,
        /// Its metadata.
        metadata: Vec<(Vec<u8>, OwnedValue)>,
        /// Names and dimensions of its tensors, in ggml's order.
        tensors: Vec<(String, Vec<u64>)>,
    },
    /// A checkpoint, to be mapped to GGUF.
    Checkpoint {
        /// Its `config.json`.
        config: Json,
        /// Names and shapes of its parameters, in torch's order.
        parameters: Vec<(String, Vec<u64>)>,
    },
}

/// A checkpoint to judge.
#[derive(Clone, Debug)]
pub struct CheckpointRequest {
    /// The folder.
    pub path: PathBuf,
    /// On how many devices its tensors are to be split; on one, if that is not said.
    pub tp: Option<u32>,
}

/// A module to unpack.
#[derive(Clone, Debug)]
pub struct UnpackRequest {
    /// The folder of the checkpoint.
    pub path: PathBuf,
    /// The module: what comes before `.qweight`, `.weight_packed` and the like.
    pub module: String,
}

/// What is asked of a checkpoint.
#[derive(Clone, Debug)]
pub enum CheckpointQuestion {
    /// Whether it is in order.
    Judge(CheckpointRequest),
    /// The numbers of a module.
    Unpack(UnpackRequest),
}

impl CheckpointQuestion {
    /// What a case asks; its files are laid into the folder of `files`.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, or what the file system says.
    pub fn of(case: &CheckpointCase, files: &CaseFiles) -> Result<CheckpointQuestion, String> {
        let path = files.folder(case)?;
        Ok(match &case.module {
            Some(module) => {
                CheckpointQuestion::Unpack(UnpackRequest { path, module: module.clone() })
            }
            None => CheckpointQuestion::Judge(CheckpointRequest { path, tp: case.tp }),
        })
    }
}

/// Why a subject has no value to give.
///
/// Any `std::error::Error` turns into [`Failure::Rejected`] by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The file was refused.
    Rejected {
        /// What the reader says.
        message: String,
        /// The error's type, in the reader's language.
        kind: String,
    },
    /// The reader does not do this, and says so.
    Unimplemented(String),
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        let kind = std::any::type_name::<E>();
        Failure::Rejected {
            message: error.to_string(),
            kind: kind.rsplit("::").next().unwrap_or(kind).into(),
        }
    }
}

/// A GGUF reader under test.
pub trait Subject {
    /// What the reader is.
    fn about(&self) -> About;

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Why the file was refused, or that the reader does not do this.
    fn read(&mut self, request: &ReadRequest) -> Result<FileValue, Failure>;

    /// Dequantizes blocks. A reader that can says so among the operations of [`About`].
    ///
    /// # Errors
    ///
    /// Why not, or that the reader does not do this, or not for the type.
    fn dequantize(&mut self, request: &DequantizeRequest) -> Result<Vec<f32>, Failure> {
        Err(Failure::Unimplemented(format!("dequantizing {}", request.tensor_type)))
    }

    /// Says what the names of one side are on the other. A mapper that can says so among the
    /// operations of [`About`].
    ///
    /// # Errors
    ///
    /// What does not fit, or that the mapper does not do this, or not in this direction.
    fn map_names(&mut self, _request: &NamesRequest) -> Result<NamesValue, Failure> {
        Err(Failure::Unimplemented("mapping names".into()))
    }

    /// Says whether a checkpoint is in order, and what it is. A judge that can says so among the
    /// operations of [`About`].
    ///
    /// # Errors
    ///
    /// What is wrong with the checkpoint, or that the subject does not do this, or not for the method.
    fn judge_checkpoint(
        &mut self,
        _request: &CheckpointRequest,
    ) -> Result<CheckpointValue, Failure> {
        Err(Failure::Unimplemented("judging checkpoints".into()))
    }

    /// Says what the numbers of a module are. Who can says so among the operations of [`About`].
    ///
    /// # Errors
    ///
    /// Why not, or that the subject does not do this, or not for the method.
    fn unpack(&mut self, _request: &UnpackRequest) -> Result<WeightValue, Failure> {
        Err(Failure::Unimplemented("unpacking modules".into()))
    }
}

/// What came of asking a subject, all ways to fail told apart.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The file was read.
    Value(Box<FileValue>),
    /// The blocks were dequantized.
    Numbers(Vec<f32>),
    /// The names were mapped.
    Names(Box<NamesValue>),
    /// The checkpoint was judged, and is in order.
    Judged(Box<CheckpointValue>),
    /// The module was unpacked.
    Weight(Box<WeightValue>),
    /// The subject said why not.
    Failure(Failure),
    /// A Rust panic, with its message.
    Panicked(String),
    /// The process ended, or answered nonsense: how.
    Crashed(String),
    /// No answer within the time limit.
    TimedOut(String),
    /// The memory limit was reached.
    OutOfMemory(String),
}

/// A way to ask a subject: in this process or in another.
pub trait Channel {
    /// What the subject is.
    fn about(&self) -> &About;

    /// Has a file read. Never panics, whatever the subject does.
    fn read(&mut self, request: &ReadRequest) -> Answer;

    /// Has blocks dequantized. Never panics, whatever the subject does.
    fn dequantize(&mut self, request: &DequantizeRequest) -> Answer;

    /// Has names mapped. Never panics, whatever the subject does.
    fn map_names(&mut self, request: &NamesRequest) -> Answer;

    /// Has a checkpoint judged, or a module of it unpacked. Never panics, whatever the subject does.
    fn checkpoint(&mut self, question: &CheckpointQuestion) -> Answer;

    /// What the subject wrote to standard error since the last call, escaped and bounded.
    fn take_stderr(&mut self) -> String {
        String::new()
    }
}

/// A subject in this process; panics are caught, but a crash or a hang is ours too.
pub struct InProcess<S> {
    subject: S,
    about: About,
}

impl<S: Subject> InProcess<S> {
    /// Asks the subject what it is.
    pub fn new(subject: S) -> InProcess<S> {
        InProcess { about: subject.about(), subject }
    }
}

impl<S: Subject> Channel for InProcess<S> {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, request: &ReadRequest) -> Answer {
        caught(|| self.subject.read(request), |value| Answer::Value(Box::new(value)))
    }

    fn dequantize(&mut self, request: &DequantizeRequest) -> Answer {
        caught(|| self.subject.dequantize(request), Answer::Numbers)
    }

    fn map_names(&mut self, request: &NamesRequest) -> Answer {
        caught(|| self.subject.map_names(request), |value| Answer::Names(Box::new(value)))
    }

    fn checkpoint(&mut self, question: &CheckpointQuestion) -> Answer {
        match question {
            CheckpointQuestion::Judge(request) => caught(
                || self.subject.judge_checkpoint(request),
                |value| Answer::Judged(Box::new(value)),
            ),
            CheckpointQuestion::Unpack(request) => {
                caught(|| self.subject.unpack(request), |value| Answer::Weight(Box::new(value)))
            }
        }
    }
}

/// What comes of asking, a panic included.
fn caught<T>(ask: impl FnOnce() -> Result<T, Failure>, answer: impl FnOnce(T) -> Answer) -> Answer {
    match catch_unwind(AssertUnwindSafe(ask)) {
        Ok(Ok(value)) => answer(value),
        Ok(Err(failure)) => Answer::Failure(failure),
        Err(panic) => Answer::Panicked(panic_message(&*panic)),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text").into()
}
