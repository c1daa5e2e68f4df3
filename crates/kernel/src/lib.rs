//! A model of a kernel's memory, for simulated hosts.
//!
//! [`NetworkMemory`] has the buffers of packets and sockets, and the lists of connection blocks; [`FileSystem`] has files and the pages that
//! cache them. They report every operation and every access to a structure to a [`Meter`], so that a simulated machine can charge for them.
//! Sockets and policies are those of [`baton_host`], which also run live, without this model.
//!
//! | to find | look in |
//! |---|---|
//! | sizes and addresses of structures | [`footprint`] |
//! | mbufs, connection blocks, rings of drivers | [`NetworkMemory`] |
//! | the file cache, `sendfile`, changes of files | [`FileSystem`] |
//! | operations, memory pools, layers | [`Meter`] |
//! | parameters | [`Config`] |

mod config;
mod driver;
mod files;
pub mod footprint;
mod lists;
mod memory;
mod meter;
mod network_memory;
mod pcb_lists;
mod syncache;
mod time_waits;

pub use config::{Config, ConfigError, Expected};
pub use files::{
    CachedBlock, Destination, DiskRead, FileCacheConfig, FileCacheStats, FileStore, FileSystem,
    SendPage,
};
pub use memory::Buffers;
pub use meter::{Access, LAYERS, Layer, Meter, NoMeter, OPS, Op, Owner, POOLS, Pool};
pub use network_memory::{AdapterChecksums, NetworkDrops, NetworkMemory};
