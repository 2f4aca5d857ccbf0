//! Plots as SVG. Places across are percentages, so that a plot is as wide as the page and its text
//! as large as that of the page; colours come from the page's style sheet.

use std::fmt::Write as _;

use super::html::escape;

/// How high a row is, and the axis above the rows.
const ROW: usize = 20;
const AXIS: usize = 26;
/// Where the field of the marks begins, and how wide it is: percentages.
const LEFT: f64 = 24.0;
const WIDTH: f64 = 70.0;

/// A plot with a row for each type.
pub(super) struct Plot {
    /// What it shows, for those who do not see it.
    pub(super) label: String,
    pub(super) axis: Axis,
    pub(super) rows: Vec<(String, Vec<Mark>)>,
}

/// Values across: labelled ticks, and how a value becomes a part of the width.
pub(super) struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<(f64, String)>,
    /// The value that the others are seen against.
    reference: f64,
}

pub(super) enum Mark {
    /// The shape and colour of a series.
    Point { series: usize, at: f64, title: String },
    /// A range, thin or thick.
    Range { from: f64, to: f64, is_thick: bool },
}

impl Axis {
    /// Powers of two around the values and around 1.
    pub(super) fn ratios(values: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (-1, 1);
        for value in values.filter(|value| *value > 0.0) {
            low = low.min(value.log2().floor() as i32);
            high = high.max(value.log2().ceil() as i32);
        }
        // Few enough labels for a narrow page.
        let step = 1 + (high - low) as usize / 8;
        let ticks = (low..=high).rev().step_by(step).map(|power| {
            let label = match power {
                0.. => format!("{}×", 1 << power),
                _ => format!("1/{}×", 1 << -power),
            };
            (f64::from(power).exp2(), label)
        });
        let bound = |power: i32| f64::from(power).exp2();
        Axis {
            low: bound(low),
            high: bound(high),
            is_log: true,
            ticks: ticks.collect(),
            reference: 1.0,
        }
    }

    /// Percentages between these parts of 1.
    pub(super) fn parts(low: f64, high: f64, step: f64, reference: f64) -> Axis {
        let count = ((high - low) / step).round() as usize;
        let ticks = (0..=count).map(|index| {
            let value = low + step * index as f64;
            let sign = if reference == 0.0 && value > step / 2.0 { "+" } else { "" };
            (value, format!("{sign}{:.0}%", 100.0 * value).replace('-', "−"))
        });
        Axis { low, high, is_log: false, ticks: ticks.collect(), reference }
    }

    /// Percentage of the width of the whole; values beyond the axis are at its end.
    fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = match self.is_log {
            true => (value / self.low).log2() / (self.high / self.low).log2(),
            false => (value - self.low) / (self.high - self.low),
        };
        LEFT + WIDTH * part
    }
}

/// The shapes of the series, around the origin: defined once a page.
pub(super) const SHAPES: [&str; 7] = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M-4-4H4V4H-4z",
    "M0-5L5 4H-5z",
    "M-5-4H5L0 5z",
    "M-5-1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
    "M-1.5-6h3v12h-3z",
];

impl Plot {
    pub(super) fn to_svg(&self) -> String {
        let height = AXIS + ROW * self.rows.len() + 6;
        let label = escape(&self.label);
        let mut svg = format!(
            "<svg class=\"plot\" width=\"100%\" height=\"{height}\" role=\"img\" \
             aria-label=\"{label}\">\n"
        );
        let bottom = height - 6;
        for (value, label) in &self.axis.ticks {
            let x = self.axis.place(*value);
            let class = if *value == self.axis.reference { "reference" } else { "grid" };
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{AXIS}\" y2=\"{bottom}\"/>\
                 <text class=\"tick\" x=\"{x:.2}%\" y=\"{}\">{label}</text>",
                AXIS - 8
            );
        }
        for (index, (label, marks)) in self.rows.iter().enumerate() {
            let y = AXIS + ROW * index + ROW / 2;
            let (label, x) = (escape(label), LEFT - 3.0);
            let _ = writeln!(svg, "<text class=\"row\" x=\"{x}%\" y=\"{}\">{label}</text>", y + 4);
            for mark in marks {
                self.mark(&mut svg, mark, y);
            }
        }
        svg + "</svg>\n"
    }

    fn mark(&self, svg: &mut String, mark: &Mark, y: usize) {
        let _ = match mark {
            Mark::Point { series, at, title } => {
                let (x, title) = (self.axis.place(*at), escape(title));
                writeln!(
                    svg,
                    "<use href=\"#shape{}\" class=\"s{series}\" x=\"{x:.2}%\" y=\"{y}\"><title>{title}\
                     </title></use>",
                    series % SHAPES.len()
                )
            }
            Mark::Range { from, to, is_thick } => {
                let (from, to) = (self.axis.place(*from), self.axis.place(*to));
                let class = if *is_thick { "thick" } else { "thin" };
                writeln!(
                    svg,
                    "<line class=\"{class}\" x1=\"{from:.2}%\" x2=\"{to:.2}%\" y1=\"{y}\" y2=\"{y}\"/>"
                )
            }
        };
    }
}
