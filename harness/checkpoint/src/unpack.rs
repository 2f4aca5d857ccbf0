//! The numbers of a module of a checkpoint.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::checkpoint::Checkpoint;
use crate::dtype::FLOATS;
use crate::files::Files;
use crate::judge::QuantizedModule;
use crate::packing::{NotUnpacked, PackedLayout, Packing, Tensor, gpt_oss, unpack};
use crate::scheme::Group;

/// A weight in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The parameter that it is of: `model.layers.0.mlp.down_proj.weight`.
    pub name: String,
    /// Its shape, in torch's order: [out, in], or [experts, out, in].
    pub shape: Vec<u64>,
    /// The last dimension is contiguous.
    pub numbers: Vec<f32>,
}

impl QuantizedModule {
    /// How its tensors are read.
    pub fn packing(&self) -> Packing {
        let layout = match self.layout.packed {
            PackedLayout::Gptq { .. } => PackedLayout::Gptq { v2: self.zero_is_plain },
            layout => layout,
        };
        Packing {
            layout,
            bits: u32::try_from(self.bits).unwrap_or(0),
            group_size: match self.group {
                Group::Size(size) => Some(size),
                Group::Row => None,
            },
            symmetric: self.symmetric.unwrap_or(true),
            block: self.block.map(|(rows, cols)| [rows, cols]),
        }
    }
}

impl<F: Files> Checkpoint<F> {
    /// The tensors of a module, by their suffixes without dot or underscore, as
    /// [`packing`](crate::packing) has them.
    ///
    /// # Errors
    ///
    /// A tensor cannot be read.
    pub fn tensors_of(
        &self,
        module: &QuantizedModule,
    ) -> Result<BTreeMap<&'static str, Tensor<'static>>, NotUnpacked> {
        let mut tensors = BTreeMap::new();
        for (suffix, name) in &module.tensors {
            let suffix = suffix.trim_start_matches(['.', '_']);
            let record = self.tensor(name);
            let bytes = self.read(name);
            let (Some(record), Ok(bytes)) = (record, bytes) else {
                return Err(NotUnpacked::of(suffix, "bytes that cannot be read", "all of them"));
            };
            let tensor = Tensor {
                dtype: record.dtype,
                shape: record.shape.clone(),
                bytes: Cow::Owned(bytes),
            };
            tensors.insert(suffix, tensor);
        }
        Ok(tensors)
    }

    /// The numbers of a module.
    ///
    /// # Errors
    ///
    /// Its tensors are not those of its layout, or cannot be read.
    pub fn unpack(&self, module: &QuantizedModule) -> Result<Matrix, NotUnpacked> {
        let (Some(out_features), Some(in_features)) = (module.out_features, module.in_features)
        else {
            return Err(NotUnpacked::new("a weight whose shape does not follow", "one that does"));
        };
        let tensors = self.tensors_of(module)?;
        let numbers = unpack(&module.packing(), out_features, in_features, &tensors)?;
        let packed = module.layout.packed == PackedLayout::GptOss;
        let (name, shape) = if packed {
            (module.name.clone(), vec![module.experts.unwrap_or(1), out_features, in_features])
        } else {
            (format!("{}.weight", module.name), vec![out_features, in_features])
        };
        Ok(Matrix { name, shape, numbers })
    }

    /// The numbers of a module, one matrix for each expert and projection: `gate_up_proj` of gpt-oss
    /// comes to `0.gate_proj.weight`, `0.up_proj.weight`, `1.gate_proj.weight` … as DeepSeek and
    /// Qwen have them. Any other module is one matrix.
    ///
    /// # Errors
    ///
    /// Those of [`unpack`](Checkpoint::unpack).
    pub fn unpack_experts(&self, module: &QuantizedModule) -> Result<Vec<Matrix>, NotUnpacked> {
        let matrix = self.unpack(module)?;
        let [experts, rows, cols] = *matrix.shape.as_slice() else { return Ok(vec![matrix]) };
        let size = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).max(1);
        let (row, each) = (size(cols), size(rows.saturating_mul(cols)));
        let (outer, projection) =
            module.name.rsplit_once('.').unwrap_or(("", module.name.as_str()));
        let mut all = Vec::new();
        for (expert, numbers) in (0..experts).zip(matrix.numbers.chunks(each)) {
            let mut push = |projection: &str, shape: Vec<u64>, numbers: Vec<f32>| {
                let name = format!("{outer}.{expert}.{projection}.weight");
                all.push(Matrix { name, shape, numbers });
            };
            if projection == "gate_up_proj" {
                let shape = vec![rows.div_euclid(2), cols];
                let [gate, up] = gpt_oss::deinterleave(numbers, row);
                push("gate_proj", shape.clone(), gate);
                push("up_proj", shape, up);
            } else {
                push(projection, vec![rows, cols], numbers.to_vec());
            }
        }
        Ok(all)
    }

    /// The numbers of a plain tensor.
    ///
    /// # Errors
    ///
    /// There is none of this name, or it is of no plain type, or cannot be read.
    pub fn plain(&self, name: &str) -> Result<Matrix, NotUnpacked> {
        let record = self.tensor(name);
        let record = record.ok_or_else(|| NotUnpacked::new("no such tensor", name))?;
        if !FLOATS.contains(&record.dtype) {
            return Err(NotUnpacked::of(name, record.dtype.name, "F32, BF16 or F16"));
        }
        let bytes = self.read(name);
        let bytes = bytes.map_err(|error| NotUnpacked::of(name, error.to_string(), "its bytes"))?;
        let shape = record.shape.clone();
        let tensor = Tensor { dtype: record.dtype, shape: shape.clone(), bytes: Cow::Owned(bytes) };
        Ok(Matrix { name: name.to_owned(), shape, numbers: tensor.numbers() })
    }
}
