//! Records which of the host's buffers are free.

use baton_bus::link::Violation;

/// The use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// Not in use.
    Free,
    /// Holds data that the adapter may fetch.
    Placed,
    /// Reserved for data that the adapter will write.
    Reserved,
}

/// The host's own record of its buffers, in memory that the other side cannot access. Addresses count from the start of the pool.
#[derive(Debug)]
pub(crate) struct BufferPool {
    usage: Vec<Usage>,
    /// Last in, first out: the buffer that was freed last is still in the processor's cache.
    free: Vec<u32>,
    buffer_bytes: u32,
}

impl BufferPool {
    pub fn new(buffers: u32, buffer_bytes: u32) -> Self {
        Self {
            usage: vec![Usage::Free; buffers as usize],
            free: (0..buffers).rev().collect(),
            buffer_bytes,
        }
    }

    pub fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    pub fn free_buffers(&self) -> usize {
        self.free.len()
    }

    /// Allocates a buffer, and returns its address.
    pub fn allocate(&mut self, usage: Usage) -> Option<u64> {
        debug_assert_ne!(usage, Usage::Free);
        let index = self.free.pop()?;
        self.usage[index as usize] = usage;
        Some(u64::from(index) * u64::from(self.buffer_bytes))
    }

    /// Frees a buffer. An address that is invalid or already free is a bug of this side, and changes nothing.
    pub fn release(&mut self, address: u64) {
        let index = self
            .index(address)
            .filter(|&index| self.usage[index] != Usage::Free);
        debug_assert!(index.is_some(), "no buffer is used at {address:#x}");
        if let Some(index) = index {
            self.usage[index] = Usage::Free;
            self.free.push(index as u32);
        }
    }

    /// Checks that the other side may have written `len` bytes to a reserved buffer that begins at `address`.
    pub fn check_reserved(&self, address: u64, len: u32) -> Result<(), Violation> {
        let usage = self.index(address).map(|index| self.usage[index]);
        if usage != Some(Usage::Reserved) {
            return Err(Violation::Range { address, len });
        }
        if len > self.buffer_bytes {
            return Err(Violation::Length(len));
        }
        Ok(())
    }

    /// Returns the index of the buffer that begins at `address`.
    fn index(&self, address: u64) -> Option<usize> {
        let bytes = u64::from(self.buffer_bytes);
        let index = usize::try_from(address / bytes).ok()?;
        (address.is_multiple_of(bytes) && index < self.usage.len()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_one_use_at_a_time() {
        let mut pool = BufferPool::new(2, 64);
        assert_eq!(pool.allocate(Usage::Placed), Some(0));
        assert_eq!(pool.allocate(Usage::Reserved), Some(64));
        assert_eq!(
            (pool.allocate(Usage::Placed), pool.free_buffers()),
            (None, 0)
        );
        pool.release(0);
        assert_eq!(pool.allocate(Usage::Reserved), Some(0));
    }

    #[test]
    fn only_reserved_buffers_are_written() {
        let mut pool = BufferPool::new(2, 64);
        let range = |address, len| Err(Violation::Range { address, len });
        assert_eq!(pool.check_reserved(0, 1), range(0, 1), "it is free");
        pool.allocate(Usage::Reserved);
        assert_eq!(pool.check_reserved(0, 64), Ok(()));
        assert_eq!(pool.check_reserved(0, 65), Err(Violation::Length(65)));
        assert_eq!(pool.check_reserved(1, 1), range(1, 1), "not its beginning");
        assert_eq!(
            pool.check_reserved(128, 1),
            range(128, 1),
            "not in the pool"
        );
        assert_eq!(pool.check_reserved(u64::MAX, 1), range(u64::MAX, 1));
        pool.allocate(Usage::Placed);
        assert_eq!(pool.check_reserved(64, 1), range(64, 1), "it is only read");
    }
}
