//! What is made of a record.

mod compare;
mod html;
mod markdown;
mod plot;

use crate::{Group, Measurement, Operation, Record, Size, Untimed, engine};

/// A table: heads, and rows of as many cells. The first column is text, the others are numbers.
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Three digits, more or less: `0.95`, `3.14`, `31.4`, `314`.
fn number(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// How many times as fast.
fn times(value: f64) -> String {
    format!("{}×", number(value))
}

/// A time for people.
fn duration(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{} ns", number(ns)),
        _ if ns < 1e6 => format!("{} µs", number(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", number(ns / 1e6)),
        _ => format!("{} s", number(ns / 1e9)),
    }
}

fn percent(part: f64) -> String {
    format!("{:.0}%", 100.0 * part)
}

fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut size = count as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(size.fract() != 0.0);
    format!("{size:.digits$} {}", UNITS[unit])
}

impl Record {
    /// The groups of an operation and a size.
    fn groups(&self, operation: Operation, size: Option<Size>) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |group| group.operation == operation && group.size == size)
    }

    /// The engines that dequantize, in the order of the record: those that are in some group and
    /// are no ceilings.
    fn dequantizers(&self) -> Vec<&str> {
        let names = self.engines.iter().map(|engine| engine.name.as_str());
        let is_in = |name: &str| {
            self.groups
                .iter()
                .any(|group| group.operation == Operation::Dequantize && group.get(name).is_some())
        };
        names.filter(|name| is_in(name) && !engine::CEILINGS.contains(name)).collect()
    }

    /// The title of a report.
    fn title(&self) -> String {
        let date = self.started.get(..10).unwrap_or_default();
        format!("gguf-assay {}: benches of {date}", self.version)
    }

    /// What was run on, by name.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let machine = &self.machine;
        let noise = &self.noise;
        let virtual_one = machine.flags.iter().any(|flag| flag == "hypervisor");
        let caches: Vec<String> = machine
            .caches
            .iter()
            .filter(|cache| cache.kind != "Instruction")
            .map(|cache| format!("L{} {}", cache.level, bytes(cache.bytes)))
            .collect();
        let known = |value: &Option<String>| value.clone().unwrap_or("not told".into());
        let part = |value: Option<f64>| value.map_or("not told".into(), percent);
        let load =
            |value: Option<f64>| value.map_or("not told".into(), |load| format!("{load:.2}"));
        let flags: Vec<&str> =
            machine.flags.iter().map(String::as_str).filter(|flag| *flag != "hypervisor").collect();
        vec![
            ("processor", {
                let kind = if virtual_one { " virtual" } else { "" };
                let plural = if machine.processors == 1 { "" } else { "s" };
                format!(
                    "{}, {}; {}{kind} processor{plural}",
                    machine.cpu, machine.architecture, machine.processors
                )
            }),
            ("instruction sets", flags.join(" ")),
            ("caches", caches.join(", ")),
            ("memory", machine.memory.map_or("not told".into(), bytes)),
            ("large pages", known(&machine.huge_pages)),
            ("governor of the clock", known(&machine.governor)),
            ("system", machine.system.clone()),
            ("Rust", self.rustc.clone()),
            ("C", self.c_compiler.clone()),
            ("commit", known(&self.commit)),
            ("begun, took", format!("{}, {} s", self.started, self.seconds)),
            (
                "load before, after",
                format!("{}, {}", load(noise.load_before), load(noise.load_after)),
            ),
            ("processors busy, stolen", format!("{}, {}", part(noise.busy), part(noise.stolen))),
        ]
    }

    /// How the rounds were.
    fn method(&self) -> String {
        let example = |operation, size| {
            let group = self.groups(operation, size).next()?;
            let rounds = group.measurements.iter().map(|m| m.wall_ns.len()).max()?;
            Some((group.bytes_out, rounds))
        };
        let mut text = String::from(
            "Engines take turns in each round, in changing order, on one thread, with the same input \
             and output; all memory was touched before. The numbers of each were compared with the \
             reference's, bit for bit, before its first round. Times are medians. ",
        );
        for (size, meaning) in
            [(Size::Cached, "stays in the cache"), (Size::Streamed, "goes to memory")]
        {
            if let Some((out, rounds)) = example(Operation::Dequantize, Some(size)) {
                text += &format!(
                    "*{}*: an output of {}, which {meaning}, {rounds} rounds. ",
                    size.name(),
                    bytes(out)
                );
            }
        }
        text += "*Of ceiling*: the part of the rate at which the fastest plain loop fills the same \
                 memory in the same rounds. *Spread*: how far apart the middle half of the rounds is.";
        text
    }

    /// Of a size: the rate of ggml, how many times as fast the engines are, and what ours reaches.
    fn dequantize_table(&self, size: Size) -> Option<Table> {
        let engines: Vec<&str> =
            self.dequantizers().into_iter().filter(|name| *name != engine::GGML).collect();
        let mut heads = vec!["type".to_owned(), "ggml, GB/s".into()];
        heads.extend(engines.iter().map(|name| (*name).to_owned()));
        heads.extend(["ours, GB/s", "of ceiling", "spread"].map(String::from));
        let row = |group: &Group| {
            let has_base = group.time(engine::GGML).is_some();
            let mut row =
                vec![group.subject.clone(), cell(group, engine::GGML, Group::rate, number)];
            row.extend(engines.iter().map(|name| match has_base {
                true => cell(group, name, |g, e| Some(g.ratio(e, engine::GGML)?[0]), times),
                // With nothing to compare with, the rate is what there is.
                false => cell(group, name, Group::rate, |rate| format!("{} GB/s", number(rate))),
            }));
            let ours = group.ours().unwrap_or(engine::OURS[0]);
            row.push(cell(group, ours, Group::rate, number));
            row.push(cell(group, ours, Group::share_of_ceiling, percent));
            row.push(cell(group, ours, |g, e| Some(g.time(e)?.relative()), percent));
            row
        };
        let rows: Vec<_> = self.groups(Operation::Dequantize, Some(size)).map(row).collect();
        (!rows.is_empty()).then_some(Table { heads, rows })
    }

    /// The rates at which memory is filled: of all groups the one in the middle.
    fn ceiling_table(&self) -> Table {
        let mut heads = vec!["GB/s written".to_owned()];
        heads.extend(Size::ALL.map(|size| size.name().to_owned()));
        let rows = engine::CEILINGS.map(|ceiling| {
            let mut row = vec![ceiling.to_owned()];
            row.extend(Size::ALL.map(|size| {
                let groups = self.groups(Operation::Dequantize, Some(size));
                let mut rates: Vec<f64> = groups.filter_map(|group| group.rate(ceiling)).collect();
                rates.sort_by(f64::total_cmp);
                rates.get(rates.len() / 2).map_or("–".into(), |rate| number(*rate))
            }));
            row
        });
        Table { heads, rows: rows.into() }
    }

    /// The other operations: of each group its title, and a table with a row for each engine: time,
    /// rate, and how many times as fast it is as the slowest.
    fn other_tables(&self) -> impl Iterator<Item = (String, Table)> {
        let groups = self.groups.iter().filter(|group| group.operation != Operation::Dequantize);
        groups.map(|group| {
            let what = match group.operation {
                Operation::Check => "The command check --deep",
                Operation::Read | Operation::Dequantize => "Reading a header",
            };
            (format!("{what}: {}", group.subject), times_table(group))
        })
    }

    /// Engines that were not timed, and why: type by type, joined where the reason is the same.
    fn untimed(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, &Untimed, Vec<String>)> = Vec::new();
        for group in &self.groups {
            for measurement in &group.measurements {
                let Some(why) = &measurement.untimed else { continue };
                let name = measurement.engine.as_str();
                let subjects = match reasons.iter_mut().find(|r| r.0 == name && r.1 == why) {
                    Some((.., subjects)) => subjects,
                    None => {
                        reasons.push((name, why, vec![]));
                        let Some((.., subjects)) = reasons.last_mut() else { continue };
                        subjects
                    }
                };
                if !subjects.contains(&group.subject) {
                    subjects.push(group.subject.clone());
                }
            }
        }
        let line = |(name, why, subjects): (&str, &Untimed, Vec<String>)| match why {
            Untimed::Absent(why) => format!("{name}: {why}: {}", subjects.join(", ")),
            Untimed::Wrong(how) => format!("{name} is wrong: {how}: {}", subjects.join(", ")),
        };
        reasons.into_iter().map(line).collect()
    }
}

fn times_table(group: &Group) -> Table {
    let timed = group.measurements.iter().filter(|m| m.time().is_some());
    // The peer that everyone knows, or the portable code.
    let slowest = timed.max_by(|a, b| median(a).total_cmp(&median(b)));
    let base = slowest.map_or("", |measurement| measurement.engine.as_str());
    let row = |measurement: &Measurement| {
        let name = measurement.engine.as_str();
        let ratio = |which: usize| cell(group, name, |g, e| Some(g.ratio(e, base)?[which]), times);
        vec![
            name.to_owned(),
            cell(group, name, |g, e| Some(g.time(e)?.median), duration),
            cell(group, name, Group::rate, number),
            ratio(0),
            ratio(1),
            cell(group, name, |g, e| Some(g.time(e)?.relative()), percent),
        ]
    };
    let ratio = format!("as fast as {base}");
    let heads = ["engine", "time", "GB/s", &ratio, "by best rounds", "spread"];
    Table {
        heads: heads.map(String::from).into(),
        rows: group.measurements.iter().map(row).collect(),
    }
}

fn median(measurement: &Measurement) -> f64 {
    measurement.time().map_or(0.0, |time| time.median)
}

/// A figure of an engine's, `wrong` or, where there is none, a dash.
fn cell(
    group: &Group,
    name: &str,
    figure: impl Fn(&Group, &str) -> Option<f64>,
    show: impl Fn(f64) -> String,
) -> String {
    match group.get(name).and_then(|measurement| measurement.untimed.as_ref()) {
        Some(Untimed::Wrong(_)) => "wrong".into(),
        _ => figure(group, name).map_or("–".into(), show),
    }
}
