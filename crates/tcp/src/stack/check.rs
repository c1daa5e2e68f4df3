//! Invariants of a stack.

use super::Stack;
use crate::types::{ConnId, Event};
use baton_wire::Payload;
use rustc_hash::FxHashMap;

impl<P: Payload> Stack<P> {
    /// Asserts every invariant of the stack and of each connection in it.
    pub fn check(&self) {
        self.time_wait.check();
        self.wheel.check();
        self.check_connections();
        self.check_output();
        self.check_listeners();
        self.check_fast_open();
        self.check_ends();
        self.check_profiles();
        self.check_memory();
    }

    fn check_connections(&self) {
        let mut live = 0;
        for (slot, conn) in &self.connections {
            let config = &self.profiles[conn.profile];
            if let Err(rule) = conn.verify(config) {
                panic!("{:?} in {:?}: {rule}\n{conn:#?}", conn.flow, conn.state);
            }
            if conn.ended.is_some() {
                continue;
            }
            live += 1;
            assert_eq!(
                self.find(&conn.flow),
                Some(ConnId(slot as u32)),
                "a live connection is found"
            );
            let deadline = conn.next_deadline();
            assert!(
                self.wheel.covers(slot as u32, deadline),
                "{:?}: the wheel has an entry no later than {deadline:?}",
                conn.flow
            );
        }
        assert_eq!(
            live,
            self.flows.len(),
            "every known four-tuple has a connection"
        );
    }

    /// Each connection that may have something to send is in the output queue, and only once.
    fn check_output(&self) {
        let mut entries: FxHashMap<u32, usize> = FxHashMap::default();
        for &slot in &self.output {
            *entries.entry(slot).or_default() += 1;
        }
        for (slot, conn) in &self.connections {
            let count = entries.get(&(slot as u32)).copied().unwrap_or(0);
            assert!(
                !conn.queued || count > 0,
                "{:?}: a queued connection is in the output queue",
                conn.flow
            );
        }
    }

    fn check_listeners(&self) {
        for (index, listener) in &self.listeners {
            let owned = |half_open: bool| {
                let of_listener = |conn: &crate::connection::Connection<P>| {
                    conn.listener.is_some_and(|id| id.0 as usize == index)
                        && conn.is_half_open() == half_open
                };
                self.connections
                    .iter()
                    .filter(|(_, conn)| of_listener(conn))
                    .count()
            };
            let half_open = owned(true);
            let waiting = owned(false);
            assert_eq!(
                listener.half_open(),
                half_open,
                "{}: half-open connections are counted",
                listener.local
            );
            assert_eq!(
                listener.waiting().count(),
                waiting,
                "{}: waiting connections are queued",
                listener.local
            );
            for id in listener.waiting() {
                assert!(
                    self.connections.contains(id.0 as usize),
                    "a waiting connection exists"
                );
            }
        }
    }

    /// Each set of parameters is kept as long as something uses it.
    fn check_profiles(&self) {
        for id in self.profiles.in_use() {
            let connections = self.connections.iter();
            let of_connections = connections.filter(|(_, conn)| conn.profile == id).count();
            let listeners = self.listeners.iter();
            let of_listeners = listeners.filter(|(_, one)| one.profile == id).count();
            let users = of_connections + of_listeners + usize::from(id == 0);
            assert_eq!(
                self.profiles.users(id) as usize,
                users,
                "users of parameters are counted"
            );
        }
    }

    /// `Closed` is the last event of a connection. There is one for each connection that has ended and whose data was read.
    fn check_ends(&self) {
        let mut closed: FxHashMap<ConnId, usize> = FxHashMap::default();
        for (id, event) in &self.events {
            assert!(!closed.contains_key(id), "nothing follows Closed");
            if matches!(event, Event::Closed(_)) {
                closed.insert(*id, 1);
            }
        }
        for (slot, conn) in &self.connections {
            let told = closed.contains_key(&ConnId(slot as u32));
            let over = conn.ended.is_some() && conn.readable_len() == 0;
            assert_eq!(
                told, over,
                "{:?}: the owner is told of the end once all is read",
                conn.flow
            );
        }
    }
}
