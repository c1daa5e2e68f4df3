//! An experiment as data: a machine, a workload, and the length of the run.
//!
//! Every section has defaults, so profiles and experiment files only contain what differs. Unknown keys are errors.

mod application;
mod host;
mod nic;
mod nics;
mod offload;
mod run;
mod workload;

pub use crate::hardware::nic::NicHardware;
pub use application::{ApplicationConfig, LiveConfig, PagesConfig};
pub use host::{DriverConfig, HostConfig, HostInstructions, HostScale};
pub use nic::{DmaConfig, LookupConfig, NicConfig, NicInstructions, NicScale};
pub use nics::{NicKind, NicsConfig};
pub use offload::{
    EstablishedBy, LinkConfig, OffloadAdapterConfig, OffloadConfig, OffloadHostConfig, Piece,
    WakeUpConfig,
};
pub use run::{Length, RunConfig};
pub(crate) use workload::MOST_CLIENTS;
pub use workload::{ClientsConfig, WorkloadConfig};

use crate::hardware::{ConfigError, DiskConfig, WireConfig};
use baton_bus::interconnect::{InterconnectConfig, InterconnectError};
use baton_host::NicCacheConfig;
use baton_workload::LoadSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything a run depends on. Two runs with equal experiments give equal results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// The server's NICs, each with its own wire and subnet: their number, if all are configured by `nic`, or a table for each kind of NIC,
    /// with the keys in which it differs from `nic` (and under `adapter` from `offload.adapter`), the number of NICs, and a name.
    ///
    /// ```toml
    /// [[nics]]
    /// name = "slow"
    /// mips = 200
    ///
    /// [[nics]]
    /// count = 2
    /// firmware = { hard_limit = 64, cache.kib = 0 }
    /// ```
    pub nics: NicsConfig,
    /// How long to run, and the seed.
    pub run: RunConfig,
    /// What the clients ask for.
    pub workload: WorkloadConfig,
    /// When clients send requests. Without a rate: as soon as they can, in a closed loop.
    pub load: LoadSpec,
    /// What the server does for its clients.
    pub application: ApplicationConfig,
    /// The clients.
    pub clients: ClientsConfig,
    /// The server's TCP, on the host and on the NIC.
    pub tcp: baton_tcp::Config,
    /// The server.
    pub host: HostConfig,
    /// The server's NICs, unless `nics` overrides a value.
    pub nic: NicConfig,
    /// The wire between each NIC and its clients, in each direction.
    pub wire: WireConfig,
    /// The interconnect of host memory, NICs and disks: a table, or a name such as `pci-64-33` (width and clock), `pci-x-133` or
    /// `pcie-4-x16` (generation and lanes).
    pub interconnect: InterconnectConfig,
    /// How host and NICs communicate, and which of them establish connections.
    pub offload: OffloadConfig,
    /// The disks behind the file cache, if the cache has a limit (`host.kernel.file_cache.kib`).
    pub disk: DiskConfig,
}

impl Default for Experiment {
    fn default() -> Self {
        Self {
            name: String::new(),
            nics: NicsConfig::Alike(1),
            run: RunConfig::default(),
            workload: WorkloadConfig::default(),
            load: LoadSpec::default(),
            application: ApplicationConfig::default(),
            clients: ClientsConfig::default(),
            tcp: baton_tcp::Config::default(),
            host: HostConfig::default(),
            nic: NicConfig::default(),
            wire: WireConfig::default(),
            interconnect: InterconnectConfig::default(),
            offload: OffloadConfig::default(),
            disk: DiskConfig::default(),
        }
    }
}

/// An invalid value: its place and the expected value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {found}; expected {expected}")]
pub struct Invalid {
    /// Dotted path of the key, as in `host.l2.ways`.
    pub path: String,
    /// The value that was found.
    pub found: String,
    /// Description of valid values.
    pub expected: String,
}

impl Invalid {
    /// Creates the error for value `found` at `path`, which must be as `expected` says.
    pub fn new(path: &str, found: impl ToString, expected: &str) -> Self {
        Self {
            path: path.to_owned(),
            found: found.to_string(),
            expected: expected.to_owned(),
        }
    }
}

impl From<ConfigError> for Invalid {
    fn from(error: ConfigError) -> Self {
        Self {
            path: error.field,
            found: error.value,
            expected: error.expected,
        }
    }
}

impl Experiment {
    /// Returns how the host uses its NICs' data caches, which is disabled if the NICs have no memory for them.
    pub(crate) fn nic_cache(&self) -> NicCacheConfig {
        let config = &self.host.kernel.nic_cache;
        NicCacheConfig {
            enabled: config.enabled && self.nic.firmware.cache.kib > 0,
            ..config.clone()
        }
    }

    /// Checks the constraints that types cannot express.
    ///
    /// # Errors
    /// Returns the first invalid value.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.host.validate()?;
        self.validate_nic()?;
        self.validate_nics()?;
        self.wire.validate().map_err(|e| e.within("wire"))?;
        self.disk.validate().map_err(|e| e.within("disk"))?;
        self.interconnect
            .validate()
            .map_err(|error| of_interconnect(&error))?;
        self.workload.validate()?;
        self.workload.validate_load(&self.load)?;
        let files = &self.host.kernel.file_cache;
        self.application.validate(&self.workload, files)?;
        self.clients.validate()?;
        self.run.validate()?;
        validate_tcp("tcp", &self.tcp)?;
        validate_tcp("clients.tcp", &self.clients.tcp)?;
        Ok(())
    }

    /// Checks the constraints on the values that a kind of NIC may override.
    fn validate_nic(&self) -> Result<(), Invalid> {
        self.nic.validate()?;
        if let Some(hardware) = &self.nic.hardware {
            let memory = hardware.memory;
            let (path, bytes) = match memory.send_bytes < memory.receive_bytes {
                true => ("nic.hardware.memory.send_bytes", memory.send_bytes),
                false => ("nic.hardware.memory.receive_bytes", memory.receive_bytes),
            };
            let longest = offload::longest_packet(self);
            if bytes < longest {
                let expected = format!("at least {longest}, the longest packet with tcp.mss");
                return Err(Invalid::new(path, bytes, &expected));
            }
        }
        self.offload.validate(self)
    }
}

/// Converts an error of an interconnect to an error with the path in the experiment.
pub(crate) fn of_interconnect(error: &InterconnectError) -> Invalid {
    let path = format!("interconnect.{}", error.field);
    Invalid::new(&path, &error.value, &error.expected)
}

pub(crate) fn validate_tcp(section: &str, tcp: &baton_tcp::Config) -> Result<(), Invalid> {
    tcp.check().map_err(|error| {
        let path = format!("{section}.{}", error.field);
        Invalid::new(&path, error.value, error.expected)
    })
}

pub(crate) fn positive(path: &str, value: u64) -> Result<(), Invalid> {
    if value == 0 {
        Err(Invalid::new(path, value, "more than 0"))
    } else {
        Ok(())
    }
}

/// Checks a size for which memory is allocated in advance, so that a typing error does not request all memory.
pub(crate) fn one_to(most: u32, path: &str, value: u32) -> Result<(), Invalid> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(Invalid::new(path, value, &format!("1 to {most}")))
    }
}
