//! Where each connection is that came from the kernel, in memory that outlives the adapter.
//!
//! At the end of a turn, before any packet leaves, each connection that has changed is written down: its state if none of its data is under
//! way, otherwise that its state is not to be believed. So no packet has left that contradicts a state that stands there. What its application has been
//! told in the turn may: the application compares ([`crate::broker`]).

use crate::broker::{Owner, Place, Table, encode, now_ms};
use baton_tcp::{ConnId, Stack};
use baton_wire::{Flow, Time};
use bytes::Bytes;
use rustc_hash::FxHashMap;

/// A connection's place in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    place: u32,
    /// Its number among those that have had the place.
    number: u32,
}

/// The connections that came from the kernel and are not there again.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Connections that had come when it was looked last.
    seen: u32,
    held: FxHashMap<Flow, Held>,
    /// Those that an application has still to hand over, the first time.
    coming: Vec<Flow>,
    /// By the number of the connection in the stack.
    by_conn: Vec<Option<(Flow, Held)>>,
    /// The system's clock when the engine's shows zero, ms.
    start_ms: Option<u32>,
}

impl Ledger {
    /// Takes note of connections that have left the kernel.
    pub(super) fn hear(&mut self, table: &Table) {
        let Self {
            seen, held, coming, ..
        } = self;
        table.news(seen, |place| {
            let Some(at) = table.place(place) else {
                return;
            };
            let ((number, owner), flow) = (at.owner(), at.flow());
            // Of one that has gone again, and another that has come, there is more news.
            if owner != Owner::Nobody && at.owner().0 == number {
                held.insert(flow, Held { place, number });
                coming.push(flow);
            }
        });
    }

    /// Writes down the connections that have changed, before what follows from that leaves.
    pub(super) fn write(&mut self, now: Time, table: &Table, stack: &Stack<Bytes>) {
        let ms = now.as_ms() as u32;
        let start_ms = *(self.start_ms).get_or_insert_with(|| now_ms().wrapping_sub(ms));
        let at_ms = start_ms.wrapping_add(ms);
        for conn in stack.stirred() {
            let Some(place) = self.place_of(conn, table, stack) else {
                continue;
            };
            match stack.at_rest(now, conn) {
                Some(state) => place.record.write(&encode(&state, at_ms)),
                None => place.record.spoil(),
            }
        }
    }

    #[inline]
    fn place_of<'a>(
        &mut self,
        conn: ConnId,
        table: &'a Table,
        stack: &Stack<Bytes>,
    ) -> Option<&'a Place> {
        let (flow, index) = (stack.flow(conn), conn.0 as usize);
        let its_own = |held: Held| {
            let place = table.place(held.place)?;
            (place.owner().0 == held.number).then_some(place)
        };
        if let Some(Some((known, held))) = self.by_conn.get(index)
            && *known == flow
            && let Some(place) = its_own(*held)
        {
            return Some(place);
        }
        let held = *self.held.get(&flow)?;
        if index >= self.by_conn.len() {
            self.by_conn.resize(index + 1, None);
        }
        self.by_conn[index] = Some((flow, held));
        its_own(held)
    }

    /// Takes note of connections that have come: `is_here` says which ones the adapter has. To be called before any of them can end.
    pub(super) fn arrive(&mut self, table: &Table, is_here: impl Fn(&Flow) -> bool) {
        let held = &self.held;
        self.coming.retain(|flow| {
            let Some(Held { place, number }) = held.get(flow) else {
                return false;
            };
            let Some(at) = table.place(*place) else {
                return false;
            };
            let waits = at.owner() == (*number, Owner::Application);
            let comes = waits && is_here(flow);
            if comes {
                at.pass(*number, Owner::Application, Owner::Adapter);
            }
            waits && !comes
        });
    }

    /// A connection has left the adapter: its application has it, and brings it back to the kernel.
    pub(super) fn depart(&mut self, table: &Table, flow: &Flow) {
        let held = self.held.get(flow);
        if let Some((at, number)) =
            held.and_then(|held| Some((table.place(held.place)?, held.number)))
        {
            at.record.reset(None);
            if !at.pass(number, Owner::Adapter, Owner::Application) {
                // It has left before it was found here.
                at.pass(number, Owner::Application, Owner::Application);
            }
        }
    }

    /// Whether packets of `flow` come to the adapter.
    pub(super) fn has(&self, table: &Table, flow: &Flow) -> bool {
        let owner = self.held.get(flow).and_then(|held| owner(table, *held));
        owner.is_some_and(|owner| owner != Owner::Over)
    }

    /// Connections that an application has still to hand over.
    pub(super) fn with_applications(&self, table: &Table) -> usize {
        let owners = self.held.values().filter_map(|held| owner(table, *held));
        owners.filter(|owner| *owner == Owner::Application).count()
    }

    /// Tells of connections that are over: `remains` says what the adapter has of each. Departures come before.
    pub(super) fn sweep(&mut self, table: &Table, remains: impl Fn(&Flow) -> Remains) {
        self.held.retain(|flow, held| {
            let Some(owner) = owner(table, *held) else {
                return false;
            };
            let Some(at) = table.place(held.place) else {
                return false;
            };
            let remains = remains(flow);
            if remains == Remains::TimeWait {
                // Nobody is to go on with it.
                at.record.reset(None);
            }
            match (remains, owner) {
                (Remains::Connection | Remains::TimeWait, _) => {
                    at.pass(held.number, Owner::Application, Owner::Adapter);
                    true
                }
                (Remains::Nothing, Owner::Adapter) => {
                    !at.pass(held.number, Owner::Adapter, Owner::Over)
                }
                (Remains::Nothing, owner) => owner == Owner::Application,
            }
        });
    }
}

/// What an adapter has of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remains {
    Nothing,
    Connection,
    TimeWait,
}

/// Who has a connection that has its place still.
fn owner(table: &Table, held: Held) -> Option<Owner> {
    let (number, owner) = table.place(held.place)?.owner();
    (number == held.number && owner != Owner::Nobody).then_some(owner)
}
