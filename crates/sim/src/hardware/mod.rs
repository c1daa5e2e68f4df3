//! Models of the hardware: processors, caches, DRAM, disks and wires.
//!
//! All of them are plain state machines without a clock of their own: the caller says what happens and when, the model
//! answers what it costs. Costs are whole cycles or whole picoseconds, so that a run repeats to the bit.
//!
//! | model | what it says | what it leaves out |
//! |---|---|---|
//! | [`Cache`] | which lines are held: sets, ways, true LRU, dirty lines | instruction fetch, address translation |
//! | [`Dram`] | how long a line takes: open rows, one channel's bandwidth | refresh, command timing |
//! | [`MemoryHierarchy`] | what touching a range stalls; what DMA takes away | overlap of misses: the processor waits for each |
//! | [`Processor`], [`NicProcessor`] | how long work takes, how busy it keeps them | pipelines, branches |
//! | [`Disk`] | seek, rotation, transfer, order | zones, bad blocks, a cache beyond reading on |
//! | [`Wire`] | when a frame arrives | bit errors |

mod cache;
mod config_error;
mod disk;
mod dram;
mod memory;
mod pace;
mod processor;
mod tlb;
mod wire;

pub use cache::{Cache, CacheConfig, Outcome};
pub use config_error::ConfigError;
pub use disk::{Disk, DiskConfig, DiskQueue, DiskRequest};
pub use dram::{Dram, DramConfig, DramCounters};
pub use memory::{AccessCost, DmaPolicy, MemoryConfig, MemoryCounters, MemoryHierarchy};
pub use processor::{NicProcessor, NicProcessorConfig, Occupancy, Processor, ProcessorConfig};
pub use tlb::TlbConfig;
pub use wire::{Wire, WireConfig, WireCounters};
