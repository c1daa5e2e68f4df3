//! The ledger: records the state of each connection that came from the kernel, in memory that outlives the adapter.
//!
//! Before any packet leaves, the adapter writes an entry for each connection that has changed: its state if only little of its data is in
//! flight, and otherwise that the recorded state is invalid. So no packet that has left contradicts a recorded state. What the application
//! was told may contradict it: the broker compares the two before it restores a connection ([`crate::broker`]).

use crate::broker::{
    DATA_BYTES, Memory, Owner, Place, Stage, Table, Ticket, decode, encode, now_ms, seal,
    ticket_of, without_data,
};
use baton_bus::descriptor::Status;
use baton_nic::adapter::Custody;
use baton_tcp::{ConnId, Essentials, Portable, Stack};
use baton_wire::{Flow, Time};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections that came from the kernel and have not returned to it.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Number of announcements that have been read.
    seen: u32,
    held: FxHashMap<Flow, Ticket>,
    /// Indexed by the number of the connection in the stack.
    by_conn: Vec<Option<(Flow, Ticket)>>,
    /// Time of the system's clock when the engine's clock was zero, ms.
    start_ms: Option<u32>,
}

impl Ledger {
    /// Registers the connections that have left the kernel since the last call.
    pub(super) fn hear(&mut self, table: &Table) {
        let Self { seen, held, .. } = self;
        table.news(seen, |place| {
            let Some(at) = table.place(place) else {
                return;
            };
            let ((number, owner), flow) = (at.owner(), at.flow());
            // The record may belong to another connection by now, which is announced later.
            if owner != Owner::Nobody && at.owner().0 == number {
                held.insert(flow, Ticket { place, number });
            }
        });
    }

    /// Records the connections that have changed, before any packet that follows from the change leaves.
    pub(super) fn write(&mut self, now: Time, table: &Table, stack: &mut Stack<Bytes>) {
        let ms = now.as_ms() as u32;
        let start_ms = *(self.start_ms).get_or_insert_with(|| now_ms().wrapping_sub(ms));
        let at_ms = start_ms.wrapping_add(ms);
        while let Some(conn) = stack.poll_changed() {
            let Some((number, place)) = self.place_of(conn, table, stack) else {
                continue;
            };
            let Some(state) = stack.nearly_at_rest(now, conn, DATA_BYTES as u32) else {
                place.record.spoil();
                continue;
            };
            let len = stack.unacknowledged(conn) as u32;
            let words = encode(&state, len, at_ms);
            if len == 0 {
                place.record.write(&words);
                continue;
            }
            let pieces = stack.unacknowledged_pieces(conn);
            let parts = pieces.map(|(piece, skipped)| &piece[skipped..]);
            place.record.write_with(&words, table.data(number), parts);
        }
    }

    #[inline]
    fn place_of<'a>(
        &mut self,
        conn: ConnId,
        table: &'a Table,
        stack: &Stack<Bytes>,
    ) -> Option<(u32, &'a Place)> {
        let (flow, index) = (stack.flow(conn), conn.0 as usize);
        let its_own = |held: Ticket| {
            let place = table.place(held.place)?;
            (place.owner().0 == held.number).then_some((held.place, place))
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

    fn held<'a>(&self, table: &'a Table, flow: &Flow) -> Option<(&'a Place, u32)> {
        let ticket = self.held.get(flow)?;
        Some((table.place(ticket.place)?, ticket.number))
    }

    /// Returns whether packets of `flow` come to the adapter.
    pub(super) fn has(&self, table: &Table, flow: &Flow) -> bool {
        let owner = self.held.get(flow).and_then(|held| owner(table, *held));
        owner.is_some_and(|owner| owner != Owner::Over)
    }

    /// Returns the number of connections that applications have yet to hand over.
    pub(super) fn with_applications(&self, table: &Table) -> usize {
        let owners = self.held.values().filter_map(|held| owner(table, *held));
        owners.filter(|owner| *owner == Owner::Application).count()
    }

    /// Gives up the connections that have been moving for longer than `longest_ms`, because their broker was killed and nobody will take them
    /// over. Returns their states.
    pub(super) fn give_up(&mut self, table: &Table, longest_ms: u32) -> Vec<Essentials<Bytes>> {
        let mut given_up = Vec::new();
        for (flow, ticket) in &self.held {
            let Some(at) = table.place(ticket.place) else {
                continue;
            };
            let (number, owner) = at.owner();
            let is_away = matches!(owner, Owner::Application | Owner::Broker);
            let is_late = number == ticket.number && is_away && at.age_ms() > longest_ms;
            if is_late && at.pass(number, owner, Owner::Over) {
                let words = without_data(&at.record.last());
                given_up.extend(decode(*flow, &words, Bytes::new(), now_ms()));
            }
        }
        given_up
    }

    /// Marks connections that have ended; `remains` returns what the adapter still has of each. Exports must change the owner before this is
    /// called: otherwise an exported connection would seem to have ended.
    pub(super) fn sweep(&mut self, table: &Table, remains: impl Fn(&Flow) -> Remains) {
        self.held
            .retain(|flow, held| is_kept(table, *held, remains(flow)));
    }

    /// Does what [`Ledger::sweep`] does for one connection.
    pub(super) fn sweep_one(&mut self, table: &Table, flow: &Flow, remains: Remains) {
        if let Some(held) = self.held.get(flow)
            && !is_kept(table, *held, remains)
        {
            self.held.remove(flow);
        }
    }
}

/// Marks a connection if it has ended. Returns whether the ledger keeps it.
fn is_kept(table: &Table, held: Ticket, remains: Remains) -> bool {
    let Some(owner) = owner(table, held) else {
        return false;
    };
    let Some(at) = table.place(held.place) else {
        return false;
    };
    if remains == Remains::TimeWait && owner == Owner::Adapter {
        at.set_stage(Stage::Finished);
    }
    match (remains, owner) {
        (Remains::Connection | Remains::TimeWait, _) => true,
        (Remains::Nothing, Owner::Adapter) => !at.pass(held.number, Owner::Adapter, Owner::Over),
        (Remains::Nothing, owner) => matches!(owner, Owner::Application | Owner::Broker),
    }
}

/// Ensures that the adapter takes over only what the broker has taken out of the kernel for the same user.
#[derive(Debug)]
pub(super) struct Keeper {
    memory: Arc<Memory>,
    ledger: Arc<Mutex<Ledger>>,
}

impl Keeper {
    pub(super) fn new(memory: &Arc<Memory>, ledger: &Arc<Mutex<Ledger>>) -> Self {
        Self {
            memory: Arc::clone(memory),
            ledger: Arc::clone(ledger),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }
}

/// Locks the ledger. No holder panics while it has the lock.
pub(super) fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Custody<Bytes> for Keeper {
    fn claim(&mut self, user: Option<u32>, state: &Portable<Bytes>) -> Result<(), Status> {
        let found = ticket_of(&self.memory, Stage::Taken, state);
        let ticket = found.ok_or(Status::NotYours)?;
        let place = self.memory.place(ticket.place).ok_or(Status::NotYours)?;
        let may = user.is_some_and(|user| user == 0 || user == place.user());
        let is_it = place.flow() == state.flow && place.stage() == Stage::Taken;
        // `pass` claims the connection atomically: the broker may be asked to put it back at the same time.
        if !may || !is_it || !place.pass(ticket.number, Owner::Application, Owner::Adapter) {
            return Err(Status::NotYours);
        }
        self.ledger().held.insert(state.flow, ticket);
        Ok(())
    }

    fn unclaim(&mut self, flow: &Flow) {
        if let Some((place, number)) = self.ledger().held(&self.memory, flow) {
            place.pass(number, Owner::Adapter, Owner::Application);
        }
    }

    fn release(&mut self, state: Portable<Bytes>) -> Portable<Bytes> {
        let ledger = self.ledger();
        let Some((ticket, place)) = (ledger.held.get(&state.flow))
            .and_then(|ticket| Some((*ticket, self.memory.place(ticket.place)?)))
        else {
            return state;
        };
        place.set_stage(Stage::Released);
        place.pass(ticket.number, Owner::Adapter, Owner::Application);
        seal(&self.memory, Stage::Released, ticket, state)
    }
}

/// What an adapter still has of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remains {
    Nothing,
    Connection,
    TimeWait,
}

impl Remains {
    /// Returns what `stack` has of the connection `flow`.
    pub(super) fn of(now: Time, stack: &Stack<Bytes>, flow: &Flow) -> Self {
        match stack.find(flow) {
            Some(_) => Self::Connection,
            None if stack.in_time_wait(now, flow) => Self::TimeWait,
            None => Self::Nothing,
        }
    }
}

/// Returns the owner of a connection, if the connection still has its place.
fn owner(table: &Table, held: Ticket) -> Option<Owner> {
    let (number, owner) = table.place(held.place)?.owner();
    (number == held.number && owner != Owner::Nobody).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{Said, data_len};
    use baton_tcp::Config;
    use baton_testkit::{Stacks, endpoint};
    use baton_wire::Endpoint;

    const NOW: Time = Time::ZERO;

    /// Returns a client and an adapter that has imported the other end of the client's connection from a server, with both ends.
    fn connected() -> (Stacks<Bytes>, ConnId, ConnId) {
        let [client, server, mut adapter] =
            [1, 2, 3].map(|seed| Stack::new(Config::default(), seed));
        let mut pair = Stacks::joined([client, server]);
        let [local, remote] = [endpoint(1, 4000), endpoint(2, 80)];
        let listener = pair.ends[1].listen(remote, 1);
        let asking = pair.ends[0].connect(NOW, Flow { local, remote });
        pair.settle();
        let accepted = pair.ends[1].accept(listener).expect("it is open");
        let state = pair.ends[1].export(NOW, accepted);
        adapter.note_changes();
        let serving = adapter.import(NOW, state).expect("it is sound");
        pair.ends[1] = adapter;
        (pair, asking.expect("the flow is free"), serving)
    }

    /// Returns the memory of a broker that has taken a connection out of the kernel for an application of user 7.
    fn broker(flow: &Flow) -> (Arc<Memory>, Ticket) {
        let memory = Memory::create().expect("memory");
        let number = memory.place(3).expect("a place").occupy(flow, 7, false);
        memory.announce(3);
        (Arc::new(memory), Ticket { place: 3, number })
    }

    #[test]
    fn a_connection_is_recorded_only_when_it_is_at_rest() {
        let (mut pair, asking, mut serving) = connected();
        let flow = pair.ends[1].flow(serving);
        let (memory, _) = broker(&flow);
        let place = memory.place(3).expect("a place");
        let mut ledger = Ledger::default();
        let mut commit = |adapter: &mut Stack<Bytes>| {
            ledger.hear(&memory);
            ledger.write(NOW, &memory, adapter);
            place.record.read()
        };
        assert!(
            matches!(commit(&mut pair.ends[1]), Said::Complete(_)),
            "it has come idle"
        );

        // A request that the application has not read yet.
        pair.ends[0]
            .write(asking, Bytes::from_static(b"ask"))
            .expect("room");
        pair.settle();
        assert_eq!(commit(&mut pair.ends[1]), Said::Incomplete);
        let data = pair.ends[1].read(serving, 100).expect("it is there");
        pair.ends[1].consume(serving, data.len());
        assert!(
            matches!(commit(&mut pair.ends[1]), Said::Complete(_)),
            "it has got it"
        );
        pair.settle();

        // An answer that is first unacknowledged, then acknowledged in part, then completely.
        let answer = baton_testkit::Pattern::new(0).bytes(DATA_BYTES);
        let first = pair.ends[1].export(NOW, serving);
        let (wrote_before, read_to) = (first.written_to(), first.read_to());
        serving = pair.ends[1].import(NOW, first).expect("it was here");
        for part in [&answer[..700], &answer[700..]] {
            pair.ends[1]
                .write(serving, Bytes::copy_from_slice(part))
                .expect("room");
        }
        let left = |said: Said, data: &[u8]| {
            let Said::Complete(words) = said else {
                panic!("little is under way");
            };
            let bytes = memory.data(3).read(data_len(&words));
            let left = decode(flow, &words, bytes, now_ms()).expect("a state");
            assert_eq!(left.send_buffer.concat(), data);
            assert_eq!(
                left.send_una + data.len() as u32,
                wrote_before + answer.len() as u32
            );
            assert_eq!(left.receive_next, read_to);
            left.send_next - left.send_una
        };
        assert_eq!(
            left(commit(&mut pair.ends[1]), &answer),
            0,
            "nothing has left"
        );
        let (_, segment) = pair.ends[1].poll_transmit(NOW).expect("it leaves");
        pair.ends[0].handle_segment(NOW, segment);
        let sent = pair.ends[0].readable_len(asking);
        pair.ends[0].quick_ack(asking);
        let (_, ack) = pair.ends[0].poll_transmit(NOW).expect("an ACK");
        pair.ends[1].handle_segment(NOW, ack);
        left(commit(&mut pair.ends[1]), &answer[sent..]);
        pair.settle();
        pair.ends[0].quick_ack(asking);
        pair.settle();
        left(commit(&mut pair.ends[1]), &[]);

        // An answer that is too long to be recorded.
        let long = Bytes::from(vec![0; DATA_BYTES + 1]);
        pair.ends[1].write(serving, long).expect("room");
        assert_eq!(commit(&mut pair.ends[1]), Said::Incomplete);
    }

    #[test]
    fn a_place_that_was_given_to_another_connection_is_not_written() {
        let (pair, _, serving) = connected();
        let [_, mut adapter] = pair.ends;
        let flow = adapter.flow(serving);
        let (memory, ticket) = broker(&flow);
        let place = memory.place(3).expect("a place");
        let mut ledger = Ledger::default();
        ledger.hear(&memory);
        ledger.write(NOW, &memory, &mut adapter);
        assert!(ledger.has(&memory, &flow));
        let other = Flow {
            local: Endpoint::new([10, 0, 0, 2].into(), 81),
            ..flow
        };
        place.vacate(ticket.number);
        place.occupy(&other, 0, false);
        adapter
            .write(serving, Bytes::from_static(b"answer"))
            .expect("room");
        ledger.write(NOW, &memory, &mut adapter);
        assert_eq!(place.record.read(), Said::Untouched);
        assert!(!ledger.has(&memory, &flow));
        ledger.sweep(&memory, |_| Remains::Connection);
        assert_eq!(ledger.held.len(), 0);
    }

    #[test]
    fn the_owner_of_a_connection_is_reported_at_each_step() {
        let (pair, _, mut serving) = connected();
        let [_, mut adapter] = pair.ends;
        let flow = adapter.flow(serving);
        let (memory, ticket) = broker(&flow);
        let place = memory.place(3).expect("a place");
        let ledger: Arc<Mutex<Ledger>> = Arc::default();
        let mut keeper = Keeper::new(&memory, &ledger);
        let taken = adapter.export(NOW, serving);
        let taken = seal(&memory, Stage::Taken, ticket, taken);
        assert_eq!(keeper.claim(Some(7), &taken), Ok(()));
        assert_eq!(place.owner(), (ticket.number, Owner::Adapter));
        let bare = taken.with_seal(None);
        serving = adapter.import(NOW, bare).expect("it is sound");
        lock(&ledger).write(NOW, &memory, &mut adapter);
        lock(&ledger).sweep(&memory, |_| Remains::Connection);
        assert_eq!(place.owner(), (ticket.number, Owner::Adapter));

        let released = keeper.release(adapter.export(NOW, serving));
        assert_eq!(place.owner(), (ticket.number, Owner::Application));
        assert_eq!(ticket_of(&memory, Stage::Released, &released), Some(ticket));
        assert_eq!(lock(&ledger).with_applications(&memory), 1);
        // A connection whose owner is an application has not ended just because the adapter has nothing of it.
        lock(&ledger).sweep(&memory, |_| Remains::Nothing);
        assert_eq!(place.owner(), (ticket.number, Owner::Application));
        assert_eq!(keeper.claim(Some(7), &released), Err(Status::NotYours));

        place.pass(ticket.number, Owner::Application, Owner::Adapter);
        lock(&ledger).sweep(&memory, |_| Remains::TimeWait);
        assert_eq!(place.stage(), Stage::Finished);
        lock(&ledger).sweep(&memory, |_| Remains::Nothing);
        assert_eq!(place.owner(), (ticket.number, Owner::Over));
        assert!(!lock(&ledger).has(&memory, &flow));
    }

    #[test]
    fn a_connection_is_claimed_once_and_only_by_its_user() {
        let (pair, _, serving) = connected();
        let [_, mut adapter] = pair.ends;
        let flow = adapter.flow(serving);
        let (memory, ticket) = broker(&flow);
        let mut keeper = Keeper::new(&memory, &Arc::default());
        let taken = adapter.export(NOW, serving);
        let sealed = seal(&memory, Stage::Taken, ticket, taken.clone());
        let refused = Err(Status::NotYours);
        assert_eq!(keeper.claim(Some(7), &taken), refused, "it has no seal");
        assert_eq!(keeper.claim(Some(8), &sealed), refused, "another's");
        assert_eq!(keeper.claim(None, &sealed), refused, "nobody knows whose");
        for at in 0..24 {
            let mut torn = *sealed.seal().expect("it has one");
            torn[at] ^= 1;
            let torn = taken.clone().with_seal(Some(torn));
            assert_eq!(keeper.claim(Some(7), &torn), refused, "byte {at}");
        }
        let mut other = sealed.clone();
        other.receive_buffer.push(Bytes::from_static(b"made up"));
        assert_eq!(
            keeper.claim(Some(7), &other),
            refused,
            "not what was sealed"
        );
        let of_release = seal(&memory, Stage::Released, ticket, taken);
        assert_eq!(keeper.claim(Some(7), &of_release), refused, "the way back");

        assert_eq!(keeper.claim(Some(7), &sealed), Ok(()));
        assert_eq!(keeper.claim(Some(7), &sealed), refused, "it is here");
        keeper.unclaim(&flow);
        assert_eq!(keeper.claim(Some(0), &sealed), Ok(()), "root may");
        keeper.unclaim(&flow);
        memory
            .place(3)
            .expect("a place")
            .pass(ticket.number, Owner::Application, Owner::Broker);
        assert_eq!(keeper.claim(Some(7), &sealed), refused, "it is put back");
    }
}
