//! The linter of the data files.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{Architecture, Example, LAYER, SourceTable, viewed_dims};
use crate::data::Change;
use crate::expression::Expression;
use crate::hyperparameters::Hyperparameters;
use crate::map::{expected_dims, expected_factor};
use crate::pattern::{Numbers, Pattern};
use crate::values::runs;
use crate::view::product;

/// What is wrong with the data of an architecture.
///
/// Every name in an expression is a hyperparameter; every tensor and key is one that llama.cpp
/// declares; every form that takes the place of another names tensors that there are; and in the
/// example, each element of each tensor comes from one element of one parameter, and each element
/// of each parameter goes to one place.
pub fn lint(architecture: &'static Architecture) -> Vec<String> {
    let mut faults = Vec::new();
    names(architecture, &mut faults);
    declared(architecture, &mut faults);
    forms(architecture, &mut faults);
    let mut used = vec![false; architecture.rows.len()];
    for example in &architecture.examples {
        let mut found = Vec::new();
        bijective(architecture, example, &mut used, &mut found);
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", example.name)));
    }
    for (row, used) in architecture.rows.iter().zip(used) {
        if !used {
            faults.push(format!("{}: no example has one", row.tensor));
        }
    }
    faults
}

fn names(architecture: &Architecture, faults: &mut Vec<String>) {
    let known: BTreeSet<&str> =
        architecture.hyperparameters.iter().map(|each| each.name.as_str()).collect();
    for name in &known {
        if name.len() < 2 || *name == LAYER {
            faults.push(format!("`{name}` is no name for a hyperparameter"));
        }
    }
    let mut used: Vec<(String, Vec<&str>)> = Vec::new();
    let mut uses = |place: String, expression: &'_ Option<Expression>| {
        if let Some(expression) = expression {
            let names = expression.names().into_iter().map(str::to_owned).collect::<Vec<_>>();
            for name in names {
                if !known.contains(name.as_str()) && name != LAYER {
                    faults.push(format!("{place}: `{name}` is no hyperparameter"));
                }
            }
        }
    };
    for class in &architecture.classes {
        uses(class.name.clone(), &class.when);
    }
    for field in &architecture.config {
        let name = field.row.field.clone().or(field.row.key.clone()).unwrap_or_default();
        for expression in [&field.value, &field.default, &field.when] {
            uses(name.clone(), expression);
        }
    }
    for each in &architecture.hyperparameters {
        uses(each.name.clone(), &each.default);
        uses(each.name.clone(), &each.origin.expression().cloned());
    }
    for row in &architecture.rows {
        uses(row.tensor.text().to_owned(), &row.when);
        uses(row.tensor.text().to_owned(), &row.layer);
        uses(row.tensor.text().to_owned(), &row.factor);
        uses(row.tensor.text().to_owned(), &row.from_layer);
        let dims = row.dims.iter().flat_map(Expression::names);
        let pieces = row.forms().flat_map(|(pieces, _)| pieces);
        let views = pieces.flat_map(|piece| piece.view.names());
        used.push((row.tensor.text().to_owned(), dims.chain(views).collect()));
    }
    for (place, names) in used {
        for name in names {
            if !known.contains(name) {
                faults.push(format!("{place}: `{name}` is no hyperparameter"));
            }
        }
    }
}

/// A tensor's name without `.weight`, `.bias` or `.scale`.
fn stem(name: &str) -> &str {
    let suffixes = [".weight", ".bias", ".scale"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn declared(architecture: &Architecture, faults: &mut Vec<String>) {
    let table = SourceTable::recorded();
    if !table.architectures.contains(&architecture.name) {
        faults.push(format!("{} has no architecture {}", table.source, architecture.name));
    }
    let tensors: BTreeSet<&str> = table.tensors.iter().map(String::as_str).collect();
    let asked_for = table.tensors_of.get(&architecture.name);
    for row in &architecture.rows {
        let stem = stem(row.tensor.text());
        if !tensors.contains(stem) {
            faults.push(format!("{} declares no tensor {}", table.source, row.tensor));
        }
        // A tensor for each expert is declared, but no longer asked for.
        let asked = asked_for.is_some_and(|names| names.iter().any(|name| name == stem));
        if !asked && !row.tensor.has_expert() {
            let name = &architecture.name;
            faults.push(format!("{} asks for no {} in {name}", table.source, row.tensor));
        }
    }
    let keys: BTreeSet<&str> = table.keys.iter().map(String::as_str).collect();
    let undeclared: BTreeSet<&str> = architecture.undeclared.iter().map(String::as_str).collect();
    for key in architecture.keys() {
        if !keys.contains(key) && !undeclared.contains(key) {
            faults.push(format!("{} declares no key {key}", table.source));
        }
    }
    for key in undeclared {
        if keys.contains(key) || !architecture.keys().any(|other| other == key) {
            faults.push(format!("{key} is declared, or no key of {}", architecture.name));
        }
    }
}

fn forms(architecture: &Architecture, faults: &mut Vec<String>) {
    let patterns: BTreeSet<&Pattern> = architecture.rows.iter().map(|row| &row.tensor).collect();
    for row in &architecture.rows {
        for other in &row.instead_of {
            if !patterns.contains(other) {
                faults.push(format!("{}: there is no {other} to be instead of", row.tensor));
            }
        }
    }
    let layered = patterns.iter().any(|pattern| pattern.has_layer());
    if layered && !architecture.hyperparameters.iter().any(|each| each.name == "n_layer") {
        faults.push("tensors of layers, and no n_layer".into());
    }
    for each in &architecture.hyperparameters {
        let Some(tensor) = each.origin.tensor() else { continue };
        if !patterns
            .iter()
            .any(|pattern| pattern.text() == tensor || pattern.matches(tensor).is_some())
        {
            faults.push(format!("{}: there is no tensor {tensor}", each.name));
        }
    }
}

/// As many elements as a tensor of an example has at most.
const MOST_ELEMENTS: u64 = 1 << 16;

fn bijective(
    architecture: &'static Architecture,
    example: &Example,
    used: &mut [bool],
    faults: &mut Vec<String>,
) {
    let hyperparameters = Hyperparameters::of_example(architecture, example);
    let Some(blocks) = hyperparameters.blocks().filter(|blocks| *blocks <= 16) else {
        faults.push("the example has no small number of blocks".into());
        return;
    };
    // By whether it is an alternative, and by the name.
    let mut covered: BTreeMap<(bool, String), Vec<u8>> = BTreeMap::new();
    for layer in std::iter::once(None).chain((0..blocks).map(Some)) {
        let names = hyperparameters.at(layer);
        for (row, used) in architecture.rows.iter().zip(used.iter_mut()) {
            if row.tensor.has_layer() != layer.is_some() || !names.holds(row.when.as_ref()) {
                continue;
            }
            *used = true;
            let experts = if row.tensor.has_expert() {
                hyperparameters.count("n_expert").unwrap_or(0)
            } else {
                1
            };
            for expert in 0..experts {
                let expert = row.tensor.has_expert().then_some(expert);
                let numbers = Numbers { layer, expert };
                let mut fault = |what: String| {
                    faults.push(format!("{}: {what}", row.tensor.name(numbers)));
                };
                let dims = match expected_dims(row, &names) {
                    Ok(dims) => dims,
                    Err(failure) => {
                        fault(failure.to_string());
                        continue;
                    }
                };
                if let Err(failure) = expected_factor(row, &names) {
                    fault(failure.to_string());
                }
                for (form, (pieces, blocks)) in row.forms().enumerate() {
                    let Some(torch) = viewed_dims(&dims, blocks) else {
                        fault("rows of no whole blocks".into());
                        continue;
                    };
                    let elements = product(torch.iter().copied()).filter(|n| *n <= MOST_ELEMENTS);
                    let Some(elements) = elements.and_then(|n| usize::try_from(n).ok()) else {
                        fault("too large for an example".into());
                        continue;
                    };
                    let mut tensor = vec![0u8; elements];
                    for piece in pieces {
                        let moves = match piece.view.moves(&torch, &|name| names.get(name)) {
                            Ok(moves) => moves,
                            Err(what) => {
                                fault(what);
                                continue;
                            }
                        };
                        let size = product(moves.shape.iter().copied());
                        let size = size.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                        for number in 0..moves.experts.map_or(1, |experts| experts.count) {
                            let expert = numbers.expert.or(moves.experts.map(|_| number));
                            let numbers = Numbers { layer, expert };
                            let name = hyperparameters.parameter(row, piece, numbers);
                            let mut other = Vec::new();
                            // Other forms of a tensor cover the same parameters once more.
                            let parameter = if row.instead_of.is_empty() {
                                covered.entry((form > 0, name.clone())).or_default()
                            } else {
                                &mut other
                            };
                            parameter.resize(size.max(parameter.len()), 0);
                            if parameter.len() != size {
                                fault(format!("another tensor gives {name} another shape"));
                            }
                            runs(&moves, number, &mut |from, into, run| {
                                for step in 0..run {
                                    count(parameter, from.saturating_add(step));
                                    count(&mut tensor, into.saturating_add(step));
                                }
                                if piece.change == Change::Nibbles && run != 16 {
                                    fault(format!("{name}: runs of {run} bytes are no blocks"));
                                }
                            });
                        }
                    }
                    if !pieces.is_empty() && tensor.iter().any(|times| *times != 1) {
                        fault("an element comes from no place or from two".into());
                    }
                }
            }
        }
    }
    for ((_, name), times) in covered {
        if times.iter().any(|times| *times != 1) {
            faults.push(format!("{name}: an element goes to no place or to two"));
        }
    }
}

fn count(times: &mut [u8], place: u64) {
    if let Some(times) = usize::try_from(place).ok().and_then(|place| times.get_mut(place)) {
        *times = times.saturating_add(1);
    }
}
