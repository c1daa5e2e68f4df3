//! On-board memory: connection blocks and received packets share it.

/// Accounts of on-board memory, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    size: u64,
    connections: u64,
    packets: u64,
}

impl Memory {
    pub(crate) fn new(size_kib: u32) -> Self {
        Self {
            size: u64::from(size_kib) * 1024,
            connections: 0,
            packets: 0,
        }
    }

    pub(crate) fn free(&self) -> u64 {
        self.size - self.connections - self.packets
    }

    /// Takes memory for a connection block, if it is there.
    pub(crate) fn reserve_connection(&mut self, bytes: u32) -> bool {
        let fits = self.free() >= u64::from(bytes);
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

    /// Takes memory for a received packet, if it is there.
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

    /// Asserts that the accounts match what is really held.
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
        let mut memory = Memory::new(4);
        assert!(memory.reserve_connection(2048));
        assert!(memory.reserve_packet(1518));
        assert_eq!(memory.free(), 4096 - 2048 - 1518);
        assert!(!memory.reserve_packet(1518));
        assert!(!memory.reserve_connection(2048));
        memory.check(2048, 1518);
        memory.free_packet(1518);
        assert!(memory.reserve_connection(2048));
        assert_eq!(memory.free(), 0);
        memory.free_connection(2048);
        memory.check(2048, 0);
    }
}
