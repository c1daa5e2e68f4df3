//! Excerpts of logs for messages: at most one line, without control characters for a terminal.

use std::fmt::Write;

/// Maximum number of bytes of a line that are shown.
const SHOWN_BYTES: usize = 160;
/// The same for a line that is not text, whose bytes are escaped.
const SHOWN_BINARY_BYTES: usize = 24;

/// Returns the start of a line; bytes that are not text are escaped as `\xff`.
pub(super) fn excerpt(line: &[u8]) -> String {
    let mut shown = &line[..line.len().min(SHOWN_BYTES)];
    // An escape takes four characters per byte.
    if escape(shown).len() > 2 * shown.len() {
        shown = &shown[..shown.len().min(SHOWN_BINARY_BYTES)];
    }
    let end = if shown.len() < line.len() { "..." } else { "" };
    escape(shown) + end
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => text.push_str("\\t"),
                c if c.is_control() => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(excerpt(b"a\x1b[31m\tb\x00\xff"), r"a\u{1b}[31m\tb\u{0}\xff");
        assert_eq!(excerpt("caf\u{e9}".as_bytes()), "caf\u{e9}");
        let binary: Vec<u8> = (0..=255u8).rev().collect();
        let shown = excerpt(&binary);
        assert!(shown.is_ascii() && shown.len() < 110, "{shown}");
        assert_eq!(excerpt(&[b'x'; 200]).len(), SHOWN_BYTES + 3);
    }
}
