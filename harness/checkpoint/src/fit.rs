//! Whether the shapes of a module's tensors follow from a layout, and which sizes they follow from.

use std::collections::BTreeMap;

use crate::header::TensorRecord;
use crate::method::{Dim, Layout, Presence, TensorRule, Term};
use crate::module::Module;
use crate::scheme::{Group, Scheme};

/// What shapes depend on besides the weight's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) bits: u64,
    pub(crate) group: Group,
    pub(crate) block: Option<(u64, u64)>,
}

impl Sizes {
    pub(crate) fn of(scheme: &Scheme) -> Sizes {
        Sizes { bits: scheme.bits, group: scheme.group, block: scheme.block }
    }
}

/// The lengths of a weight, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) out_features: Option<u64>,
    pub(crate) in_features: Option<u64>,
    pub(crate) experts: Option<u64>,
    elements: Option<u64>,
}

/// The terms that stand for lengths of a weight.
const LENGTHS: [Term; 4] = [Term::In, Term::Out, Term::Experts, Term::Elements];

impl Weight {
    fn value(&self, term: Term, sizes: Sizes) -> Option<u64> {
        match term {
            Term::Num(number) => Some(number),
            Term::In => self.in_features,
            Term::Out => self.out_features,
            Term::Experts => self.experts,
            Term::Elements => match (self.in_features, self.out_features) {
                (Some(a), Some(b)) => a.checked_mul(b),
                _ => self.elements,
            },
            Term::Bits => Some(sizes.bits),
            Term::Group => match sizes.group {
                Group::Size(size) => Some(size),
                Group::Row => self.in_features,
            },
            Term::Rows => sizes.block.map(|(rows, _)| rows),
            Term::Cols => sizes.block.map(|(_, cols)| cols),
            Term::ZerosWidth => zeros_width(self.in_features?, sizes.group),
            Term::Any => None,
        }
    }

    fn product(&self, terms: &[Term], sizes: Sizes) -> Option<u64> {
        terms.iter().try_fold(1u64, |product, term| product.checked_mul(self.value(*term, sizes)?))
    }

    fn length(&self, dim: &Dim, sizes: Sizes) -> Option<u64> {
        // A row that is one group has one, whatever its length.
        if dim.times == [Term::In] && dim.per == [Term::Group] && sizes.group == Group::Row {
            return Some(1);
        }
        match self.product(dim.per, sizes)? {
            0 => None,
            per => Some(self.product(dim.times, sizes)?.div_ceil(per)),
        }
    }
}

/// The words of zero points of a row of AWQ's GEMV layouts: autoawq 0.2.9, `calculate_zeros_width`.
fn zeros_width(in_features: u64, group: Group) -> Option<u64> {
    let (size, multiple) = match group {
        Group::Size(32) => (32, 4),
        Group::Size(64) => (64, 2),
        Group::Size(size) => (size, 1),
        Group::Row => (in_features, 1),
    };
    if size == 0 {
        return None;
    }
    in_features.div_ceil(size).div_ceil(8).checked_next_multiple_of(multiple)
}

/// A tensor whose shape does not follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) rule: &'static TensorRule,
    pub(crate) found: Vec<u64>,
    /// Each length, if it can be told.
    pub(crate) expected: Vec<Option<u64>>,
}

impl PartialEq for TensorRule {
    fn eq(&self, other: &TensorRule) -> bool {
        self.suffix == other.suffix
    }
}

impl Eq for TensorRule {}

impl Mismatch {
    /// The shape that is expected, with its formula.
    pub(crate) fn expected(&self) -> String {
        let lengths = self.expected.iter().map(|length| match length {
            Some(length) => length.to_string(),
            None => "?".into(),
        });
        let lengths: Vec<String> = lengths.collect();
        let formulas: Vec<String> = self.rule.shape.iter().map(Dim::to_string).collect();
        format!("[{}], which is [{}]", lengths.join(", "), formulas.join(", "))
    }
}

/// How well a layout fits.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub(crate) weight: Weight,
    pub(crate) mismatches: Vec<Mismatch>,
}

/// How many values of each length are tried.
const TRIED: usize = 4;

/// The shapes of a module's tensors, by suffix: those of the headers, or changed ones.
pub(crate) type Shapes = BTreeMap<&'static str, Vec<u64>>;

pub(crate) fn shapes(module: &Module<'_>) -> Shapes {
    module.tensors.iter().map(|(suffix, tensor)| (*suffix, tensor.shape.clone())).collect()
}

/// Finds the weight whose lengths the shapes follow from best. `known` are lengths that something else
/// states.
pub(crate) fn fit(layout: &Layout, sizes: Sizes, shapes: &Shapes, known: Weight) -> Fit {
    let present =
        || layout.tensors.iter().filter_map(|rule| Some((rule, shapes.get(rule.suffix)?)));
    let mut votes: BTreeMap<Term, BTreeMap<u64, usize>> = BTreeMap::new();
    let mut vote = |term: Term, value: u64, count: usize| {
        let votes = votes.entry(term).or_default().entry(value).or_default();
        *votes = votes.saturating_add(count);
    };
    for term in LENGTHS {
        if let Some(value) = known.value(term, sizes) {
            vote(term, value, 2);
        }
    }
    for (rule, shape) in present() {
        for (dim, length) in rule.shape.iter().zip(shape) {
            if let Some((term, value)) = solve(dim, *length, sizes) {
                vote(term, value, 1);
            }
        }
    }
    let candidates = |term: Term| -> Vec<Option<u64>> {
        let values = votes.get(&term).into_iter().flatten();
        let mut list: Vec<(usize, u64)> = values.map(|(value, votes)| (*votes, *value)).collect();
        list.sort_by_key(|(votes, value)| (std::cmp::Reverse(*votes), *value));
        let list: Vec<Option<u64>> =
            list.into_iter().take(TRIED).map(|each| Some(each.1)).collect();
        if list.is_empty() { vec![None] } else { list }
    };
    let (ins, outs) = (candidates(Term::In), candidates(Term::Out));
    let (experts, elements) = (candidates(Term::Experts), candidates(Term::Elements));
    let mut best: Option<Fit> = None;
    for in_features in &ins {
        for out_features in &outs {
            for experts in &experts {
                for elements in &elements {
                    let weight = Weight {
                        in_features: *in_features,
                        out_features: *out_features,
                        experts: *experts,
                        elements: *elements,
                    };
                    let mismatches: Vec<Mismatch> = present()
                        .filter_map(|(rule, shape)| mismatch(rule, shape, weight, sizes))
                        .collect();
                    let better =
                        best.as_ref().is_none_or(|best| mismatches.len() < best.mismatches.len());
                    if better {
                        best = Some(Fit { weight, mismatches });
                    }
                }
            }
        }
    }
    best.unwrap_or(Fit { weight: known, mismatches: Vec::new() })
}

/// The one length that is not known, from the length of a dimension.
fn solve(dim: &Dim, length: u64, sizes: Sizes) -> Option<(Term, u64)> {
    let none = Weight::default();
    if sizes.group == Group::Row && dim.per.contains(&Term::Group) {
        return None;
    }
    let mut unknown = None;
    let mut times = 1u64;
    for term in dim.times {
        match none.value(*term, sizes) {
            Some(value) => times = times.checked_mul(value)?,
            None if unknown.is_some() || *term == Term::ZerosWidth || *term == Term::Any => {
                return None;
            }
            None => unknown = Some(*term),
        }
    }
    let value = length.checked_mul(none.product(dim.per, sizes)?)?.checked_div(times)?;
    Some((unknown?, value))
}

fn mismatch(
    rule: &'static TensorRule,
    shape: &[u64],
    weight: Weight,
    sizes: Sizes,
) -> Option<Mismatch> {
    if matches!(rule.shape, [dim] if dim.times == [Term::Any]) {
        return None;
    }
    let expected: Vec<Option<u64>> =
        rule.shape.iter().map(|dim| weight.length(dim, sizes)).collect();
    // One number may have a shape or not.
    let is_one = |shape: &[u64]| shape.len() < 2 && shape.iter().all(|length| *length == 1);
    let all: Option<Vec<u64>> = expected.iter().copied().collect();
    let fits = match &all {
        Some(all) => all == shape || is_one(all) && is_one(shape),
        None => {
            expected.len() == shape.len()
                && expected
                    .iter()
                    .zip(shape)
                    .all(|(expected, found)| expected.is_none_or(|expected| expected == *found))
        }
    };
    (!fits).then(|| Mismatch { rule, found: shape.to_vec(), expected })
}

/// Whether the tensors that a layout needs are there, of types that it has, and none that only other
/// layouts have.
pub(crate) fn is_of(layout: &Layout, module: &Module<'_>) -> bool {
    let needed = layout.tensors.iter().all(|rule| match module.tensor(rule.suffix) {
        Some(tensor) => rule.dtypes.contains(&tensor.dtype),
        None => rule.presence != Presence::Always,
    });
    needed && module.tensors.keys().all(|suffix| knows(layout, suffix))
}

/// Whether a layout has a tensor of this suffix, or any module may: the scale of a cache stands beside the
/// projection that fills it.
pub(crate) fn knows(layout: &Layout, suffix: &str) -> bool {
    CACHE_SCALES.contains(&suffix) || layout.tensor(suffix).is_some()
}

/// Scales of keys and values in a cache (vllm's maybe_remap_kv_scale_name).
pub(crate) const CACHE_SCALES: [&str; 4] = [".k_scale", ".v_scale", ".kv_scale", ".q_scale"];

/// The sizes with which a layout fits a module without a mismatch; those most like `near` first.
pub(crate) fn sizes_that_fit(
    layout: &Layout,
    near: Sizes,
    shapes: &Shapes,
    known: Weight,
) -> Option<(Sizes, Weight)> {
    let mut all = Vec::new();
    let groups: Vec<Group> = match layout.groups {
        [] => {
            let usual = [128, 64, 32, 16, 256, 512, 1024, 8].map(Group::Size);
            std::iter::once(near.group).chain(usual).chain([Group::Row]).collect()
        }
        fixed => fixed.iter().map(|size| Group::Size(*size)).collect(),
    };
    let blocks: Vec<Option<(u64, u64)>> = if layout.has_blocks() {
        let sizes = [128u64, 64, 32, 256, 16, 512, 1];
        let pairs = sizes.iter().flat_map(|rows| sizes.iter().map(|cols| Some((*rows, *cols))));
        std::iter::once(near.block).flatten().map(Some).chain(pairs).collect()
    } else {
        vec![near.block]
    };
    let bits = layout.bits.iter().copied().filter(|bits| *bits != near.bits);
    let own = layout.bits.contains(&near.bits).then_some(near.bits);
    for bits in own.into_iter().chain(bits) {
        for group in &groups {
            for block in &blocks {
                all.push(Sizes { bits, group: *group, block: *block });
            }
        }
    }
    all.into_iter().find_map(|sizes| {
        let fit = fit(layout, sizes, shapes, known);
        // A group that is partial explains nothing.
        let is_whole = match (sizes.group, fit.weight.in_features) {
            (Group::Size(size), Some(length)) if sizes.group != near.group => {
                length.is_multiple_of(size)
            }
            _ => true,
        };
        let is_known = |known: Option<u64>, found| known.is_none_or(|known| Some(known) == found);
        let as_known = is_known(known.in_features, fit.weight.in_features)
            && is_known(known.out_features, fit.weight.out_features);
        (is_whole && as_known && fit.mismatches.is_empty()).then_some((sizes, fit.weight))
    })
}

/// A record's shape, for a person.
pub(crate) fn shown(tensor: &TensorRecord) -> String {
    format!("{} {:?}", tensor.dtype, tensor.shape)
}
