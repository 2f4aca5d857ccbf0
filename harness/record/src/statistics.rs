//! What a set of times says.

/// Times of the rounds, in nanoseconds a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The fastest round.
    pub min: f64,
    /// A quarter of the rounds were at least as fast.
    pub lower: f64,
    /// The round in the middle.
    pub median: f64,
    /// Three quarters of the rounds were at least as fast.
    pub upper: f64,
    /// The slowest round.
    pub max: f64,
}

impl Spread {
    /// Of these rounds of so many calls each; `None` of none.
    pub fn of(rounds: &[u64], calls: u32) -> Option<Spread> {
        let mut sorted: Vec<f64> =
            rounds.iter().map(|&round| round as f64 / f64::from(calls.max(1))).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        // Between two rounds, the point in between.
        let at = |part: f64| {
            let place = part * last as f64;
            let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        let [min, lower, median, upper, max] = [0.0, 0.25, 0.5, 0.75, 1.0].map(at);
        Some(Spread { min, lower, median, upper, max })
    }

    /// How far apart the middle half of the rounds is, as a fraction of the median.
    pub fn relative(&self) -> f64 {
        (self.upper - self.lower) / self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 1 to 5 the quarters are 2, 3 and 4; two calls a round halve them.
    #[test]
    fn quarters() {
        let spread = Spread::of(&[5, 1, 4, 2, 3], 1).unwrap();
        assert_eq!(spread, Spread { min: 1.0, lower: 2.0, median: 3.0, upper: 4.0, max: 5.0 });
        assert_eq!(Spread::of(&[5, 1, 4, 2, 3], 2).unwrap().median, 1.5);
        assert_eq!(Spread::of(&[1, 2], 1).unwrap().median, 1.5);
        assert_eq!(Spread::of(&[7], 1).unwrap().relative(), 0.0);
        assert_eq!(Spread::of(&[], 1), None);
    }
}
