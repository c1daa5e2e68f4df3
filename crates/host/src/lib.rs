//! The operating system's half of Baton: sockets on a stack of its own or on adapters, files, selection policies, and a model of the
//! kernel's memory.
//!
//! The whole crate is sans-I/O. [`layer::SocketLayer`] holds the sockets of a host with a stack of its own, [`adapter::OsLayer`] the
//! sockets on one adapter. [`FileSystem`] and [`NetworkMemory`] model the other structures of a kernel: they report every operation and
//! every access to a structure to a [`Meter`], so that a simulated machine can charge for them; a live host has no meter. Applications see
//! [`Sockets`] and never learn which connections are on a NIC.

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
pub use reasons::{MoveReason, NotOffloaded};
pub use selection::{
    Alternate, AtReceive, Benefit, Decision, Fcfs, Foreseen, Life, Never, NextLook, PerPort,
    PortSelection, Rate, Remaining, Retry, Selection, SelectionConfig, SelectionTextError,
    Survival, Threshold, View,
};
pub use sockets::{
    FileContent, FileId, FromCache, Gone, Ready, Receive, SocketId, Sockets, Unread,
};
