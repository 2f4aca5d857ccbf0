//! Makes an adapter of a subject: the other end of the protocol.

use std::io::{self, BufRead, Write};

use gguf_assay_format::{ByteOrder, Profile, TensorType};

use crate::protocol::{Described, PROTOCOL, Request, Response, from_hex};
use crate::{
    CheckpointRequest, DequantizeRequest, Failure, NamesRequest, ReadRequest, Subject,
    UnpackRequest,
};

/// Answers requests on standard input until it ends. This is the `main` of an adapter in Rust.
///
/// # Errors
///
/// When standard input or output fails, or a request is not of the protocol.
pub fn serve(mut subject: impl Subject) -> io::Result<()> {
    let (input, mut output) = (io::stdin().lock(), io::stdout().lock());
    for line in input.lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let answer = match request {
            Request::Describe { .. } => {
                serde_json::to_string(&Described { protocol: PROTOCOL, about: subject.about() })
            }
            Request::Read { id, path, profile } => {
                let result = match profile.parse::<Profile>() {
                    Ok(profile) => {
                        let large = false;
                        subject.read(&ReadRequest { path: path.into(), profile, large })
                    }
                    Err(message) => Err(Failure::Unimplemented(message)),
                };
                serde_json::to_string(&Response::to_read(id, &result))
            }
            Request::Dequantize { id, r#type, hex, big_endian } => {
                let byte_order = if big_endian { ByteOrder::Big } else { ByteOrder::Little };
                let result = match (TensorType::by_name(&r#type), from_hex(&hex)) {
                    (Some(tensor_type), Some(bytes)) => {
                        subject.dequantize(&DequantizeRequest { tensor_type, bytes, byte_order })
                    }
                    (None, _) => Err(Failure::Unimplemented(format!("the type {}", r#type))),
                    (_, None) => return Err(io::Error::other("`hex` is not hex")),
                };
                serde_json::to_string(&Response::to_dequantize(id, &result))
            }
            Request::MapNames { id, architecture, given } => {
                let result = match given.into_given() {
                    Ok(given) => subject.map_names(&NamesRequest { architecture, given }),
                    Err(error) => return Err(io::Error::other(error)),
                };
                serde_json::to_string(&Response::to_map_names(id, &result))
            }
            Request::JudgeCheckpoint { id, path, tp } => {
                let result = subject.judge_checkpoint(&CheckpointRequest { path: path.into(), tp });
                serde_json::to_string(&Response::to_judge_checkpoint(id, &result))
            }
            Request::Unpack { id, path, module } => {
                let result = subject.unpack(&UnpackRequest { path: path.into(), module });
                serde_json::to_string(&Response::to_unpack(id, &result))
            }
        }?;
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}
