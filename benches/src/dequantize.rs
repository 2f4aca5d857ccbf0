//! Blocks to numbers: our kernels, ggml, peers, and what the machine can store.

use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES, TensorType};
use gguf_assay_oracle as ggml;
use gguf_assay_quant::kernel::{self, Engine};
use gguf_assay_record::{Group, Measurement, Operation, Size, Untimed, engine};

use crate::rounds::{Contender, Plan, Random, Work, measure};

/// How many numbers an output has: whole blocks of every type.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// That stay in the second cache.
    pub cached: usize,
    /// That do not stay in any: a multiple of the others.
    pub streamed: usize,
}

impl Sizes {
    /// For times: 256 KiB, and 256 MiB.
    pub const MEASURED: Sizes = Sizes { cached: 1 << 16, streamed: 1 << 26 };
    /// For a test that everything runs.
    pub const TEST: Sizes = Sizes { cached: 1 << 12, streamed: 1 << 16 };

    /// Of this one.
    pub fn of(self, size: Size) -> usize {
        match size {
            Size::Cached => self.cached,
            Size::Streamed => self.streamed,
        }
    }
}

/// The types that files may use.
pub fn types() -> impl Iterator<Item = &'static TensorType> {
    TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed)
}

/// What all engines get of a type.
pub struct Input {
    tensor_type: &'static TensorType,
    blocks: Vec<u64>,
    byte_len: usize,
    /// What is copied to find out how fast that is.
    numbers: Vec<f32>,
    /// The reference's numbers of the first part, which repeats.
    expected: Vec<f32>,
}

impl Input {
    /// So many elements, in parts that repeat.
    pub fn new(tensor_type: &'static TensorType, elements: usize, part: usize) -> Input {
        let t = tensor_type;
        let count = part / t.block_len as usize;
        let (bytes, expected) = blocks(t, count);
        let bytes = bytes.repeat(elements / part);
        let mut words = vec![0; bytes.len().div_ceil(8)];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(eight);
        }
        let numbers = expected.repeat(elements / part);
        Input { tensor_type, blocks: words, byte_len: bytes.len(), numbers, expected }
    }

    /// How many numbers come out.
    pub fn elements(&self) -> usize {
        self.numbers.len()
    }

    /// Memory for them that was touched.
    pub fn room(&self) -> Vec<f32> {
        vec![f32::MAX; self.elements()]
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: any bytes of a `u64` are valid as `u8`, which has no alignment.
        #[allow(unsafe_code)]
        let (_, bytes, _) = unsafe { self.blocks.align_to() };
        &bytes[..self.byte_len]
    }
}

/// Blocks of random bits, of those whose numbers are usual ones, and the numbers: neither infinite
/// nor so small that the processor takes a detour. What a bit means matters to no engine.
pub(crate) fn blocks(t: &TensorType, count: usize) -> (Vec<u8>, Vec<f32>) {
    let mut random = Random(u64::from(t.id) << 32);
    let mut bytes = vec![0; count * t.block_bytes as usize];
    let mut numbers = vec![0.0f32; count * t.block_len as usize];
    let parts =
        bytes.chunks_mut(t.block_bytes as usize).zip(numbers.chunks_mut(t.block_len as usize));
    for (block, numbers) in parts {
        loop {
            for bytes in block.chunks_mut(8) {
                bytes.copy_from_slice(&random.next().to_le_bytes()[..bytes.len()]);
            }
            gguf_assay_quant::dequantize(t, block, ByteOrder::Little, numbers)
                .expect("whole blocks of a type of the table");
            let usual = |x: &f32| *x == 0.0 || (1e-20..1e20).contains(&x.abs());
            if numbers.iter().all(usual) {
                break;
            }
        }
    }
    (bytes, numbers)
}

/// Gives the work of an engine on an input, or why there is none.
type Prepare = for<'a> fn(&'a Input) -> Result<Work<'a, [f32]>, String>;

/// Those that dequantize, and last what the machine can store.
const ENGINES: [(&str, Prepare); 10] = [
    (engine::OURS[0], |input| ours(input, Engine::Scalar)),
    (engine::OURS[1], |input| ours(input, Engine::Avx2)),
    (engine::OURS[2], |input| ours(input, Engine::Avx512)),
    (engine::GGML, |input| ggmls(input, ggml::dequantize)),
    (engine::GGML_NATIVE, |input| ggmls(input, ggml::dequantize_native)),
    (engine::CANDLE, peers::candle),
    (engine::GGML_QUANTS, peers::ggml_quants),
    (engine::MEMCPY, |input| Ok(Box::new(|out| out.copy_from_slice(&input.numbers)))),
    // Zeros are what makes it the C library's memset, whose stores are as wide as the machine's.
    (engine::FILL, |_| Ok(Box::new(|out| out.fill(0.0)))),
    (engine::FILL_STREAMED, |_| Ok(Box::new(|out| kernel::fill_streamed(out, 1.0)))),
];

/// The names of all engines.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENGINES.into_iter().map(|(name, _)| name)
}

/// What sets each apart.
pub(crate) fn about() -> Vec<(&'static str, String)> {
    let compiled = |flags: &str| {
        format!("ggml {} ({}), {}, {flags}", ggml::version(), ggml::source(), ggml::compiler())
    };
    let peers = if cfg!(feature = "peers") { "" } else { ", not built in" };
    let [scalar, avx2, avx512] = engine::OURS;
    vec![
        (scalar, "ours: the reference, portable code".into()),
        (avx2, "ours: AVX2, FMA, F16C, BMI2".into()),
        (avx512, "ours: AVX-512 F, BW, DQ, VL".into()),
        (engine::GGML, compiled("-O3: as it is shipped, for any x86-64")),
        (engine::GGML_NATIVE, compiled("-O3 -march=native -ffp-contract=off")),
        (engine::CANDLE, format!("candle-core 0.11.1, GgmlType::to_float{peers}")),
        (engine::GGML_QUANTS, format!("ggml-quants 0.1.0, block by block on one thread{peers}")),
        (engine::MEMCPY, "copies the numbers: reads as much as it writes".into()),
        (engine::FILL, "writes zeros everywhere: memset of the C library".into()),
        (engine::FILL_STREAMED, "writes one number everywhere, by stores around the caches".into()),
    ]
}

fn ours(input: &Input, engine: Engine) -> Result<Work<'_, [f32]>, String> {
    let kernel = engine.kernel(input.tensor_type).map_err(|error| error.to_string())?;
    Ok(Box::new(move |out| {
        kernel.dequantize(input.bytes(), ByteOrder::Little, out).expect("the lengths fit");
    }))
}

/// One of the two copies of ggml: id of the type, blocks, numbers.
type Ggml = fn(u32, &[u8], &mut [f32]) -> Result<(), ggml::NotDequantized>;

fn ggmls(input: &Input, dequantize: Ggml) -> Result<Work<'_, [f32]>, String> {
    let id = input.tensor_type.id;
    dequantize(id, &[], &mut []).map_err(|error| error.to_string())?;
    Ok(Box::new(move |out| dequantize(id, input.bytes(), out).expect("the lengths fit")))
}

/// The work of an engine on an input, if it can take it and its numbers are the reference's; of
/// those that only store, if they are there.
///
/// # Errors
///
/// Why there is nothing to time.
pub fn contender<'a>(
    name: &str,
    input: &'a Input,
    out: &mut [f32],
) -> Result<Contender<'a, [f32]>, Untimed> {
    let found = ENGINES.into_iter().find(|(other, _)| *other == name);
    let (engine, prepare) =
        found.ok_or_else(|| Untimed::Absent("there is no such engine".into()))?;
    let work = prepare(input).map_err(Untimed::Absent)?;
    if !engine::CEILINGS.contains(&engine) {
        check(input, &work, out).map_err(Untimed::Wrong)?;
    }
    Ok(Contender { engine, work })
}

/// Whether all numbers are the reference's, bit for bit.
fn check(input: &Input, work: &Work<'_, [f32]>, out: &mut [f32]) -> Result<(), String> {
    // No number of the input: what was not written shows.
    out.fill(f32::MAX);
    work(out);
    for (part, numbers) in out.chunks(input.expected.len()).enumerate() {
        let expected = input.expected.iter().zip(numbers);
        let wrong = expected.clone().position(|(a, b)| a.to_bits() != b.to_bits());
        if let Some(at) = wrong {
            let (len, found) = (input.tensor_type.block_len as usize, numbers[at]);
            let place = part * input.expected.len() + at;
            return Err(format!(
                "element {} of block {} is {found:e} and ought to be {:e}",
                place % len,
                place / len,
                input.expected[at]
            ));
        }
    }
    Ok(())
}

/// Measures a type in turns.
pub fn group(t: &'static TensorType, size: Size, sizes: Sizes, plan: Plan) -> Group {
    let input = Input::new(t, sizes.of(size), sizes.cached);
    let mut out = input.room();
    let (mut contenders, mut measurements) = (vec![], vec![]);
    for name in names() {
        match contender(name, &input, &mut out) {
            Ok(contender) => contenders.push(contender),
            Err(why) => measurements.push(Measurement::untimed(name, why)),
        }
    }
    measurements.extend(measure(&contenders, &mut out[..], plan));
    measurements.sort_by_key(|m| names().position(|name| m.engine == name));
    Group {
        operation: Operation::Dequantize,
        subject: t.name.into(),
        size: Some(size),
        bytes_in: input.byte_len as u64,
        bytes_out: size_of_val(&out[..]) as u64,
        measurements,
    }
}

#[cfg(not(feature = "peers"))]
mod peers {
    use super::{Input, Work};

    const WHY: &str = "not built in: --features peers";

    pub(super) fn candle(_: &Input) -> Result<Work<'_, [f32]>, String> {
        Err(WHY.into())
    }

    pub(super) fn ggml_quants(_: &Input) -> Result<Work<'_, [f32]>, String> {
        Err(WHY.into())
    }
}

/// The peers in Rust. Both take slices of their own block structs.
#[cfg(feature = "peers")]
mod peers {
    use candle_core::quantized::k_quants as candle;
    use candle_core::quantized::k_quants::GgmlType;
    use ggml_quants::{self as quants, Quantize};

    use super::{Input, Work};

    /// Blocks that bytes can be taken for.
    ///
    /// # Safety
    ///
    /// The type is `repr(C)` or transparent and made of integers and of floats of 16 or 32 bits
    /// alone: any bytes are a value of it.
    #[allow(unsafe_code)]
    unsafe trait Block: 'static {}

    macro_rules! blocks {
        ($($block:ty),+ $(,)?) => {
            // SAFETY: each repeats a struct of ggml's, `repr(C)`, whose fields are such numbers and
            // arrays of them; the floats of 16 bits are transparent over `u16`.
            $(#[allow(unsafe_code)] unsafe impl Block for $block {})+
        };
    }

    blocks!(
        quants::f16,
        quants::bf16,
        candle::BlockQ4_0,
        candle::BlockQ4_1,
        candle::BlockQ5_0,
        candle::BlockQ5_1,
        candle::BlockQ8_0,
        candle::BlockQ2K,
        candle::BlockQ3K,
        candle::BlockQ4K,
        candle::BlockQ5K,
        candle::BlockQ6K,
        candle::BlockQ8K,
        quants::Q4_0,
        quants::Q4_1,
        quants::Q5_0,
        quants::Q5_1,
        quants::Q8_0,
        quants::Q8_1,
        quants::Q8K,
    );

    /// The input as blocks of a peer.
    fn blocks<B: Block>(input: &Input) -> Result<&[B], String> {
        let t = input.tensor_type;
        if size_of::<B>() != t.block_bytes as usize {
            return Err(format!("its block has {} bytes, not {}", size_of::<B>(), t.block_bytes));
        }
        // SAFETY: any bytes are a value of a `Block`.
        #[allow(unsafe_code)]
        let (before, blocks, after) = unsafe { input.bytes().align_to::<B>() };
        assert!(
            before.is_empty() && after.is_empty(),
            "memory of `u64` is aligned, and the sizes fit"
        );
        Ok(blocks)
    }

    fn candles<B: Block + GgmlType>(input: &Input) -> Result<Work<'_, [f32]>, String> {
        let blocks = blocks::<B>(input)?;
        Ok(Box::new(move |out| B::to_float(blocks, out)))
    }

    pub(super) fn candle(input: &Input) -> Result<Work<'_, [f32]>, String> {
        match input.tensor_type.name {
            "F16" => candles::<quants::f16>(input),
            "BF16" => candles::<quants::bf16>(input),
            "Q4_0" => candles::<candle::BlockQ4_0>(input),
            "Q4_1" => candles::<candle::BlockQ4_1>(input),
            "Q5_0" => candles::<candle::BlockQ5_0>(input),
            "Q5_1" => candles::<candle::BlockQ5_1>(input),
            "Q8_0" => candles::<candle::BlockQ8_0>(input),
            "Q2_K" => candles::<candle::BlockQ2K>(input),
            "Q3_K" => candles::<candle::BlockQ3K>(input),
            "Q4_K" => candles::<candle::BlockQ4K>(input),
            "Q5_K" => candles::<candle::BlockQ5K>(input),
            "Q6_K" => candles::<candle::BlockQ6K>(input),
            "Q8_K" => candles::<candle::BlockQ8K>(input),
            _ => Err("it does not have the type".into()),
        }
    }

    fn quants<B: Block + Quantize<f32, N>, const N: usize>(
        input: &Input,
    ) -> Result<Work<'_, [f32]>, String> {
        let blocks = blocks::<B>(input)?;
        // Its `dequantize_slice` does the same on all cores.
        Ok(Box::new(move |out| {
            for (out, block) in out.as_chunks_mut::<N>().0.iter_mut().zip(blocks) {
                *out = block.dequantize();
            }
        }))
    }

    pub(super) fn ggml_quants(input: &Input) -> Result<Work<'_, [f32]>, String> {
        match input.tensor_type.name {
            "F16" => quants::<quants::f16, 1>(input),
            "BF16" => quants::<quants::bf16, 1>(input),
            "Q4_0" => quants::<quants::Q4_0, 32>(input),
            "Q4_1" => quants::<quants::Q4_1, 32>(input),
            "Q5_0" => quants::<quants::Q5_0, 32>(input),
            "Q5_1" => quants::<quants::Q5_1, 32>(input),
            "Q8_0" => quants::<quants::Q8_0, 32>(input),
            "Q8_1" => quants::<quants::Q8_1, 32>(input),
            "Q8_K" => quants::<quants::Q8K, 256>(input),
            name if name.contains("_K") || name.starts_with("IQ") => {
                Err("its functions for the type are todo!()".into())
            }
            _ => Err("it does not have the type".into()),
        }
    }
}
