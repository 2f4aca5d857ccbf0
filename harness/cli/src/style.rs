//! Colours of verdicts. `anstream` drops them where they are not wanted (`NO_COLOR`, pipes).

use anstyle::{AnsiColor, Style};

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

pub(crate) fn good(text: &str) -> String {
    paint(GOOD, text)
}

pub(crate) fn bad(text: &str) -> String {
    paint(BAD, text)
}

pub(crate) fn dim(text: &str) -> String {
    paint(DIM, text)
}

pub(crate) fn bold(text: &str) -> String {
    paint(BOLD, text)
}
