//! Values in tables.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A value in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value.
    #[default]
    Nothing,
    /// True or false.
    Boolean(bool),
    /// A number without a fraction.
    Integer(i64),
    /// Any other number; finite.
    Number(f64),
    /// Text.
    Text(String),
}

impl Cell {
    /// Creates a cell with a count, or an empty cell if the count does not fit in 63 bits.
    pub fn count(count: u64) -> Self {
        i64::try_from(count).map_or(Self::Nothing, Self::Integer)
    }

    /// Creates a cell with a number, or an empty cell if the number is not finite.
    pub fn number(number: f64) -> Self {
        match number.is_finite() {
            true => Self::Number(number),
            false => Self::Nothing,
        }
    }

    /// Creates a cell with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the value as a number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match *self {
            Self::Integer(number) => Some(number as f64),
            Self::Number(number) => Some(number),
            Self::Nothing | Self::Boolean(_) | Self::Text(_) => None,
        }
    }
}

/// Formats a cell as in a text table.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Boolean(truth) => truth.fmt(f),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Nothing, Self::Text)
    }
}

/// Type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// True or false.
    Boolean,
    /// Integers of 64 bits, signed.
    Integer,
    /// Numbers.
    Number,
    /// Text.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, which ends with the unit.
    pub name: String,
    /// Type of the values that are present.
    pub kind: Kind,
}

impl Column {
    /// Creates a column.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_cells_are_parsed_back() {
        let cells = [
            Cell::Nothing,
            Cell::Boolean(true),
            Cell::Integer(3),
            Cell::Number(3.0),
            Cell::Number(0.1),
            Cell::text("3"),
        ];
        let json = serde_json::to_string(&cells).expect("cells are JSON");
        assert_eq!(json, r#"[null,true,3,3.0,0.1,"3"]"#);
        let read: Vec<Cell> = serde_json::from_str(&json).expect("cells are read");
        assert_eq!(read, cells);
        assert_eq!(Cell::number(f64::NAN), Cell::Nothing);
        assert_eq!(Cell::count(u64::MAX), Cell::Nothing);
    }
}
