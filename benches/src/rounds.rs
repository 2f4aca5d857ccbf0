//! Measuring in turns.

use std::time::{Duration, Instant};

use gguf_assay_record::Measurement;

/// Work on something that all contenders share, such as the memory that they write to.
pub type Work<'a, S> = Box<dyn Fn(&mut S) + 'a>;

/// One that takes part.
pub struct Contender<'a, S: ?Sized> {
    /// The name of the engine.
    pub engine: &'static str,
    /// What it does.
    pub work: Work<'a, S>,
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many times each contender is measured.
    pub rounds: usize,
    /// What takes less is done several times in a row, to be longer than what a clock reads.
    pub at_least: Duration,
}

/// The time that the thread has spent on a processor.
fn thread_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
    #[cfg(not(unix))]
    None
}

/// Numbers for the order of turns (SplitMix64), the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

/// Lets the contenders take turns, in another order in each round, so that a change of the machine's
/// state meets them all and none always follows the same other.
pub fn measure<S: ?Sized>(
    contenders: &[Contender<'_, S>],
    shared: &mut S,
    plan: Plan,
) -> Vec<Measurement> {
    let mut measurements: Vec<Measurement> = contenders
        .iter()
        .map(|contender| {
            let calls = calls(&contender.work, shared, plan.at_least);
            let engine = contender.engine.into();
            Measurement { engine, untimed: None, calls, wall_ns: vec![], cpu_ns: vec![] }
        })
        .collect();
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut random = Random(plan.rounds as u64);
    for _ in 0..plan.rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, random.next() as usize % (last + 1));
        }
        for &index in &order {
            let (work, measurement) = (&contenders[index].work, &mut measurements[index]);
            if measurement.calls > 1 {
                // So short that it matters what the one before has left in the caches.
                work(shared);
            }
            let (cpu, wall) = (thread_time(), Instant::now());
            for _ in 0..measurement.calls {
                work(shared);
            }
            let wall = wall.elapsed();
            measurement.wall_ns.push(wall.as_nanos() as u64);
            if let (Some(before), Some(after)) = (cpu, thread_time()) {
                measurement.cpu_ns.push((after - before).as_nanos() as u64);
            }
        }
    }
    measurements
}

/// How many calls take long enough, by two of which the first only warms up.
fn calls<S: ?Sized>(work: &Work<'_, S>, shared: &mut S, at_least: Duration) -> u32 {
    work(shared);
    let start = Instant::now();
    work(shared);
    let one = start.elapsed().max(Duration::from_nanos(1));
    at_least.div_duration_f64(one).ceil().clamp(1.0, 1e6) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_has_every_round() {
        let work = || -> Work<'_, u64> { Box::new(|count| *count += 1) };
        let contenders = ["a", "b", "c"].map(|engine| Contender { engine, work: work() });
        let plan = Plan { rounds: 4, at_least: Duration::ZERO };
        let mut count = 0;
        let measurements = measure(&contenders, &mut count, plan);
        // Two calls each to warm up, then one a round.
        assert_eq!(count, 3 * 2 + 3 * 4);
        for measurement in measurements {
            assert_eq!((measurement.calls, measurement.wall_ns.len()), (1, 4));
        }
    }
}
