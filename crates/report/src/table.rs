//! Text tables with a common layout: a title, a header, a rule, and columns aligned by kind.

mod layout;

use crate::text::wrapped;
use crate::width::width;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
};

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A column's head and alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Head of the column; may contain line breaks.
    pub head: String,
    /// Alignment of the cells.
    pub align: Align,
    /// Set if the column may be left out if space is short; columns of the highest rank go first.
    pub rank: Option<u8>,
}

impl Column {
    /// Creates a column of words.
    pub fn words(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            align: Align::Left,
            rank: None,
        }
    }

    /// Creates a column of numbers.
    pub fn numbers(head: impl Into<String>) -> Self {
        Self {
            head: head.into(),
            align: Align::Right,
            rank: None,
        }
    }
}

impl Column {
    /// Allows the column to be left out if space is short, before columns of a lower rank.
    #[must_use]
    pub const fn ranked(mut self, rank: u8) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Returns the head in one line.
    fn name(&self) -> String {
        self.head.replace("-\n", "").replace('\n', " ")
    }
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    title: Option<String>,
    /// Where columns that are left out can be found, in words.
    elsewhere: Option<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these columns.
    pub const fn new(columns: Vec<Column>) -> Self {
        Self {
            title: None,
            elsewhere: None,
            columns,
            rows: Vec::new(),
        }
    }

    /// Creates an empty table with one column of words, followed by columns of numbers.
    pub fn of(words: impl Into<String>, numbers: &[&str]) -> Self {
        let numbers = numbers.iter().map(|head| Column::numbers(*head));
        Self::new(
            std::iter::once(Column::words(words))
                .chain(numbers)
                .collect(),
        )
    }

    /// Puts a title above the table.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Says where columns that do not fit can be found.
    #[must_use]
    pub fn elsewhere(mut self, how: impl Into<String>) -> Self {
        self.elsewhere = Some(how.into());
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from that of the columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Returns whether the table has no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes optional columns in which each cell is empty, `-` or `zero`.
    #[must_use]
    pub fn without_empty(mut self, zero: &str) -> Self {
        let says = |column: usize| {
            let nothing = |row: &Vec<String>| ["", "-", zero].contains(&&*row[column]);
            self.columns[column].rank.is_none() || !self.rows.iter().all(nothing)
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(|c| says(*c)).collect();
        self.columns = kept.iter().map(|c| self.columns[*c].clone()).collect();
        let of = |row: &Vec<String>| kept.iter().map(|c| row[*c].clone()).collect();
        self.rows = self.rows.iter().map(of).collect();
        self
    }

    /// Returns the heads of the columns that fit into this width.
    pub fn heads(&self, width: usize) -> Vec<&str> {
        let (shown, _) = layout::choose(&self.columns, &self.rows, width);
        let head = |column: usize| self.columns[column].head.as_str();
        shown.into_iter().map(head).collect()
    }

    /// Returns the table as text no wider than [`width`], without trailing blanks.
    pub fn render(&self) -> String {
        self.fit(width())
    }

    /// Returns the table as text no wider than `width`. If space is short, words and heads are broken at blanks; then optional columns are
    /// left out, with a line that names them; then the other columns continue below, each time after the first column again.
    pub fn fit(&self, width: usize) -> String {
        let mut text = self.title.as_ref().map_or_else(String::new, |title| {
            title.lines().map(|line| wrapped(line, width, 0)).collect()
        });
        let (shown, left_out) = layout::choose(&self.columns, &self.rows, width);
        let mut blocks = layout::blocks(&self.columns, &self.rows, &shown, width);
        let last = blocks.pop();
        for block in blocks {
            text += &self.block(&block, width);
            text.push('\n');
        }
        text += &last.map_or_else(String::new, |block| self.block(&block, width));
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|c| self.columns[*c].name()).collect();
            let note = format!(
                "not shown in {width} columns: {}; {}",
                names.join(", "),
                self.elsewhere
                    .as_deref()
                    .unwrap_or("a wider terminal shows all")
            );
            text += &wrapped(&note, width, 0);
        }
        text
    }

    /// Returns these columns side by side.
    fn block(&self, shown: &[usize], width: usize) -> String {
        let cell = |text: &str, align| {
            Cell::new(text).set_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            })
        };
        let widths = layout::widths(&self.columns, &self.rows, shown, width);
        let columns = || shown.iter().map(|c| (*c, &self.columns[*c]));
        let mut table = comfy_table::Table::new();
        table
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Dynamic)
            // The table takes only the space that it needs: all columns have fixed widths.
            .set_width(u16::MAX);
        table.set_header(columns().map(|(_, c)| cell(&c.head, c.align)));
        for row in &self.rows {
            table.add_row(columns().map(|(index, c)| cell(&row[index], c.align)));
        }
        for (index, columns) in widths.into_iter().enumerate() {
            let fixed = u16::try_from(columns + PADDING).unwrap_or(u16::MAX);
            if let Some(column) = table.column_mut(index) {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(fixed)));
            }
        }
        let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
        lines.collect()
    }
}

/// Number of blanks beside the cells of each column.
const PADDING: usize = 2;

/// Only a rule under the header, which is easy to read, cut and paste.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_aligned_left_and_numbers_right() {
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

    fn wide() -> Table {
        let mut columns = vec![Column::words("run")];
        columns.extend((0..12).map(|i| Column::numbers(format!("number {i}"))));
        let mut table = Table::new(columns).titled("a title of several words ".repeat(6));
        for row in 0..3 {
            let mut cells = vec![format!("a run of a longer name, {row}")];
            cells.extend((0..12).map(|i| format!("{} ±0.6 %", 1000 * i)));
            table.row(cells);
        }
        table
    }

    fn widest(text: &str) -> usize {
        let widths = text.lines().map(|line| line.chars().count());
        widths.max().unwrap_or(0)
    }

    #[test]
    fn columns_that_do_not_fit_continue_below() {
        for width in [40, 60, 80, 100, 200] {
            let text = wide().fit(width);
            assert!(widest(&text) <= width, "{width}:\n{text}");
            for i in 0..12 {
                let cell = format!("{} ±0.6 %", 1000 * i);
                assert_eq!(
                    text.matches(&format!(" {cell}")).count(),
                    3,
                    "{width}:\n{text}"
                );
            }
        }
    }

    #[test]
    fn ranked_columns_are_left_out_and_named() {
        let mut table = wide().elsewhere("--json shows all");
        for (rank, column) in (0..).zip(&mut table.columns[1..]) {
            column.rank = Some(rank);
        }
        let text = table.fit(60);
        assert!(widest(&text) <= 60, "{text}");
        assert!(
            text.contains("not shown in 60 columns:") && text.contains("number 11"),
            "{text}"
        );
        assert_eq!(text.matches("a run of").count(), 3, "one block: {text}");
        assert!(
            text.contains(" 1000 ±0.6 %") && !text.contains("11000"),
            "{text}"
        );
        assert!(!table.fit(300).contains("not shown"));
    }

    #[test]
    fn empty_columns_are_left_out_if_allowed() {
        let columns = vec![
            Column::words("run"),
            Column::numbers("rate"),
            Column::numbers("drops").ranked(1),
            Column::numbers("delay").ranked(2),
        ];
        let mut table = Table::new(columns);
        table.row(["a", "-", "0", "-"].map(String::from).to_vec());
        table.row(["b", "0", "0", "2"].map(String::from).to_vec());
        let table = table.without_empty("0");
        assert_eq!(table.heads(80), ["run", "rate", "delay"]);
    }
}
