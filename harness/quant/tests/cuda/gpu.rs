//! Kernels on a GPU.

use std::env;
use std::sync::OnceLock;

use gguf_assay_format::TensorType;
use gguf_assay_quant::cuda::{Device, Output};
use libtest_mimic::{Failed, Trial};

use crate::blocks::{Random, type_named, types};
use crate::{Kernel, SHAPE, UNTOUCHED};

const REQUIRE: &str = "GGUF_ASSAY_REQUIRE_GPU";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = crate::trials("cuda-gpu", kernel);
    for t in types() {
        for output in Output::ALL {
            let name = format!("cuda-gpu/{}/{output}/refusals", t.name);
            trials.push(Trial::test(name, move || refusals(t, output)));
        }
    }
    for name in ["Q8_0", "F16"] {
        let t = type_named(name);
        let name = format!("cuda-gpu/{name}/f32/beyond_32_bits");
        trials.push(Trial::test(name, move || beyond_32_bits(t)));
    }
    if let Err(error) = device() {
        let kind = error.to_string();
        let is_ignored = env::var_os(REQUIRE).is_none_or(|value| value != "1");
        let ignored = |trial: Trial| trial.with_kind(kind.clone()).with_ignored_flag(is_ignored);
        trials = trials.into_iter().map(ignored).collect();
    }
    trials
}

fn device() -> Result<&'static Device, &'static gguf_assay_quant::Error> {
    static DEVICE: OnceLock<Result<Device, gguf_assay_quant::Error>> = OnceLock::new();
    DEVICE.get_or_init(|| Device::open(0)).as_ref()
}

fn kernel(t: &'static TensorType, output: Output) -> Result<Kernel, Failed> {
    let device = device()?;
    let kernel = device.kernel(t, output)?;
    let run = move |blocks: &[u8], shape: crate::Shape| -> Result<Vec<u8>, Failed> {
        const BEHIND: usize = 64;
        let stream = device.stream();
        let written = Kernel::written(t, output, blocks);
        let mut input = vec![0xA5; shape.shift];
        input.extend_from_slice(blocks);
        input.push(0xA5); // no allocation is empty
        let input = stream.clone_htod(&input)?;
        let mut out = stream.clone_htod(&vec![UNTOUCHED; written + BEHIND])?;
        let blocks = input.slice(shape.shift..shape.shift + blocks.len());
        kernel.dequantize(&blocks, &mut out.slice_mut(..written))?;
        Ok(stream.clone_dtoh(&out)?)
    };
    Ok(Kernel { t, output, run: Box::new(run) })
}

/// Lengths that do not fit, and an output between the addresses it may have: refused, with words,
/// and the output is as it was.
fn refusals(t: &'static TensorType, output: Output) -> Result<(), Failed> {
    let device = device()?;
    let stream = device.stream();
    let kernel = device.kernel(t, output)?;
    let (bytes, numbers) = (t.block_bytes as usize, t.block_len as usize * output.byte_len());
    let input = stream.clone_htod(&vec![0; 5 * bytes])?;
    let mut out = stream.clone_htod(&vec![UNTOUCHED; 5 * numbers + 16])?;
    let wrong = [
        (4 * bytes, 0..5 * numbers),
        (5 * bytes, 0..4 * numbers),
        (5 * bytes - 1, 0..5 * numbers),
        (0, 0..numbers),
        (5 * bytes, 0..5 * numbers - 1),
        (5 * bytes, 8..5 * numbers + 8),
    ];
    for (len, place) in wrong {
        let what = format!("{len} bytes taken for {place:?} bytes of output");
        match kernel.dequantize(&input.slice(..len), &mut out.slice_mut(place)) {
            Ok(()) => return Err(what.into()),
            Err(error) if !error.to_string().contains(t.name) => {
                return Err(format!("{what}: {error}").into());
            }
            Err(_) => {}
        }
    }
    if stream.clone_dtoh(&out)?.iter().any(|byte| *byte != UNTOUCHED) {
        return Err("written".into());
    }
    Ok(())
}

/// More than 2^32 bytes of output: its first and last numbers.
fn beyond_32_bits(t: &'static TensorType) -> Result<(), Failed> {
    const PART: usize = 1 << 20; // elements
    let device = device()?;
    let stream = device.stream();
    let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
    let part = Random::of(t).blocks(t, PART / len);
    // And one block, so that the last tile is not full.
    let count = ((1 << 30) + 2 * PART) / len + 1;
    let mut input = stream.alloc_zeros::<u8>(count * bytes)?;
    let starts = [0, count - PART / len];
    for start in starts {
        let mut place = input.slice_mut(start * bytes..start * bytes + part.len());
        stream.memcpy_htod(&part, &mut place)?;
    }
    let mut out = stream.alloc_zeros::<u8>(count * len * 4)?;
    device.kernel(t, Output::F32)?.dequantize(&input, &mut out)?;
    for start in starts {
        let numbers = stream.clone_dtoh(&out.slice(start * len * 4..(start * len + PART) * 4))?;
        let run = move |_: &[u8], _| Ok(numbers.clone());
        let kernel = Kernel { t, output: Output::F32, run: Box::new(run) };
        kernel.assert_as_reference(&part, SHAPE, "beyond 32 bits")?;
    }
    Ok(())
}
