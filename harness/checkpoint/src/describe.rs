//! A method in words: its fields, its layouts, its tensors.

use std::fmt::Write as _;

use crate::dtype::Dtype;
use crate::method::{Dim, Layout, Method, Presence};

impl Method {
    /// The method for a person: every field and what it may hold, every tensor with its types and the
    /// formula of its shape.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n  {}\n  source  {}\n", self.name, self.title, self.source);
        text.push_str("\nfields\n");
        for field in self.fields {
            let names: Vec<&str> =
                std::iter::once(&field.name).chain(field.aliases).copied().collect();
            let required = if field.required { ", required" } else { "" };
            let _ = writeln!(text, "  {}{required}", names.join(" or "));
            let _ = writeln!(text, "      {}: {}", field.what, field.kind);
        }
        for layout in self.layouts {
            let _ = write!(text, "\n{}", layout.to_text());
        }
        text
    }
}

impl Layout {
    /// The layout for a person.
    pub fn to_text(&self) -> String {
        let mut text = format!("layout {}\n", self.name);
        let numbers = |numbers: &[u64]| {
            let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
            texts.join(", ")
        };
        for (label, content) in [
            ("value", self.value.to_owned()),
            ("packing", self.packing.to_owned()),
            ("zeros", self.zero_point.to_owned()),
            ("bits", numbers(self.bits)),
            ("groups", if self.groups.is_empty() { "any".into() } else { numbers(self.groups) }),
        ] {
            let _ = writeln!(text, "  {label:<8}{content}");
        }
        for tensor in self.tensors {
            let dtypes: Vec<&str> = tensor.dtypes.iter().map(|dtype: &Dtype| dtype.name).collect();
            let shape: Vec<String> = tensor.shape.iter().map(Dim::to_string).collect();
            let presence = match tensor.presence {
                Presence::Always => "",
                Presence::Optional => ", optional",
                Presence::Asymmetric => ", if asymmetric",
            };
            let _ = writeln!(
                text,
                "  X{} {} [{}]{presence}\n      {}",
                tensor.suffix,
                dtypes.join("|"),
                shape.join(", "),
                tensor.what
            );
        }
        text
    }
}
