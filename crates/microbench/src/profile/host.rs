//! Profiles of hosts.

use super::{HOSTS, ProfileError, find};
use baton_sim::config::{HostInstructions, HostScale};
use baton_sim::hardware::{MemoryConfig, MemoryHierarchy, Processor, ProcessorConfig};
use serde::{Deserialize, Serialize};

/// A host: its processor, its memory, and the costs of its software.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// Name of the host.
    pub name: String,
    /// Processors, all of the same kind.
    pub processor: ProcessorConfig,
    /// Number of processors. Each has its own queue of a NIC that has several.
    #[serde(default = "super::one")]
    pub cores: u8,
    /// Caches and main memory.
    pub memory: MemoryConfig,
    /// Instruction counts of drivers and tests.
    pub instructions: Instructions,
    /// Costs of applications. A host without them can be used for tests only.
    #[serde(default)]
    pub applications: Option<ApplicationCosts>,
}

/// Costs of applications and of the kernel below them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationCosts {
    /// Instructions to route a packet from one driver to another.
    pub route: u32,
    /// Multipliers of the following instruction counts, in per cent.
    pub scale: HostScale,
    /// Instructions of each operation of a web server and of its kernel above the drivers.
    #[serde(default)]
    pub instructions: HostInstructions,
}

/// Instruction counts, without waiting for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instructions {
    /// The driver accepts a frame and puts it into its ring, including the doorbell.
    pub send: u32,
    /// The driver refuses a frame.
    pub refuse: u32,
    /// The driver takes a frame out of its ring and gives the descriptor a new buffer.
    pub receive: u32,
    /// The driver reclaims the descriptor of a frame that was sent.
    pub reclaim: u32,
    /// Entering the driver by an interrupt, and returning.
    pub interrupt: u32,
    /// A polling driver checks whether its NIC has work.
    #[serde(default)]
    pub poll: u32,
    /// The test's TCP handles a segment.
    pub segment: u32,
    /// Computing a checksum, for each 64 bytes of data.
    pub checksum_64_bytes: u32,
    /// Descriptors that the driver gives back to the NIC with one register access.
    pub refill_batch: u32,
}

impl HostProfile {
    /// Returns the names of the profiles that ship with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        HOSTS.iter().map(|(name, _)| *name)
    }

    /// Returns a profile that ships with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        find(&HOSTS, name).map(|text| {
            Self::parse(text).expect("the shipped profile is valid, which a test checks")
        })
    }

    /// Parses a profile from TOML.
    ///
    /// # Errors
    /// The text is malformed, or no such host can exist.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|e| ProfileError::Malformed(e.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    /// Checks that such a host can exist.
    ///
    /// # Errors
    /// The error names the field, its value and the expected values.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let part = |table| {
            move |error: baton_sim::hardware::ConfigError| ProfileError::Part {
                table,
                reason: error.to_string(),
            }
        };
        Processor::new(&self.processor).map_err(part("processor"))?;
        MemoryHierarchy::new(&self.memory).map_err(part("memory"))?;
        if self.instructions.refill_batch == 0 {
            return Err(ProfileError::Value {
                field: "instructions.refill_batch",
                value: 0,
                expected: "more than 0",
            });
        }
        Ok(())
    }
}
