//! BIND, LISTEN and ACCEPT.

use super::options::Options;
use super::ports::{Sharing, overlap};
use super::session::{Session, Work};
use super::socket::{Listening, Phase};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Opcode, Outcome, Peer, Response, Status, write_peer};
use baton_bus::link::Inline;
use baton_tcp::{ConnId, ListenerId};
use baton_wire::{Endpoint, Payload, Span, Time};

/// A pending ACCEPT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accept {
    pub(super) tag: u32,
    /// Number of the first socket that the ACCEPT has reserved.
    pub(super) first: u32,
    /// Number of sockets.
    pub(super) count: u16,
    /// Maximum time that a connection waits for the others, microseconds; 0 means forever.
    pub(super) timeout_us: u32,
}

impl Accept {
    /// Returns the numbers of the reserved sockets.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.first;
        (0..self.count.into()).map(move |index: u32| first + index)
    }

    /// Returns the time at which the available connections are accepted without the others, if the first has waited since `since`.
    fn runs_out(&self, since: Time) -> Option<Time> {
        let timeout = Span::from_us(self.timeout_us.into());
        (self.timeout_us > 0 && self.count > 1).then(|| since + timeout)
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes BIND. An address may be bound once; port 0 means any port.
    pub(super) fn bind(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        local: Endpoint,
    ) -> Result<(), Status> {
        let socket = &mut self.sockets[slot as usize];
        if matches!(socket.phase, Phase::Packets) {
            return self.want(work, slot, tag, local);
        }
        if !matches!(socket.phase, Phase::Idle) || socket.local.is_some() {
            return Err(Status::WrongState);
        }
        if !work.shared.ports.may_bind(local.addr) {
            return Err(Status::AddressNotAvailable);
        }
        if local.port != 0 {
            self.listener_to_join(work, slot, local)?;
        }
        let socket = &mut self.sockets[slot as usize];
        socket.local = Some(local);
        let (number, done) = (socket.number, Outcome::Done(Opcode::Bind));
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    /// Executes LISTEN at the bound port, or at a free port if that is 0. On a listener, changes the backlog.
    pub(super) fn listen(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        backlog: u32,
    ) -> Result<(), Status> {
        let backlog = backlog.clamp(1, work.shared.config.most_backlog);
        let socket = &mut self.sockets[slot as usize];
        match &mut socket.phase {
            Phase::Listening(listening) => {
                listening.backlog = backlog;
                work.stack.set_backlog(listening.id, backlog as usize);
            }
            Phase::Idle => self.begin_listening(work, slot, backlog)?,
            _ => return Err(Status::WrongState),
        }
        let number = self.sockets[slot as usize].number;
        let done = Outcome::Done(Opcode::Listen);
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    /// Creates a listener, or joins the one that the socket shares.
    fn begin_listening(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        backlog: u32,
    ) -> Result<(), Status> {
        let (place, sharing) = (self.place(slot), self.sharing(slot));
        let local = self.sockets[slot as usize].local;
        let mut local = local.ok_or(Status::WrongState)?;
        if local.port == 0 {
            local.port = work.shared.ports.listening_port(work.stack, local.addr)?;
        }
        let joined = self.listener_to_join(work, slot, local)?;
        if joined.is_none() && !work.shared.ports.listen(local, sharing) {
            return Err(Status::AddressInUse);
        }
        let socket = &mut self.sockets[slot as usize];
        let options = socket.options.as_deref();
        let id = match (joined, options) {
            (Some(id), _) => {
                work.stack.set_backlog(id, backlog as usize);
                id
            }
            (None, None) => work.stack.listen(local, backlog as usize),
            (None, Some(options)) => {
                let config = options.applied_to(work.stack.config());
                let listens = (work.stack).try_listen_with(local, backlog as usize, config);
                let Some(id) = listens else {
                    work.shared.ports.unlisten(local);
                    return Err(Status::BadValue);
                };
                let rules = options.fast_open_listening(work.shared.config.most_backlog);
                work.stack.set_fast_open(id, rules);
                id
            }
        };
        work.shared.owners.join_listener(id, place, sharing);
        socket.local = Some(local);
        socket.phase = Phase::Listening(Listening {
            id,
            accepts: Default::default(),
            backlog,
            since: None,
        });
        Ok(())
    }

    /// Executes ACCEPT, which reserves the sockets and is answered when connections are available.
    pub(super) fn accept(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        accept: Accept,
    ) -> Result<(), Status> {
        let config = &work.shared.config;
        let sockets = self.sockets.len();
        let Phase::Listening(listening) = &mut self.sockets[slot as usize].phase else {
            return Err(Status::WrongState);
        };
        let count = u32::from(accept.count);
        // All of the connections must fit in the backlog and in one response.
        let most = listening.backlog.min(self.ring_depth - 1).max(1);
        if count > most || accept.first.checked_add(count - 1).is_none() {
            return Err(Status::BadValue);
        }
        if listening.accepts.len() >= config.most_accepts {
            return Err(Status::TooManyRequests);
        }
        if sockets + count as usize > config.most_sockets as usize {
            return Err(Status::TooManySockets);
        }
        let numbers = &self.numbers;
        if accept.numbers().any(|number| numbers.get(number).is_some()) {
            return Err(Status::SocketInUse);
        }
        self.accepts.push(&mut listening.accepts, accept);
        for number in accept.numbers() {
            self.insert(number, Phase::Reserved);
        }
        self.serve_accepts(work, slot);
        Ok(())
    }

    /// Returns whether the socket is a listener with a pending ACCEPT.
    pub(super) fn is_accepting(&self, slot: u32) -> bool {
        match &self.sockets[slot as usize].phase {
            Phase::Listening(listening) => self.accepts.front(&listening.accepts).is_some(),
            _ => false,
        }
    }

    /// Returns the sockets with which this one may share a listener.
    fn sharing(&self, slot: u32) -> Option<Sharing> {
        let options = self.sockets[slot as usize].options.as_deref();
        self.user.zip(options.and_then(Options::share))
    }

    /// Returns the listener at `local` if the socket may share it, and `None` if there is no listener.
    ///
    /// # Errors
    /// There is a listener that the socket may not share, or one at another address that takes the same connections.
    fn listener_to_join(
        &self,
        work: &Work<'_, P>,
        slot: u32,
        local: Endpoint,
    ) -> Result<Option<ListenerId>, Status> {
        let (stack, sharing) = (&*work.stack, self.sharing(slot));
        let mut listeners = stack.listeners();
        let Some(id) = listeners.find(|&id| overlap(stack.listening_at(id), local)) else {
            let permitted = work.shared.ports.may_listen(local, sharing);
            return permitted.then_some(None).ok_or(Status::AddressInUse);
        };
        let is_same = stack.listening_at(id) == local;
        let joins = is_same && work.shared.owners.may_join(id, sharing);
        joins.then_some(Some(id)).ok_or(Status::AddressInUse)
    }

    /// Answers ACCEPTs for which connections are available.
    pub(super) fn serve_accepts(&mut self, work: &mut Work<'_, P>, slot: u32) {
        while self.serve_accept(work, slot) {}
    }

    /// Answers the oldest ACCEPT if connections are available. Returns whether they were.
    pub(super) fn serve_accept(&mut self, work: &mut Work<'_, P>, slot: u32) -> bool {
        let Phase::Listening(listening) = &mut self.sockets[slot as usize].phase else {
            return false;
        };
        let Some(&accept) = self.accepts.front(&listening.accepts) else {
            return false;
        };
        let there = work.stack.accept_queue_len(listening.id);
        let count = usize::from(accept.count);
        if there < count && !self.has_timed_out(work.now, slot, accept, there > 0) {
            return false;
        }
        let (count, room) = (there.min(count), work.shared.on_board.room());
        if room < count {
            let place = self.place(slot);
            work.shared.on_board.wait(place);
        }
        if room == 0 {
            return false;
        }
        self.take_accept(work, slot, count.min(room));
        true
    }

    /// Returns whether an ACCEPT has timed out, so that it must be answered with fewer connections than it asked for. Starts the timeout if
    /// necessary.
    fn has_timed_out(&mut self, now: Time, slot: u32, accept: Accept, any: bool) -> bool {
        let Phase::Listening(listening) = &mut self.sockets[slot as usize].phase else {
            return false;
        };
        if !any {
            self.forget_deadline(slot);
            return false;
        }
        let is_new = listening.since.is_none();
        let since = *listening.since.get_or_insert(now);
        let Some(until) = accept.runs_out(since) else {
            return false;
        };
        if is_new && until > now {
            self.deadlines.push((until, slot));
        }
        until <= now
    }

    /// Cancels the timeout of the bulk accept at this listener.
    pub(super) fn forget_deadline(&mut self, slot: u32) {
        if let Phase::Listening(listening) = &mut self.sockets[slot as usize].phase
            && listening.since.take().is_some()
        {
            self.deadlines.retain(|&(_, waiting)| waiting != slot);
        }
    }

    /// Answers bulk accepts that have timed out, and exports connections that did not settle in time.
    pub(super) fn handle_timeouts(&mut self, work: &mut Work<'_, P>) {
        while let Some(index) = self
            .deadlines
            .iter()
            .position(|&(until, _)| until <= work.now)
        {
            let (_, slot) = self.deadlines.swap_remove(index);
            self.serve_accepts(work, slot);
        }
        self.end_settling(work);
    }

    /// Answers the oldest ACCEPT with the first `count` connections, which must be available.
    fn take_accept(&mut self, work: &mut Work<'_, P>, slot: u32, count: usize) {
        self.forget_deadline(slot);
        let socket = &mut self.sockets[slot as usize];
        let (number, options) = (socket.number, socket.options.as_deref().copied());
        let Phase::Listening(listening) = &mut socket.phase else {
            return;
        };
        let id = listening.id;
        let Some(accept) = self.accepts.pop(&mut listening.accepts) else {
            return;
        };
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        entry.push(Descriptor::default());
        let mut numbers = accept.numbers();
        for reserved in numbers.by_ref().take(count) {
            let Some(conn) = work.stack.accept(id) else {
                debug_assert!(false, "it waits to be accepted");
                break;
            };
            let remote = self.take_in(work, reserved, conn, options.as_ref());
            let socket = reserved;
            entry.push(write_peer(Peer { socket, remote }));
        }
        let status = match count < accept.count.into() {
            true => Status::Partial,
            false => Status::Ok,
        };
        self.answer_accept(work.now, number, accept.tag, status, &mut entry);
        self.entry = entry;
        for left in numbers {
            self.release_reserved(work.now, left);
        }
    }

    /// Writes the head of the response to an ACCEPT in front of the peers, and sends the response. The head itself holds a single peer.
    fn answer_accept(
        &mut self,
        now: Time,
        socket: u32,
        tag: u32,
        status: Status,
        entry: &mut Vec<Descriptor>,
    ) {
        let peers = &entry[1..];
        let outcome = match peers {
            [peer] => {
                let peer = baton_bus::descriptor::read_peer(peer);
                peer.map(|peer| Outcome::Accepted(peer.remote))
                    .unwrap_or(Outcome::AcceptedBulk { count: 0 })
            }
            _ => Outcome::AcceptedBulk {
                count: peers.len() as u16,
            },
        };
        let response = Response {
            socket,
            tag,
            status,
            outcome,
        };
        entry[0] = response.encode();
        let len = 1 + entry[0].continuations();
        entry.truncate(len);
        self.responses
            .push_entry(now, &mut self.stats, &response, entry);
    }

    /// Assigns a connection to a reserved socket. Returns the peer.
    fn take_in(
        &mut self,
        work: &mut Work<'_, P>,
        number: u32,
        conn: ConnId,
        options: Option<&Options>,
    ) -> Endpoint {
        let flow = work.stack.flow(conn);
        let slot = self.numbers.get(number).expect("the socket is reserved");
        if let Some(options) = options {
            options.apply_to(work.now, work.stack, conn);
        }
        if let Some(user) = self.user {
            work.stack.set_user(conn, user);
        }
        let place = self.place(slot);
        let taken = work.shared.on_board.take_connection();
        debug_assert_eq!(taken, Ok(()), "there was room");
        work.shared.owners.give(conn, place);
        self.sockets[slot as usize].phase = Phase::Connected(conn);
        self.stats.accepted += 1;
        flow.remote
    }

    /// Frees a reserved socket that is not needed, and cancels the pending RECVs of the socket.
    pub(super) fn release_reserved(&mut self, now: Time, number: u32) {
        let Some(slot) = self.numbers.get(number) else {
            return;
        };
        self.answer_receives(now, slot, Status::Cancelled);
        self.free(slot);
    }
}
