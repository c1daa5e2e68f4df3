//! Which interconnect a machine has.

use serde::{Deserialize, Serialize};

use super::{Ideal, Interconnect, InterconnectError};

/// An interconnect as data: a table with its `kind`, or the name of a preset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InterconnectConfig {
    /// Takes no time; everything is counted.
    #[default]
    Ideal,
}

impl InterconnectConfig {
    /// Whether such an interconnect can be built.
    ///
    /// # Errors
    /// Names the field, its value and what was expected.
    pub fn validate(&self) -> Result<(), InterconnectError> {
        match self {
            Self::Ideal => Ok(()),
        }
    }

    /// The interconnect, with `devices` on it.
    ///
    /// # Errors
    /// Those of [`validate`](Self::validate).
    pub fn build(&self, devices: usize) -> Result<Box<dyn Interconnect>, InterconnectError> {
        self.validate()?;
        Ok(match self {
            Self::Ideal => Box::new(Ideal::new(devices)),
        })
    }
}
