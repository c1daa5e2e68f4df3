//! Hosts as data.

use super::{HOSTS, ProfileError, find};
use baton_sim::config::{HostInstructions, HostScale};
use baton_sim::hardware::{MemoryConfig, MemoryHierarchy, Processor, ProcessorConfig};
use serde::{Deserialize, Serialize};

/// A host: its processor, its memory, and what its system does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// Its name.
    pub name: String,
    /// Its processors, which are alike.
    pub processor: ProcessorConfig,
    /// How many there are. Each has its own queue of a NIC that has several.
    #[serde(default = "super::one")]
    pub cores: u8,
    /// Its caches and main memory.
    pub memory: MemoryConfig,
    /// Instructions of what drivers and tests do.
    pub instructions: Instructions,
    /// What applications cost. A host without can only be used for tests.
    #[serde(default)]
    pub applications: Option<ApplicationCosts>,
}

/// What applications and the kernel below them cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplicationCosts {
    /// A router's way of a packet between the drivers, instructions.
    pub route: u32,
    /// Multipliers of what follows, per cent.
    pub scale: HostScale,
    /// Instructions of each operation of a web server and of its kernel above the drivers.
    #[serde(default)]
    pub instructions: HostInstructions,
}

/// Instructions, without waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instructions {
    /// The driver is given a frame and puts it into its ring, doorbell included.
    pub send: u32,
    /// The driver is given a frame and refuses it.
    pub refuse: u32,
    /// The driver takes a frame out of its ring and gives it a new buffer.
    pub receive: u32,
    /// The driver takes back the descriptor of a frame that was sent.
    pub reclaim: u32,
    /// From the interrupt to the driver, and back.
    pub interrupt: u32,
    /// A driver that polls looks whether its NIC has something.
    #[serde(default)]
    pub poll: u32,
    /// The test's TCP handles a segment.
    pub segment: u32,
    /// A checksum, for each 64 bytes of data.
    pub checksum_64_bytes: u32,
    /// Descriptors that the driver gives back to the NIC by one register access.
    pub refill_batch: u32,
}

impl HostProfile {
    /// Names of the profiles that ship with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        HOSTS.iter().map(|(name, _)| *name)
    }

    /// A profile that ships with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        find(&HOSTS, name).map(|text| Self::parse(text).expect("it is sound, as a test sees"))
    }

    /// A profile from TOML.
    ///
    /// # Errors
    /// It is malformed, or there is no such host.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|e| ProfileError::Malformed(e.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    /// Whether there can be such a host.
    ///
    /// # Errors
    /// Names the field, its value and what was expected.
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
