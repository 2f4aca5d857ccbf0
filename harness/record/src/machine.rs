//! The machine, as far as it bears on times, and how quiet it was. Linux says it in files; on other
//! systems most of it stays unknown.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name for itself, with family, model and stepping where the name is short of
    /// them.
    pub cpu: String,
    /// The architecture, as Rust names it.
    pub architecture: String,
    /// Processors that the system has.
    pub processors: usize,
    /// The processor's instruction sets that bear on vectors, and whether it is a virtual one.
    pub flags: Vec<String>,
    /// The caches of one processor.
    pub caches: Vec<Cache>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// How the clock is governed; absent where the system does not say, as in virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Which memory comes in large pages: `always`, `madvise` or `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// The operating system, with the first two numbers of its version.
    pub system: String,
}

/// A cache that a processor sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Bytes.
    pub bytes: u64,
}

/// What the machine did beside the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The load average of a minute when the run began: 1 for each thread that had work.
    pub load_before: Option<f64>,
    /// The same, when it ended; the run itself makes 1 of it.
    pub load_after: Option<f64>,
    /// The part of all processors' time that other virtual machines took.
    pub stolen: Option<f64>,
    /// The part of all processors' time that was spent on anything, this run included.
    pub busy: Option<f64>,
}

/// How the system's processors have spent their time, in ticks, since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    all: u64,
    idle: u64,
    stolen: u64,
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

impl Machine {
    /// The one that this runs on.
    pub fn this() -> Machine {
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        Machine {
            cpu: cpu(&cpuinfo),
            architecture: std::env::consts::ARCH.into(),
            processors: cpuinfo
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count()
                .max(std::thread::available_parallelism().map_or(1, usize::from)),
            flags: flags(&cpuinfo),
            caches: caches(),
            memory: memory(&read("/proc/meminfo").unwrap_or_default()),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .map(|governor| governor.trim().into()),
            huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|modes| Some(modes.split_once('[')?.1.split_once(']')?.0.into())),
            system: system(),
        }
    }
}

/// The value of a field of `/proc/cpuinfo`: that of the first processor.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

fn cpu(cpuinfo: &str) -> String {
    let Some(name) = field(cpuinfo, "model name") else { return "unknown".into() };
    let digits = name.chars().any(|c| c.is_ascii_digit());
    let numbers = ["cpu family", "model", "stepping"].map(|key| field(cpuinfo, key));
    match numbers {
        // Hypervisors hide the number of the model, but not what tells the generation.
        [Some(family), Some(model), Some(stepping)] if !digits => {
            format!("{name} (family {family}, model {model}, stepping {stepping})")
        }
        _ => name.into(),
    }
}

fn flags(cpuinfo: &str) -> Vec<String> {
    const PREFIXES: [&str; 9] =
        ["sse4", "ssse3", "avx", "fma", "f16c", "bmi", "gfni", "amx", "hypervisor"];
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features")).unwrap_or_default();
    let flags = flags.split(' ').filter(|flag| PREFIXES.iter().any(|p| flag.starts_with(p)));
    flags.map(String::from).collect()
}

fn caches() -> Vec<Cache> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let cache = |index: usize| {
        let part = |name: &str| {
            let text = read(folder.join(format!("index{index}")).join(name))?;
            Some(text.trim().to_owned())
        };
        let kib: u64 = part("size")?.strip_suffix('K')?.parse().ok()?;
        Some(Cache { level: part("level")?.parse().ok()?, kind: part("type")?, bytes: kib << 10 })
    };
    (0..).map_while(cache).collect()
}

fn memory(meminfo: &str) -> Option<u64> {
    let kib: u64 = field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

fn system() -> String {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
    match version.as_slice() {
        [major, minor] => format!("Linux {major}.{minor}"),
        _ => std::env::consts::OS.into(),
    }
}

impl Noise {
    /// The load average of the last minute.
    pub fn load() -> Option<f64> {
        read("/proc/loadavg")?.split(' ').next()?.parse().ok()
    }

    /// Between two readings.
    pub fn between(
        before: (Option<f64>, Option<Usage>),
        after: (Option<f64>, Option<Usage>),
    ) -> Noise {
        let part = |ticks: fn(Usage) -> u64| {
            let (before, after) = (before.1?, after.1?);
            let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
            Some(ticks(after).saturating_sub(ticks(before)) as f64 / all as f64)
        };
        Noise {
            load_before: before.0,
            load_after: after.0,
            stolen: part(|usage| usage.stolen),
            busy: part(|usage| usage.all - usage.idle - usage.stolen),
        }
    }
}

impl Usage {
    /// Up to now.
    pub fn now() -> Option<Usage> {
        Usage::parse(&read("/proc/stat")?)
    }

    /// `cpu user nice system idle iowait irq softirq steal`: proc(5).
    fn parse(stat: &str) -> Option<Usage> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> =
            line.split_whitespace().map_while(|t| t.parse().ok()).take(8).collect();
        let [_, _, _, idle, iowait, _, _, stolen] = ticks[..] else { return None };
        Some(Usage { all: ticks.iter().sum(), idle: idle + iowait, stolen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n\
        model\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu sse2 avx2 avx512f\n\
        \nprocessor\t: 1\nmodel name\t: other\n";

    #[test]
    fn a_processor() {
        assert_eq!(cpu(CPUINFO), "AMD EPYC (family 25, model 17, stepping 1)");
        let named = CPUINFO.replace("AMD EPYC", "AMD EPYC 9B14 96-Core Processor");
        assert_eq!(cpu(&named), "AMD EPYC 9B14 96-Core Processor");
        assert_eq!(flags(CPUINFO), ["avx2", "avx512f"]);
        assert_eq!(memory("MemTotal:       24523008 kB\n"), Some(24_523_008 << 10));
    }

    /// By hand: 100 ticks in between, of which 50 idle or waiting, 10 stolen and 40 busy.
    #[test]
    fn what_else_ran() {
        let before = Usage::parse("cpu  10 0 0 100 0 0 0 5 0 0\n");
        let after = Usage::parse("cpu  50 0 0 140 10 0 0 15 0 0\n");
        let noise = Noise::between((Some(0.1), before), (Some(1.0), after));
        let expected = Noise {
            load_before: Some(0.1),
            load_after: Some(1.0),
            stolen: Some(0.1),
            busy: Some(0.4),
        };
        assert_eq!(noise, expected);
        assert_eq!(Noise::between((None, None), (None, after)).stolen, None);
    }

    #[test]
    fn this_one_names_no_host() {
        let text = serde_json::to_string(&Machine::this()).unwrap();
        assert!(!text.contains("\"/"), "{text}");
    }
}
