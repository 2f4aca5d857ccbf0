//! What a config declares for which modules.

use std::collections::HashMap;

use regex_lite::Regex;

use crate::method::Layout;

/// How a weight is declared to be stored.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// The layouts that the config leaves open, the likeliest first. None: the facts do not say how
    /// the tensors look.
    pub layouts: Vec<&'static Layout>,
    /// The width of a code.
    pub bits: u64,
    /// How many codes share a scale.
    pub group: Group,
    /// The rows and columns of a block that shares a scale.
    pub block: Option<(u64, u64)>,
    /// Whether zero points are all the same, if the config says so.
    pub symmetric: Option<bool>,
    /// Whether a group has columns from anywhere (GPTQ's `desc_act`), if the config says so.
    pub act_order: Option<bool>,
    /// Whether GPTQ's zero points are stored as they are, as v2 does, not less one.
    pub zero_is_plain: bool,
}

impl Scheme {
    /// A scheme of one layout: its usual width and group size, symmetric unless said otherwise.
    pub(crate) fn of(layout: &'static Layout) -> Scheme {
        Scheme {
            layouts: vec![layout],
            bits: layout.bits.first().copied().unwrap_or(8),
            group: layout.groups.first().map_or(Group::Row, |size| Group::Size(*size)),
            block: None,
            symmetric: None,
            act_order: None,
            zero_is_plain: false,
        }
    }
}

/// How many codes share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// This many along the input.
    Size(u64),
    /// All of a row; `-1` in most configs.
    Row,
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Group::Size(size) => size.fmt(f),
            Group::Row => f.write_str("-1"),
        }
    }
}

/// Which modules an entry of a config is about.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// The module of this name.
    Name(String),
    /// Modules with these parts in their names, whole between dots.
    Parts(String),
    /// Modules with this text anywhere in their names.
    Text(String),
    /// Modules whose name begins with what the expression matches.
    Expression(Box<Regex>),
    /// `*` stands for anything.
    Wildcard(String),
    /// Every linear layer.
    Linear,
    /// Every layer of another class, of which names do not tell.
    Class(String),
}

impl Pattern {
    /// An entry of a list of modules that are left out: parts of their names, or an expression of all
    /// that comes before a dot (transformers' `should_convert_module`), as `model.layers.*.mlp.router`.
    pub(crate) fn skipped(text: &str) -> Pattern {
        let expression =
            text.contains('*').then(|| Pattern::expression(&format!(r"(?:{text})(?:\.|$)")));
        match expression {
            Some(Ok(expression)) => expression,
            _ => Pattern::Parts(text.into()),
        }
    }

    /// An expression, which matches from the start of a name as Python's `re.match` does.
    pub(crate) fn expression(text: &str) -> Result<Pattern, String> {
        let regex = Regex::new(&format!("^(?:{text})")).map_err(|error| error.to_string())?;
        Ok(Pattern::Expression(Box::new(regex)))
    }

    /// Whether the module is one that the entry is about.
    pub fn matches(&self, module: &str) -> bool {
        match self {
            Pattern::Name(name) => name == module,
            Pattern::Parts(parts) => has_parts(module, parts),
            Pattern::Text(text) => module.contains(text.as_str()),
            Pattern::Expression(regex) => regex.is_match(module),
            Pattern::Wildcard(pattern) => wildcard(pattern, module),
            Pattern::Linear => true,
            Pattern::Class(_) => false,
        }
    }
}

/// Whether `parts` stands in `name`, between dots or its ends.
fn has_parts(name: &str, parts: &str) -> bool {
    name.match_indices(parts).any(|(start, found)| {
        let before = name.get(..start).unwrap_or_default();
        let after = start.checked_add(found.len()).and_then(|end| name.get(end..));
        let after = after.unwrap_or_default();
        (before.is_empty() || before.ends_with('.')) && (after.is_empty() || after.starts_with('.'))
    })
}

/// Whether a pattern with `*` matches all of a name.
fn wildcard(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// An entry of a config: which modules, and how they are stored.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it stands, below the config: `ignore[0]`.
    pub field: String,
    /// The entry's text.
    pub text: String,
    /// Which modules.
    pub pattern: Pattern,
    /// How they are stored; `None` if they are not quantized.
    pub scheme: Option<Scheme>,
}

impl Entry {
    /// The output layer is plain, as methods with a field `lm_head` take it unless the field says
    /// otherwise.
    pub(crate) fn plain_output_layer() -> Entry {
        Entry {
            field: "lm_head".into(),
            text: "false".into(),
            pattern: Pattern::Parts("lm_head".into()),
            scheme: None,
        }
    }
}

/// What a config declares.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    /// Entries for some modules: the first that matches counts.
    pub entries: Vec<Entry>,
    /// What counts for all others; none if they are not quantized.
    pub scheme: Option<Scheme>,
    /// Whether the declaration asks every linear layer that no entry matches to be quantized. Some
    /// methods leave that to the tensors.
    pub is_complete: bool,
}

impl Declaration {
    /// Every scheme that is declared.
    pub(crate) fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.scheme.iter().chain(self.entries.iter().filter_map(|entry| entry.scheme.as_ref()))
    }
}

/// As many entries as are held against every name, but for those that are names themselves.
pub(crate) const MOST_PATTERNS: usize = 4096;

/// The entries of a declaration, to be looked up.
pub(crate) struct Lookup<'d> {
    declaration: &'d Declaration,
    /// The first entry of each name.
    by_name: HashMap<&'d str, usize>,
    /// The places of all others.
    patterns: Vec<usize>,
}

impl<'d> Lookup<'d> {
    pub(crate) fn of(declaration: &'d Declaration) -> Lookup<'d> {
        let mut lookup = Lookup { declaration, by_name: HashMap::new(), patterns: Vec::new() };
        for (place, entry) in declaration.entries.iter().enumerate() {
            match &entry.pattern {
                Pattern::Name(name) => {
                    lookup.by_name.entry(name).or_insert(place);
                }
                _ if lookup.patterns.len() < MOST_PATTERNS => lookup.patterns.push(place),
                _ => {}
            }
        }
        lookup
    }

    /// The entry that counts for a module: the first that matches.
    pub(crate) fn entry(&self, module: &str) -> Option<&'d Entry> {
        let entries = &self.declaration.entries;
        let named = self.by_name.get(module).copied();
        let before = self.patterns.iter().take_while(|place| named.is_none_or(|n| **place < n));
        let mut matching = before
            .copied()
            .filter(|place| entries.get(*place).is_some_and(|entry| entry.pattern.matches(module)));
        entries.get(matching.next().or(named)?)
    }

    /// How a module that this entry counts for is stored; `None` if it is not quantized.
    pub(crate) fn scheme(&self, entry: Option<&'d Entry>) -> Option<&'d Scheme> {
        match entry {
            Some(entry) => entry.scheme.as_ref(),
            None => self.declaration.scheme.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the first entry that matches counts, be it a name or not.
    #[test]
    fn the_first_entry_counts() {
        let entry = |text: &str, pattern| Entry {
            field: text.into(),
            text: text.into(),
            pattern,
            scheme: None,
        };
        let name = |text: &str| entry(text, Pattern::Name(text.into()));
        let parts = |text: &str| entry(text, Pattern::Parts(text.into()));
        let entries =
            vec![name("a.b"), parts("b"), name("c.b"), name("d"), name("a.b"), parts("d")];
        let declaration = Declaration { entries, ..Declaration::default() };
        let lookup = Lookup::of(&declaration);
        for (module, expected) in
            [("a.b", Some(0)), ("c.b", Some(1)), ("d", Some(3)), ("d.e", Some(5)), ("e", None)]
        {
            let expected = expected.map(|place: usize| &raw const declaration.entries[place]);
            assert_eq!(lookup.entry(module).map(|entry| &raw const *entry), expected, "{module}");
        }
    }

    #[test]
    fn patterns_match_as_loaders_do() {
        // By hand, after compressed-tensors' `match_name`, transformers' `should_convert_module` and
        // fnmatch.
        let of = |text: &str| Pattern::expression(text).unwrap();
        for (pattern, name, expected) in [
            (Pattern::Name("lm_head".into()), "lm_head", true),
            (Pattern::Name("lm_head".into()), "model.lm_head", false),
            (Pattern::Parts("mlp.gate".into()), "model.layers.3.mlp.gate", true),
            (Pattern::Parts("mlp.gate".into()), "model.layers.3.mlp.gate_proj", false),
            (Pattern::Text("mlp.gate".into()), "model.layers.3.mlp.gate_proj", true),
            (of(r".*mlp\.gate$"), "model.layers.3.mlp.gate", true),
            (of("mlp"), "model.layers.3.mlp", false),
            (Pattern::skipped("layers.*.mlp.router"), "layers.3.mlp.router", true),
            (Pattern::skipped("layers.*.mlp.router"), "layers.3.mlp.router.inner", true),
            (Pattern::skipped("layers.*.mlp.router"), "layers.3.mlp.router_2", false),
            (Pattern::skipped("mlp.router"), "layers.3.mlp.router", true),
            (of("a|b"), "b.c", true),
            (Pattern::Wildcard("lm_head".into()), "lm_head", true),
            (Pattern::Wildcard("*.gate".into()), "a.b.gate", true),
            (Pattern::Wildcard("model.*.gate*".into()), "model.1.gate_up", true),
            (Pattern::Wildcard("model.*.gate".into()), "model.1.gate_up", false),
        ] {
            assert_eq!(pattern.matches(name), expected, "{pattern:?} {name}");
        }
    }
}
