//! On-board memory, which connection blocks and received packets share. Some of it is always reserved for packets.

/// Connections leave at least one part in this many to packets ...
const PACKETS_SHARE: u64 = 8;

/// ... and at least this many bytes: a few frames of any size. If connections could take all memory, no packet could reach them or the
/// host, and no connection would ever end.
pub(crate) const PACKETS_LEAST: u64 = 16 * 1024;

/// Accounts for the use of on-board memory, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    /// On-board memory without the data cache.
    size: u64,
    connections: u64,
    packets: u64,
}

impl Memory {
    /// Creates the account of `size_kib` of memory, of which the data cache takes `cache_kib`.
    pub(crate) fn new(size_kib: u32, cache_kib: u32) -> Self {
        Self {
            size: u64::from(size_kib.saturating_sub(cache_kib)) * 1024,
            connections: 0,
            packets: 0,
        }
    }

    pub(crate) fn free(&self) -> u64 {
        self.size - self.connections - self.packets
    }

    /// Returns the number of further connection blocks of `bytes` that fit.
    pub(crate) fn room_for_connections(&self, bytes: u32) -> u32 {
        let kept_for_packets = (self.size / PACKETS_SHARE).max(PACKETS_LEAST);
        let left = self
            .size
            .saturating_sub(kept_for_packets + self.connections);
        let room = left.min(self.free()) / u64::from(bytes.max(1));
        u32::try_from(room).unwrap_or(u32::MAX)
    }

    /// Reserves memory for a connection block. Returns whether there was enough.
    pub(crate) fn reserve_connection(&mut self, bytes: u32) -> bool {
        let fits = self.room_for_connections(bytes) > 0;
        if fits {
            self.connections += u64::from(bytes);
        }
        fits
    }

    pub(crate) fn free_connection(&mut self, bytes: u32) {
        debug_assert!(
            self.connections >= u64::from(bytes),
            "what is freed was reserved"
        );
        self.connections -= u64::from(bytes);
    }

    /// Reserves memory for a received packet. Returns whether there was enough.
    pub(crate) fn reserve_packet(&mut self, bytes: u32) -> bool {
        let fits = self.free() >= u64::from(bytes);
        if fits {
            self.packets += u64::from(bytes);
        }
        fits
    }

    pub(crate) fn free_packet(&mut self, bytes: u32) {
        debug_assert!(
            self.packets >= u64::from(bytes),
            "what is freed was reserved"
        );
        self.packets -= u64::from(bytes);
    }

    /// Asserts that the accounts match the memory that connections and packets actually hold.
    pub(crate) fn check(&self, connection_bytes: u64, packet_bytes: u64) {
        assert_eq!(self.connections, connection_bytes, "memory of connections");
        assert_eq!(self.packets, packet_bytes, "memory of packets");
        assert!(
            self.connections + self.packets <= self.size,
            "memory is finite"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_packets_share() {
        let mut memory = Memory::new(20, 0);
        assert_eq!(memory.room_for_connections(2048), 2);
        assert!(memory.reserve_connection(2048));
        assert!(memory.reserve_packet(16_384));
        assert_eq!(memory.free(), 20 * 1024 - 2048 - 16_384);
        assert!(!memory.reserve_packet(2049));
        assert!(memory.reserve_packet(1));
        assert!(!memory.reserve_connection(2048));
        memory.check(2048, 16_385);
        memory.free_packet(1);
        assert!(memory.reserve_connection(2048));
        assert_eq!(memory.free(), 0);
        memory.free_connection(2048);
        memory.check(2048, 16_384);
    }

    #[test]
    fn connections_leave_room_for_packets() {
        let mut memory = Memory::new(1024 + 512, 512);
        assert_eq!(memory.room_for_connections(1024), 1024 - 1024 / 8);
        while memory.reserve_connection(1024) {}
        assert_eq!(memory.free(), 1024 * 1024 / 8);
        assert_eq!(memory.room_for_connections(1024), 0);
        assert_eq!(Memory::new(8, 0).room_for_connections(1), 0);
    }
}
