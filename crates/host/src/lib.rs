//! The operating system's half of Baton: sockets on a stack of its own or on adapters, and selection policies.
//!
//! The whole crate is sans-I/O. [`layer::SocketLayer`] holds the sockets of a host with a stack of its own, [`adapter::OsLayer`] the
//! sockets on one adapter. Applications see [`Sockets`] and never learn which connections are on a NIC.
//!
//! | to find | look in |
//! |---|---|
//! | sockets of the host, moves of connections | [`layer`] |
//! | the order in which a host with a stack of its own works | [`process`] |
//! | sockets on an adapter, requests to it, the bypass | [`adapter`] |
//! | which connections move | [`Selection`] |
//! | use of NICs' data caches | [`NicCacheConfig`], [`Coherence`], [`Bypass`] |
//! | which NIC answers a connection | [`Affinity`] |

pub mod adapter;
mod affinity;
pub mod layer;
mod nic_cache;
mod pages;
pub mod process;
mod reasons;
mod selection;
mod sockets;

pub use affinity::{Affinity, AffinityConfig, AffinityView, ByFile, MostCached};
pub use nic_cache::{
    Bypass, Coherence, CoherenceConfig, Eager, Freshness, Lazy, NicCacheConfig, NicCacheStats,
    NicId, OnChange, Update,
};
pub use pages::{Borrower, Borrowers, PAGE_BYTES, pages};
pub use reasons::{MoveReason, NotOffloaded};
pub use selection::{
    Alternate, AtReceive, Benefit, Bulk, Decision, Fcfs, Foreseen, Learned, Life, Never, NextLook,
    PerPort, PortSelection, Rate, Remaining, Retry, Selection, SelectionConfig, SelectionTextError,
    Survival, Threshold, View, Work,
};
pub use sockets::{
    FileContent, FileId, FromCache, Gone, Ready, Receive, SocketId, Sockets, Unread,
};
