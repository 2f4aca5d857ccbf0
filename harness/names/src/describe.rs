//! An architecture's data as text for people: the table, and what it comes to for its examples.

use std::fmt::Write as _;

use crate::architecture::{Architecture, Example, Origin};
use crate::data::Change;
use crate::hyperparameters::Hyperparameters;
use crate::map::expected_dims;
use crate::pattern::Numbers;

impl Architecture {
    /// Tensors, parameters, views and conditions; config fields and keys; hyperparameters.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let classes = self.classes.iter().map(|class| {
            let when = class.when.as_ref().map(|when| format!(" where {when}"));
            let chosen = class.chosen_when.as_ref().map(|when| format!(", chosen where {when}"));
            let (when, chosen) = (when.unwrap_or_default(), chosen.unwrap_or_default());
            format!("{} ({}){when}{chosen}", class.name, class.model_type)
        });
        let _ = writeln!(text, "{}: {}", self.name, classes.collect::<Vec<_>>().join(", "));
        let _ = writeln!(text, "source: {}\n\ntensors", self.source);
        for row in &self.rows {
            let dims: Vec<&str> = row.dims.iter().map(|dim| dim.text()).collect();
            let _ = write!(text, "  {} [{}]", row.tensor, dims.join(", "));
            if row.optional {
                text.push_str(", optional");
            }
            if let Some(when) = &row.when {
                let _ = write!(text, ", where {when}");
            }
            text.push('\n');
            if !row.instead_of.is_empty() {
                let others: Vec<&str> = row.instead_of.iter().map(|other| other.text()).collect();
                let _ = writeln!(text, "      instead of {}", others.join(" and "));
            }
            for piece in &row.pieces {
                let _ = write!(text, "      {}", piece.parameter);
                if let Some(first) = &row.from_layer {
                    let _ = write!(text, ", its layers counted from {first}");
                }
                if !piece.view.is_identity() {
                    let _ = write!(text, ": {}", piece.view.text());
                }
                for factor in &piece.scale {
                    let _ = write!(text, ", times {factor}");
                }
                text.push('\n');
            }
            for other in &row.alternatives {
                for (place, piece) in other.pieces.iter().enumerate() {
                    let or = if place == 0 { "or" } else { "  " };
                    let _ = write!(text, "   {or} {}", piece.parameter);
                    if !piece.view.is_identity() {
                        let _ = write!(text, ": {}", piece.view.text());
                    }
                    if let Some(t) = other.blocks {
                        let _ = write!(text, ", bytes of {}", t.name);
                    }
                    if piece.change != Change::None && piece.change != row.change {
                        let (there, back) = (piece.change.text(), piece.change.inverse_text());
                        let _ = write!(text, ", {there}, back {back}");
                    }
                    text.push('\n');
                }
            }
            if row.change != Change::None {
                let (there, back) = (row.change.text(), row.change.inverse_text());
                let _ = writeln!(text, "      {there}, back {back}");
            }
            if let Some(factor) = &row.factor {
                let _ = writeln!(text, "      x * {factor}, back x / {factor}");
            }
            if let Some(layer) = &row.layer {
                let _ = writeln!(text, "      of layer {layer}");
            }
            if let Some(note) = &row.note {
                let _ = writeln!(text, "      {note}");
            }
        }
        for keyed in &self.keyed {
            let key = self.full_key(&keyed.key);
            let _ = writeln!(text, "  {key}\n      {} {:?}", keyed.parameter, keyed.shape);
        }
        for dropped in &self.dropped {
            let _ = writeln!(text, "  not in a file: {}: {}", dropped.parameter, dropped.note);
        }
        text.push_str("\nconfig\n");
        for field in &self.config {
            let row = &field.row;
            let key = row.key.as_deref().map(|key| self.full_key(key));
            let each = match (row.each, row.listed, row.list) {
                (true, Some(first), _) => format!(", the layers counted from {first},"),
                (true, None, _) if row.behind => " of each block".to_owned(),
                (true, None, _) => " of each layer".to_owned(),
                (false, _, Some([of_field, of_key])) => {
                    format!(", {of_field} elements of {of_key},")
                }
                _ => String::new(),
            };
            let each = match row.shift {
                Some(shift) => format!(", each {shift} more,"),
                None => each,
            };
            let within = self.within.as_ref().filter(|_| row.field.is_some() && !row.top);
            let within = within.map(|within| format!("{}.", within.config)).unwrap_or_default();
            let _ = write!(text, "  {within}{}{each}", row.field.as_deref().unwrap_or("-"));
            match (&row.value, &key) {
                (Some(value), _) => _ = write!(text, " = {value}"),
                (None, Some(key)) => _ = write!(text, " = {key}"),
                (None, None) => {}
            }
            if let Some(default) = &row.default {
                let _ = write!(text, ", else {default}");
            }
            if let Some(when) = &row.when {
                let _ = write!(text, ", where {when}");
            }
            if let (Some(key), Some(key_type)) = (&key, row.key_type) {
                let key_type = format!("{key_type:?}").to_lowercase();
                let _ = write!(text, "; {key} ({key_type}) = ");
                match (&row.leading, &row.from) {
                    (None, Some(from)) => text.push_str(from),
                    (None, None) => text.push_str(row.field.as_deref().unwrap_or_default()),
                    (Some(holds), from) => {
                        let _ = write!(text, "the number of first layers where {holds}");
                        let _ = from.iter().try_for_each(|from| write!(text, ", else {from}"));
                    }
                }
                if let Some(blocks) = &row.blocks {
                    let _ = write!(text, ", for {blocks} blocks");
                }
                if let Some(when) = &row.written_when {
                    let _ = write!(text, ", where {when}");
                }
            }
            text.push('\n');
        }
        for absent in &self.absent {
            let _ = writeln!(text, "  not in a file: {}: {}", absent.field, absent.note);
        }
        text.push_str("\nhyperparameters\n");
        for each in &self.hyperparameters {
            let origin = match &each.origin {
                Origin::Key(key) => self.full_key(key),
                Origin::Is(expression) => expression.text().to_owned(),
                Origin::OfArray(of, key) => format!("the {} of {}", of.text(), self.full_key(key)),
                Origin::OfTensor(of, tensor) => format!("the {} of {tensor}", of.text()),
                Origin::Present(tensor) => format!("whether there is {tensor}"),
                Origin::PresentEach(tensor) => format!("whether the layer has {tensor}"),
                Origin::First(holds) => format!("the first layer where {holds}"),
            };
            let _ = write!(text, "  {} = {origin}", each.name);
            if let Some(default) = &each.default {
                let _ = write!(text, ", else {default}");
            }
            text.push('\n');
        }
        text
    }

    /// The tensors and parameters of the tiny models that the data have as examples, one by one.
    pub fn examples_to_text(&'static self) -> String {
        let examples = self.examples.iter().map(|example| self.example_to_text(example));
        examples.collect::<Vec<_>>().join("\n")
    }

    fn example_to_text(&'static self, example: &Example) -> String {
        let hyperparameters = Hyperparameters::of_example(self, example);
        let mut text = format!("{}\n", example.name);
        let blocks = hyperparameters.blocks().unwrap_or(0);
        for layer in std::iter::once(None).chain((0..blocks).map(Some)) {
            let names = hyperparameters.at(layer);
            for row in &self.rows {
                let here = row.tensor.has_layer() == layer.is_some() && row.instead_of.is_empty();
                if !here || !names.holds(row.when.as_ref()) {
                    continue;
                }
                let name = row.tensor.name(Numbers { layer, expert: None });
                if example.without.contains(&name) {
                    continue;
                }
                let Ok(dims) = expected_dims(row, &names) else { continue };
                let _ = writeln!(text, "  {name} {dims:?}");
                let torch: Vec<u64> = dims.iter().rev().copied().collect();
                for piece in &row.pieces {
                    let Ok(moves) = piece.view.moves(&torch, &|name| names.get(name)) else {
                        continue;
                    };
                    for expert in 0..moves.experts.map_or(1, |experts| experts.count) {
                        let expert = moves.experts.map(|_| expert);
                        let numbers = Numbers { layer, expert };
                        let parameter = hyperparameters.parameter(row, piece, numbers);
                        let _ = writeln!(text, "      {parameter} {:?}", moves.shape);
                    }
                }
            }
        }
        text
    }
}
