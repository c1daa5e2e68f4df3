//! One application: its sockets, its requests, its responses.

use super::caching::{self, Cache};
use super::config::AdapterConfig;
use super::custody::Custody;
use super::dma::{DmaRequest, Job};
use super::export;
use super::import::Part;
use super::limits::Limits;
use super::listening::Accept;
use super::numbers::Numbers;
use super::on_board::OnBoard;
use super::owners::{Owners, Place};
use super::packets::{HostPacket, Wanted};
use super::ports::Ports;
use super::receiving::Receive;
use super::responses::Responses;
use super::sending::Send;
use super::socket::{Phase, Socket};
use super::stats::SessionStats;
use crate::activity::ActivityClock;
use baton_bus::Chains;
use baton_bus::descriptor::{
    Action, Buffer, FilePlace, MOST_BLOCKS_SENT, MOST_FILE_BYTES, MOST_INLINE_BYTES, Opcode,
    Outcome, Request, Response, SocketInfo, Status, entries, write_inline,
};
use baton_bus::link::{Inline, Violation};
use baton_bus::{Batching, BatchingError, Descriptor, Urgency};
use baton_tcp::{ConnId, Event, Holding, Stack};
use baton_wire::{Endpoint, Payload, Time};
use slab::Slab;
use std::collections::VecDeque;

/// State that all sessions share.
#[derive(Debug)]
pub(super) struct Shared<P> {
    pub(super) config: AdapterConfig,
    pub(super) owners: Owners,
    pub(super) ports: Ports,
    pub(super) limits: Limits,
    pub(super) on_board: OnBoard,
    pub(super) activity: ActivityClock,
    /// Packet sockets, and the packets that they receive.
    pub(super) wanted: Vec<Wanted>,
    /// Packets of hosts that wait to be polled.
    pub(super) packets: VecDeque<HostPacket<P>>,
    /// Number of packets of hosts, in both directions.
    pub(super) packets_passed: u64,
    /// Number of connections exported to their hosts.
    pub(super) exported: u64,
    /// Decides which connections may be imported; `None` permits all.
    pub(super) custody: Option<Box<dyn Custody<P>>>,
}

impl<P> Shared<P> {
    /// Removes a connection from the adapter and frees its memory.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.owners.forget(conn);
        self.on_board.free_connection();
    }
}

/// Context of one piece of work.
#[derive(Debug)]
pub(super) struct Work<'a, P> {
    pub(super) now: Time,
    pub(super) stack: &'a mut Stack<P>,
    pub(super) shared: &'a mut Shared<P>,
}

/// One application. Slots of sockets are valid until [`Session::free`].
#[derive(Debug)]
pub(super) struct Session<P> {
    /// Slot of this session.
    pub(super) id: u32,
    pub(super) numbers: Numbers,
    pub(super) sockets: Slab<Socket>,
    pub(super) sends: Chains<Send<P>>,
    pub(super) receives: Chains<Receive>,
    pub(super) accepts: Chains<Accept>,
    /// Requested data transfers that have not completed.
    pub(super) jobs: Slab<Job>,
    /// Requested data transfers that have not been passed to the link yet.
    pub(super) asked: VecDeque<DmaRequest<P>>,
    /// Timeouts of bulk accepts, with the slots of their listeners.
    pub(super) deadlines: Vec<(Time, u32)>,
    /// Deadlines of settling connections, with the slots and numbers of their sockets, by deadline. Some of these connections may have left already.
    pub(super) settling: VecDeque<(Time, u32, u32)>,
    /// Slots of sockets with a pending cumulative answer.
    pub(super) owed: Vec<u32>,
    pub(super) responses: Responses,
    pub(super) cache: Cache<P>,
    /// User that runs the application, if known.
    pub(super) user: Option<u32>,
    /// Bytes of the states of connections that are being imported or exported.
    pub(super) states: u32,
    holding: Holding,
    /// Start of the adapter's clock, nanoseconds on a clock that the application shares.
    pub(super) epoch_ns: Option<u64>,
    pub(super) most_buffer: u32,
    pub(super) ring_depth: u32,
    pub(super) stats: SessionStats,
    /// Reused buffer for assembling entries.
    pub(super) entry: Vec<Descriptor>,
}

impl<P: Payload + Inline> Session<P> {
    pub(super) fn new(
        id: u32,
        config: &AdapterConfig,
        batching: &Batching,
        ring_depth: u32,
    ) -> Result<Self, BatchingError> {
        Ok(Self {
            id,
            numbers: Numbers::new(config.most_sockets),
            sockets: Slab::new(),
            sends: Chains::new(),
            receives: Chains::new(),
            accepts: Chains::new(),
            jobs: Slab::new(),
            asked: VecDeque::new(),
            deadlines: Vec::new(),
            settling: VecDeque::new(),
            owed: Vec::new(),
            responses: Responses::new(batching, ring_depth, config.data_at_once)?,
            cache: Cache::new(),
            user: None,
            states: 0,
            holding: Holding::default(),
            epoch_ns: None,
            most_buffer: batching.max_transfer_bytes,
            ring_depth,
            stats: SessionStats::default(),
            entry: Vec::new(),
        })
    }

    // --- requests ---

    /// Executes the requests of one transfer, in order.
    pub(super) fn handle_requests(
        &mut self,
        work: &mut Work<'_, P>,
        requests: &[Descriptor],
    ) -> Result<(), Violation> {
        for entry in entries(requests) {
            let entry = entry?;
            let request = Request::decode(&entry[0])?;
            self.check_bounds(&request.action)?;
            self.stats.requests += 1;
            self.handle_request(work, &request, entry)?;
        }
        Ok(())
    }

    /// Checks that a buffer is not longer than agreed on and does not extend beyond the end of memory or, if a SEND refers to a file,
    /// beyond the last possible offset. Only the link can check whether the memory is shared, or the file was lent.
    fn check_bounds(&self, action: &Action) -> Result<(), Violation> {
        let mut most = self.most_buffer;
        let (address, len) = match *action {
            Action::Send {
                data: Buffer::Memory { address, len },
                ..
            } => match FilePlace::at(address) {
                Some(place) if len <= MOST_FILE_BYTES && place.has_room_for(len) => return Ok(()),
                _ => (address, len),
            },
            Action::Receive { address, len }
            | Action::Forward { address, len }
            | Action::Import { address, len, .. }
            | Action::Export { address, len }
            | Action::CacheInsert { address, len, .. } => (address, len),
            Action::SendCached { len, .. } => {
                most = most.saturating_mul(MOST_BLOCKS_SENT);
                (0, len)
            }
            _ => return Ok(()),
        };
        if len > most {
            return Err(Violation::Length(len));
        }
        match FilePlace::at(address.saturating_add(len.into())) {
            None => Ok(()),
            Some(_) => Err(Violation::Range { address, len }),
        }
    }

    fn handle_request(
        &mut self,
        work: &mut Work<'_, P>,
        request: &Request,
        entry: &[Descriptor],
    ) -> Result<(), Violation> {
        let (number, tag) = (request.socket, request.tag);
        let result = match (request.action, self.numbers.get(number)) {
            (action, slot) if work.shared.custody.is_some() && self.acts_alone(&action, slot) => {
                Err(Status::ImportsOnly)
            }
            (Action::Socket, slot) => self.make(work, number, tag, slot),
            (Action::PacketSocket, Some(_)) => Err(Status::SocketInUse),
            (Action::PacketSocket, None) => self.make_packet_socket(work, number, tag),
            (Action::Import { address, len, more }, slot) => {
                let part = Part {
                    tag,
                    address,
                    len,
                    more,
                };
                self.import(work, number, slot, part)
            }
            (Action::CacheInit, _) => {
                self.cache_init(work, number, tag);
                Ok(())
            }
            (
                Action::CacheInsert {
                    address,
                    len,
                    offset,
                },
                _,
            ) => {
                let place = caching::Place {
                    tag,
                    address,
                    len,
                    offset,
                };
                self.cache_insert(work, number, place)
            }
            (_, None) => Err(Status::NoSuchSocket),
            (Action::Bind(local), Some(slot)) => self.bind(work, slot, tag, local),
            (Action::Listen { backlog }, Some(slot)) => self.listen(work, slot, tag, backlog),
            (
                Action::Accept {
                    first,
                    count,
                    timeout_us,
                },
                Some(slot),
            ) => {
                let accept = Accept {
                    tag,
                    first,
                    count,
                    timeout_us,
                };
                self.accept(work, slot, accept)
            }
            (Action::Connect(remote), Some(slot)) => self.connect(work, slot, tag, remote),
            (Action::Close(close), Some(slot)) => self.close(work, slot, tag, close),
            (Action::SetOption { option, value }, Some(slot)) => {
                self.set_option(work, slot, tag, option, value)
            }
            (Action::Status, Some(slot)) => {
                self.respond_with_status(work, slot, tag);
                Ok(())
            }
            (Action::Name, Some(slot)) => self.respond_with_name(work, slot, tag),
            (Action::Info, Some(slot)) => self.respond_with_info(work, slot, tag),
            (Action::Cancel { target }, Some(slot)) => self.cancel(work, slot, tag, target),
            (Action::Send { data, more, times }, Some(slot)) => {
                let data = self.data_of(data, entry)?;
                let send = Send {
                    times,
                    ..Send::new(tag, data, more)
                };
                self.send(work, slot, send)
            }
            (Action::SendCached { offset, len, more }, Some(slot)) => {
                self.send_cached(work, slot, tag, (offset, len), more)
            }
            (Action::Forward { address, len }, Some(slot)) => {
                self.forward(work, slot, tag, (address, len))
            }
            (Action::Export { address, len }, Some(slot)) => {
                self.export(work, slot, export::Place { tag, address, len })
            }
            (Action::Receive { address, len }, Some(slot)) => {
                self.receive(work, slot, Receive::new(tag, address, len))
            }
        };
        if let Err(status) = result {
            self.refuse_part(work.now, request);
            self.respond(
                work.now,
                number,
                tag,
                status,
                Outcome::of_failed(&request.action),
            );
        }
        Ok(())
    }

    /// Returns whether a request would make the adapter send or answer packets that belong to no imported connection.
    fn acts_alone(&self, action: &Action, slot: Option<u32>) -> bool {
        let is_about_packets =
            slot.is_some_and(|slot| matches!(self.sockets[slot as usize].phase, Phase::Packets));
        match action {
            Action::Listen { .. } | Action::Connect(_) | Action::Forward { .. } => true,
            Action::Bind(_) => !is_about_packets,
            Action::Send { .. } | Action::SendCached { .. } => is_about_packets,
            _ => false,
        }
    }

    /// Executes SOCKET.
    fn make(
        &mut self,
        work: &mut Work<'_, P>,
        number: u32,
        tag: u32,
        slot: Option<u32>,
    ) -> Result<(), Status> {
        if slot.is_some() {
            return Err(Status::SocketInUse);
        }
        self.may_add(work)?;
        self.insert(number, Phase::Idle);
        let done = Outcome::Done(Opcode::Socket);
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    /// Checks whether one more socket is permitted.
    pub(super) fn may_add(&self, work: &Work<'_, P>) -> Result<(), Status> {
        match self.sockets.len() < work.shared.config.most_sockets as usize {
            true => Ok(()),
            false => Err(Status::TooManySockets),
        }
    }

    /// Executes STATUS.
    fn respond_with_status(&mut self, work: &mut Work<'_, P>, slot: u32, tag: u32) {
        let info = self.info(work.stack, slot);
        let number = self.sockets[slot as usize].number;
        let outcome = Outcome::Status(info);
        self.respond(work.now, number, tag, Status::Ok, outcome);
    }

    /// Executes NAME.
    fn respond_with_name(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
    ) -> Result<(), Status> {
        let socket = &self.sockets[slot as usize];
        let local = match socket.phase {
            Phase::Connecting { conn, .. } | Phase::Connected(conn) => {
                Some(work.stack.flow(conn).local)
            }
            Phase::Packets => {
                let bound = socket.local.ok_or(Status::WrongState)?;
                let own = work.shared.ports.own_like(bound.addr);
                Some(Endpoint::new(
                    own.ok_or(Status::AddressNotAvailable)?,
                    bound.port,
                ))
            }
            _ => socket.local,
        };
        let local = local.ok_or(Status::WrongState)?;
        let number = socket.number;
        self.respond(work.now, number, tag, Status::Ok, Outcome::Name(local));
        Ok(())
    }

    fn respond_with_info(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
    ) -> Result<(), Status> {
        let socket = &self.sockets[slot as usize];
        let (number, conn) = (socket.number, socket.open_conn());
        let conn = conn.ok_or(Status::WrongState)?;
        let unacknowledged = work.stack.unacknowledged(conn);
        let bytes = work.stack.info(work.now, conn).to_bytes(unacknowledged);
        if bytes.len() > MOST_INLINE_BYTES {
            return Err(Status::Memory);
        }
        let len = bytes.len() as u16;
        let response = Response {
            socket: number,
            tag,
            status: Status::Ok,
            outcome: Outcome::Info { len },
        };
        self.respond_inline(work.now, &response, |head, entry| {
            write_inline(head, &bytes, entry);
        });
        Ok(())
    }

    /// Answers a request with inline data, which `embed` puts into the head and behind it.
    pub(super) fn respond_inline(
        &mut self,
        now: Time,
        response: &Response,
        embed: impl FnOnce(&mut Descriptor, &mut Vec<Descriptor>),
    ) {
        let mut head = response.encode();
        let mut entry = std::mem::take(&mut self.entry);
        entry.clear();
        entry.push(head);
        embed(&mut head, &mut entry);
        entry[0] = head;
        self.responses
            .push_entry(now, &mut self.stats, response, &entry);
        self.entry = entry;
    }

    /// Returns the state of a socket. Counts that do not fit are capped.
    pub(super) fn info(&self, stack: &Stack<P>, slot: u32) -> SocketInfo {
        let socket = &self.sockets[slot as usize];
        let (sending, receiving) = (&socket.sending, &socket.receiving);
        let short = |len: u32| u16::try_from(len).unwrap_or(u16::MAX);
        let acceptable = match socket.phase {
            Phase::Listening(listening) => stack.accept_queue_len(listening.id) as u32,
            _ => 0,
        };
        let (send_room, unread) = match socket.open_conn() {
            Some(conn) => {
                let taken = sending.fetching_bytes as usize;
                let room = stack.send_space(conn).saturating_sub(taken);
                (room as u32, stack.readable_len(conn) as u32)
            }
            None => (0, 0),
        };
        SocketInfo {
            send_room,
            unread,
            sends_waiting: short(sending.waiting.len() + sending.fetching.len()),
            receives_waiting: short(receiving.posted.len() + receiving.filling.len()),
            acceptable: short(acceptable),
        }
    }

    /// Returns when the next timer is due; [`Time::NEVER`] if none runs.
    #[inline]
    pub(super) fn due(&self) -> Time {
        let responses = self.responses.poll_timeout().unwrap_or(Time::NEVER);
        let deadlines = self.deadlines.iter().map(|&(until, _)| until);
        let settling = self.settling.front().map(|&(until, ..)| until);
        deadlines.chain(settling).fold(responses, Time::min)
    }

    // --- events of the stack ---

    /// Processes an event of a socket's connection.
    pub(super) fn handle_event(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        conn: ConnId,
        event: &Event,
    ) {
        let socket = &mut self.sockets[slot as usize];
        if socket.imported {
            work.shared.activity.count(&mut socket.activity);
        }
        match event {
            Event::Connected => self.connected(work, slot),
            Event::Readable => {
                self.deliver(work, slot);
                self.report_unread(work, slot);
                self.give_up_if_failed(work, slot);
            }
            Event::Acknowledged(_) => {
                let sending = &self.sockets[slot as usize].sending;
                if !(sending.waiting.is_empty() && sending.unwritten.is_empty()) {
                    self.feed(work, slot);
                }
                self.leave_when_quiet(work, slot);
            }
            Event::TransmitTimes => self.tell_transmit_times(work, slot, conn),
            Event::PeerClosed => {
                self.sockets[slot as usize].receiving.peer_closed = true;
                self.report_end_when_delivered(work, slot);
                self.report_unread(work, slot);
            }
            Event::Closed(reason) => {
                work.shared.forget(conn);
                self.over(work, slot, super::closing::status_of(*reason));
            }
            // Descriptors cannot express urgent data, which is read with other data.
            Event::Urgent | Event::Acceptable(_) => {}
        }
    }

    // --- used by all parts ---

    /// Adds a socket.
    pub(super) fn insert(&mut self, number: u32, phase: Phase) -> u32 {
        let slot = self.sockets.insert(Socket::new(number, phase)) as u32;
        self.numbers.insert(number, slot);
        slot
    }

    /// Removes a socket, whose chains must be empty.
    pub(super) fn free(&mut self, slot: u32) {
        self.end_move(slot);
        let socket = self.sockets.remove(slot as usize);
        self.numbers.remove(socket.number);
        let (sending, receiving) = (&socket.sending, &socket.receiving);
        debug_assert!(sending.is_done() && sending.owed.is_none());
        debug_assert!(receiving.posted.is_empty() && receiving.filling.is_empty());
    }

    /// Ends the import or export of a connection, whether it succeeded or not.
    pub(super) fn end_move(&mut self, slot: u32) {
        let moving = self.sockets[slot as usize].moving.take();
        self.states -= moving.map_or(0, |moving| moving.state_bytes());
    }

    /// Reports to the stack how much memory the states take.
    #[inline]
    pub(super) fn count_states(&mut self, work: &mut Work<'_, P>) {
        work.stack.hold(&mut self.holding, self.user, self.states);
    }

    /// Returns the place of a socket of this session.
    pub(super) fn place(&self, slot: u32) -> Place {
        let session = self.id;
        Place { session, slot }
    }

    /// Answers a request.
    #[inline]
    pub(super) fn respond(
        &mut self,
        now: Time,
        socket: u32,
        tag: u32,
        status: Status,
        outcome: Outcome,
    ) {
        self.answer_as(now, socket, tag, status, outcome, None);
    }

    /// Answers a request. `urgency` overrides the urgency of the response.
    #[inline]
    pub(super) fn answer_as(
        &mut self,
        now: Time,
        socket: u32,
        tag: u32,
        status: Status,
        outcome: Outcome,
        urgency: Option<Urgency>,
    ) {
        let response = Response {
            socket,
            tag,
            status,
            outcome,
        };
        self.responses
            .push(now, &mut self.stats, &response, urgency);
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, now: Time, socket: u32, status: Status, outcome: Outcome) {
        self.respond(now, socket, 0, status, outcome);
    }
}
