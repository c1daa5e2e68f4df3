//! Tables as comma-separated text (RFC 4180).

use super::{Cell, Column, Kind};
use std::io::{self, Write};

/// Writes a table row by row.
pub struct Csv<W: Write>(csv::Writer<W>);

impl<W: Write> Csv<W> {
    /// Starts a table with the names of the columns.
    pub fn new(out: W, columns: &[Column]) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(columns.iter().map(|column| &column.name))?;
        Ok(Self(writer))
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        Ok(self.0.write_record(cells.iter().map(Cell::to_string))?)
    }

    /// Flushes buffered rows and returns the output.
    pub fn finish(self) -> io::Result<W> {
        self.0
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Returns a table as text.
///
/// # Errors
/// The table cannot be formatted, which does not happen.
pub fn text(head: &[String], rows: impl Iterator<Item = Vec<Cell>>) -> io::Result<String> {
    let columns: Vec<Column> = head
        .iter()
        .map(|name| Column::new(name, Kind::Text))
        .collect();
    let mut csv = Csv::new(Vec::new(), &columns)?;
    for row in rows {
        csv.row(&row)?;
    }
    String::from_utf8(csv.finish()?).map_err(io::Error::other)
}
