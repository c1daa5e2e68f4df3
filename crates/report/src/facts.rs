//! Tables of facts: names with values, as text.

use crate::number::{grouped, percent};
use crate::table::{Column, Table};
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

/// How often something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// What happened.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// Counts by name with their shares; `head` names the first column. Empty if nothing happened.
pub fn counts_table(head: &str, counts: &[Count]) -> String {
    let all: u64 = counts.iter().map(|c| c.count).sum();
    if all == 0 {
        return String::new();
    }
    let mut table = Table::new(vec![
        Column::words(head),
        Column::numbers("count"),
        Column::numbers("share"),
    ]);
    for Count { name, count } in counts.iter().filter(|c| c.count > 0) {
        let share = 100.0 * *count as f64 / all as f64;
        table.row(vec![name.clone(), grouped(*count), percent(share)]);
    }
    table.render()
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

    #[test]
    fn what_did_not_happen_is_not_listed() {
        let count = |name: &str, count| Count {
            name: name.into(),
            count,
        };
        assert_eq!(counts_table("drop", &[count("queue full", 0)]), "");
        let text = counts_table("drop", &[count("queue full", 0), count("no memory", 3)]);
        assert!(
            !text.contains("queue full") && text.contains("100 %"),
            "{text}"
        );
    }
}
