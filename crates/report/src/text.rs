//! Running text.

/// `text` broken at blanks into lines of at most `width` characters, longer words aside; lines after the first are
/// indented by `indent`. Ends with a newline.
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column == 0 {
            lines.push_str(word);
            column = length;
        } else if column + 1 + length <= width {
            lines.push(' ');
            lines.push_str(word);
            column += 1 + length;
        } else {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            lines.push_str(word);
            column = indent + length;
        }
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_before_the_width() {
        assert_eq!(wrapped("- one two three", 9, 2), "- one two\n  three\n");
        assert_eq!(wrapped("immeasurable word", 5, 0), "immeasurable\nword\n");
        assert_eq!(wrapped("", 5, 0), "\n");
    }
}
