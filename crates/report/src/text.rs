//! Running text.

use crate::width::width;

/// Breaks `text` at blanks into lines of at most `width` characters, except for longer words. Lines after the first are
/// indented by `indent`. The result ends with a newline.
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

/// Breaks lines of `text` that are longer than the page at blanks, keeping their indentation. Tables already fit.
pub fn folded(text: &str) -> String {
    let fold = |line: &str| {
        let indent = line.chars().take_while(|letter| *letter == ' ').count();
        match line.chars().count() <= width() {
            true => format!("{line}\n"),
            false => format!("{:indent$}{}", "", wrapped(line, width() - indent, indent)),
        }
    };
    text.lines().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_and_others_unchanged() {
        let long = format!("  indented{}", " words".repeat(40));
        let text = folded(&format!("  short   line\n\n{long}\n"));
        assert!(
            text.starts_with("  short   line\n\n  indented words"),
            "{text}"
        );
        let lines = || text.lines().skip(2);
        assert!(lines().count() == 3 && lines().all(|line| line.starts_with("  ")));
        assert!(
            lines().all(|line| line.chars().count() <= width()),
            "{text}"
        );
    }

    #[test]
    fn lines_end_before_the_width() {
        assert_eq!(wrapped("- one two three", 9, 2), "- one two\n  three\n");
        assert_eq!(wrapped("immeasurable word", 5, 0), "immeasurable\nword\n");
        assert_eq!(wrapped("", 5, 0), "\n");
    }
}
