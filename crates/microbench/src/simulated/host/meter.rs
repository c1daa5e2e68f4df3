//! Costs of a piece of work: instructions and memory accesses.

use super::address;
use baton_kernel::{Access, Layer, OPS, Op, Owner, POOLS, Pool};
use baton_sim::config::HostConfig;
use baton_sim::hardware::MemoryHierarchy;

/// Bytes of a frame's headers, as far as drivers and tests read them.
const FRAME_HEADERS: u32 = 54;

/// Value of a scale, in per cent, that changes nothing.
const WHOLE: u64 = 100;

/// Instructions of each operation of kernel and application.
pub(super) type OfOperations = [u32; OPS.len()];

/// Returns the instructions of operations on this host.
pub(super) fn of_operations(host: &HostConfig) -> OfOperations {
    let (scale, instructions) = (&host.scale, &host.instructions);
    OPS.map(|op| {
        let scale = match op.layer() {
            layer if layer.is_network_stack() => scale.network_stack,
            _ => scale.application,
        };
        (u64::from(instructions.of(op)) * u64::from(scale) / WHOLE) as u32
    })
}

/// Cost of a piece of work so far: instructions, and stalls for modelled memory, which is accessed one range after the other.
pub(in crate::simulated) struct Meter<'a> {
    pub(super) memory: &'a mut MemoryHierarchy,
    pub(super) of_operations: &'a OfOperations,
    pub(super) cycle: u64,
    pub(super) executed: u64,
    pub(super) stall: u64,
}

impl Meter<'_> {
    /// Charges for this many instructions.
    pub(in crate::simulated) fn execute(&mut self, instructions: u32) {
        self.executed += u64::from(instructions);
    }

    /// Charges for an access to memory.
    pub(in crate::simulated) fn range(&mut self, address: u64, len: u32, write: bool) {
        let now = self.cycle + self.executed + self.stall;
        let cost = self.memory.access(now, address, len, write);
        self.stall += cost.stall_cycles();
    }

    pub(super) fn descriptor(&mut self, ring: u64, slot: u32, len: u32, write: bool) {
        self.range(ring + u64::from(slot) * u64::from(len), len, write);
    }

    pub(super) fn header(&mut self, buffer: u64, write: bool) {
        self.range(buffer, FRAME_HEADERS, write);
    }
}

/// Charges for a server's kernel and application, whose frame buffers are those of the drivers.
impl baton_kernel::Meter for Meter<'_> {
    fn owner(&mut self, _owner: Owner) {}

    fn run(&mut self, op: Op, count: u32) {
        self.executed += u64::from(self.of_operations[op as usize]) * u64::from(count);
    }

    fn touch(
        &mut self,
        _layer: Layer,
        pool: Pool,
        slot: u32,
        offset: u32,
        len: u32,
        access: Access,
    ) {
        let (base, stride) = match pool {
            Pool::Cluster => (address::RECEIVE_BUFFERS, super::BUFFER_STRIDE),
            Pool::Mbuf => (address::BUFFER_HEADERS, super::BUFFER_HEADER_STRIDE),
            _ => (address::of_pool(pool), POOLS[pool as usize].1.into()),
        };
        let address = base + u64::from(slot) * stride + u64::from(offset);
        self.range(address, len, access == Access::Write);
    }

    /// The DMA of the drivers is charged where it is modelled.
    fn dma(&mut self, _pool: Pool, _slot: u32, _offset: u32, _len: u32, _access: Access) {}
}
