//! On-board memory of an adapter, which connection blocks and queued packets share (handoff-policies 3.2).
//!
//! A connection holds its block until its TCP has ended completely or the connection has left the adapter. An IMPORT or CONNECT for which
//! there is no memory is refused; a connection in an accept queue waits until there is some.

use super::Adapter;
use super::owners::Place;
use super::socket::Phase;
use crate::memory::Memory;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_tcp::Stack;
use baton_wire::{Payload, Time};

/// Size of an adapter's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnBoardMemory {
    /// Memory for connections and packets, KiB, without data caches. Connections leave an eighth of it, and at least 16 KiB, to packets.
    pub kib: u32,
    /// Memory of one connection, bytes.
    pub connection_bytes: u32,
}

/// Accounts for the use of on-board memory.
#[derive(Debug)]
pub(super) struct OnBoard {
    /// `None` if memory is unlimited.
    memory: Option<Memory>,
    connection_bytes: u32,
    /// Bytes of queued packets.
    packet_bytes: u64,
    /// Listeners whose connections wait for memory.
    waiting: Vec<Place>,
    /// Whether an IMPORT found no memory and the hosts have not yet been notified that memory is available again.
    pub(super) is_short: bool,
    /// Number of packets for which there was no memory.
    packets_dropped: u64,
}

impl OnBoard {
    /// Creates the accounts of the memory in `config`, or of unlimited memory.
    pub(super) fn new(config: Option<OnBoardMemory>) -> Self {
        Self {
            memory: config.map(|config| Memory::new(config.kib, 0)),
            connection_bytes: config.map_or(0, |config| config.connection_bytes),
            packet_bytes: 0,
            waiting: Vec::new(),
            is_short: false,
            packets_dropped: 0,
        }
    }

    /// Returns the number of further connections for which there is memory.
    pub(super) fn room(&self) -> usize {
        let memory = self.memory.as_ref();
        memory.map_or(usize::MAX, |memory| {
            memory.room_for_connections(self.connection_bytes) as usize
        })
    }

    /// Reserves memory for a connection.
    pub(super) fn take_connection(&mut self) -> Result<(), Status> {
        let memory = self.memory.as_mut();
        match memory.is_none_or(|memory| memory.reserve_connection(self.connection_bytes)) {
            true => Ok(()),
            false => Err(Status::Memory),
        }
    }

    /// Frees the memory of a connection.
    pub(super) fn free_connection(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.free_connection(self.connection_bytes);
        }
    }

    /// Registers a listener whose connections wait for memory.
    pub(super) fn wait(&mut self, listener: Place) {
        if !self.waiting.contains(&listener) {
            self.waiting.push(listener);
        }
    }

    /// Asserts that exactly this many connections hold memory.
    pub(super) fn check(&self, connections: u64) {
        if let Some(memory) = &self.memory {
            let bytes = connections * u64::from(self.connection_bytes);
            memory.check(bytes, self.packet_bytes);
        }
    }
}

impl<P: Payload + Inline> Adapter<P> {
    /// Reserves memory for a received packet that must wait. Returns false if there is none: the caller must drop the packet, which has
    /// been counted. With active relief, the host is then asked to take the busiest connection back.
    #[must_use]
    pub fn take_packet(&mut self, now: Time, bytes: u32) -> bool {
        let on_board = &mut self.shared.on_board;
        let memory = on_board.memory.as_mut();
        if memory.is_none_or(|memory| memory.reserve_packet(bytes)) {
            on_board.packet_bytes += u64::from(bytes);
            return true;
        }
        on_board.packets_dropped += 1;
        if self.shared.limits.relieves_actively() {
            self.ask_for_relief(now, 1);
        }
        false
    }

    /// Frees the memory of a packet that no longer waits.
    pub fn free_packet(&mut self, bytes: u32) {
        let on_board = &mut self.shared.on_board;
        on_board.packet_bytes -= u64::from(bytes);
        if let Some(memory) = &mut on_board.memory {
            memory.free_packet(bytes);
        }
    }

    /// Returns the number of bytes available for connections and packets, or `None` if memory is unlimited.
    pub fn free_memory(&self) -> Option<u64> {
        self.shared.on_board.memory.as_ref().map(Memory::free)
    }

    /// Returns the number of packets for which there was no memory.
    pub fn packets_without_memory(&self) -> u64 {
        self.shared.on_board.packets_dropped
    }

    /// Notifies hosts when memory has become scarce or is available again, and accepts connections that have waited for memory. The caller
    /// must call this after it has [freed](Adapter::free_packet) packets; all other methods that free memory do so themselves.
    #[inline]
    pub fn settle_memory(&mut self, now: Time, stack: &mut Stack<P>) {
        let on_board = &self.shared.on_board;
        if on_board.is_short || !on_board.waiting.is_empty() {
            self.give_memory(now, stack);
        }
    }

    fn give_memory(&mut self, now: Time, stack: &mut Stack<P>) {
        let on_board = &mut self.shared.on_board;
        if on_board.is_short {
            on_board.is_short = on_board.room() == 0 || !stack.has_memory_for(None, 0);
            self.announce_soft_limit(now);
        }
        let on_board = &mut self.shared.on_board;
        if on_board.room() == 0 {
            return;
        }
        for place in std::mem::take(&mut on_board.waiting) {
            let session = self.sessions.get(place.session as usize);
            let socket = session.and_then(|session| session.sockets.get(place.slot as usize));
            if socket.is_some_and(|socket| matches!(socket.phase, Phase::Listening(_))) {
                let (session, mut work) = self.begin(now, stack, super::SessionId(place.session));
                session.serve_accepts(&mut work, place.slot);
            }
        }
    }
}
