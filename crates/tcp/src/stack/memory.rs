//! A limit for the memory of connections.

use super::Stack;
use crate::memory::{Holding, MemoryUse};
use crate::types::ConnId;
use baton_wire::Payload;

impl<P: Payload> Stack<P> {
    /// Limits the memory of connections and their data to `bytes`. To be called before there are connections. Users share the memory: a
    /// single user may have half of it, two a third each. As memory gets scarce, windows close and writes accept less, down to a page for
    /// each connection and direction; then connections are refused, and data that a peer sends beyond that is dropped.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.memory.limit(bytes);
    }

    /// The memory that connections use, if there is a limit.
    pub fn memory(&self) -> Option<MemoryUse> {
        self.memory.usage()
    }

    /// Reports whether there is memory for another connection of `user` that brings `data` bytes.
    pub fn has_memory_for(&self, user: Option<u32>, data: usize) -> bool {
        self.memory.has_room(user, data)
    }

    /// Sets the bytes that `user` holds outside of connections, which count like those of connections.
    pub fn hold(&mut self, holding: &mut Holding, user: Option<u32>, bytes: u32) {
        self.memory.hold(holding, user, bytes);
    }

    /// Charges a connection to the user with this number from now on. Until then, it counts for no user.
    pub fn set_user(&mut self, id: ConnId, user: u32) {
        self.memory
            .give(&mut self.connections[id.0 as usize].charge, user);
    }

    /// Bytes that [`Stack::write`] would accept if the send buffer were empty.
    pub fn write_limit(&self, id: ConnId) -> usize {
        let conn = self.conn(id);
        conn.write_limit(self.config_of(id), self.memory.judged(conn.charge))
    }

    /// Updates the charge of a connection, and its share.
    #[inline]
    pub(super) fn charge(&mut self, id: ConnId) {
        if self.memory.is_limited() {
            let conn = &mut self.connections[id.0 as usize];
            let (written, received) = conn.memory();
            self.memory.charge(&mut conn.charge, written, received);
        }
    }

    /// Updates a connection's share alone: others may have taken or freed memory since it was charged.
    #[inline]
    pub(super) fn judge(&mut self, id: ConnId) {
        let conn = &mut self.connections[id.0 as usize];
        conn.charge = self.memory.judged(conn.charge);
    }

    pub(super) fn check_memory(&self) {
        let charges = self.connections.iter().map(|(_, conn)| &conn.charge);
        self.memory.check(charges);
    }
}
