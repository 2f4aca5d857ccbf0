//! Makes a file that fails smaller, for as long as it still fails.

use std::ops::Range;

use gguf_assay_format::{Data, Description, Fault, OwnedValue};

/// The smallest file found for which `fails` still holds, and the fault in it, moved along.
///
/// The fault, entries and tensors are left out, texts, arrays and shapes cut, numbers made zero, one
/// after the other, until nothing of that can be done any more. What `fails` has to ask is whether the file
/// fails *for the same reason*: a smaller file may fail for another one. It is called once for each
/// attempt, and never panics for what this function makes: any description can be laid out, and a
/// fault that has no place is dropped with the attempt.
pub fn shrink(
    description: &Description,
    fault: Option<&Fault>,
    mut fails: impl FnMut(&Description, Option<&Fault>) -> bool,
) -> (Description, Option<Fault>) {
    let mut best = (description.clone(), fault.cloned());
    loop {
        let mut smaller = false;
        for step in steps(&best.0) {
            let Some(attempt) = step.apply(&best) else { continue };
            if attempt == best {
                continue;
            }
            if fails(&attempt.0, attempt.1.as_ref()) {
                best = attempt;
                smaller = true;
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// The bytes left of a file for which `fails` still holds: stretches are taken out, large ones
/// first, and then bytes made zero.
pub fn shrink_bytes(bytes: &[u8], mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = bytes.to_vec();
    let mut len = best.len() / 2;
    while len > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut attempt = best.clone();
            attempt.drain(at..(at + len).min(best.len()));
            if fails(&attempt) {
                best = attempt;
            } else {
                at += len;
            }
        }
        len /= 2;
    }
    for at in 0..best.len() {
        if best[at] != 0 {
            let mut attempt = best.clone();
            attempt[at] = 0;
            if fails(&attempt) {
                best = attempt;
            }
        }
    }
    best
}

/// One way to make a file smaller.
enum Step {
    DropFault,
    RemoveTensors(Range<usize>),
    RemoveEntries(Range<usize>),
    Name(usize),
    Dims(usize),
    Halve(usize),
    Empty(usize),
    Zero(usize),
    Key(usize),
    Value(usize),
    Version,
}

/// What can be tried, from the largest saving to the smallest; the last of a list first, so that
/// the indices of the others stay.
fn steps(description: &Description) -> Vec<Step> {
    let (tensors, entries) = (description.tensors.len(), description.metadata.len());
    let mut steps = vec![Step::DropFault];
    steps.extend(stretches(tensors).map(Step::RemoveTensors));
    steps.extend(stretches(entries).map(Step::RemoveEntries));
    for tensor in (0..tensors).rev() {
        steps.extend([Step::Dims(tensor), Step::Empty(tensor), Step::Halve(tensor)]);
        steps.extend([Step::Zero(tensor), Step::Name(tensor)]);
    }
    for entry in (0..entries).rev() {
        steps.extend([Step::Value(entry), Step::Key(entry)]);
    }
    steps.push(Step::Version);
    steps
}

/// Stretches of a list of this length: the whole, halves, quarters and so on down to one element.
fn stretches(len: usize) -> impl Iterator<Item = Range<usize>> {
    let lens = std::iter::successors(Some(len), |&len| (len > 1).then(|| len.div_ceil(2)));
    lens.filter(|&len| len > 0).flat_map(move |stretch| {
        (0..len).step_by(stretch).rev().map(move |at| at..(at + stretch).min(len))
    })
}

impl Step {
    /// The file after the step; `None` if there is nothing that it could do.
    fn apply(
        &self,
        (description, fault): &(Description, Option<Fault>),
    ) -> Option<(Description, Option<Fault>)> {
        let mut description = description.clone();
        let mut fault = fault.clone();
        let Description { metadata, tensors, version, .. } = &mut description;
        match *self {
            Step::DropFault => drop(fault.take()?),
            Step::RemoveTensors(ref stretch) => {
                tensors.get(stretch.clone())?;
                tensors.drain(stretch.clone());
                leave_out(&mut fault, List::Tensors, stretch)?;
            }
            Step::RemoveEntries(ref stretch) => {
                metadata.get(stretch.clone())?;
                metadata.drain(stretch.clone());
                leave_out(&mut fault, List::Metadata, stretch)?;
            }
            Step::Name(index) => halve(&mut tensors.get_mut(index)?.name)?,
            Step::Dims(index) => {
                let tensor = tensors.get_mut(index)?;
                // The last dimension goes first; the first one is what blocks go by.
                match tensor.dims.len() {
                    0 | 1 => return None,
                    _ => tensor.dims.truncate(1),
                }
                tensor.data = Data::Zeros(0);
            }
            Step::Halve(index) => {
                let tensor = tensors.get_mut(index)?;
                let longest = tensor.dims.iter_mut().max().filter(|dim| **dim > 1)?;
                *longest /= 2;
                tensor.data = Data::Zeros(0);
            }
            Step::Empty(index) => {
                let tensor = tensors.get_mut(index)?;
                *tensor.dims.first_mut()? = 0;
                tensor.data = Data::Zeros(0);
            }
            Step::Zero(index) => {
                let data = &mut tensors.get_mut(index)?.data;
                *data = Data::Zeros(data.len());
            }
            Step::Key(index) => halve(&mut metadata.get_mut(index)?.0)?,
            Step::Value(index) => simplify(&mut metadata.get_mut(index)?.1)?,
            Step::Version => *version = 3,
        }
        Some((description, fault))
    }
}

fn halve(text: &mut Vec<u8>) -> Option<()> {
    (text.len() > 1).then(|| text.truncate(text.len() / 2))
}

/// Makes a value smaller; `None` if it is as small as it gets.
fn simplify(value: &mut OwnedValue) -> Option<()> {
    match value {
        OwnedValue::Array(array) if array.times > 1 => array.times /= 2,
        OwnedValue::Array(array) if !array.elements.is_empty() => {
            let half = array.elements.len() / 2;
            array.elements.truncate(half);
        }
        OwnedValue::String(text) if !text.is_empty() => text.truncate(text.len() / 2),
        OwnedValue::Array(_) | OwnedValue::String(_) => return None,
        OwnedValue::U8(v) if *v > 0 => *v = 0,
        OwnedValue::I8(v) if *v != 0 => *v = 0,
        OwnedValue::U16(v) if *v > 0 => *v = 0,
        OwnedValue::I16(v) if *v != 0 => *v = 0,
        OwnedValue::I32(v) if *v != 0 => *v = 0,
        OwnedValue::U64(v) if *v > 0 => *v = 0,
        OwnedValue::I64(v) if *v != 0 => *v = 0,
        OwnedValue::F32(v) if v.to_bits() != 0 => *v = 0.0,
        OwnedValue::F64(v) if v.to_bits() != 0 => *v = 0.0,
        _ => return None,
    }
    Some(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Metadata,
    Tensors,
}

/// Moves a fault along when elements of a list are left out; `None` if the fault is in one of them.
fn leave_out(fault: &mut Option<Fault>, list: List, stretch: &Range<usize>) -> Option<()> {
    let Some(fault) = fault else { return Some(()) };
    let move_index = |other: &mut usize| {
        if *other >= stretch.end {
            *other -= stretch.len();
        } else if stretch.contains(other) {
            return None;
        }
        Some(())
    };
    let move_path = |path: &mut String| {
        let name = match list {
            List::Metadata => "metadata",
            List::Tensors => "tensors",
        };
        let Some(rest) = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('[')) else {
            return Some(());
        };
        let (number, rest) = rest.split_once(']')?;
        let mut other = number.parse().ok()?;
        move_index(&mut other)?;
        *path = format!("{name}[{other}]{rest}");
        Some(())
    };
    match fault {
        Fault::Overwrite { at, .. }
        | Fault::Replace { at, .. }
        | Fault::Cut { at, .. }
        | Fault::Insert { at, .. } => move_path(at),
        Fault::Swap { a, b } => {
            move_path(a)?;
            move_path(b)
        }
        Fault::Append { .. } | Fault::Prepend { .. } => Some(()),
        Fault::Key { entry, .. } | Fault::Value { entry, .. } | Fault::RemoveEntry { entry } => {
            if list == List::Metadata {
                move_index(entry)
            } else {
                Some(())
            }
        }
        Fault::Name { tensor, .. }
        | Fault::Dims { tensor, .. }
        | Fault::Type { tensor, .. }
        | Fault::Offset { tensor, .. }
        | Fault::RemoveTensor { tensor } => {
            if list == List::Tensors {
                move_index(tensor)
            } else {
                Some(())
            }
        }
    }
}
