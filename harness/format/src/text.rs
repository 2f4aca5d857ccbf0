//! Bytes from a file on their way to a person.

use core::fmt::{self, Write};

/// A string of a file: bytes that ought to be UTF-8.
///
/// `Display` and `Debug` escape everything that could harm a terminal or hide in a text: control
/// characters, bidirectional overrides and other invisible characters, and bytes that are not
/// UTF-8 (as `\xNN`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text, if it is UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        core::str::from_utf8(self.0).ok()
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Text<'a> {
    fn from(bytes: &'a [u8; N]) -> Text<'a> {
        Text(bytes)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// Characters that take part in no visible text: they reorder it, join it, or are not seen at all.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// One character, escaped if it could do harm.
fn write_safe(f: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        c if is_invisible(c) => write!(f, "\\u{{{:x}}}", u32::from(c)),
        c => f.write_char(c),
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    c => write_safe(f, c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Bytes of a file as text for a person: see [`Text`]. Cut after `max` bytes, with a mark.
pub fn escape(bytes: &[u8], max: usize) -> String {
    match bytes.get(..max) {
        Some(head) if bytes.len() > max => {
            // A character cut in two would show as \xNN: leave it out.
            let head = match core::str::from_utf8(head) {
                Err(error) if error.error_len().is_none() => {
                    head.get(..error.valid_up_to()).unwrap_or(head)
                }
                _ => head,
            };
            format!("{}… ({} bytes)", Text(head), bytes.len())
        }
        _ => Text(bytes).to_string(),
    }
}

/// A message that quotes a file, made safe for a terminal: what could harm is escaped as in
/// [`Text`], but backslashes stay as they are, since the message may have escaped already. Cut after
/// `max` characters, with a mark.
pub fn printable(message: &str, max: usize) -> String {
    let mut text = String::new();
    for (place, c) in message.chars().enumerate() {
        if place == max {
            text.push('…');
            break;
        }
        // Writing to a string does not fail.
        let _ = write_safe(&mut text, c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_backslashes() {
        assert_eq!(printable("a\\u{0}\x1b[2J", 99), "a\\u{0}\\u{1b}[2J");
        assert_eq!(printable("abc", 2), "ab…");
    }

    #[test]
    fn what_could_harm_a_terminal_is_escaped() {
        let hostile = b"a\x1b[2J\x07\xe2\x80\xae\xff\n\\";
        assert_eq!(Text(hostile).to_string(), r"a\u{1b}[2J\u{7}\u{202e}\xff\n\\");
        assert_eq!(Text("héllo 你好".as_bytes()).to_string(), "héllo 你好");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(escape("aé".as_bytes(), 2), "a… (3 bytes)");
        assert_eq!(escape("aé".as_bytes(), 3), "aé");
    }
}
