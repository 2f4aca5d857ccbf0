//! `gguf-assay check --deep`, from the start of the process to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gguf_assay_format::{Data, Description, TensorDescription, TensorType, lay_out};
use gguf_assay_quant::kernel::{Engine, VARIABLE};
use gguf_assay_record::{Group, Measurement, Operation, Untimed};

use crate::dequantize::blocks;
use crate::rounds::{Contender, Plan, measure};

/// The command to measure, if it is not the one that was built beside this program.
const COMMAND: &str = "GGUF_ASSAY_COMMAND";

/// A real file, and the name by which the command knows it.
const REAL: &str = "SmolLM2-135M-Instruct.Q4_1";

/// As anyone runs it: the best engine, on all cores.
const PLAIN: &str = "all cores";

/// What sets each apart; the engines are among those that dequantize, too.
pub(crate) fn about() -> Vec<(&'static str, String)> {
    vec![(PLAIN, "ours: the best engine, on all cores, as the command comes".into())]
}

/// The command and a file to check.
pub struct Check {
    command: PathBuf,
    file: PathBuf,
    /// The file's name in reports.
    pub name: String,
    /// The file's length.
    pub bytes: u64,
}

impl Check {
    /// Finds the command, and a real file in its cache; without one it makes a file of about so many
    /// bytes in `folder`.
    ///
    /// # Errors
    ///
    /// If the command is not there, or no file can be written.
    pub fn find(folder: &Path, bytes: usize, is_real: bool) -> Result<Check, String> {
        let command = match std::env::var_os(COMMAND) {
            Some(command) => command.into(),
            None => beside().ok_or("this program has no folder")?,
        };
        if !command.is_file() {
            let how = "build it first: cargo build --release -p gguf-assay-cli";
            return Err(format!("the command is not there; {how}"));
        }
        let real = is_real.then(|| real(&command)).flatten();
        let (file, name) = match real {
            Some(file) => (file, REAL.to_owned()),
            None => {
                let path = folder.join("generated.gguf");
                let fault = |error| format!("cannot write a file to check: {error}");
                fs::write(&path, generated(bytes)).map_err(fault)?;
                (path, format!("generated, {} MiB", bytes >> 20))
            }
        };
        let bytes = fs::metadata(&file).map_err(|error| error.to_string())?.len();
        Ok(Check { command, file, name, bytes })
    }

    /// Runs the command, with this engine on one thread, or as it comes.
    ///
    /// # Panics
    ///
    /// If it does not accept the file.
    pub fn run(&self, engine: Option<Engine>) {
        let mut command = Command::new(&self.command);
        command.args(["check", "--deep"]).arg(&self.file).stdout(Stdio::null());
        command.env_remove(VARIABLE).env_remove("RAYON_NUM_THREADS");
        if let Some(engine) = engine {
            command.env(VARIABLE, engine.name()).env("RAYON_NUM_THREADS", "1");
        }
        let status = command.status().expect("the command starts");
        assert!(status.success(), "check --deep accepts {}", self.name);
    }

    /// Those that can be run here.
    pub fn engines() -> impl Iterator<Item = (&'static str, Option<Engine>)> {
        let available = Engine::ALL.into_iter().filter(|engine| engine.is_available());
        available.map(|engine| (engine.name(), Some(engine))).chain([(PLAIN, None)])
    }

    /// Measures the engines in turns.
    pub fn group(&self, plan: Plan) -> Group {
        let contenders: Vec<Contender<'_, ()>> = Check::engines()
            .map(|(name, engine)| Contender {
                engine: name,
                work: Box::new(move |()| self.run(engine)),
            })
            .collect();
        let mut measurements = measure(&contenders, &mut (), plan);
        for measurement in &mut measurements {
            // What counts is the time of another process.
            measurement.cpu_ns.clear();
        }
        for engine in Engine::ALL.into_iter().filter(|engine| !engine.is_available()) {
            let why = format!("this machine lacks {}", engine.missing().join(", "));
            measurements.push(Measurement::untimed(engine.name(), Untimed::Absent(why)));
        }
        Group {
            operation: Operation::Check,
            subject: self.name.clone(),
            size: None,
            bytes_in: self.bytes,
            bytes_out: 0,
            measurements,
        }
    }
}

/// `target/release/gguf-assay` of `target/release/deps/check-0123456789abcdef`.
fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.parent()?.join("gguf-assay").with_extension(std::env::consts::EXE_EXTENSION))
}

fn real(command: &Path) -> Option<PathBuf> {
    let run = Command::new(command).args(["real", "path", REAL]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(run.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

/// A file with tensors of the types that models use most, in equal parts.
fn generated(bytes: usize) -> Vec<u8> {
    const TYPES: [&str; 4] = ["Q4_K", "Q6_K", "Q8_0", "F16"];
    let tensors = TYPES.map(|name| {
        let t = TensorType::by_name(name).expect("a type of the table");
        let count = 1 << 8;
        let (part, _) = blocks(t, count);
        let parts = (bytes / TYPES.len()).div_ceil(part.len());
        TensorDescription {
            name: format!("blk.0.{name}").into(),
            dims: vec![count as u64 * u64::from(t.block_len), parts as u64],
            type_id: t.id,
            offset: None,
            data: Data::Bytes(part.repeat(parts)),
        }
    });
    lay_out(&Description { tensors: tensors.into(), ..Description::default() }).to_bytes()
}
