//! Handoff and restore (handoff-policies 2): which connections move, when, and what waits meanwhile.

use super::socket::{Place, Wish};
use super::{AdapterEnd, Away, HostStack, Reached, SocketLayer};
use crate::adapter::OsLayer;
use crate::{Decision, MoveReason, NextLook, NotOffloaded, Selection, SocketId, View};
use baton_bus::HostLink;
use baton_bus::descriptor::Status;
use baton_bus::link::Inline;
use baton_tcp::{CloseReason, ConnId, Moved, Portable, State};
use baton_wire::{Flow, Span, Time};

/// A change of a connection's owner: it leaves the stack, and returns or ends on an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMove {
    /// The connection has left the stack.
    Left {
        /// The connection's ID in the stack.
        conn: ConnId,
        /// The socket.
        socket: SocketId,
        /// The adapter's socket; `None` if the connection did not get one.
        on_adapter: Option<SocketId>,
    },
    /// The connection has returned to the stack.
    Back {
        /// The connection's ID in the stack.
        conn: ConnId,
        /// The socket.
        socket: SocketId,
        /// The adapter's socket, unless the connection had none.
        on_adapter: Option<SocketId>,
    },
    /// The connection has ended on its adapter, or could not return to the stack.
    Ended {
        /// The connection.
        flow: Flow,
        /// Whether the application closed before the peer, so that the adapter has the connection in TIME-WAIT.
        closed_first: bool,
    },
}

/// Progress of a connection that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The connection is moving to the adapter.
    HandingOff,
    /// The adapter has the connection.
    HandedOff,
    /// The connection was selected but cannot move, or the adapter has refused it, for this reason.
    Refused(NotOffloaded),
    /// The adapter was asked to return the connection.
    Restoring,
    /// The connection is on the host again.
    Restored,
    /// The connection ended on the adapter before it could leave.
    NotRestored,
}

impl<P: Inline> SocketLayer<P> {
    /// Returns the progress of the next moving connection, if progress is [recorded](SocketLayer::keep_progress).
    pub fn poll_progress(&mut self) -> Option<(Flow, Move)> {
        self.progress.as_mut()?.pop_front()
    }

    fn note(&mut self, id: SocketId, what: Move) {
        let flow = self.socket(id).flow;
        if let Some(progress) = &mut self.progress {
            progress.push_back((flow, what));
        }
    }

    /// Returns the next connection that has left the stack, returned to it or ended on an adapter, for callers with their own state of
    /// connections in the stack. [`SocketLayer::handle_adapters`] discards those that nobody has asked for.
    pub fn poll_stack_move(&mut self) -> Option<StackMove> {
        self.moves.pop_front()
    }

    // --- the policy: which connections and when (handoff-policies 3.3) ---

    /// Asks the policy about a newly established connection.
    pub(super) fn consider_established(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        let view = self.view(now, stack, os, id, 0);
        let Some(selection) = &mut self.selection else {
            return;
        };
        match selection.on_established(&view) {
            Decision::HandOff => self.attempt(now, stack, os, id),
            Decision::Stay => self.set_why(id, NotOffloaded::Policy),
        }
    }

    /// Asks the policy after the application has read something.
    pub(super) fn consider_receive(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        if self.socket(id).settling.is_some() {
            // A peer that sends data has often acknowledged ours.
            return self.look_at_settling(now, stack, os, id);
        }
        let is_on_host = matches!(self.socket(id).place, Place::Host(_));
        if is_on_host && self.has_stayed(now, id) {
            self.consider(now, stack, os, id, 0, |selection, view| {
                selection.on_receive(view)
            });
        }
    }

    /// Asks the policy after the application has put data into its send buffer by this many enqueues.
    pub(super) fn consider_send(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
        enqueues: u32,
    ) {
        if self.socket(id).settling.is_some() || !self.has_stayed(now, id) {
            return;
        }
        if let Place::Adapter(_) = self.socket(id).place {
            let view = self.view(now, stack, os, id, enqueues);
            return self.take_back_if_wanted(now, stack, os, id, &view);
        }
        self.consider(now, stack, os, id, enqueues, |selection, view| {
            selection.on_send(view)
        });
    }

    /// Asks the policy before the application sends `bytes` on a connection that may be on its adapter.
    pub(super) fn consider_announced(
        &mut self,
        now: Time,
        stack: &impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
        bytes: u64,
    ) {
        if matches!(self.socket(id).place, Place::Adapter(_)) && self.has_stayed(now, id) {
            let mut view = self.view(now, stack, os, id, 0);
            view.response_bytes = view.response_bytes.saturating_add(bytes);
            self.take_back_if_wanted(now, stack, os, id, &view);
        }
    }

    fn take_back_if_wanted(
        &mut self,
        now: Time,
        stack: &impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
        view: &View,
    ) {
        let selection = self.selection.as_mut();
        if selection.is_some_and(|selection| selection.takes_back(view)) {
            self.socket_mut(id).reason = MoveReason::Policy;
            self.restore(now, stack, os, id);
        }
    }

    /// Returns when to ask the policy next about a connection on the host, counted from now, unless its adapter is lost before.
    pub(super) fn next_look(
        &self,
        now: Time,
        stack: &impl HostStack<P>,
        os: &OsLayer<P>,
        id: SocketId,
    ) -> NextLook {
        let socket = self.socket(id);
        let Some(selection) = self.selection.as_ref().filter(|_| socket.stays.is_none()) else {
            return NextLook::NEVER;
        };
        if socket.settling.is_some() {
            // A peer that has sent its next request has usually acknowledged the answer.
            return NextLook {
                receives: 1,
                ..NextLook::NEVER
            };
        }
        let view = self.view(now, stack, os, id, 0);
        let generation = self.adapters[socket.adapter.index()].generation;
        if (socket.chosen_for).is_some_and(|chosen| chosen != generation) {
            // The connection goes to the next adapter when it sends or receives.
            return NextLook {
                enqueues: 1,
                receives: 1,
            };
        }
        let had_its_chance = view.failures > 0 || view.was_offloaded;
        if had_its_chance && !selection.reconsiders(&view) {
            return NextLook::NEVER;
        }
        let next = selection.next_look(&view);
        NextLook {
            enqueues: next.enqueues.saturating_sub(view.enqueues),
            receives: next.receives.saturating_sub(view.receives),
        }
    }

    /// Returns whether the policy may move the connection again.
    fn has_stayed(&self, now: Time, id: SocketId) -> bool {
        let socket = self.socket(id);
        let least = match &self.selection {
            Some(selection) if socket.handoffs > 0 => {
                selection.least_stay(socket.flow.local, self.least_stay)
            }
            _ => Span::ZERO,
        };
        now >= socket.not_before && now.saturating_since(socket.since) >= least
    }

    /// Attempts to hand off a connection on the host if `decide` says so. After an earlier attempt, the policy must also reconsider it.
    fn consider(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
        enqueues: u32,
        decide: impl FnOnce(&mut dyn Selection, &View) -> Decision,
    ) {
        if self.is_chosen_for_former(os, id) {
            return self.attempt(now, stack, os, id);
        }
        let view = self.view(now, stack, os, id, enqueues);
        let Some(selection) = &mut self.selection else {
            return;
        };
        let had_its_chance = view.failures > 0 || view.was_offloaded;
        if had_its_chance && !selection.reconsiders(&view) {
            return;
        }
        if decide(&mut **selection, &view) == Decision::HandOff {
            self.attempt(now, stack, os, id);
        }
    }

    fn view(
        &self,
        now: Time,
        stack: &impl HostStack<P>,
        os: &OsLayer<P>,
        id: SocketId,
        enqueues: u32,
    ) -> View {
        let socket = self.socket(id);
        let unacknowledged = match socket.place {
            Place::Host(conn) => stack.unacknowledged(conn),
            _ => 0,
        };
        View {
            local: socket.flow.local,
            remote: socket.flow.remote,
            age: now.saturating_since(socket.opened_at),
            requests: socket.requests,
            enqueues_before: socket.enqueues - enqueues,
            enqueues: socket.enqueues,
            bytes_sent: socket.bytes_sent,
            bytes_in_send_buffer: unacknowledged as u32,
            response_bytes: socket.response_bytes,
            receives: socket.receives,
            foreseen_enqueues: socket.foreseen,
            failures: socket.failures,
            was_offloaded: socket.handoffs > 0,
            nic_connections: self.adapters[socket.adapter.index()].imported(),
            nic_soft_limit: os.soft_limit().unwrap_or(0),
        }
    }

    /// Returns whether the policy has selected the connection for an adapter that is gone, and there is another to which it can go.
    fn is_chosen_for_former(&self, os: &OsLayer<P>, id: SocketId) -> bool {
        let socket = self.socket(id);
        let generation = self.adapters[socket.adapter.index()].generation;
        os.soft_limit().is_some() && socket.chosen_for.is_some_and(|chosen| chosen != generation)
    }

    fn attempt(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        self.socket_mut(id).reason = match self.is_chosen_for_former(os, id) {
            true => MoveReason::NextAdapter,
            false => MoveReason::Policy,
        };
        let outcome = self.hand_off(now, stack, os, id);
        if outcome == Err(NotOffloaded::State) && self.is_chosen_for_former(os, id) {
            // The connection may be able to move when it sends again.
            return;
        }
        let of = &self.adapters[self.socket(id).adapter.index()];
        let generation = of.generation;
        self.socket_mut(id).chosen_for = Some(generation);
        if let Err(why) = outcome {
            self.not_handed_off(id, why);
        }
    }

    pub(super) fn not_handed_off(&mut self, id: SocketId, why: NotOffloaded) {
        // A connection that merely did not settle in time may be attempted again.
        self.socket_mut(id).failures += u32::from(why != NotOffloaded::UnderWay);
        self.set_why(id, why);
        self.note(id, Move::Refused(why));
    }

    // --- to the adapter ---

    /// Hands a connection to its adapter, now or when the stack can release it.
    ///
    /// # Errors
    /// The connection stays, for the reason given.
    pub(super) fn hand_off(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) -> Result<(), NotOffloaded> {
        let conn = self.may_hand_off(stack, os, id)?;
        let remote = self.socket(id).flow.remote;
        if self.has_grace(now, id) && !stack.is_at_rest(conn) {
            self.settles(now, id, false);
            return Ok(());
        }
        // From now on the adapter's socket holds back corked data; TCP sends what it has held back so far.
        stack.set_cork(conn, false);
        if !stack.settle(conn) {
            self.settles(now, id, true);
            return Ok(());
        }
        stack.say_why(self.socket(id).reason);
        let Some(state) = stack.export(now, conn) else {
            self.did_not_leave(stack, id, conn);
            return Err(NotOffloaded::State);
        };
        self.settles_no_more(id);
        self.set_socket_of(conn, None);
        if let Some(unread) = stack.take_unread() {
            self.socket_mut(id).early.push_back(unread);
            self.wake_reader(id);
        }
        let moved = Moved::new(state);
        let bytes = moved.to_bytes();
        let kept = Box::new(moved.state);
        let shut = matches!(kept.state, State::FinWait1 | State::FinWait2);
        let imported = os.import(now, remote, bytes, shut);
        self.moves.push_back(StackMove::Left {
            conn,
            socket: id,
            on_adapter: imported.ok(),
        });
        let Ok(on_adapter) = imported else {
            self.socket_mut(id).reason = MoveReason::Refused(NotOffloaded::Handles);
            self.take_back(now, stack, id, *kept);
            return Err(NotOffloaded::Handles);
        };
        self.stats.handoffs_attempted += 1;
        let socket = &mut self.sockets[id.0 as usize];
        let of = &mut self.adapters[socket.adapter.index()];
        of.sockets.insert(on_adapter.0, id);
        self.away.insert(socket.flow, Away::Of(id));
        socket.left_at = Reached {
            sent: kept.written_to(),
            received: kept.read_to(),
        };
        socket.kept = Some(kept);
        socket.go(now, Place::HandingOff(on_adapter));
        self.moving += 1;
        self.note(id, Move::HandingOff);
        Ok(())
    }

    /// Continues with a connection that the stack could not export, and sends what the application has sent since the connection began to
    /// settle.
    fn did_not_leave(&mut self, stack: &mut impl HostStack<P>, id: SocketId, conn: ConnId) {
        match &mut self.socket_mut(id).settling {
            Some(settling) => {
                settling.is_closed = true;
                self.stays(stack, id);
            }
            None => {
                stack.unsettle(conn);
                stack.set_cork(conn, self.socket(id).corked);
            }
        }
    }

    /// Puts received data back into the stack, for a connection that stays there for good: exports the connection, and imports it with the
    /// data.
    pub(super) fn give_early_back(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
    ) {
        let socket = self.socket(id);
        let Place::Host(conn) = socket.place else {
            return;
        };
        if socket.early.is_empty() || !stack.keeps_unread() || !stack.may_move(conn) {
            self.stays(stack, id);
            return;
        }
        if !stack.settle(conn) {
            return self.settles(now, id, true);
        }
        stack.say_why(MoveReason::Call);
        let Some(state) = stack.export(now, conn) else {
            return self.did_not_leave(stack, id, conn);
        };
        self.settles_no_more(id);
        self.set_socket_of(conn, None);
        self.socket_mut(id).early.extend(stack.take_unread());
        self.take_back(now, stack, id, state);
    }

    pub(super) fn may_hand_off(
        &self,
        stack: &impl HostStack<P>,
        os: &OsLayer<P>,
        id: SocketId,
    ) -> Result<ConnId, NotOffloaded> {
        let socket = self.sockets.get(id.0 as usize).ok_or(NotOffloaded::State)?;
        let Place::Host(conn) = socket.place else {
            return Err(NotOffloaded::State);
        };
        if let Some(why) = socket.stays {
            return Err(why);
        }
        let is_open = stack.may_move(conn);
        // Data that was sent since the connection began to settle moves with it.
        let is_closed = socket.settling.is_some_and(|settling| settling.is_closed);
        let may_wait = is_closed || socket.unsent.is_empty();
        let is_idle = may_wait && socket.early.is_empty();
        if !is_open || !is_idle || socket.wish != Wish::None {
            return Err(NotOffloaded::State);
        }
        let of = &self.adapters[socket.adapter.index()];
        match os.soft_limit() {
            Some(limit) if of.imported() < limit => match os.has_room_for_import() {
                true => Ok(conn),
                false => Err(NotOffloaded::Memory),
            },
            Some(0) if of.is_short_of_memory => Err(NotOffloaded::Memory),
            _ => Err(NotOffloaded::SoftLimit),
        }
    }

    /// Called when the adapter has accepted the connection.
    pub(super) fn handed_off<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        end: &mut AdapterEnd<P, L>,
        id: SocketId,
    ) {
        self.stats.handoffs_accepted += 1;
        let socket = &mut self.sockets[id.0 as usize];
        let Place::HandingOff(on_adapter) = socket.place else {
            return debug_assert!(false, "a handoff is answered once");
        };
        socket.go(now, Place::Adapter(on_adapter));
        self.moving -= 1;
        socket.kept = None;
        socket.why = None;
        socket.handoffs += 1;
        self.note(id, Move::HandedOff);
        let socket = self.socket_mut(id);
        let packets = std::mem::take(&mut socket.packets);
        let adapter = socket.adapter;
        self.adapters[adapter.index()].is_short_of_memory = false;
        for packet in packets {
            self.stats.packets_forwarded += 1;
            self.to_forward.push_back((adapter, packet));
        }
        if self.socket(id).corked {
            end.os.set_cork(now, &mut end.link, on_adapter, true);
        }
        if !self.send_unsent_there(now, stack, end, id, on_adapter) {
            return;
        }
        if std::mem::take(&mut self.socket_mut(id).restore_wanted) {
            self.restore(now, stack, &mut end.os, id);
        }
    }

    /// Closes a connection on the adapter, or aborts it if `wish` says so, and removes its socket.
    pub(super) fn end_on_adapter(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        (id, on_adapter): (SocketId, SocketId),
        wish: Wish,
    ) {
        let closed_first = wish == Wish::Close && !os.unread(on_adapter).ended;
        match wish {
            Wish::Abort => os.abort(now, on_adapter),
            _ => os.close(now, on_adapter),
        }
        self.forget_on_adapter(stack, id, closed_first);
    }

    /// Removes the socket of a connection that the adapter closes on its own.
    pub(super) fn forget_on_adapter(
        &mut self,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        closed_first: bool,
    ) {
        let socket = self.socket(id);
        let (flow, adapter) = (socket.flow, socket.adapter);
        stack.forget(&flow);
        let on_adapter = socket.place.on_adapter();
        self.leave_adapter(id);
        if let Some(on_adapter) = on_adapter {
            let of = &mut self.adapters[adapter.index()];
            of.closing.insert(on_adapter.0, (flow, closed_first));
            self.away.insert(flow, Away::Closing(adapter));
        }
        self.remove(id);
    }

    /// Called when the adapter has not accepted the connection, which then continues here.
    pub(super) fn handoff_refused(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        status: Status,
    ) {
        self.stats.handoffs_refused += 1;
        self.leave_adapter(id);
        let socket = self.socket_mut(id);
        socket.failures += 1;
        socket.restore_wanted = false;
        let Some(kept) = socket.kept.take() else {
            return debug_assert!(false, "its state is kept until the answer");
        };
        if status == Status::Aborted {
            // The adapter is gone, and may have started to use the connection.
            let conn = stack.reclaim(now, *kept);
            return self.recovered(now, stack, id, conn);
        }
        let adapter = self.socket(id).adapter;
        self.adapters[adapter.index()].is_short_of_memory = status == Status::Memory;
        let why = refusal(status);
        self.set_why(id, why);
        self.socket_mut(id).reason = MoveReason::Refused(why);
        self.note(id, Move::Refused(why));
        self.take_back(now, stack, id, *kept);
    }

    // --- back to the host ---

    /// Takes a connection back from its adapter. Returns false if the connection is not there or cannot be taken back now.
    pub(super) fn restore(
        &mut self,
        now: Time,
        stack: &impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) -> bool {
        let Some(socket) = self.sockets.get_mut(id.0 as usize) else {
            return false;
        };
        if !stack.takes_back() {
            socket.restore_wanted |= matches!(socket.place, Place::Adapter(_));
            return false;
        }
        match socket.place {
            Place::Adapter(on_adapter) if os.export(now, on_adapter) => {
                socket.go(now, Place::Restoring(on_adapter));
                self.moving += 1;
                self.stats.restores_attempted += 1;
                self.note(id, Move::Restoring);
                true
            }
            Place::HandingOff(_) => {
                socket.restore_wanted = true;
                true
            }
            _ => false,
        }
    }

    /// Takes back the connections whose restore was requested while the stack could not take any back.
    pub fn restore_wanted<L>(
        &mut self,
        now: Time,
        stack: &impl HostStack<P>,
        adapters: &mut [AdapterEnd<P, L>],
    ) {
        let wanted: Vec<_> = (self.sockets.iter_mut())
            .filter(|(_, socket)| matches!(socket.place, Place::Adapter(_)))
            .filter_map(|(slot, socket)| {
                let wanted = std::mem::take(&mut socket.restore_wanted);
                wanted.then_some((SocketId(slot as u32), socket.adapter))
            })
            .collect();
        for (id, adapter) in wanted {
            if let Some(end) = adapters.get_mut(adapter.index()) {
                self.restore(now, stack, &mut end.os, id);
            }
        }
    }

    /// Called when the connection has left the adapter.
    pub(super) fn restored(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        let Place::Restoring(on_adapter) = self.socket(id).place else {
            return debug_assert!(false, "a restore is answered once");
        };
        let exported = os.take_exported(on_adapter);
        self.leave_adapter(id);
        let moved = exported.and_then(|exported| {
            self.socket_mut(id).early.extend(exported.received);
            let moved = Moved::<P>::from_bytes(&exported.state).ok()?;
            Some((moved, exported.held, exported.shut))
        });
        let Some((moved, held, shut)) = moved else {
            self.stats.bad_states += 1;
            stack.forget(&self.socket(id).flow);
            return self.end(id, CloseReason::Aborted);
        };
        self.stats.restored += 1;
        self.set_why(id, NotOffloaded::Restored);
        self.note(id, Move::Restored);
        let socket = self.socket_mut(id);
        socket.put_before_unsent(moved.unsent.into_iter().chain(held));
        if (moved.shut || shut) && socket.wish == Wish::None {
            socket.wish = Wish::Shutdown;
        }
        self.take_back(now, stack, id, moved.state);
    }

    /// Called when the adapter of the connection is gone.
    pub(super) fn lost(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        let socket = self.socket_mut(id);
        let (Place::Adapter(on_adapter) | Place::Restoring(on_adapter)) = socket.place else {
            return debug_assert!(false, "the adapter had it");
        };
        let Some(left) = os.take_exported(on_adapter) else {
            return debug_assert!(false, "what there was of it is kept");
        };
        socket.early.extend(left.received);
        socket.put_before_unsent(left.held);
        if left.shut && socket.wish == Wish::None {
            socket.wish = Wish::Shutdown;
        }
        let (flow, left_at) = (socket.flow, socket.left_at);
        let reached = Reached {
            sent: left_at.sent + left.sent,
            received: left_at.received + left.came,
        };
        self.leave_adapter(id);
        let conn = stack.recover(now, &flow, reached);
        self.recovered(now, stack, id, conn);
    }

    /// Continues with a connection of an adapter that is gone, or reports it lost.
    fn recovered(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        conn: Option<ConnId>,
    ) {
        let Some(conn) = conn else {
            stack.forget(&self.socket(id).flow);
            return self.end(id, CloseReason::Reset);
        };
        self.stats.recovered += 1;
        self.set_why(id, NotOffloaded::Restored);
        self.note(id, Move::Restored);
        self.is_back(now, stack, id, conn);
    }

    /// Called when the connection ended on the adapter before it could leave.
    pub(super) fn not_restored(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        os: &mut OsLayer<P>,
        id: SocketId,
    ) {
        let Place::Restoring(on_adapter) = self.socket(id).place else {
            return;
        };
        self.moving -= 1;
        let socket = self.socket_mut(id);
        socket.go(now, Place::Adapter(on_adapter));
        socket.packets.clear();
        socket.unsent.clear();
        let wish = socket.wish;
        self.note(id, Move::NotRestored);
        match wish {
            Wish::Close | Wish::Abort => {
                self.end_on_adapter(now, stack, os, (id, on_adapter), wish);
            }
            Wish::None | Wish::Shutdown => self.wake_reader(id),
        }
    }

    /// Imports a connection into the stack, and does what was postponed until then.
    fn take_back(
        &mut self,
        now: Time,
        stack: &mut impl HostStack<P>,
        id: SocketId,
        state: Portable<P>,
    ) {
        stack.say_why(self.socket(id).reason);
        let is_half_closed = matches!(
            state.state,
            State::CloseWait | State::Closing | State::LastAck
        );
        let socket = self.socket_mut(id);
        let conn = match socket.stays {
            // The connection stays on the stack for good, so the stack gets the unread data, too.
            Some(_) => stack.import_unread(now, state, &mut socket.early),
            None => stack.import(now, state),
        };
        match conn {
            Ok(conn) => self.is_back(now, stack, id, conn),
            Err(reason) => {
                self.stats.bad_states += u64::from(reason != CloseReason::Reset);
                let flow = self.socket(id).flow;
                stack.forget(&flow);
                self.moves.push_back(StackMove::Ended {
                    flow,
                    closed_first: false,
                });
                self.socket_mut(id).was_half_closed = is_half_closed;
                self.end(id, reason);
            }
        }
    }

    fn is_back(&mut self, now: Time, stack: &mut impl HostStack<P>, id: SocketId, conn: ConnId) {
        self.set_socket_of(conn, Some(id));
        let on_adapter = self.socket(id).place.on_adapter();
        self.moves.push_back(StackMove::Back {
            conn,
            socket: id,
            on_adapter,
        });
        let socket = self.socket_mut(id);
        socket.restore_wanted = false;
        socket.go(now, Place::Host(conn));
        stack.set_cork(conn, socket.corked);
        let packets = std::mem::take(&mut socket.packets);
        let has_news = {
            let unread = stack.unread(conn);
            !socket.early.is_empty() || unread.len > 0 || unread.ended
        };
        self.arrived.extend(packets);
        if has_news {
            self.wake_reader(id);
        }
        if self.send_unsent(stack, id, conn) && self.socket(id).unsent.is_empty() {
            self.wake_writer(id);
        }
    }
}

fn refusal(status: Status) -> NotOffloaded {
    match status {
        Status::SoftLimit => NotOffloaded::RefusedSoftLimit,
        Status::HardLimit => NotOffloaded::RefusedHardLimit,
        Status::Memory => NotOffloaded::RefusedMemory,
        Status::Duplicate => NotOffloaded::RefusedDuplicate,
        Status::TooManySockets => NotOffloaded::Handles,
        _ => NotOffloaded::RefusedState,
    }
}
