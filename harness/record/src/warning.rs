//! Why a record may not tell what it seems to.

use crate::{Group, Operation, Record, Spread, engine};

/// More of the clock's time than this was not the thread's.
const OFF_PROCESSOR: f64 = 0.05;
/// The middle half of the rounds is further apart than this.
const WIDE: f64 = 0.1;
/// More of the processors' time than this went to other virtual machines.
const STOLEN: f64 = 0.01;
/// More threads than this had work when the run began.
const LOADED: f64 = 0.5;
/// The same filling of memory took times that are further apart than this.
const DRIFT: f64 = 0.2;
/// Fewer rounds than this make no median.
const FEW_ROUNDS: usize = 5;

pub(crate) fn of(record: &Record) -> Vec<String> {
    let mut warnings = Vec::new();
    let percent = |part: f64| format!("{:.0}%", 100.0 * part);
    let noise = &record.noise;
    if let Some(load) = noise.load_before.filter(|load| *load > LOADED) {
        warnings.push(format!("the machine was not idle when the run began: load {load:.1}"));
    }
    if let Some(stolen) = noise.stolen.filter(|stolen| *stolen > STOLEN) {
        let stolen = percent(stolen);
        warnings.push(format!("other virtual machines took {stolen} of the processors' time"));
    }
    match record.machine.governor.as_deref() {
        None | Some("performance") => {}
        Some(governor) => {
            warnings.push(format!("the clock was governed by {governor:?}, not \"performance\""));
        }
    }

    let timed = || {
        let groups = record.groups.iter();
        groups.flat_map(|group| group.measurements.iter().filter_map(|m| Some((m, m.time()?))))
    };
    let count = timed().count();
    let waited = timed().filter(|(measurement, time)| {
        // Neither ticks nor interruptions of a microsecond are noise.
        measurement
            .cpu_time()
            .is_some_and(|cpu| time.median - cpu.median > OFF_PROCESSOR * time.median)
    });
    match waited.count() {
        0 => {}
        some => warnings.push(format!(
            "in {some} of {count} measurements the thread was off the processor for more than {} of the \
             time",
            percent(OFF_PROCESSOR)
        )),
    }
    match timed().filter(|(_, time)| time.relative() > WIDE).count() {
        0 => {}
        some => warnings.push(format!(
            "in {some} of {count} measurements the middle half of the rounds is more than {} of the \
             median apart",
            percent(WIDE)
        )),
    }
    let fewest = timed().map(|(measurement, _)| measurement.wall_ns.len()).min();
    if fewest.is_some_and(|rounds| rounds < FEW_ROUNDS) {
        warnings.push(format!("fewer than {FEW_ROUNDS} rounds: a trial, not a measurement"));
    }
    warnings.extend(drift(record).filter(|drift| *drift > DRIFT).map(|drift| {
        let drift = percent(drift);
        format!("the same memory was filled at rates {drift} apart in the course of the run")
    }));
    for group in &record.groups {
        for measurement in &group.measurements {
            if let Some(crate::Untimed::Wrong(how)) = &measurement.untimed {
                warnings.push(format!("{}: {} is wrong: {how}", group.id(), measurement.engine));
            }
        }
    }
    if record.commit.as_ref().is_some_and(|commit| commit.ends_with('+')) {
        warnings.push("files had changed since the commit that the record names".into());
    }
    warnings
}

/// How far apart the medians of filling memory are, of all groups of one size, the worse size.
fn drift(record: &Record) -> impl Iterator<Item = f64> {
    let drift = crate::Size::ALL.into_iter().filter_map(|size| {
        let groups = record.groups.iter();
        let same =
            |group: &&Group| group.operation == Operation::Dequantize && group.size == Some(size);
        let rates: Vec<u64> = groups
            .filter(same)
            .filter_map(|group| Some((1000.0 * group.rate(engine::FILL)?) as u64))
            .collect();
        // The middle half: a single type's bad moment is in that type's spread.
        Some(Spread::of(&rates, 1)?.relative())
    });
    drift.max_by(f64::total_cmp).into_iter()
}
