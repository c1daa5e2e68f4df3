//! What is wrong with a description of hardware.

use std::fmt;

/// A field that no such hardware could have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field, with the names of the tables around it: `l2.size_kib`.
    pub field: String,
    /// What it was set to.
    pub value: String,
    /// What would have been right.
    pub expected: String,
}

impl ConfigError {
    /// `field` was `value` where `expected` was needed.
    pub(super) fn new(field: &str, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    /// The same error, seen from the table around the field's own.
    pub fn within(self, table: &str) -> Self {
        Self {
            field: format!("{table}.{}", self.field),
            ..self
        }
    }
}

/// Says that `value` of `field` must be in `least..=most`, unless it is.
pub(super) fn check_range(
    field: &str,
    value: u64,
    least: u64,
    most: u64,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(field, value, format!("{least} to {most}")))
}
