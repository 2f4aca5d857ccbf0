//! What the tensors of a quantized weight mean, to the bit.
//!
//! [`unpack`] makes numbers of them, in `f32` arithmetic as written at each layout; loaders that
//! compute in half precision round once more. Layouts of integers share a middle form, [`Quantized`]:
//! [`quantized`] takes it out of tensors, [`pack`] makes tensors of it, and [`repack`] goes from one
//! layout to another. Of the other layouts [`codes`] takes the codes out and [`pack_codes`] puts them
//! back; their scales are tensors already. [`gpt_oss`] trades blocks with GGUF, and [`explain`] finds
//! the rule by which tensors give the numbers that they were made of.
//!
//! Tensors go by the suffixes of their names without the dot or the underscore before: `qweight`,
//! `weight.absmax`, and `blocks` of gpt-oss. Others than a layout has are not looked at.

mod awq;
mod bitsandbytes;
mod compressed_tensors;
mod explain;
mod float8;
mod fp4;
pub mod gpt_oss;
mod gptq;
mod quantized;
mod stream;
mod tensor;

use std::collections::BTreeMap;
use std::fmt;

pub use explain::{Candidate, explain, relative_error};
pub use quantized::Quantized;
pub use tensor::{NotUnpacked, Tensor};

use crate::dtype::Dtype;
use tensor::dims;

/// How codes, scales and zero points are laid down in tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedLayout {
    /// GPTQ: codes of 2, 3, 4 or 8 bits, packed along the input.
    Gptq {
        /// Whether zero points are stored as they are (`gptq_v2`), and not less one.
        v2: bool,
    },
    /// AWQ, version `gemm`: packed along the output, in another order.
    AwqGemm,
    /// AWQ, version `gemv`: packed along the input.
    AwqGemv,
    /// AWQ, version `gemv_fast`: four rows interleaved; zero points are numbers.
    AwqGemvFast,
    /// AWQ, version `marlin`: tiles of 16 by 16 in the order of a kernel; symmetric.
    AwqMarlin,
    /// compressed-tensors, `pack-quantized`: 1 to 8 bits, packed along the input.
    CompressedPack,
    /// compressed-tensors, `int-quantized`: a byte for each code.
    CompressedInt,
    /// A byte of floating point for each number, and scales of the tensor, of rows or of blocks.
    Float8,
    /// E2M1 in groups of 16 with a scale of E4M3, and one factor more.
    Nvfp4 {
        /// Whether scales are divided by the factor (compressed-tensors) and not multiplied
        /// (modelopt). Its tensors have other names, too.
        divide: bool,
    },
    /// compressed-tensors, `mxfp4-pack-quantized`: E2M1 in groups of 32 with a power of two.
    Mxfp4,
    /// bitsandbytes, `nf4` and `fp4`: places in a table of 16, scales of blocks of the flat weight.
    Bnb4,
    /// bitsandbytes, `LLM.int8()`: integers, and the largest number of each row.
    BnbInt8,
    /// The experts of gpt-oss: E2M1 in blocks of 32 with a power of two.
    GptOss,
}

/// What one has to know to read the tensors of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// The layout.
    pub layout: PackedLayout,
    /// The width of a code.
    pub bits: u32,
    /// How many codes along the input share a scale; `None`: all of them (-1). Layouts of E2M1 and of
    /// bitsandbytes have sizes of their own and do not look at it.
    pub group_size: Option<u64>,
    /// Whether all zero points are the middle of the codes. Zero points of AWQ and compressed-tensors
    /// are then not read; GPTQ's are.
    pub symmetric: bool,
    /// The rows and columns of a block that shares a scale of `Float8`.
    pub block: Option<[u64; 2]>,
}

impl Packing {
    /// A layout with codes of this width: symmetric, one scale for each row.
    pub fn new(layout: PackedLayout, bits: u32) -> Packing {
        Packing { layout, bits, group_size: None, symmetric: true, block: None }
    }
}

impl PackedLayout {
    /// Its name, that of the method and of the format.
    pub fn name(self) -> &'static str {
        match self {
            PackedLayout::Gptq { v2: false } => "gptq",
            PackedLayout::Gptq { v2: true } => "gptq_v2",
            PackedLayout::AwqGemm => "awq gemm",
            PackedLayout::AwqGemv => "awq gemv",
            PackedLayout::AwqGemvFast => "awq gemv_fast",
            PackedLayout::AwqMarlin => "awq marlin",
            PackedLayout::CompressedPack => "pack-quantized",
            PackedLayout::CompressedInt => "int-quantized",
            PackedLayout::Float8 => "float8",
            PackedLayout::Nvfp4 { divide: true } => "nvfp4-pack-quantized",
            PackedLayout::Nvfp4 { divide: false } => "modelopt nvfp4",
            PackedLayout::Mxfp4 => "mxfp4-pack-quantized",
            PackedLayout::Bnb4 => "bitsandbytes 4-bit",
            PackedLayout::BnbInt8 => "bitsandbytes int8",
            PackedLayout::GptOss => "gpt-oss mxfp4",
        }
    }
}

impl fmt::Display for PackedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tensors of a weight, by suffix.
pub type Tensors<'a> = BTreeMap<&'static str, Tensor<'a>>;

/// A weight that is read: sizes that are checked, and where its tensors are.
///
/// Features are at most 2^32 and numbers 2^48, so that sums of sizes stay within 64 bits.
struct Job<'t, 'a> {
    packing: &'t Packing,
    /// `out_features`.
    rows: usize,
    /// `in_features`.
    cols: usize,
    bits: usize,
    /// How many columns share a scale, and how often.
    group: usize,
    groups: usize,
    tensors: Option<&'t BTreeMap<&'t str, Tensor<'a>>>,
}

impl<'t, 'a> Job<'t, 'a> {
    fn new(
        packing: &'t Packing,
        out_features: u64,
        in_features: u64,
        tensors: Option<&'t BTreeMap<&'t str, Tensor<'a>>>,
    ) -> Result<Job<'t, 'a>, NotUnpacked> {
        let size = |features: u64| {
            usize::try_from(features).ok().filter(|_| (1..=1 << 32).contains(&features))
        };
        let numbers = out_features.checked_mul(in_features).filter(|numbers| *numbers <= 1 << 48);
        let numbers = numbers.and_then(|numbers| usize::try_from(numbers).ok());
        let (Some(rows), Some(cols), Some(_)) = (size(out_features), size(in_features), numbers)
        else {
            let found = format!("a weight of [{out_features}, {in_features}]");
            return Err(NotUnpacked::new(found, "1 to 2^32 features, 2^48 numbers at most"));
        };
        let allowed: &[u32] = match packing.layout {
            PackedLayout::Gptq { .. } => &[2, 3, 4, 8],
            PackedLayout::AwqGemm
            | PackedLayout::AwqGemv
            | PackedLayout::AwqGemvFast
            | PackedLayout::AwqMarlin
            | PackedLayout::Nvfp4 { .. }
            | PackedLayout::Mxfp4
            | PackedLayout::Bnb4
            | PackedLayout::GptOss => &[4],
            PackedLayout::CompressedPack | PackedLayout::CompressedInt => &[1, 2, 3, 4, 5, 6, 7, 8],
            PackedLayout::Float8 | PackedLayout::BnbInt8 => &[8],
        };
        let bits = usize::try_from(packing.bits).ok().filter(|_| allowed.contains(&packing.bits));
        let Some(bits) = bits else {
            let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
            let expected = format!("{} for {}", allowed.join(", "), packing.layout);
            return Err(NotUnpacked::new(format!("{} bits", packing.bits), expected));
        };
        let group = match packing.group_size {
            None => cols,
            Some(0) => return Err(NotUnpacked::new("groups of 0", "1 at least")),
            Some(group) => usize::try_from(group).unwrap_or(cols),
        };
        let groups = cols.div_ceil(group);
        Ok(Job { packing, rows, cols, bits, group, groups, tensors })
    }

    /// Refuses a last group that is not whole.
    fn whole_groups(&self) -> Result<(), NotUnpacked> {
        self.multiple(self.cols, self.group, "in_features", "the group size")
    }

    fn multiple(&self, size: usize, of: usize, what: &str, why: &str) -> Result<(), NotUnpacked> {
        if size.is_multiple_of(of) {
            return Ok(());
        }
        let found = format!("{what} of {size}");
        Err(NotUnpacked::new(
            found,
            format!("a multiple of {of}: {why} of {}", self.packing.layout),
        ))
    }

    fn find(&self, name: &str) -> Option<&'t Tensor<'a>> {
        self.tensors.and_then(|tensors| tensors.get(name))
    }

    /// A tensor of one of these types and of one of these shapes.
    fn tensor(
        &self,
        name: &str,
        dtypes: &[Dtype],
        shapes: &[&[usize]],
    ) -> Result<&'t Tensor<'a>, NotUnpacked> {
        let shapes: Vec<Vec<u64>> = shapes.iter().map(|shape| dims(shape)).collect();
        let expected = || {
            let dtypes: Vec<&str> = dtypes.iter().map(|dtype| dtype.name).collect();
            let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
            format!("{} {}", dtypes.join(" or "), shapes.join(" or "))
        };
        let Some(tensor) = self.find(name) else {
            return Err(NotUnpacked::of(name, "no such tensor", expected()));
        };
        let Tensor { dtype, shape, bytes } = tensor;
        if !dtypes.contains(dtype) || !shapes.contains(shape) {
            let found = format!("{dtype} {}", quote_shape(shape));
            return Err(NotUnpacked::of(name, found, expected()));
        }
        if dtype.byte_len(shape) != u64::try_from(bytes.len()).ok() {
            let found = format!("{} bytes for {dtype} {shape:?}", bytes.len());
            let expected = match dtype.byte_len(shape) {
                Some(len) => format!("{len} bytes"),
                None => "a whole number of them".into(),
            };
            return Err(NotUnpacked::of(name, found, expected));
        }
        Ok(tensor)
    }
}

/// A shape for people: the first dimensions of one that has too many.
fn quote_shape(shape: &[u64]) -> String {
    match shape.get(..8) {
        Some(first) if shape.len() > 8 => format!("{first:?} and {} more", shape.len() - 8),
        _ => format!("{shape:?}"),
    }
}

/// The numbers of a weight, [out, in] row by row; of `GptOss` [experts, out, in].
///
/// # Errors
///
/// A tensor that is missing, or whose type, shape or bytes are not those of the layout; a size that
/// the layout cannot have.
pub fn unpack(
    packing: &Packing,
    out_features: u64,
    in_features: u64,
    tensors: &BTreeMap<&str, Tensor<'_>>,
) -> Result<Vec<f32>, NotUnpacked> {
    let job = Job::new(packing, out_features, in_features, Some(tensors))?;
    match packing.layout {
        PackedLayout::Gptq { .. }
        | PackedLayout::AwqGemm
        | PackedLayout::AwqGemv
        | PackedLayout::AwqMarlin
        | PackedLayout::CompressedPack
        | PackedLayout::CompressedInt => Ok(quantized_of(&job)?.numbers()),
        PackedLayout::AwqGemvFast => awq::gemv_fast_numbers(&job),
        PackedLayout::Float8 => float8::numbers(&job),
        PackedLayout::Nvfp4 { divide } => fp4::nvfp4_numbers(&job, divide),
        PackedLayout::Mxfp4 => fp4::mxfp4_numbers(&job),
        PackedLayout::Bnb4 => bitsandbytes::numbers_4(&job),
        PackedLayout::BnbInt8 => bitsandbytes::numbers_8(&job),
        PackedLayout::GptOss => gpt_oss::numbers(&job),
    }
}

fn quantized_of(job: &Job<'_, '_>) -> Result<Quantized, NotUnpacked> {
    match job.packing.layout {
        PackedLayout::Gptq { v2 } => gptq::unpack(job, v2),
        PackedLayout::AwqGemm => awq::unpack_gemm(job),
        PackedLayout::AwqGemv => awq::unpack_gemv(job),
        PackedLayout::AwqGemvFast => awq::unpack_gemv_fast(job),
        PackedLayout::AwqMarlin => awq::unpack_marlin(job),
        PackedLayout::CompressedPack => compressed_tensors::unpack_packed(job),
        PackedLayout::CompressedInt => compressed_tensors::unpack_int(job),
        layout => {
            Err(NotUnpacked::new(format!("{layout}, whose codes are no integers"), "another"))
        }
    }
}

/// The codes, scales and zero points of a layout of integers.
///
/// # Errors
///
/// Those of [`unpack`]; a layout without integers; zero points of `AwqGemvFast` that are no integers.
pub fn quantized(
    packing: &Packing,
    out_features: u64,
    in_features: u64,
    tensors: &BTreeMap<&str, Tensor<'_>>,
) -> Result<Quantized, NotUnpacked> {
    quantized_of(&Job::new(packing, out_features, in_features, Some(tensors))?)
}

/// The tensors of a layout of integers.
///
/// GPTQ's have `g_idx` always, those of compressed-tensors where groups are not in order.
///
/// # Errors
///
/// What the layout cannot hold: another width, zero points or an order of groups that it does not
/// have, a scale that its type lacks, sizes.
pub fn pack(packing: &Packing, quantized: &Quantized) -> Result<Tensors<'static>, NotUnpacked> {
    let size = |features: usize| u64::try_from(features).unwrap_or(u64::MAX);
    let (rows, cols) = (size(quantized.out_features), size(quantized.in_features));
    let job = Job::new(packing, rows, cols, None)?;
    quantized.check(&job)?;
    match packing.layout {
        PackedLayout::Gptq { v2 } => gptq::pack(&job, quantized, v2),
        PackedLayout::AwqGemm => awq::pack_gemm(&job, quantized),
        PackedLayout::AwqGemv => awq::pack_gemv(&job, quantized),
        PackedLayout::AwqGemvFast => awq::pack_gemv_fast(&job, quantized),
        PackedLayout::AwqMarlin => awq::pack_marlin(&job, quantized),
        PackedLayout::CompressedPack => compressed_tensors::pack_packed(&job, quantized),
        PackedLayout::CompressedInt => compressed_tensors::pack_int(&job, quantized),
        layout => {
            Err(NotUnpacked::new(format!("{layout}, whose codes are no integers"), "another"))
        }
    }
}

/// The same weight in another layout of integers: codes, scales and zero points stay what they are.
///
/// # Errors
///
/// Those of [`quantized`] and of [`pack`].
pub fn repack(
    from: &Packing,
    out_features: u64,
    in_features: u64,
    tensors: &BTreeMap<&str, Tensor<'_>>,
    to: &Packing,
) -> Result<Tensors<'static>, NotUnpacked> {
    pack(to, &quantized(from, out_features, in_features, tensors)?)
}

/// The codes of a weight, [out, in] row by row, as bits: those of integers, of floating point, or
/// places in a table. Of `GptOss` [experts, out, in].
///
/// # Errors
///
/// Those of [`unpack`]. Scales are not looked at where codes can be told without.
pub fn codes(
    packing: &Packing,
    out_features: u64,
    in_features: u64,
    tensors: &BTreeMap<&str, Tensor<'_>>,
) -> Result<Vec<u8>, NotUnpacked> {
    let job = Job::new(packing, out_features, in_features, Some(tensors))?;
    match packing.layout {
        PackedLayout::Float8 => float8::codes(&job),
        PackedLayout::Nvfp4 { divide } => {
            fp4::codes(&job, fp4::nvfp4_name(divide), fp4::NVFP4_GROUP)
        }
        PackedLayout::Mxfp4 => fp4::codes(&job, fp4::MXFP4_NAME, fp4::MXFP4_GROUP),
        PackedLayout::Bnb4 => bitsandbytes::codes_4(&job),
        PackedLayout::BnbInt8 => bitsandbytes::codes_8(&job),
        PackedLayout::GptOss => gpt_oss::codes(&job),
        _ => Ok(quantized_of(&job)?.codes),
    }
}

/// The tensor of codes of a layout whose codes are no integers, by its suffix: what [`codes`] reads.
/// The scales are tensors as they are.
///
/// `dtype` is that of `Float8`: `F8_E4M3` or `F8_E5M2`.
///
/// # Errors
///
/// A layout of integers, for which there is [`pack`]; codes that are not as many as [out, in], or of
/// `GptOss` as a multiple, or that do not fit the width.
pub fn pack_codes(
    packing: &Packing,
    dtype: Dtype,
    out_features: u64,
    in_features: u64,
    codes: &[u8],
) -> Result<(&'static str, Tensor<'static>), NotUnpacked> {
    let job = Job::new(packing, out_features, in_features, None)?;
    let numbers = job.rows.saturating_mul(job.cols);
    let many = match packing.layout {
        PackedLayout::GptOss => codes.len().is_multiple_of(numbers),
        _ => codes.len() == numbers,
    };
    if !many {
        return Err(NotUnpacked::new(format!("{} codes", codes.len()), numbers.to_string()));
    }
    if let Some(code) = codes.iter().find(|code| usize::from(**code) >= 1 << job.bits) {
        return Err(NotUnpacked::new(format!("code {code}"), format!("{} bits", job.bits)));
    }
    match packing.layout {
        PackedLayout::Float8 => float8::pack_codes(&job, dtype, codes),
        PackedLayout::Nvfp4 { divide } => {
            fp4::pack_codes(&job, fp4::nvfp4_name(divide), fp4::NVFP4_GROUP, codes)
        }
        PackedLayout::Mxfp4 => fp4::pack_codes(&job, fp4::MXFP4_NAME, fp4::MXFP4_GROUP, codes),
        PackedLayout::Bnb4 => Ok(bitsandbytes::pack_codes_4(codes)),
        PackedLayout::BnbInt8 => Ok(bitsandbytes::pack_codes_8(&job, codes)),
        PackedLayout::GptOss => gpt_oss::pack_codes(&job, codes),
        layout => Err(NotUnpacked::new(format!("{layout}, whose codes are integers"), "another")),
    }
}
