//! Configuration of policies.

use crate::{
    Admission, AdmitAll, Fifo, Gdsf, Lfu, Lru, Replacement, S3Fifo, SecondRequest, Sieve,
    TinyLfuAdmission, WTinyLfu,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

baton_named::named! {
    /// Replacement policy of a cache.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ReplacementConfig {
        /// Least recently used: [`Lru`].
        #[default]
        Lru => "lru",
        /// Least frequently used: [`Lfu`].
        Lfu => "lfu",
        /// First in, first out: [`Fifo`].
        Fifo => "fifo",
        /// First in, first out, but spares entries that were used since they came in or were last spared: [`Sieve`].
        Sieve => "sieve",
        /// Three queues: a small one for new entries, the main one, and the names of evicted entries: [`S3Fifo`].
        S3Fifo => "s3-fifo",
        /// A small window, then a main area that admits entries by their counted frequency: [`WTinyLfu`].
        #[serde(rename = "w-tinylfu")]
        WTinyLfu => "w-tinylfu",
        /// Greedy dual, by size and frequency: [`Gdsf`].
        Gdsf => "gdsf",
    }
}

impl ReplacementConfig {
    /// Returns the policy with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Builds the policy for a cache of `slots` slots, all empty.
    pub fn build(self, slots: u32) -> Box<dyn Replacement> {
        match self {
            Self::Lru => Box::new(Lru::new(slots)),
            Self::Lfu => Box::new(Lfu::new(slots)),
            Self::Fifo => Box::new(Fifo::new(slots)),
            Self::Sieve => Box::new(Sieve::new(slots)),
            Self::S3Fifo => Box::new(S3Fifo::new(slots)),
            Self::WTinyLfu => Box::new(WTinyLfu::new(slots)),
            Self::Gdsf => Box::new(Gdsf::new(slots)),
        }
    }
}

/// Admission policy of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AdmissionConfig {
    /// Admits every block: [`AdmitAll`].
    #[default]
    All,
    /// Admits a block at its second request: [`SecondRequest`].
    SecondRequest {
        /// Number of requests remembered, in per cent of the slots: 1 to 10,000.
        #[serde(default = "remembered_percent")]
        #[schemars(range(min = 1, max = 10000))]
        remembered_percent: u32,
    },
    /// Admits a block that was requested often enough lately: [`TinyLfuAdmission`].
    #[serde(rename = "tinylfu")]
    TinyLfu {
        /// Number of recent requests needed, including the present one: 1 to 255.
        #[serde(default = "requests")]
        #[schemars(range(min = 1))]
        requests: u8,
    },
}

/// By default, remembers as many names as there are slots.
const fn remembered_percent() -> u32 {
    100
}

/// By default, refuses blocks that are requested only once.
const fn requests() -> u8 {
    2
}

/// An invalid [`AdmissionConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: found {found}; expected {expected}")]
pub struct Invalid {
    /// Name of the field.
    pub field: &'static str,
    /// The rejected value.
    pub found: u32,
    /// The accepted values.
    pub expected: &'static str,
}

impl AdmissionConfig {
    /// [`SecondRequest`] that remembers as many requests as there are slots.
    pub const SECOND_REQUEST: Self = Self::SecondRequest {
        remembered_percent: remembered_percent(),
    };
    /// [`TinyLfuAdmission`] that refuses blocks that are requested only once.
    pub const TINY_LFU: Self = Self::TinyLfu {
        requests: requests(),
    };

    /// Returns the value of `kind` in configurations, which is also the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::SecondRequest { .. } => "second-request",
            Self::TinyLfu { .. } => "tinylfu",
        }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// Reports the first invalid parameter.
    pub const fn validate(self) -> Result<(), Invalid> {
        let (field, found, expected, ok) = match self {
            Self::All => return Ok(()),
            Self::SecondRequest {
                remembered_percent: percent,
            } => {
                let ok = percent >= 1 && percent <= 10_000;
                ("remembered_percent", percent, "1 to 10000", ok)
            }
            Self::TinyLfu { requests } => ("requests", requests as u32, "1 to 255", requests >= 1),
        };
        if ok {
            return Ok(());
        }
        Err(Invalid {
            field,
            found,
            expected,
        })
    }

    /// Builds the policy for a cache of `slots` slots.
    pub fn build(self, slots: u32) -> Box<dyn Admission> {
        match self {
            Self::All => Box::new(AdmitAll),
            Self::SecondRequest { remembered_percent } => {
                let remembered = u64::from(slots) * u64::from(remembered_percent) / 100;
                let remembered = u32::try_from(remembered).unwrap_or(u32::MAX);
                Box::new(SecondRequest::new(remembered.max(1)))
            }
            Self::TinyLfu { requests } => Box::new(TinyLfuAdmission::new(slots, requests)),
        }
    }
}
