//! From a module that was judged to its numbers.

use std::collections::BTreeMap;
use std::io;

use crate::checkpoint::Checkpoint;
use crate::files::Files;
use crate::judge::QuantizedModule;
use crate::packing::{self, NotUnpacked, PackedLayout, Packing, Tensor};
use crate::scheme::Group;

/// The numbers of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Rows (`out_features`) and columns (`in_features`), behind the number of experts where one tensor
    /// has several.
    pub shape: Vec<u64>,
    /// The numbers, row by row.
    pub numbers: Vec<f32>,
}

impl QuantizedModule {
    /// What the module's tensors are to be read by; `None` if its layout is none that can be unpacked.
    pub fn packing(&self) -> Option<Packing> {
        let layout = match self.layout.name {
            "gptq" => PackedLayout::Gptq { v2: self.zero_is_plain },
            "awq-gemm" => PackedLayout::AwqGemm,
            "awq-gemv" => PackedLayout::AwqGemv,
            "awq-gemv-fast" => PackedLayout::AwqGemvFast,
            "awq-marlin" => PackedLayout::AwqMarlin,
            "pack-quantized" => PackedLayout::CompressedPack,
            "int-quantized" | "int-quantized-tensor" => PackedLayout::CompressedInt,
            "float-quantized-channel"
            | "float-quantized-tensor"
            | "float-quantized-block"
            | "fp8-block"
            | "fp8-tensor"
            | "fp8-tensor-inv"
            | "fp8-row" => PackedLayout::Float8,
            "nvfp4-pack-quantized" => PackedLayout::Nvfp4 { divide: true },
            "modelopt-nvfp4" => PackedLayout::Nvfp4 { divide: false },
            "mxfp4-pack-quantized" => PackedLayout::Mxfp4,
            "bnb-nf4" | "bnb-fp4" => PackedLayout::Bnb4,
            "bnb-int8" => PackedLayout::BnbInt8,
            "gpt-oss-mxfp4" => PackedLayout::GptOss,
            _ => return None,
        };
        Some(Packing {
            group_size: match self.group {
                Group::Size(size) => Some(size),
                Group::Row => None,
            },
            symmetric: self.symmetric.unwrap_or(true),
            block: self.block.map(|(rows, columns)| [rows, columns]),
            ..Packing::new(layout, u32::try_from(self.bits).ok()?)
        })
    }
}

/// Reads the tensors of a module and makes its numbers of them.
///
/// # Errors
///
/// A layout that cannot be unpacked, a tensor that cannot be read, or what
/// [`packing::unpack`] says.
pub fn unpack<F: Files>(
    checkpoint: &Checkpoint<F>,
    module: &QuantizedModule,
) -> Result<Weight, NotUnpacked> {
    let not = |tensor: Option<&str>, found: String, expected: &str| NotUnpacked {
        tensor: tensor.map(str::to_owned),
        found,
        expected: expected.into(),
    };
    let expected = "a layout whose numbers are known";
    let packing =
        module.packing().ok_or_else(|| not(None, module.layout.name.to_owned(), expected))?;
    let (Some(rows), Some(columns)) = (module.out_features, module.in_features) else {
        return Err(not(None, "no shape follows from the tensors".into(), "rows and columns"));
    };
    let mut tensors = BTreeMap::new();
    for (suffix, name) in &module.tensors {
        let unread = |error: io::Error| not(Some(name), error.to_string(), "a tensor to read");
        let record = checkpoint.tensor(name);
        let record = record.ok_or_else(|| unread(io::ErrorKind::NotFound.into()))?;
        let bytes = checkpoint.read(name).map_err(unread)?;
        let tensor = Tensor::new(record.dtype, &record.shape, bytes);
        tensors.insert(suffix.trim_start_matches(['.', '_']), tensor);
    }
    let numbers = packing::unpack(&packing, rows, columns, &tensors)?;
    let mut shape = vec![rows, columns];
    if let (PackedLayout::GptOss, Some(experts)) = (packing.layout, module.experts) {
        shape.insert(0, experts);
    }
    Ok(Weight { shape, numbers })
}
