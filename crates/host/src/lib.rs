//! The operating system's half: sockets on a stack of its own or on adapters, files, the selection policies, and what of it is modelled.
//!
//! All of it is sans-I/O. [`layer::SocketLayer`] has the sockets of a host with a stack of its own, [`adapter::OsLayer`] those on one adapter.
//! [`FileSystem`] and [`NetworkMemory`] are what a kernel keeps beside them: a [`Meter`] hears of every operation and every structure touched,
//! so that a simulated machine can charge them; live there is none. Applications see [`Sockets`] and never learn which connections are on
//! a NIC.

pub mod adapter;
mod affinity;
mod config;
mod driver;
mod files;
pub mod footprint;
pub mod layer;
mod lists;
mod memory;
mod meter;
mod network_memory;
mod nic_cache;
mod pcb_lists;
mod reasons;
mod selection;
mod sockets;
mod syncache;
mod time_waits;

pub use affinity::{Affinity, AffinityConfig, AffinityView, ByFile, MostCached};
pub use config::{Config, ConfigError, Expected};
pub use files::{
    Borrower, Borrowers, CachedBlock, Destination, DiskRead, FileCacheConfig, FileCacheStats,
    FileStore, FileSystem, SendPage, pages,
};
pub use memory::Buffers;
pub use meter::{Access, LAYERS, Layer, Meter, NoMeter, OPS, Op, Owner, POOLS, Pool};
pub use network_memory::{NetworkDrops, NetworkMemory};
pub use nic_cache::{
    Bypass, Coherence, CoherenceConfig, Eager, Freshness, Lazy, NicCacheConfig, NicCacheStats,
    NicId, OnChange, Update,
};
pub use reasons::NotOffloaded;
pub use selection::{
    Alternate, AtReceive, Benefit, Decision, Fcfs, Foreseen, Life, Never, NextLook, PerPort,
    PortSelection, Rate, Remaining, Retry, Selection, SelectionConfig, SelectionTextError,
    Survival, Threshold, View,
};
pub use sockets::{
    FileContent, FileId, FromCache, Gone, Ready, Receive, SocketId, Sockets, Unread,
};
