//! Costs of frames in the buffers of drivers.

use super::{BUFFER_HEADER_STRIDE, BUFFER_STRIDE, Traffic, address};
use baton_kernel::{Access, Layer, Op, Owner, Pool};
use baton_sim::HostMeter;

/// Bytes of a frame's headers, as far as drivers and tests read them.
const FRAME_HEADERS: u32 = 54;

/// Charges a piece of work of drivers, kernel and application. The kernel's buffers are those of the drivers.
pub(in crate::simulated) struct Meter<'a>(pub(super) &'a mut HostMeter);

impl Meter<'_> {
    /// Charges for this many instructions.
    pub(in crate::simulated) fn execute(&mut self, instructions: u32) {
        self.0.execute(Layer::Driver, instructions);
    }

    /// Charges for an access to memory.
    pub(in crate::simulated) fn range(&mut self, address: u64, len: u32, write: bool) {
        self.0.touch_memory(Layer::Driver, address, len, write);
    }

    pub(super) fn descriptor(&mut self, ring: u64, slot: u32, len: u32, write: bool) {
        self.range(ring + u64::from(slot) * u64::from(len), len, write);
    }

    /// Charges for the checksum of a frame in this buffer if the frame has one, and returns its instructions.
    pub(super) fn checksum(&mut self, of: Traffic, buffer: u64, len: u32, of_64: u32) -> u32 {
        if of == Traffic::Datagram {
            return 0;
        }
        self.range(buffer, len, false);
        of_64 * len.div_ceil(64)
    }

    pub(super) fn header(&mut self, buffer: u64, write: bool) {
        self.range(buffer, FRAME_HEADERS, write);
    }
}

impl baton_kernel::Meter for Meter<'_> {
    fn owner(&mut self, _owner: Owner) {}

    fn run(&mut self, op: Op, count: u32) {
        self.0.run(op, count);
    }

    #[inline]
    fn touch(
        &mut self,
        layer: Layer,
        pool: Pool,
        slot: u32,
        offset: u32,
        len: u32,
        access: Access,
    ) {
        let (base, stride) = match pool {
            Pool::Cluster => (address::RECEIVE_BUFFERS, BUFFER_STRIDE),
            Pool::Mbuf => (address::BUFFER_HEADERS, BUFFER_HEADER_STRIDE),
            _ => return self.0.touch(layer, pool, slot, offset, len, access),
        };
        let address = base + u64::from(slot) * stride + u64::from(offset);
        (self.0).touch_memory(layer, address, len, access == Access::Write);
    }

    /// The DMA of the drivers is charged where it is modelled.
    fn dma(&mut self, _pool: Pool, _slot: u32, _offset: u32, _len: u32, _access: Access) {}
}
