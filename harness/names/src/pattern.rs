//! Names with places for numbers: `blk.N.ffn_gate.E.weight`.

use std::fmt;

/// A name whose segments (between dots) `N` and `E` stand for a layer's and an expert's number; a
/// segment such as `shard_E` ends in one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(String);

/// The numbers in a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Numbers {
    /// The layer, counted from 0, if the pattern has `N`.
    pub layer: Option<u64>,
    /// The expert, counted from 0, if the pattern has `E`.
    pub expert: Option<u64>,
}

impl Pattern {
    /// The pattern of a data file.
    pub(crate) fn new(text: &str) -> Pattern {
        Pattern(text.to_owned())
    }

    /// The pattern's text.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn has(&self, placeholder: &str) -> bool {
        self.0.split('.').any(|segment| {
            segment == placeholder || before(segment).is_some() && placeholder == "E"
        })
    }

    /// Whether there is one for each layer.
    pub fn has_layer(&self) -> bool {
        self.has("N")
    }

    /// Whether there is one for each expert.
    pub fn has_expert(&self) -> bool {
        self.has("E")
    }

    /// The numbers with which the pattern gives `name`.
    pub fn matches(&self, name: &str) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        let mut segments = name.split('.');
        for expected in self.0.split('.') {
            let segment = segments.next()?;
            match expected {
                "N" => numbers.layer = Some(number(segment)?),
                "E" => numbers.expert = Some(number(segment)?),
                literal if literal == segment && before(literal).is_none() => {}
                literal => {
                    let behind = segment.strip_prefix(before(literal)?)?;
                    numbers.expert = Some(number(behind)?);
                }
            }
        }
        segments.next().is_none().then_some(numbers)
    }

    /// The name with these numbers; a number that is not given stays `N` or `E`.
    pub fn name(&self, numbers: Numbers) -> String {
        let segments = self.0.split('.').map(|segment| match (segment, numbers) {
            ("N", Numbers { layer: Some(number), .. })
            | ("E", Numbers { expert: Some(number), .. }) => number.to_string(),
            (literal, Numbers { expert: Some(number), .. }) => match before(literal) {
                Some(before) => format!("{before}{number}"),
                None => literal.to_owned(),
            },
            (literal, _) => literal.to_owned(),
        });
        segments.collect::<Vec<_>>().join(".")
    }

    /// What names of this pattern have in common with it: every number and placeholder is `#`.
    pub(crate) fn key(&self) -> String {
        key_of(&self.0)
    }
}

/// What stands before the number in a segment `shard_E`.
fn before(segment: &str) -> Option<&str> {
    segment.strip_suffix('E').filter(|before| before.ends_with('_'))
}

/// [`Pattern::key`] of a name.
pub(crate) fn key_of(name: &str) -> String {
    let segments = name.split('.').map(|segment| match segment {
        "N" | "E" => "#",
        segment if number(segment).is_some() => "#",
        segment => match segment.rsplit_once('_') {
            Some((before, behind)) if behind == "E" || number(behind).is_some() => before,
            _ => segment,
        },
    });
    segments.collect::<Vec<_>>().join(".")
}

/// A number as a name has it: digits, and no zeros before others.
fn number(segment: &str) -> Option<u64> {
    let plain = segment.bytes().all(|byte| byte.is_ascii_digit())
        && (segment == "0" || !segment.starts_with('0'));
    if plain { segment.parse().ok() } else { None }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        let pattern = Pattern::new("blk.N.ffn_gate.E.weight");
        let numbers = Numbers { layer: Some(3), expert: Some(12) };
        assert_eq!(pattern.matches("blk.3.ffn_gate.12.weight"), Some(numbers));
        assert_eq!(pattern.name(numbers), "blk.3.ffn_gate.12.weight");
        assert_eq!(pattern.name(Numbers { expert: None, ..numbers }), "blk.3.ffn_gate.E.weight");
        assert_eq!(pattern.key(), key_of("blk.3.ffn_gate.12.weight"));
        for other in [
            "blk.03.ffn_gate.12.weight",
            "blk.3.ffn_gate.weight",
            "blk.3.ffn_gate.12.weight.x",
            "blk.+3.ffn_gate.12.weight",
            "blk..ffn_gate.12.weight",
            "blk.99999999999999999999999.ffn_gate.1.weight",
            "",
        ] {
            assert_eq!(pattern.matches(other), None, "{other}");
        }
        let shard = Pattern::new("ple.shard_E.weight");
        assert!(shard.has_expert());
        let numbers = Numbers { layer: None, expert: Some(3) };
        assert_eq!(shard.matches("ple.shard_3.weight"), Some(numbers));
        assert_eq!(shard.name(numbers), "ple.shard_3.weight");
        assert_eq!(shard.key(), key_of("ple.shard_3.weight"));
        for other in
            ["ple.shard_E.weight", "ple.shard_.weight", "ple.shard_03.weight", "ple.3.weight"]
        {
            assert_eq!(shard.matches(other), None, "{other}");
        }
        // A number that belongs to the name.
        let literal = Pattern::new("block.N.layer.0.q");
        assert_eq!(literal.key(), key_of("block.7.layer.0.q"));
        assert_eq!(literal.matches("block.7.layer.1.q"), None);
    }
}
