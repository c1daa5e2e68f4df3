//! Errors in the description of an interconnect.

use std::fmt;

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct InterconnectError {
    /// Name of the field.
    pub field: &'static str,
    /// The rejected value.
    pub value: String,
    /// The accepted values.
    pub expected: String,
}

impl InterconnectError {
    /// Creates an error for a `field` whose `value` is not as `expected`.
    pub(super) fn new(
        field: &'static str,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            field,
            value: value.to_string(),
            expected: expected.into(),
        }
    }
}

/// Checks that `value` of `field` is in `least..=most`.
pub(super) fn check_range(
    field: &'static str,
    value: u32,
    least: u32,
    most: u32,
) -> Result<(), InterconnectError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(InterconnectError::new(
        field,
        value,
        format!("{least} to {most}"),
    ))
}

/// Checks that `value` of `field` is a power of two in `least..=most`.
pub(super) fn check_power_of_two(
    field: &'static str,
    value: u32,
    least: u32,
    most: u32,
) -> Result<(), InterconnectError> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    let expected = format!("a power of two, {least} to {most}");
    Err(InterconnectError::new(field, value, expected))
}
