//! Policies as data.

use crate::{
    Admission, AdmitAll, Fifo, Gdsf, Lfu, Lru, Replacement, S3Fifo, SecondRequest, Sieve,
    TinyLfuAdmission, WTinyLfu,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which replacement policy a cache has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementConfig {
    /// Least recently used: [`Lru`].
    #[default]
    Lru,
    /// Least frequently used: [`Lfu`].
    Lfu,
    /// First in, first out: [`Fifo`].
    Fifo,
    /// First in, first out, but spares what was asked for since: [`Sieve`].
    Sieve,
    /// Three queues: a small one for what is new, the main one, and names of what left: [`S3Fifo`].
    S3Fifo,
    /// Least recently used behind a window, entered by counted frequency: [`WTinyLfu`].
    #[serde(rename = "w-tinylfu")]
    WTinyLfu,
    /// Greedy dual, by size and frequency: [`Gdsf`].
    Gdsf,
}

impl ReplacementConfig {
    /// All policies.
    pub const ALL: [Self; 7] = [
        Self::Lru,
        Self::Lfu,
        Self::Fifo,
        Self::Sieve,
        Self::S3Fifo,
        Self::WTinyLfu,
        Self::Gdsf,
    ];

    /// The name in configurations and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::Fifo => "fifo",
            Self::Sieve => "sieve",
            Self::S3Fifo => "s3-fifo",
            Self::WTinyLfu => "w-tinylfu",
            Self::Gdsf => "gdsf",
        }
    }

    /// The policy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The policy for a cache of `slots` slots, all empty.
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

/// Which admission policy a cache has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AdmissionConfig {
    /// Every block: [`AdmitAll`].
    #[default]
    All,
    /// At the second request: [`SecondRequest`].
    SecondRequest {
        /// Requests remembered, in per cent of the slots: 1 to 10,000.
        #[serde(default = "remembered_percent")]
        #[schemars(range(min = 1, max = 10000))]
        remembered_percent: u32,
    },
    /// When asked for often enough lately: [`TinyLfuAdmission`].
    #[serde(rename = "tinylfu")]
    TinyLfu {
        /// Requests asked for, the present one included: 1 to 255.
        #[serde(default = "requests")]
        #[schemars(range(min = 1))]
        requests: u8,
    },
}

/// As many names as blocks.
const fn remembered_percent() -> u32 {
    100
}

/// Not a one-hit wonder.
const fn requests() -> u8 {
    2
}

/// What is wrong with an [`AdmissionConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: found {found}; expected {expected}")]
pub struct Invalid {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub found: u32,
    /// What would be right.
    pub expected: &'static str,
}

impl AdmissionConfig {
    /// [`SecondRequest`] that remembers as many requests as there are slots.
    pub const SECOND_REQUEST: Self = Self::SecondRequest {
        remembered_percent: remembered_percent(),
    };
    /// [`TinyLfuAdmission`] that keeps out what is asked for once.
    pub const TINY_LFU: Self = Self::TinyLfu {
        requests: requests(),
    };

    /// The value of `kind` in configurations, which is the name on the command line.
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
    /// The first one that makes no sense.
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

    /// The policy for a cache of `slots` slots.
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
