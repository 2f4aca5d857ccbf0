//! The CUDA kernels on a GPU: how fast, beside the device's own copy in the same run.
//!
//! `cuda FOLDER [MACHINE]` writes `cuda.json` and `cuda.txt` to the folder; MACHINE is a line about
//! the machine for them. `benches/cuda.sh` builds this, checks the kernels and calls it.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use gguf_assay_format::{ByteOrder, Status, TENSOR_TYPES, TensorType};
use gguf_assay_quant::cuda::cudarc::driver::sys::CUevent_flags;
use gguf_assay_quant::cuda::cudarc::driver::{CudaEvent, CudaSlice, DriverError};
use gguf_assay_quant::cuda::{Device, Kernel, Output, nvrtc_version};
use gguf_assay_quant::dequantize;
use half::{bf16, f16};
use serde_json::{Value, json};

/// Elements of every tensor: outputs are several times the largest cache.
const ELEMENTS: usize = 1 << 27;

/// Bytes of the inputs of F64 and I64, and of the copy.
const MOST_BYTES: usize = 8 * ELEMENTS;

const ROUNDS: usize = 21;
const WARM_UP: usize = 3;

/// What every kernel shall reach, as a share of the copy.
const TARGET: f64 = 0.85;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (folder, machine) = match arguments.as_slice() {
        [folder] => (folder, ""),
        [folder, machine] => (folder, machine.as_str()),
        _ => {
            eprintln!("usage: cuda FOLDER [MACHINE]");
            return ExitCode::from(2);
        }
    };
    match measure(Path::new(folder), machine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(folder: &Path, machine: &str) -> Result<(), Failure> {
    let device = Device::open(0)?;
    let (major, minor) = nvrtc_version()?;
    let mut bench = Bench::new(&device)?;
    let types = TENSOR_TYPES.iter().filter(|t| t.status != Status::Removed);
    let rows = types.map(|t| bench.rows(t)).collect::<Result<Vec<_>, _>>()?.concat();

    let record = json!({
        "schema": 1,
        "gpu": device.name()?,
        "architecture": device.architecture(),
        "multiprocessors": device.multiprocessors(),
        "nvrtc": format!("{major}.{minor}"),
        "machine": machine,
        "elements": ELEMENTS,
        "rounds": ROUNDS,
        "results": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
    });
    let mut text = format!(
        "{}, {}, {} multiprocessors, NVRTC {major}.{minor}\n",
        device.name()?,
        device.architecture(),
        device.multiprocessors()
    );
    if !machine.is_empty() {
        writeln!(text, "{machine}")?;
    }
    write_table(&mut text, &rows)?;
    print!("{text}");
    fs::create_dir_all(folder)?;
    fs::write(folder.join("cuda.json"), format!("{record:#}\n"))?;
    fs::write(folder.join("cuda.txt"), text)?;
    Ok(())
}

/// Times of the same work in all rounds, in seconds.
#[derive(Clone)]
struct Times {
    median: f64,
    best: f64,
}

impl Times {
    fn of(mut seconds: Vec<f64>) -> Times {
        seconds.sort_unstable_by(f64::total_cmp);
        Times { median: seconds[seconds.len() / 2], best: seconds[0] }
    }

    fn to_json(&self) -> Value {
        json!({ "median": self.median, "best": self.best })
    }
}

#[derive(Clone)]
struct Row {
    t: &'static TensorType,
    output: Output,
    registers: u32,
    times: Times,
    copy: Times,
}

impl Row {
    fn bytes_read(&self) -> usize {
        ELEMENTS / self.t.block_len as usize * self.t.block_bytes as usize
    }

    fn bytes_written(&self) -> usize {
        ELEMENTS * self.output.byte_len()
    }

    /// Bytes read and written in a second, in GB.
    fn rate(&self, seconds: f64) -> f64 {
        (self.bytes_read() + self.bytes_written()) as f64 / seconds / 1e9
    }

    /// What the rate is of the copy's, by medians and by the best rounds.
    fn ratios(&self) -> [f64; 2] {
        let copy = |seconds: f64| (2 * MOST_BYTES) as f64 / seconds / 1e9;
        [
            self.rate(self.times.median) / copy(self.copy.median),
            self.rate(self.times.best) / copy(self.copy.best),
        ]
    }

    fn to_json(&self) -> Value {
        let [median, best] = self.ratios();
        json!({
            "type": self.t.name,
            "output": self.output.name(),
            "registers": self.registers,
            "bytes_read": self.bytes_read(),
            "bytes_written": self.bytes_written(),
            "seconds": self.times.to_json(),
            "copy": { "bytes": 2 * MOST_BYTES, "seconds": self.copy.to_json() },
            "ratio": { "median": median, "best": best },
        })
    }
}

fn write_table(text: &mut String, rows: &[Row]) -> Result<(), Failure> {
    let copies: Vec<f64> = rows.iter().map(|row| row.copy.median).collect();
    let copy = (2 * MOST_BYTES) as f64 / Times::of(copies).median / 1e9;
    writeln!(
        text,
        "{ELEMENTS} elements, {ROUNDS} rounds in turns with a copy on the device: {copy:.0} GB/s \
         read and written\nGB/s read and written, and the share of the copy's, medians:"
    )?;
    writeln!(text, "{:10}{:>18}{:>18}{:>18}", "", "f32", "f16", "bf16")?;
    for rows in rows.chunk_by(|a, b| a.t.id == b.t.id) {
        write!(text, "{:10}", rows[0].t.name)?;
        for row in rows {
            let share = 100.0 * row.ratios()[0];
            write!(text, "{:9.0} {share:6.1} %", row.rate(row.times.median))?;
        }
        writeln!(text)?;
    }
    let below: Vec<String> = rows
        .iter()
        .filter(|row| row.output != Output::BF16 && row.ratios()[0] < TARGET)
        .map(|row| format!("{}/{}", row.t.name, row.output))
        .collect();
    let target = 100.0 * TARGET;
    if below.is_empty() {
        writeln!(text, "target: all types reach {target:.0} % in f32 and f16")?;
    } else {
        writeln!(text, "target: below {target:.0} % are {}", below.join(", "))?;
    }
    Ok(())
}

struct Bench<'a> {
    device: &'a Device,
    input: CudaSlice<u8>,
    out: CudaSlice<u8>,
}

impl Bench<'_> {
    /// Allocates, and fills the input with random bytes.
    fn new(device: &Device) -> Result<Bench<'_>, Failure> {
        let stream = device.stream();
        let mut input = stream.alloc_zeros::<u8>(MOST_BYTES)?;
        let out = stream.alloc_zeros::<u8>(MOST_BYTES)?;
        // SplitMix64.
        let mut state = 0u64;
        let part: Vec<u8> = (0..MOST_BYTES / 16 / 8)
            .flat_map(|_| {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
                (z ^ z >> 31).to_le_bytes()
            })
            .collect();
        for start in (0..MOST_BYTES).step_by(part.len()) {
            stream.memcpy_htod(&part, &mut input.slice_mut(start..start + part.len()))?;
        }
        Ok(Bench { device, input, out })
    }

    /// The kernels of a type and the copy, in turns.
    fn rows(&mut self, t: &'static TensorType) -> Result<Vec<Row>, Failure> {
        let outputs = Output::ALL;
        let mut kernels = vec![];
        for output in outputs {
            kernels.push(self.device.kernel(t, output)?);
        }
        for kernel in &kernels {
            self.launch(kernel)?;
            self.check(kernel)?;
        }
        let mut kernel_times = outputs.map(|_| vec![]);
        let mut copy_times = vec![];
        for round in 0..WARM_UP + ROUNDS {
            for turn in 0..=kernels.len() {
                let which = (round + turn) % (kernels.len() + 1);
                let start = self.event()?;
                match kernels.get(which) {
                    Some(kernel) => self.launch(kernel)?,
                    None => self.copy()?,
                }
                let seconds = f64::from(start.elapsed_ms(&self.event()?)?) / 1e3;
                if round >= WARM_UP {
                    kernel_times.get_mut(which).unwrap_or(&mut copy_times).push(seconds);
                }
            }
        }
        let copy = Times::of(copy_times);
        let mut rows = vec![];
        for (kernel, seconds) in kernels.iter().zip(kernel_times) {
            let (registers, _) = kernel.registers_and_stack()?;
            let (output, times) = (kernel.output(), Times::of(seconds));
            rows.push(Row { t, output, registers, times, copy: copy.clone() });
        }
        Ok(rows)
    }

    fn event(&self) -> Result<CudaEvent, DriverError> {
        self.device.stream().record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
    }

    fn copy(&mut self) -> Result<(), Failure> {
        Ok(self.device.stream().memcpy_dtod(&self.input, &mut self.out)?)
    }

    fn launch(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        let t = kernel.tensor_type();
        let bytes = ELEMENTS / t.block_len as usize * t.block_bytes as usize;
        let mut out = self.out.slice_mut(..ELEMENTS * kernel.output().byte_len());
        Ok(kernel.dequantize(&self.input.slice(..bytes), &mut out)?)
    }

    /// What was written is what the reference says: the first and the last numbers. The tests
    /// compare more, but not of tensors as large as these.
    fn check(&self, kernel: &Kernel) -> Result<(), Failure> {
        const PART: usize = 1 << 18;
        let (t, size) = (kernel.tensor_type(), kernel.output().byte_len());
        let (len, bytes) = (t.block_len as usize, t.block_bytes as usize);
        for first in [0, ELEMENTS - PART] {
            let blocks = self.input.slice(first / len * bytes..(first + PART) / len * bytes);
            let found = self.out.slice(first * size..(first + PART) * size);
            let blocks = self.device.stream().clone_dtoh(&blocks)?;
            let found = self.device.stream().clone_dtoh(&found)?;
            let mut numbers = vec![0.0; PART];
            dequantize(t, &blocks, ByteOrder::Little, &mut numbers)?;
            let is_same = |(found, number): (&[u8], &f32)| same(kernel.output(), found, *number);
            if !found.chunks_exact(size).zip(&numbers).all(is_same) {
                return Err(format!("{kernel}: not the numbers of the reference").into());
            }
        }
        Ok(())
    }
}

/// Whether the bytes are the number in the format of the output; NaNs are one class.
fn same(output: Output, found: &[u8], number: f32) -> bool {
    let (bits, is_nan): (u32, bool) = match (output, found) {
        (Output::F32, &[a, b, c, d]) => {
            let found = f32::from_le_bytes([a, b, c, d]);
            (found.to_bits(), found.is_nan())
        }
        (Output::F16, &[a, b]) => {
            let found = f16::from_le_bytes([a, b]);
            (found.to_bits().into(), found.is_nan())
        }
        (Output::BF16, &[a, b]) => {
            let found = bf16::from_le_bytes([a, b]);
            (found.to_bits().into(), found.is_nan())
        }
        _ => return false,
    };
    let expected = match output {
        Output::F32 => number.to_bits(),
        Output::F16 => f16::from_f32(number).to_bits().into(),
        Output::BF16 => bf16::from_f32(number).to_bits().into(),
    };
    bits == expected || is_nan && number.is_nan()
}
