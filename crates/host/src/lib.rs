//! The operating system's half: sockets, the host TCP stack, the bypass, the driver, the selection policies.
//!
//! [`Kernel`] is sans-I/O: entries of the NIC's ring, system calls and time go in; packets and commands for the NIC come
//! out. A [`Meter`] hears of every operation and every structure touched, so that a simulated machine can charge them.
//! Applications see [`Sockets`] and never learn which connections are on the NIC.

mod affinity;
mod bypass;
mod config;
mod driver;
mod files;
pub mod footprint;
mod handoff;
mod input;
mod kernel;
pub mod layer;
mod memory;
mod meter;
mod network_memory;
mod nic_cache;
mod nics;
pub mod offload;
mod output;
mod pcb_lists;
mod ready;
mod selection;
mod socket;
mod sockets;
mod stats;
mod syscalls;

pub use affinity::{Affinity, AffinityConfig, AffinityView, ByFile, MostCached};
pub use config::{Config, ConfigError, Expected};
pub use files::{
    Borrower, Borrowers, CachedBlock, Destination, DiskRead, FileCacheConfig, FileCacheStats,
    FileStore, FileSystem, pages,
};
pub use kernel::Kernel;
pub use memory::Buffers;
pub use meter::{Access, LAYERS, Layer, Meter, NoMeter, OPS, Op, Owner, POOLS, Pool};
pub use network_memory::NetworkMemory;
pub use nic_cache::{
    Bypass, Coherence, CoherenceConfig, Eager, Freshness, Lazy, NicCacheConfig, NicCacheStats,
    OnChange, Update,
};
pub use nics::NicId;
pub use selection::{
    Alternate, Decision, Fcfs, Never, PerPort, PortSelection, Selection, SelectionConfig,
    SelectionTextError, Threshold, View,
};
pub use socket::Mode;
pub use sockets::{
    FileContent, FileId, FromCache, Gone, Ready, Receive, SocketId, Sockets, Unread,
};
pub use stats::{Connections, DropReason, NotOffloaded, Stats};
pub use syscalls::Syscalls;
