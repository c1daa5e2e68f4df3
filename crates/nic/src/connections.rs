//! The connections on the NIC: by the host's handle and by the TCP engine's slot. Both are small dense integers, so both
//! ways are one array access.

use crate::cache::references::References;
use crate::relief::Activity;
use baton_bus::handoff::Handle;
use baton_tcp::ConnId;

/// Handles at or above this find no room in the NIC's table.
pub(crate) const HANDLES: u32 = 1 << 20;

/// What the NIC knows of a connection besides its TCP state.
#[derive(Debug)]
pub(crate) struct Offloaded {
    /// Its slot in the TCP engine; `None` once it is over and waits for its release.
    pub(crate) conn: Option<ConnId>,
    /// Bytes of receive buffers that stand ready in host memory.
    pub(crate) posted: u32,
    /// Bytes acknowledged by the peer of which the host has not heard yet.
    pub(crate) acknowledged: u32,
    /// The peer's FIN has arrived; the host hears of it when all data before it is delivered.
    pub(crate) peer_closed: bool,
    /// How busy it was lately.
    pub(crate) activity: Activity,
    /// Which of its data also stands in the cache.
    pub(crate) references: References,
    /// The host was asked to take it back.
    relief_asked: bool,
}

/// All connections on the NIC, those that are over and not yet released included.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    by_handle: Vec<Option<Offloaded>>,
    by_conn: Vec<Option<Handle>>,
    /// Cnum.
    active: u32,
    held: u32,
    /// Active connections that the host was, or is about to be, asked to take back.
    asked: u32,
}

impl Connections {
    /// Cnum: connections that are not over.
    pub(crate) fn active(&self) -> u32 {
        self.active
    }

    /// Connections that take memory: active ones and those not yet released.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut Offloaded> {
        self.by_handle.get_mut(handle.0 as usize)?.as_mut()
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<&Offloaded> {
        self.by_handle.get(handle.0 as usize)?.as_ref()
    }

    pub(crate) fn handle(&self, conn: ConnId) -> Option<Handle> {
        *self.by_conn.get(conn.0 as usize)?
    }

    /// Enters a connection under a handle that is free.
    /// `references` are those of what it brings in its send buffer.
    pub(crate) fn insert(
        &mut self,
        handle: Handle,
        conn: ConnId,
        peer_closed: bool,
        references: References,
    ) {
        debug_assert!(
            handle.0 < HANDLES && self.get(handle).is_none() && self.handle(conn).is_none()
        );
        let offloaded = Offloaded {
            conn: Some(conn),
            posted: 0,
            acknowledged: 0,
            peer_closed,
            activity: Activity::default(),
            references,
            relief_asked: false,
        };
        *slot(&mut self.by_handle, handle.0) = Some(offloaded);
        *slot(&mut self.by_conn, conn.0) = Some(handle);
        self.active += 1;
        self.held += 1;
    }

    /// Active connections that the host was asked to take back.
    pub(crate) fn relief_asked(&self) -> u32 {
        self.asked
    }

    /// Notes whether the host was asked to take an active connection back.
    pub(crate) fn set_relief_asked(&mut self, handle: Handle, asked: bool) {
        let Some(offloaded) = self
            .get_mut(handle)
            .filter(|offloaded| offloaded.conn.is_some())
        else {
            return;
        };
        let before = std::mem::replace(&mut offloaded.relief_asked, asked);
        self.asked = self.asked + u32::from(asked) - u32::from(before);
    }

    /// Notes that the connection is over; its handle stays taken.
    pub(crate) fn end(&mut self, handle: Handle) {
        self.set_relief_asked(handle, false);
        if let Some(conn) = self
            .get_mut(handle)
            .and_then(|offloaded| offloaded.conn.take())
        {
            self.by_conn[conn.0 as usize] = None;
            self.active -= 1;
        }
    }

    /// Forgets the connection, over or not.
    pub(crate) fn remove(&mut self, handle: Handle) {
        self.end(handle);
        if self
            .by_handle
            .get_mut(handle.0 as usize)
            .and_then(Option::take)
            .is_some()
        {
            self.held -= 1;
        }
    }

    /// Every active connection, in order of handles.
    pub(crate) fn iter_active(&self) -> impl Iterator<Item = (Handle, &Offloaded)> {
        let handles = (0..).map(Handle).zip(&self.by_handle);
        handles.filter_map(|(handle, slot)| {
            Some((
                handle,
                slot.as_ref().filter(|offloaded| offloaded.conn.is_some())?,
            ))
        })
    }

    /// Whether a connection is active and the host was asked to take it back.
    pub(crate) fn is_relief_asked(&self, handle: Handle) -> bool {
        self.get(handle)
            .is_some_and(|offloaded| offloaded.relief_asked)
    }

    /// Asserts that both ways of finding a connection and the counts agree.
    pub(crate) fn check(&self) {
        assert_eq!(
            self.held as usize,
            self.by_handle.iter().flatten().count(),
            "held connections"
        );
        assert_eq!(
            self.active as usize,
            self.by_conn.iter().flatten().count(),
            "one handle a connection"
        );
        assert_eq!(
            self.active as usize,
            self.iter_active().count(),
            "active connections"
        );
        let asked = self
            .by_handle
            .iter()
            .flatten()
            .filter(|offloaded| offloaded.relief_asked)
            .count();
        assert_eq!(self.asked as usize, asked, "connections asked for");
        for (handle, offloaded) in self.iter_active() {
            offloaded.references.check();
            assert_eq!(
                offloaded.conn.and_then(|conn| self.handle(conn)),
                Some(handle),
                "both ways lead to {handle:?}"
            );
        }
    }
}

/// The `index`-th place of `places`, which grow to have it.
fn slot<T>(places: &mut Vec<Option<T>>, index: u32) -> &mut Option<T> {
    let index = index as usize;
    if index >= places.len() {
        places.resize_with(index + 1, || None);
    }
    &mut places[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_over_before_it_is_released() {
        let mut connections = Connections::default();
        connections.insert(Handle(7), ConnId(2), false, References::default());
        connections.check();
        assert_eq!(connections.handle(ConnId(2)), Some(Handle(7)));
        assert_eq!((connections.active(), connections.held()), (1, 1));
        connections.end(Handle(7));
        connections.end(Handle(7));
        connections.check();
        assert_eq!(connections.handle(ConnId(2)), None);
        assert_eq!((connections.active(), connections.held()), (0, 1));
        // The engine reuses its slot at once, the host its handle only after the release.
        connections.insert(Handle(8), ConnId(2), false, References::default());
        connections.remove(Handle(7));
        connections.check();
        assert!(connections.get(Handle(7)).is_none());
        assert_eq!((connections.active(), connections.held()), (1, 1));
        connections.remove(Handle(8));
        connections.remove(Handle(8));
        connections.check();
        assert_eq!((connections.active(), connections.held()), (0, 0));
    }
}
