//! Errors in a description of hardware.

use std::fmt;

/// A field with a value that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct ConfigError {
    /// Name of the field, prefixed with the names of its tables: `l2.size_kib`.
    pub field: String,
    /// Value of the field.
    pub value: String,
    /// Description of valid values.
    pub expected: String,
}

impl ConfigError {
    /// Creates the error for a `field` with `value`, which must be as `expected` says.
    pub(super) fn new(field: &str, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    /// Returns the same error with `table` prefixed to the field's name.
    pub fn within(self, table: &str) -> Self {
        Self {
            field: format!("{table}.{}", self.field),
            ..self
        }
    }
}

/// Returns an error unless `value` of `field` is in `least..=most`.
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
