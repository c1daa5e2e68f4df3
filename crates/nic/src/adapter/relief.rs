//! Asks hosts to take connections back: the busiest first under overload, all of them before the adapter stops.

use super::Adapter;
use super::session::Session;
use super::socket::{Phase, Socket};
use crate::load_control::Load;
use baton_bus::descriptor::{Outcome, Status};
use baton_bus::link::Inline;
use baton_wire::{Payload, Span, Time};
use std::cmp::Reverse;

impl<P: Payload + Inline> Adapter<P> {
    /// Runs load control (handoff-policies 3.2). The caller must call this when packets have arrived, `qlen` of which wait for the
    /// adapter's TCP, and when a connection was imported or has left. `busy` is the time for which the processor has worked, if known.
    pub fn control_load(&mut self, now: Time, qlen: u32, busy: Option<Span>) {
        let surplus = self.shared.limits.run(&Load {
            now,
            qlen,
            host_packets: self.shared.packets_passed,
            nic_packets: self.shared.activity.total(),
            busy,
        });
        if surplus > 0 {
            self.ask_for_relief(now, surplus as usize);
        }
        self.announce_soft_limit(now);
    }

    /// Returns whether any connection of a host is on the adapter, or is being imported or exported.
    pub fn has_imported(&self) -> bool {
        let moves = |session: &Session<P>| session.is_moving();
        self.imported() > 0 || self.sessions.iter().any(|(_, session)| moves(session))
    }

    /// Refuses further connections, and asks the hosts to take theirs back.
    pub fn stop_imports(&mut self, now: Time) {
        self.shared.limits.close();
        self.announce_soft_limit(now);
        self.ask_for_relief(now, usize::MAX);
    }

    /// Asks hosts to take back the busiest connections for which they were not asked yet.
    pub(super) fn ask_for_relief(&mut self, now: Time, most: usize) {
        let clock = &self.shared.activity;
        let mut candidates: Vec<_> = self
            .sessions
            .iter()
            .flat_map(|(id, session)| {
                session.relievable().map(move |(slot, activity)| {
                    let packets = activity.recent_packets(clock);
                    (Reverse(packets), id, slot)
                })
            })
            .collect();
        let wanted = most.min(candidates.len());
        candidates.sort_unstable();
        self.shared.limits.asked(wanted as u32);
        for (_, id, slot) in candidates.drain(..wanted) {
            self.sessions[id].ask_to_relieve(now, slot);
        }
    }

    pub(super) fn announce_soft_limit(&mut self, now: Time) {
        let no_memory = self.shared.on_board.is_short;
        let Some(connections) = self.shared.limits.soft_limit_change(no_memory) else {
            return;
        };
        let outcome = Outcome::SoftLimit { connections };
        for wanted in &self.shared.wanted {
            let session = &mut self.sessions[wanted.place.session as usize];
            let number = session.sockets[wanted.place.slot as usize].number;
            session.notify(now, number, Status::Ok, outcome);
        }
    }
}

/// Returns whether the host can be asked to take this connection back.
fn may_be_asked(socket: &Socket) -> bool {
    let is_here = matches!(socket.phase, Phase::Connected(_));
    let may_leave = is_here && socket.moving.is_none() && !socket.closing.is_whole();
    socket.imported && !socket.relief_asked && may_leave
}

impl<P: Payload + Inline> Session<P> {
    /// Returns the imported connections for which the host was not asked yet, with their activity.
    fn relievable(&self) -> impl Iterator<Item = (u32, crate::activity::Activity)> + '_ {
        self.sockets.iter().filter_map(|(slot, socket)| {
            may_be_asked(socket).then_some((slot as u32, socket.activity))
        })
    }

    fn is_moving(&self) -> bool {
        self.sockets
            .iter()
            .any(|(_, socket)| socket.moving.is_some())
    }

    fn ask_to_relieve(&mut self, now: Time, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        socket.relief_asked = true;
        let number = socket.number;
        self.stats.relief_asked += 1;
        self.notify(now, number, Status::Ok, Outcome::Relief);
    }
}
