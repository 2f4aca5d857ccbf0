//! Two records side by side.

use super::{Table, times};
use crate::{Group, Record, engine};

/// A ratio that has changed by less than this, and by less than both spreads, is the same.
const SAME: f64 = 0.05;

impl Record {
    /// What has changed from this record to a later one, as Markdown: of each group and engine how
    /// many times as fast as ggml (or as the reference, where ggml has no part) it was and is.
    /// Times of two runs are not compared, since nothing says that the machine was in the same state.
    pub fn compare(&self, later: &Record) -> String {
        let mut rows = Vec::new();
        let mut same = 0;
        for group in &later.groups {
            let Some(before) = self.groups.iter().find(|other| other.id() == group.id()) else {
                continue;
            };
            for measurement in &group.measurements {
                let name = measurement.engine.as_str();
                let Some(base) = base(before, group).filter(|base| *base != name) else { continue };
                let (Some([old, _]), Some([new, _])) =
                    (before.ratio(name, base), group.ratio(name, base))
                else {
                    continue;
                };
                let change = new / old;
                let spread = [(before, name), (before, base), (group, name), (group, base)]
                    .into_iter()
                    .filter_map(|(group, name)| Some(group.time(name)?.relative()))
                    .fold(SAME, f64::max);
                if change < 1.0 + spread && 1.0 < change * (1.0 + spread) {
                    same += 1;
                    continue;
                }
                let direction = if change > 1.0 { "faster" } else { "slower" };
                let id = format!("{} {name}", group.id());
                let cells = [times(old), times(new), format!("{} {direction}", times(change))];
                rows.push((change.log2().abs(), [vec![id], cells.into()].concat()));
            }
        }
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
        let changed = rows.len();
        let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
        let mut text = format!(
            "{} ({})\n→ {} ({})\n\n",
            self.title(),
            self.machine.cpu,
            later.title(),
            later.machine.cpu
        );
        if self.machine.cpu != later.machine.cpu {
            text += "The machines differ: what has changed need not be the code.\n\n";
        }
        for (when, record) in [("before", self), ("after", later)] {
            match record.warnings().len() {
                0 => {}
                count => text += &format!("Warnings {when}: {count}, see that report.\n\n"),
            }
        }
        text += &format!(
            "{changed} ratios have changed by more than the rounds are apart, {same} have not.\n"
        );
        if changed > 0 {
            let heads = ["times as fast as ggml", "before", "after", "change"];
            let heads = heads.map(String::from).into();
            text += &format!("\n{}", Table { heads, rows }.to_markdown());
        }
        text
    }
}

/// What both groups are compared with: ggml, or else the first engine that both have timed.
fn base<'a>(before: &Group, after: &'a Group) -> Option<&'a str> {
    let timed = |name: &str| before.time(name).is_some() && after.time(name).is_some();
    let names = || after.measurements.iter().map(|measurement| measurement.engine.as_str());
    names().find(|name| *name == engine::GGML && timed(name)).or_else(|| names().find(|n| timed(n)))
}
