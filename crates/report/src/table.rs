//! One look for all tables: a title, a header, a rule, columns aligned by their kind.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// On which side a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column's head and alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its head; may hold line breaks.
    pub head: String,
    /// How its cells stand.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn words(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            align: Align::Left,
        }
    }

    /// A column of numbers.
    pub fn numbers(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            align: Align::Right,
        }
    }
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    title: Option<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub const fn new(columns: Vec<Column>) -> Self {
        Self {
            title: None,
            columns,
            rows: Vec::new(),
        }
    }

    /// Puts a line above the table.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Whether there is no row yet.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text, with no blanks at line ends.
    pub fn render(&self) -> String {
        let cell = |text: &str, align| {
            Cell::new(text).set_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            })
        };
        let mut table = comfy_table::Table::new();
        table
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|c| cell(&c.head, c.align)));
        for row in &self.rows {
            table.add_row(
                row.iter()
                    .zip(&self.columns)
                    .map(|(text, c)| cell(text, c.align)),
            );
        }
        let mut text = String::new();
        if let Some(title) = &self.title {
            text.push_str(title);
            text.push('\n');
        }
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Only a rule under the header: quick to read, easy to cut and paste.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table =
            Table::new(vec![Column::words("name"), Column::numbers("value")]).titled("Things");
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["long name".into(), "1,000".into()]);
        let expected = "Things\n name        value\n───────────────────\n a               1\n long name   1,000\n";
        assert_eq!(table.render(), expected);
    }

    #[test]
    #[should_panic(expected = "one cell per column")]
    fn a_row_has_one_cell_per_column() {
        Table::new(vec![Column::words("name")]).row(vec![]);
    }
}
