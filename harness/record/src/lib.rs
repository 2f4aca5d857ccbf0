//! Records of measurements: what a run of `benches/` writes down, and the reports made of it.
//!
//! A [`Record`] has every time of a run, the [`Machine`] that it ran on and how [quiet](Noise) that
//! was. All that a report says is computed from it: [`Record::to_markdown`], [`Record::to_html`],
//! the [table of the README](Record::to_readme), the [comparison](Record::compare) with another.
//!
//! A record names no host and no path.

#![forbid(unsafe_code)]

mod machine;
mod report;
mod statistics;
mod warning;

use serde::{Deserialize, Serialize};

pub use machine::{Cache, Machine, Noise, Usage};
pub use statistics::Spread;

/// The name and version of the schema. Within a version, fields are added but neither renamed nor
/// removed.
pub const SCHEMA: &str = "gguf-assay/benches/1";

/// A run of the benches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of gguf-assay.
    pub version: String,
    /// The commit, with a `+` where files had changed since; absent outside a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When the run began: RFC 3339, UTC, seconds.
    pub started: String,
    /// How long it took.
    pub seconds: u64,
    /// What it ran on.
    pub machine: Machine,
    /// What else the machine did.
    pub noise: Noise,
    /// What compiled our code and its Rust peers: version, profile, instruction sets taken for
    /// granted.
    pub rustc: String,
    /// What compiled ggml.
    pub c_compiler: String,
    /// The engines and readers, in the order of the reports.
    pub engines: Vec<Engine>,
    /// What was measured.
    pub groups: Vec<Group>,
}

/// Something that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// The name by which measurements refer to it.
    pub name: String,
    /// Its version and what else sets it apart.
    pub about: String,
}

/// Measurements that can be compared: the same work, taken in turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What is done: `dequantize`, `read` or `check`.
    pub operation: Operation,
    /// What it is done with: a type, or a file.
    pub subject: String,
    /// Where the output goes; absent where that makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Bytes that are read.
    pub bytes_in: u64,
    /// Bytes that are written, if the numbers are kept.
    pub bytes_out: u64,
    /// One for each engine of the operation.
    pub measurements: Vec<Measurement>,
}

/// What is measured of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Blocks to numbers.
    Dequantize,
    /// A header to keys, values and tensors.
    Read,
    /// The command `check --deep`.
    Check,
}

impl Operation {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Dequantize => "dequantize",
            Operation::Read => "read",
            Operation::Check => "check",
        }
    }
}

/// Where the output of a group goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// It is small and stays in the cache.
    Cached,
    /// It is so large that it goes to memory.
    Streamed,
}

impl Size {
    /// Both.
    pub const ALL: [Size; 2] = [Size::Cached, Size::Streamed];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Size::Cached => "cached",
            Size::Streamed => "streamed",
        }
    }
}

/// What came of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Whose.
    pub engine: String,
    /// Why there are no times: what it lacks, or in what its numbers are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<Untimed>,
    /// How often the work was done for a time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u32,
    /// What each round took by the clock, in nanoseconds: all calls together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wall_ns: Vec<u64>,
    /// What each round took of the thread's processor time; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_ns: Vec<u64>,
}

/// Why an engine was not timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Untimed {
    /// It cannot do this here.
    Absent(String),
    /// It does, wrongly.
    Wrong(String),
}

/// A value as JSON in one line. It is plain data with string keys: nothing in it can fail.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The names of engines that reports refer to.
pub mod engine {
    /// ggml as it is shipped: what the others are compared with.
    pub const GGML: &str = "ggml";
    /// The same source, compiled for the machine.
    pub const GGML_NATIVE: &str = "ggml native";
    /// candle-core.
    pub const CANDLE: &str = "candle";
    /// ggml-quants.
    pub const GGML_QUANTS: &str = "ggml-quants";
    /// Copies as many bytes as are written.
    pub const MEMCPY: &str = "memcpy";
    /// Writes zeros everywhere, as the C library does.
    pub const FILL: &str = "fill";
    /// Writes one number everywhere, around the caches.
    pub const FILL_STREAMED: &str = "fill, streamed";
    /// What the machine can store at best; no engines of dequantization.
    pub const CEILINGS: [&str; 3] = [MEMCPY, FILL, FILL_STREAMED];
    /// Ours, from the slowest to the fastest.
    pub const OURS: [&str; 3] = ["scalar", "avx2", "avx512"];
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or that it is of another version of the schema.
    pub fn from_json(text: &str) -> Result<Record, String> {
        let record: Record =
            serde_json::from_str(text).map_err(|error| format!("not a record: {error}"))?;
        match record.schema.as_str() {
            SCHEMA => Ok(record),
            other => Err(format!("a record of schema {other:?}; this program reads {SCHEMA}")),
        }
    }

    /// As JSON: an object with a line for each measurement, so that two records can be told apart by
    /// their lines.
    pub fn to_json(&self) -> String {
        let mut head = self.clone();
        let groups: Vec<String> = std::mem::take(&mut head.groups)
            .into_iter()
            .map(|mut group| {
                let measurements = std::mem::take(&mut group.measurements);
                let lines: Vec<String> =
                    measurements.iter().map(|m| format!("      {}", line(m))).collect();
                let lines = format!("[\n{}\n    ]", lines.join(",\n"));
                format!("    {}", line(&group).replace("[]", &lines))
            })
            .collect();
        let groups = format!("\"groups\": [\n{}\n  ]", groups.join(",\n"));
        // Plain data with string keys: nothing in it can fail.
        let head = serde_json::to_string_pretty(&head).unwrap_or_default();
        head.replace("\"groups\": []", &groups) + "\n"
    }

    /// The name of the folder of a record: its date and the processor, such as
    /// `2026-11-30-amd-epyc-9b14`.
    pub fn folder(&self) -> String {
        let mut name = String::new();
        for c in self.machine.cpu.to_lowercase().chars() {
            match c {
                'a'..='z' | '0'..='9' => name.push(c),
                _ if name.ends_with('-') => {}
                _ => name.push('-'),
            }
        }
        let name: Vec<&str> = name
            .split('-')
            .filter(|part| !["", "r", "tm", "cpu", "processor", "core"].contains(part))
            .collect();
        let date = self.started.get(..10).unwrap_or("undated");
        format!("{date}-{}", name.join("-"))
    }

    /// Whether it can stand for the machine: everything in it was measured as it should be.
    pub fn warnings(&self) -> Vec<String> {
        warning::of(self)
    }
}

impl Group {
    /// `dequantize/Q4_0/cached`.
    pub fn id(&self) -> String {
        let id = format!("{}/{}", self.operation.name(), self.subject);
        match self.size {
            Some(size) => format!("{id}/{}", size.name()),
            None => id,
        }
    }

    /// The measurement of this engine, if there is one.
    pub fn get(&self, engine: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.engine == engine)
    }

    /// What this engine took for one call, if it was timed.
    pub fn time(&self, engine: &str) -> Option<Spread> {
        self.get(engine)?.time()
    }

    /// How much faster one engine is than another: the ratio of the medians, and that of the best
    /// rounds.
    pub fn ratio(&self, engine: &str, base: &str) -> Option<[f64; 2]> {
        let (time, base) = (self.time(engine)?, self.time(base)?);
        Some([base.median / time.median, base.min / time.min])
    }

    /// The bytes that count for the throughput: those that are written or, of an operation that
    /// keeps no numbers, those that are read.
    pub fn bytes(&self) -> u64 {
        match self.operation {
            Operation::Dequantize => self.bytes_out,
            Operation::Read | Operation::Check => self.bytes_in,
        }
    }

    /// Gigabytes a second in the median.
    pub fn rate(&self, engine: &str) -> Option<f64> {
        Some(self.bytes() as f64 / self.time(engine)?.median)
    }

    /// Which fraction of the fastest way to store as much the engine reaches.
    pub fn share_of_ceiling(&self, engine: &str) -> Option<f64> {
        let ceilings = engine::CEILINGS.iter().filter(|name| **name != engine::MEMCPY);
        let ceiling = ceilings.filter_map(|ceiling| self.rate(ceiling)).fold(0.0, f64::max);
        (ceiling > 0.0).then_some(self.rate(engine)? / ceiling)
    }

    /// The one of ours that the command takes: the last of [`engine::OURS`] that was timed, and not
    /// the one that came out fastest.
    pub fn ours(&self) -> Option<&'static str> {
        engine::OURS.into_iter().rev().find(|name| self.time(name).is_some())
    }
}

impl Measurement {
    /// Of an engine that has no times.
    pub fn untimed(engine: &str, why: Untimed) -> Measurement {
        let (wall_ns, cpu_ns) = (vec![], vec![]);
        Measurement { engine: engine.into(), untimed: Some(why), calls: 0, wall_ns, cpu_ns }
    }

    /// What one call took, in nanoseconds.
    pub fn time(&self) -> Option<Spread> {
        Spread::of(&self.wall_ns, self.calls)
    }

    /// What one call took of the thread's processor time, in nanoseconds.
    pub fn cpu_time(&self) -> Option<Spread> {
        Spread::of(&self.cpu_ns, self.calls)
    }
}
