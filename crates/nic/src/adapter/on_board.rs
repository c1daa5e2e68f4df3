//! On-board memory of an adapter: blocks of connections and packets that wait share it (handoff-policies 3.2).
//!
//! A connection has its block as long as it is the adapter's, until the very end of its TCP. An IMPORT or CONNECT that finds no memory is
//! refused; a connection that waits to be accepted goes on waiting until there is some.

use super::Adapter;
use super::owners::Place;
use super::socket::Phase;
use crate::memory::Memory;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_tcp::Stack;
use baton_wire::{Payload, Time};

/// How much memory an adapter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnBoardMemory {
    /// For connections and packets, KiB; data caches are not part of it. Connections leave an eighth of it, and at least 16 KiB, to
    /// packets.
    pub kib: u32,
    /// Memory of one connection, bytes.
    pub connection_bytes: u32,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct OnBoard {
    /// None: as much as is asked for.
    memory: Option<Memory>,
    connection_bytes: u32,
    /// Bytes of packets that wait.
    packet_bytes: u64,
    /// Listeners at which connections wait for memory.
    waiting: Vec<Place>,
    /// An IMPORT found no memory, and the hosts have not been told that there is some again.
    pub(super) is_short: bool,
    /// Packets that found no memory.
    packets_dropped: u64,
}

impl OnBoard {
    /// As much as `config` says; if it says nothing, without a limit.
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

    /// How many more connections there is memory for.
    pub(super) fn room(&self) -> usize {
        let memory = self.memory.as_ref();
        memory.map_or(usize::MAX, |memory| {
            memory.room_for_connections(self.connection_bytes) as usize
        })
    }

    /// Takes memory for a connection.
    pub(super) fn take_connection(&mut self) -> Result<(), Status> {
        let memory = self.memory.as_mut();
        match memory.is_none_or(|memory| memory.reserve_connection(self.connection_bytes)) {
            true => Ok(()),
            false => Err(Status::Memory),
        }
    }

    /// A connection is the adapter's no more.
    pub(super) fn free_connection(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.free_connection(self.connection_bytes);
        }
    }

    /// Connections wait at a listener until there is memory.
    pub(super) fn wait(&mut self, listener: Place) {
        if !self.waiting.contains(&listener) {
            self.waiting.push(listener);
        }
    }

    /// Asserts that so many connections have memory.
    pub(super) fn check(&self, connections: u64) {
        if let Some(memory) = &self.memory {
            let bytes = connections * u64::from(self.connection_bytes);
            memory.check(bytes, self.packet_bytes);
        }
    }
}

impl<P: Payload + Inline> Adapter<P> {
    /// A received packet of so many bytes is to wait; false if there is no memory for it: it is dropped, and counted. Where load control
    /// may, the busiest connection is asked to leave.
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

    /// A packet that waited is on its way.
    pub fn free_packet(&mut self, bytes: u32) {
        let on_board = &mut self.shared.on_board;
        on_board.packet_bytes -= u64::from(bytes);
        if let Some(memory) = &mut on_board.memory {
            memory.free_packet(bytes);
        }
    }

    /// Bytes that are free for connections and packets; none where there is no limit.
    pub fn free_memory(&self) -> Option<u64> {
        self.shared.on_board.memory.as_ref().map(Memory::free)
    }

    /// Packets that found no memory.
    pub fn packets_without_memory(&self) -> u64 {
        self.shared.on_board.packets_dropped
    }

    /// Memory has become scarce, or there may be some again: hosts are told, and connections that have waited for it are accepted. To be
    /// called after packets have been [freed](Adapter::free_packet); everything else that frees memory does so by itself.
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
            on_board.is_short = on_board.room() == 0;
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
