//! What is wrong with a description of an interconnect.

use std::fmt;

/// A field that no such interconnect could have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct InterconnectError {
    /// Name of the field.
    pub field: &'static str,
    /// What it was set to.
    pub value: String,
    /// What would have been right.
    pub expected: String,
}

impl InterconnectError {
    /// `field` was `value` where `expected` was needed.
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

/// Says that `value` of `field` must be in `least..=most`, unless it is.
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

/// Says that `value` of `field` must be a power of two in `least..=most`, unless it is.
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
