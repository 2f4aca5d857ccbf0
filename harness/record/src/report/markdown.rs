//! A record as Markdown, and as the table of the README.

use std::fmt::Write as _;

use super::{Table, number, percent, times};
use crate::{Group, Operation, Record, Size, engine};

impl Table {
    /// As Markdown: the first column to the left, the others to the right.
    pub(super) fn to_markdown(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "| {} |", self.heads.join(" | "));
        let _ = writeln!(text, "| ---{} |", " | ---:".repeat(self.heads.len() - 1));
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

impl Record {
    /// The whole report as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.title());
        let mut section = |title: &str, content: &str| {
            let _ = writeln!(text, "## {title}\n\n{}\n", content.trim_end());
        };
        section("In short", &self.summary());
        section(
            "Warnings",
            &match self.warnings().as_slice() {
                [] => "None: the machine was quiet.".to_owned(),
                warnings => warnings.iter().map(|warning| format!("- {warning}\n")).collect(),
            },
        );
        for size in Size::ALL {
            if let Some(table) = self.dequantize_table(size) {
                let title = format!("Dequantizing, {}: times as fast as ggml", size.name());
                section(&title, &table.to_markdown());
            }
        }
        section("What the machine can store", &self.ceiling_table().to_markdown());
        for (title, table) in self.other_tables() {
            section(&title, &table.to_markdown());
        }
        let list = |lines: Vec<String>| -> String {
            lines.iter().map(|line| format!("- {line}\n")).collect()
        };
        let untimed = self.untimed();
        if !untimed.is_empty() {
            section("Not timed", &list(untimed));
        }
        let engines = self.engines.iter().map(|e| format!("**{}**: {}", e.name, e.about)).collect();
        section("Who was measured", &list(engines));
        section("How", &self.method());
        let facts = self.facts().into_iter().map(|(name, fact)| format!("{name}: {fact}"));
        section("Where", &list(facts.collect()));
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    /// The table of the README: how many times as fast as ggml, type by type.
    pub fn to_readme(&self) -> String {
        let heads = ["type", "ggml, GB/s", "avx2", "avx512", "of ceiling"];
        let streamed = ["ggml, GB/s ", "avx2 ", "avx512 ", "of ceiling "];
        let figures = |group: Option<&Group>| {
            let rate = group.and_then(|g| g.rate(engine::GGML)).map_or("–".into(), number);
            let ratio = |name| {
                let ratio = group.and_then(|g| g.ratio(name, engine::GGML));
                ratio.map_or("–".into(), |[median, _]| times(median))
            };
            let share = group.and_then(|g| g.share_of_ceiling(g.ours()?));
            [
                rate,
                ratio(engine::OURS[1]),
                ratio(engine::OURS[2]),
                share.map_or("–".into(), percent),
            ]
        };
        let rows = self
            .groups(Operation::Dequantize, Some(Size::Cached))
            .filter(|group| group.time(engine::GGML).is_some())
            .map(|group| {
                let streamed = self
                    .groups(Operation::Dequantize, Some(Size::Streamed))
                    .find(|other| other.subject == group.subject);
                let mut row = vec![group.subject.clone()];
                row.extend(figures(Some(group)));
                row.extend(figures(streamed));
                row
            });
        let heads = heads
            .iter()
            .map(|head| (*head).to_owned())
            .chain(streamed.map(|head| format!("{}, streamed", head.trim())));
        let table = Table { heads: heads.collect(), rows: rows.collect() };
        format!("{}\n\n{}", self.summary(), table.to_markdown())
    }

    /// What the report comes to, in a few sentences.
    pub(super) fn summary(&self) -> String {
        let mut text = format!("{}, {}.", self.machine.cpu, self.started.get(..10).unwrap_or(""));
        for size in Size::ALL {
            let mut ratios: Vec<(f64, &str)> = self
                .groups(Operation::Dequantize, Some(size))
                .filter_map(|g| Some((g.ratio(g.ours()?, engine::GGML)?[0], &*g.subject)))
                .collect();
            ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { continue };
            let _ = write!(
                text,
                " {} our kernels are {} to {} as fast as ggml ({} and {}), {} for the type in \
                 the middle of {}.",
                match size {
                    Size::Cached => "In the cache",
                    Size::Streamed => "To memory",
                },
                times(least.0),
                times(most.0),
                least.1,
                most.1,
                times(ratios[ratios.len() / 2].0),
                ratios.len()
            );
        }
        text
    }
}
