//! Tables of facts: names with values, as text.

use crate::text::wrapped;
use crate::width::width as page_width;

/// Returns names and values, aligned, under `title`.
pub fn facts_table(title: &str, facts: &[(String, String)]) -> String {
    let width = facts
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = wrapped(title, page_width(), 0);
    for (name, value) in facts {
        let gap = width - name.chars().count();
        let indent = format!("\n{:indent$}", "", indent = width + 4);
        let value = wrapped(value, page_width().saturating_sub(width + 4), 0);
        let value = value.trim_end().replace('\n', &indent);
        text.push_str(&format!("  {name}{:gap$}  {value}", ""));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_aligned() {
        let facts = [
            ("a".to_owned(), "1".to_owned()),
            ("long".to_owned(), "2".to_owned()),
        ];
        assert_eq!(facts_table("Log", &facts), "Log\n  a     1\n  long  2\n");
    }
}
