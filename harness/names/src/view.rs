//! Views: which element of a parameter is which element of a tensor.
//!
//! `(n_head 2 d) i -> (n_head d 2) i` reads: the parameter's rows are heads of two halves of `d`
//! rows; in the tensor the two halves of each head alternate. Left is the parameter, right the
//! tensor with its last GGUF dimension first (torch's order). An axis is a hyperparameter, a
//! number, or one lowercase letter whose size follows from the tensor; `E` is the expert, and
//! stands on the left only where the parameter holds all of them. `0:2` is the first of two,
//! `q@0:group` the `q` from place 0 of `group`, and `(…)@a:b` the rows from `a` of `b` that a
//! dimension has.
//!
//! Each side names every axis once, so that a view is its own inverse read from right to left.

use std::collections::BTreeMap;

use crate::expression::{Expression, Value};

/// A parsed view.
#[derive(Clone, Debug)]
pub(crate) struct View {
    text: String,
    parameter: Vec<Dimension>,
    tensor: Vec<Dimension>,
}

/// One dimension: a group of axes, the last of which is contiguous.
#[derive(Clone, Debug)]
struct Dimension {
    axes: Vec<Axis>,
    part: Option<Part>,
}

/// An axis of a dimension.
#[derive(Clone, Debug)]
struct Axis {
    /// What it is called; empty for an index such as `0:2`.
    name: String,
    /// `None` for a letter.
    size: Option<Expression>,
    part: Option<Part>,
}

/// That only some of `total` places are meant, from `start`.
#[derive(Clone, Debug)]
struct Part {
    start: Expression,
    total: Expression,
}

/// The moves between a parameter and a tensor of known dimensions. Strides, places and sizes are in
/// elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moves {
    /// The parameter's shape, in torch's order.
    pub(crate) shape: Vec<u64>,
    /// Nested loops: the outermost first.
    pub(crate) loops: Vec<Loop>,
    pub(crate) parameter_start: u64,
    pub(crate) tensor_start: u64,
    /// One parameter for each expert.
    pub(crate) experts: Option<Experts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    pub(crate) size: u64,
    pub(crate) parameter_stride: u64,
    pub(crate) tensor_stride: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Experts {
    pub(crate) count: u64,
    pub(crate) tensor_stride: u64,
}

impl Moves {
    /// How many elements of one parameter are moved.
    pub(crate) fn elements(&self) -> Option<u64> {
        product(self.loops.iter().map(|each| each.size))
    }

    /// The places behind the last element that is moved: in the parameter, and in the tensor, of
    /// the last expert. `None` if they exceed 64 bits.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        let last = self.experts.map_or(0, |experts| experts.count.saturating_sub(1));
        let (_, tensor) = self.of_tensor(last)?;
        if self.loops.iter().any(|each| each.size == 0) {
            return Some((0, 0));
        }
        let mut parameter = self.parameter_start;
        for each in &self.loops {
            let steps = each.size.saturating_sub(1);
            parameter = parameter.checked_add(each.parameter_stride.checked_mul(steps)?)?;
        }
        Some((parameter.checked_add(1)?, tensor))
    }

    /// The places of the first element of an expert's that is moved, and behind the last, in the
    /// tensor.
    pub(crate) fn of_tensor(&self, expert: u64) -> Option<(u64, u64)> {
        let skip = self.experts.map_or(Some(0), |each| each.tensor_stride.checked_mul(expert));
        let start = self.tensor_start.checked_add(skip?)?;
        if self.loops.iter().any(|each| each.size == 0) {
            return Some((start, start));
        }
        let mut last = start;
        for each in &self.loops {
            let steps = each.size.saturating_sub(1);
            last = last.checked_add(each.tensor_stride.checked_mul(steps)?)?;
        }
        Some((start, last.checked_add(1)?))
    }
}

/// The product of all; `None` if it exceeds 64 bits.
pub(crate) fn product(factors: impl IntoIterator<Item = u64>) -> Option<u64> {
    factors.into_iter().try_fold(1u64, u64::checked_mul)
}

/// What the expert's axis is called.
const EXPERT: &str = "E";

impl View {
    /// `count` is what `E` counts.
    pub(crate) fn parse(text: &str, count: &str) -> Result<View, String> {
        let mut view = View::read(text)?;
        let count = Expression::parse(count)?;
        let sides = view.parameter.iter_mut().chain(&mut view.tensor);
        for axis in sides.flat_map(|dimension| &mut dimension.axes) {
            if axis.name == EXPERT {
                axis.size = Some(count.clone());
            }
        }
        Ok(view)
    }

    fn read(text: &str) -> Result<View, String> {
        let (parameter, tensor) =
            text.split_once("->").ok_or_else(|| format!("`{text}` has no `->`"))?;
        let view =
            View { text: text.to_owned(), parameter: side(parameter)?, tensor: side(tensor)? };
        for side in [&view.parameter, &view.tensor] {
            let mut names: Vec<&str> = names(side).collect();
            // A dimension of one is like any other.
            names.retain(|name| *name != "1");
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            if names.len() < count {
                return Err(format!("`{text}` names an axis twice on one side"));
            }
        }
        Ok(view)
    }

    /// The same elements in the same order.
    pub(crate) fn identity(rank: usize) -> View {
        View::letters(rank, "")
    }

    /// A parameter for each expert, stacked.
    pub(crate) fn stack(rank: usize) -> View {
        View::letters(rank.saturating_sub(1), "E ")
    }

    fn letters(rank: usize, before: &str) -> View {
        let letters: Vec<&str> = "a b c d".split(' ').take(rank).collect();
        let letters = letters.join(" ");
        let text = format!("{letters} -> {before}{letters}");
        let [parameter, tensor] = [letters.clone(), format!("{before}{letters}")]
            .map(|text| side(&text).unwrap_or_default());
        View { text, parameter, tensor }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it moves nothing.
    pub(crate) fn is_identity(&self) -> bool {
        self.text.split_once(" -> ").is_some_and(|(left, right)| left == right)
    }

    /// The number of the tensor's dimensions.
    pub(crate) fn tensor_rank(&self) -> usize {
        self.tensor.len()
    }

    /// Every hyperparameter that it needs.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let dimensions = || self.parameter.iter().chain(&self.tensor);
        let sizes = dimensions().flat_map(|d| &d.axes).filter_map(|axis| axis.size.as_ref());
        let parts = dimensions().flat_map(|d| {
            d.axes.iter().filter_map(|axis| axis.part.as_ref()).chain(d.part.as_ref())
        });
        sizes.chain(parts.flat_map(|part| [&part.start, &part.total])).flat_map(Expression::names)
    }

    /// The moves for a tensor whose dimensions, in torch's order, are `dims`.
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub(crate) fn moves(&self, dims: &[u64], lookup: Lookup<'_>) -> Result<Moves, String> {
        let too_large = || format!("the sizes of `{}` exceed 64 bits", self.text);
        let sizes = self.sizes(dims, lookup)?;
        let layout = |side| layout(side, &sizes, lookup)?.ok_or_else(too_large);
        let (parameter, tensor) = (layout(&self.parameter)?, layout(&self.tensor)?);
        let mut experts = None;
        let mut loops = Vec::new();
        for (name, size, parameter_stride) in &parameter.axes {
            match tensor.axes.iter().find(|(other, ..)| other == name) {
                Some((.., tensor_stride)) => loops.push(Loop {
                    size: *size,
                    parameter_stride: *parameter_stride,
                    tensor_stride: *tensor_stride,
                }),
                None if *size == 1 => {}
                None => return Err(format!("{name} is in the parameter only")),
            }
        }
        for (name, size, stride) in &tensor.axes {
            if parameter.axes.iter().any(|(other, ..)| other == name) {
                continue;
            }
            if *name == EXPERT {
                // No data stand behind such a count, which may be any.
                if *size > 1 && product(parameter.shape.iter().copied()) == Some(0) {
                    return Err(format!("{size} experts of no elements"));
                }
                experts = Some(Experts { count: *size, tensor_stride: *stride });
            } else if *size != 1 {
                return Err(format!("{name} is in the tensor only"));
            }
        }
        Ok(Moves {
            shape: parameter.shape,
            loops,
            parameter_start: parameter.start,
            tensor_start: tensor.start,
            experts,
        })
    }

    /// The sizes of the axes: those of letters follow from the tensor.
    fn sizes(&self, dims: &[u64], lookup: Lookup<'_>) -> Result<BTreeMap<&str, u64>, String> {
        let too_large = || format!("the sizes of `{}` exceed 64 bits", self.text);
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        for axis in self.parameter.iter().chain(&self.tensor).flat_map(|d| &d.axes) {
            if let Some(size) = &axis.size {
                sizes.insert(&axis.name, number(size, lookup)?);
            }
        }
        if self.tensor.len() != dims.len() {
            return Err(format!("{} dimensions, and `{}`", dims.len(), self.text));
        }
        for (dimension, length) in self.tensor.iter().zip(dims) {
            if let Some(part) = &dimension.part {
                let total = number(&part.total, lookup)?;
                if total != *length {
                    return Err(format!("{length} rows, and {} is {total}", part.total));
                }
                continue;
            }
            let mut known = 1u64;
            let mut letter = None;
            for axis in &dimension.axes {
                let size = match (&axis.part, sizes.get(axis.name.as_str())) {
                    (Some(part), _) => number(&part.total, lookup)?,
                    (None, Some(size)) => *size,
                    (None, None) => {
                        letter = Some(&axis.name);
                        continue;
                    }
                };
                known = known.checked_mul(size).ok_or_else(too_large)?;
            }
            match letter {
                Some(letter) => {
                    let size = length.checked_div(known).unwrap_or(0);
                    if size.checked_mul(known) != Some(*length) {
                        return Err(format!("{length} is no multiple of {known}"));
                    }
                    sizes.insert(letter, size);
                }
                None if known != *length => return Err(format!("{length} is not {known}")),
                None => {}
            }
        }
        Ok(sizes)
    }
}

/// What a name stands for.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// The count that an expression comes to.
fn number(expression: &Expression, lookup: Lookup<'_>) -> Result<u64, String> {
    let value = expression.value(lookup).map_err(|failure| failure.to_string())?;
    value.as_u64().ok_or_else(|| format!("{expression} is {value}"))
}

/// Where the axes of one side lie. `None` if the places exceed 64 bits.
fn layout<'a>(
    side: &'a [Dimension],
    sizes: &BTreeMap<&str, u64>,
    lookup: Lookup<'_>,
) -> Result<Option<Layout<'a>>, String> {
    let mut layout = Layout::default();
    let mut stride = 1u64;
    for dimension in side.iter().rev() {
        let mut length = 1u64;
        let outer = stride;
        for axis in dimension.axes.iter().rev() {
            let size = match (axis.name.as_str(), sizes.get(axis.name.as_str())) {
                ("", _) => 1,
                (_, Some(size)) => *size,
                (name, None) => return Err(format!("the size of {name} is open")),
            };
            let total = match &axis.part {
                Some(part) => {
                    let Some(total) = layout.skip(part, size, stride, lookup)? else {
                        return Ok(None);
                    };
                    total
                }
                None => size,
            };
            if !axis.name.is_empty() {
                layout.axes.push((&axis.name, size, stride));
            }
            let (Some(next), Some(longer)) = (stride.checked_mul(total), length.checked_mul(total))
            else {
                return Ok(None);
            };
            (stride, length) = (next, longer);
        }
        if let Some(part) = &dimension.part {
            let Some(total) = layout.skip(part, length, outer, lookup)? else { return Ok(None) };
            let Some(next) = outer.checked_mul(total) else { return Ok(None) };
            (stride, length) = (next, total);
        }
        layout.shape.push(length);
    }
    layout.axes.reverse();
    layout.shape.reverse();
    Ok(Some(layout))
}

/// Where the axes of a parameter or a tensor lie.
#[derive(Default)]
struct Layout<'a> {
    /// Name, size and stride.
    axes: Vec<(&'a str, u64, u64)>,
    shape: Vec<u64>,
    start: u64,
}

impl Layout<'_> {
    /// Begins where a part of `size` does, each `stride` from the one before, and gives the size of
    /// the whole. `None` if the places exceed 64 bits.
    fn skip(
        &mut self,
        part: &Part,
        size: u64,
        stride: u64,
        lookup: Lookup<'_>,
    ) -> Result<Option<u64>, String> {
        let (start, total) = (number(&part.start, lookup)?, number(&part.total, lookup)?);
        if start.checked_add(size).is_none_or(|end| end > total) {
            return Err(format!("{size} from {start} of {total}"));
        }
        let skipped = start.checked_mul(stride).and_then(|place| self.start.checked_add(place));
        Ok(skipped.map(|start| {
            self.start = start;
            total
        }))
    }
}

fn names(side: &[Dimension]) -> impl Iterator<Item = &str> {
    side.iter().flat_map(|d| &d.axes).map(|axis| axis.name.as_str()).filter(|name| !name.is_empty())
}

fn side(text: &str) -> Result<Vec<Dimension>, String> {
    let spaced = text.replace('(', " ( ").replace(')', " )");
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut group: Option<Vec<Axis>> = None;
    for token in spaced.split_whitespace() {
        match (token, token.strip_prefix(')'), &mut group) {
            ("(", _, None) => group = Some(Vec::new()),
            (_, Some(behind), Some(_)) => {
                let part = match behind.strip_prefix('@') {
                    Some(part) => Some(self::part(part)?),
                    None if behind.is_empty() => None,
                    None => return Err(format!("`{behind}` behind a group")),
                };
                dimensions.push(Dimension { axes: group.take().unwrap_or_default(), part });
            }
            ("(", ..) | (_, Some(_), None) => return Err(format!("groups of `{text}`")),
            (_, None, Some(axes)) => axes.push(axis(token)?),
            (_, None, None) => dimensions.push(Dimension { axes: vec![axis(token)?], part: None }),
        }
    }
    if group.is_some() {
        return Err(format!("a group of `{text}` is not closed"));
    }
    Ok(dimensions)
}

fn axis(token: &str) -> Result<Axis, String> {
    if let Some((name, part)) = token.split_once('@') {
        let part = Some(self::part(part)?);
        return Ok(Axis { name: name.to_owned(), size: size(name)?, part });
    }
    if token.contains(':') {
        let part = Some(self::part(token)?);
        return Ok(Axis { name: String::new(), size: None, part });
    }
    Ok(Axis { name: token.to_owned(), size: size(token)?, part: None })
}

fn size(name: &str) -> Result<Option<Expression>, String> {
    let letter = name.len() == 1 && name.bytes().all(|byte| byte.is_ascii_lowercase());
    match (letter, name) {
        (true, _) => Ok(None),
        // What it counts is said elsewhere.
        (false, EXPERT) => Ok(None),
        (false, name) => Expression::parse(name).map(Some),
    }
}

fn part(text: &str) -> Result<Part, String> {
    let (start, total) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not START:TOTAL"))?;
    Ok(Part { start: Expression::parse(start)?, total: Expression::parse(total)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each element of the tensor, the place in the parameter that it comes from.
    fn places(view: &str, dims: &[u64], expert: u64) -> Vec<Option<u64>> {
        let lookup = |name: &str| match name {
            "n_head" => Some(Value::Int(2)),
            "n_kv" => Some(Value::Int(1)),
            "n_expert" => Some(Value::Int(2)),
            "group" => Some(Value::Int(4)),
            _ => None,
        };
        let moves = View::parse(view, "n_expert").unwrap().moves(dims, &lookup).unwrap();
        let mut found = vec![None; product(dims.iter().copied()).unwrap() as usize];
        let mut walk = vec![(moves.parameter_start, moves.tensor_start)];
        if let Some(experts) = moves.experts {
            walk[0].1 += expert * experts.tensor_stride;
        }
        for each in &moves.loops {
            walk = walk
                .into_iter()
                .flat_map(|(p, t)| {
                    (0..each.size)
                        .map(move |n| (p + n * each.parameter_stride, t + n * each.tensor_stride))
                })
                .collect();
        }
        for (parameter, tensor) in walk {
            assert_eq!(found[tensor as usize].replace(parameter), None);
        }
        found
    }

    fn all(places: &[u64]) -> Vec<Option<u64>> {
        places.iter().map(|place| Some(*place)).collect()
    }

    /// By hand; the first is the example of transformers PR 31788 (rows 0,2,1,3 of each head).
    #[test]
    fn moves() {
        assert_eq!(places("(n_head 2 d) -> (n_head d 2)", &[8], 0), all(&[0, 2, 1, 3, 4, 6, 5, 7]));
        assert_eq!(places("a b -> b a", &[2, 3], 0), all(&[0, 2, 4, 1, 3, 5]));
        assert_eq!(places("c 1 k -> c k", &[2, 2], 0), all(&[0, 1, 2, 3]));
        let half = |expert| places("o -> E (1:2 o)", &[2, 4], expert);
        assert_eq!(half(1)[6..], all(&[0, 1]));
        assert_eq!(half(1)[..6], [None; 6]);
        // Interleaved: the second of each pair.
        assert_eq!(places("E (o 1:2) -> E o", &[2, 2], 0), all(&[1, 3, 5, 7]));
        // Two query heads of three rows, a key and a value head, for the one key head.
        let q = places("(n_kv 2@0:group 3) -> (n_kv 2 3)@0:12", &[12], 0);
        assert_eq!(q, [all(&[0, 1, 2, 3, 4, 5]), vec![None; 6]].concat());
        let v = places("(n_kv 3:group 3) -> (n_kv 3)@9:12", &[12], 0);
        assert_eq!(v, [vec![None; 9], all(&[9, 10, 11])].concat());
    }

    #[test]
    fn what_does_not_fit() {
        let lookup = |name: &str| (name == "n_head").then_some(Value::Int(3));
        let moves =
            |view: &str, dims: &[u64]| View::parse(view, "n_expert").unwrap().moves(dims, &lookup);
        assert_eq!(
            moves("(n_head d) -> (n_head d)", &[8]),
            Err("8 is no multiple of 3".to_owned())
        );
        assert!(moves("a -> a", &[8, 2]).is_err());
        assert!(moves("(n_other d) -> (n_other d)", &[8]).is_err());
        assert!(moves("(a n_head) -> (a n_head)", &[u64::MAX]).is_ok());
        assert!(moves("(2 n_head a) b -> (a 2 n_head) b", &[6 << 60, 1 << 60]).is_err());
        for text in ["a", "(a -> a", "a a -> a", "a) -> a", "a@1 -> a"] {
            assert!(View::parse(text, "n_expert").is_err(), "{text}");
        }
    }
}
