//! A record as one HTML page that needs nothing else.

use std::fmt::Write as _;

use super::plot::{Axis, Mark, Plot, SHAPES};
use super::{Table, number, percent, times};
use crate::{Operation, Record, Size, engine};

/// A text as HTML text or the value of an attribute.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escaped, with what stands between asterisks emphasized.
fn emphasized(text: &str) -> String {
    let parts = text.split('*').enumerate().map(|(index, part)| match index % 2 {
        1 => format!("<em>{}</em>", escape(part)),
        _ => escape(part),
    });
    parts.collect()
}

impl Table {
    /// Scrolls by itself where the page is too narrow.
    fn to_html(&self) -> String {
        let row = |cells: &[String], tag: &str| {
            let mut cells = cells.iter().map(|cell| escape(cell));
            let first = cells.next().unwrap_or_default();
            let rest: String = cells.map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
            format!("<tr><th scope=\"row\">{first}</th>{rest}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|cells| row(cells, "td")).collect();
        let heads = row(&self.heads, "th").replace("scope=\"row\"", "scope=\"col\"");
        format!(
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>{heads}</thead>\n<tbody>\n{rows}\
             </tbody></table></div>\n"
        )
    }
}

const STYLE: &str = include_str!("style.css");

impl Record {
    /// The whole report as a page of HTML: inline style and plots, no script, nothing to fetch.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title());
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
             name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}\
             </style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        let shapes: String = SHAPES
            .iter()
            .enumerate()
            .map(|(index, path)| format!("<path id=\"shape{index}\" d=\"{path}\"/>"))
            .collect();
        let _ = writeln!(
            page,
            "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"defs\"><defs>{shapes}</defs>\
             </svg>"
        );
        let _ = writeln!(page, "<p class=\"lede\">{}</p>", escape(&self.summary()));
        page += &match self.warnings().as_slice() {
            [] => "<p class=\"quiet\">No warnings: the machine was quiet.</p>\n".to_owned(),
            warnings => {
                let items: String =
                    warnings.iter().map(|w| format!("<li>{}</li>\n", escape(w))).collect();
                format!(
                    "<section class=\"warnings\"><h2>Warnings</h2>\n<ul>\n{items}</ul></section>\n"
                )
            }
        };
        for size in Size::ALL {
            self.ratios(&mut page, size);
        }
        self.ceiling(&mut page);
        self.spread(&mut page);
        for (title, table) in self.other_tables() {
            section(&mut page, &title, &table.to_html());
        }
        let list = |lines: Vec<String>| {
            let items: String =
                lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
            format!("<ul>\n{items}</ul>\n")
        };
        let untimed = self.untimed();
        if !untimed.is_empty() {
            section(&mut page, "Not timed", &list(untimed));
        }
        let pairs = |pairs: Vec<(String, String)>| {
            let pairs = pairs.iter().map(|(name, text)| {
                format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(text))
            });
            format!("<dl>\n{}</dl>\n", pairs.collect::<String>())
        };
        let engines = self.engines.iter().map(|e| (e.name.clone(), e.about.clone())).collect();
        section(&mut page, "Who was measured", &pairs(engines));
        section(&mut page, "How", &format!("<p>{}</p>\n", emphasized(&self.method())));
        let facts = self.facts().into_iter().map(|(name, fact)| (name.to_owned(), fact));
        section(&mut page, "Where", &pairs(facts.collect()));
        page + "</main>\n</body>\n</html>\n"
    }

    /// The plot of the ratios to ggml of a size, and the table behind it.
    fn ratios(&self, page: &mut String, size: Size) {
        let Some(table) = self.dequantize_table(size) else { return };
        let series = self.series();
        let groups = || self.groups(Operation::Dequantize, Some(size));
        let ratios = series.iter().flat_map(|name| {
            groups().filter_map(move |group| Some(group.ratio(name, engine::GGML)?[0]))
        });
        let plot = Plot {
            label: format!(
                "Times as fast as ggml, {}, by type; the table has the figures",
                size.name()
            ),
            axis: Axis::ratios(ratios),
            rows: groups()
                .filter(|group| group.time(engine::GGML).is_some())
                .map(|group| {
                    let marks = series.iter().enumerate().filter_map(|(series, name)| {
                        let [at, _] = group.ratio(name, engine::GGML)?;
                        let rate = number(group.rate(name)?);
                        let title = format!("{} {name}: {}, {rate} GB/s", group.subject, times(at));
                        Some(Mark::Point { series, at, title })
                    });
                    // Ours are drawn last, over the others.
                    let mut marks: Vec<Mark> = marks.collect();
                    marks.reverse();
                    (group.subject.clone(), marks)
                })
                .collect(),
        };
        let out = groups().next().map_or(0, |group| group.bytes_out);
        let content = format!(
            "<p>How many times as fast as ggml as it is shipped; further to the right is faster. The \
             output has {}.</p>\n{}{}<details><summary>The figures</summary>\n{}</details>\n",
            super::bytes(out),
            self.legend(&series),
            plot.to_svg(),
            table.to_html()
        );
        section(page, &format!("Dequantizing, {}", size.name()), &content);
    }

    /// What reaches the rate at which memory can be filled.
    fn ceiling(&self, page: &mut String) {
        let mut content = String::from(
            "<p>The part of the rate at which the fastest plain loop fills the same memory, in the same \
             rounds. What is near 100% cannot get faster. A loop that fills is no proof of what can be \
             reached: a kernel may surpass it a little.</p>\n",
        );
        for size in Size::ALL {
            let rows = self.groups(Operation::Dequantize, Some(size)).filter_map(|group| {
                let mark = |series, name| {
                    let at = group.share_of_ceiling(name)?;
                    let title = format!("{} {name}: {}", group.subject, percent(at));
                    Some(Mark::Point { series, at, title })
                };
                let marks = [mark(GGML_SERIES, engine::GGML), mark(0, group.ours()?)];
                Some((group.subject.clone(), marks.into_iter().flatten().collect()))
            });
            let plot = Plot {
                label: format!("Part of the store ceiling, {}, by type", size.name()),
                axis: Axis::parts(0.0, 1.2, 0.2, 1.0),
                rows: rows.collect(),
            };
            if !plot.rows.is_empty() {
                let legend = legend([(0, "ours"), (GGML_SERIES, "ggml as shipped")]);
                let _ = writeln!(content, "<h3>{}</h3>\n{legend}{}", capital(size), plot.to_svg());
            }
        }
        content += &self.ceiling_table().to_html();
        section(page, "What the machine can store", &content);
    }

    /// How far the rounds are apart.
    fn spread(&self, page: &mut String) {
        let mut content = String::from(
            "<p>Times of the rounds of ours, against their median: the middle half (thick) and all \
             (thin), cut off at the edge. A long tail to the right is a machine that did something \
             else.</p>\n",
        );
        for size in Size::ALL {
            let rows = self.groups(Operation::Dequantize, Some(size)).filter_map(|group| {
                let time = group.time(group.ours()?)?;
                let part = |value: f64| value / time.median - 1.0;
                let range =
                    |from, to, is_thick| Mark::Range { from: part(from), to: part(to), is_thick };
                let marks =
                    vec![range(time.min, time.max, false), range(time.lower, time.upper, true)];
                Some((group.subject.clone(), marks))
            });
            let plot = Plot {
                label: format!("Spread of the times, {}, by type", size.name()),
                axis: Axis::parts(-0.2, 0.4, 0.2, 0.0),
                rows: rows.collect(),
            };
            if !plot.rows.is_empty() {
                let _ = writeln!(content, "<h3>{}</h3>\n{}", capital(size), plot.to_svg());
            }
        }
        section(page, "Spread", &content);
    }

    /// What has points in the plots: ours from the fastest on, then the others.
    fn series(&self) -> Vec<&str> {
        let names = self.dequantizers();
        let is_ours = |name: &&str| engine::OURS.contains(name);
        let ours = engine::OURS.into_iter().rev().filter(|name| names.contains(name));
        let others = names.iter().copied().filter(|name| !is_ours(name) && *name != engine::GGML);
        ours.chain(others).collect()
    }

    fn legend(&self, series: &[&str]) -> String {
        legend(series.iter().copied().enumerate())
    }
}

/// The shape and colour of ggml, where it has points.
const GGML_SERIES: usize = SHAPES.len() - 1;

fn legend<'a>(series: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let items = series.into_iter().map(|(index, name)| {
        format!(
            "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><use href=\"#shape{}\" \
             class=\"s{index}\" x=\"7\" y=\"7\"/></svg>{}</li>",
            index % SHAPES.len(),
            escape(name)
        )
    });
    format!("<ul class=\"legend\">{}</ul>\n", items.collect::<String>())
}

fn capital(size: Size) -> &'static str {
    match size {
        Size::Cached => "In the cache",
        Size::Streamed => "To memory",
    }
}

fn section(page: &mut String, title: &str, content: &str) {
    let _ = writeln!(page, "<section><h2>{}</h2>\n{content}</section>", escape(title));
}
