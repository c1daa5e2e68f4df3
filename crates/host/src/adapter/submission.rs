//! Requests that wait to be submitted to the adapter, for lack of space or until the end of the unit of work.

use super::listening::ListenOptions;
use super::socket::{Intents, Operation, Phase, SetUp};
use super::stats::NoRoom;
use super::{OsLayer, Request};
use baton_bus::descriptor::{self, Action, Close, SocketOption};
use baton_bus::link::Inline;
use baton_bus::{HostLink, Urgency};
use baton_wire::Time;

/// Outcome of submitting the requests of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// All requests that are possible now were submitted; the others are tried again when resources are released.
    Done,
    /// The ring is full.
    NoRoom,
}

impl<P: Inline> OsLayer<P> {
    /// Schedules a socket to submit requests at the end of the unit of work.
    pub(super) fn schedule(&mut self, number: u32) {
        let queued = &mut self.socket_mut(number).queued.submitting;
        if !std::mem::replace(queued, true) {
            self.submitting.push_back(number);
        }
    }

    /// Adds an intent to a socket, and schedules the socket.
    pub(super) fn intend(&mut self, number: u32, intent: Intents) {
        self.socket_mut(number).intents |= intent;
        self.schedule(number);
    }

    /// Submits the requests of scheduled sockets in order, as far as there is space.
    pub(super) fn submit_all<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L) {
        for _ in 0..self.submitting.len() {
            let Some(number) = self.submitting.pop_front() else {
                return;
            };
            if self.settle(now, link, number) == Settled::NoRoom {
                self.submitting.push_front(number);
                self.room_in_vain = self.queue.room();
                return;
            }
            self.socket_mut(number).queued.submitting = false;
        }
        self.room_in_vain = 0;
    }

    fn settle<L: HostLink<Data = P>>(&mut self, now: Time, link: &mut L, number: u32) -> Settled {
        while self.socket(number).intents.contains(Intents::SET_UP) {
            if !self.set_up(now, number) {
                return Settled::NoRoom;
            }
        }
        if self.socket(number).intents.contains(Intents::ABORT) {
            if !self.submit_close(now, number, Close::Abort) {
                return Settled::NoRoom;
            }
            return Settled::Done;
        }
        if self.settle_sending(now, link, number) == Settled::NoRoom {
            return Settled::NoRoom;
        }
        // Receiving never waits for sending: a peer that is sending, too, may not read before its data is read.
        if self.socket(number).intents.contains(Intents::RECEIVE) {
            if !self.post_buffers(now, link, number) {
                return Settled::NoRoom;
            }
            self.socket_mut(number).intents.remove(Intents::RECEIVE);
        }
        match self.wake_waiting_writer(link, number) {
            true => Settled::Done,
            false => Settled::NoRoom,
        }
    }

    /// Sends the held data, and closes or shuts down sending once all of it was submitted.
    fn settle_sending<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> Settled {
        if self.socket(number).intents.contains(Intents::IMPORT)
            && !self.give_state(now, link, number)
        {
            return Settled::NoRoom;
        }
        if self.socket(number).is_leaving() {
            let wants_more = self.socket(number).intents.contains(Intents::EXPORT);
            return match wants_more && !self.submit_export(now, link, number) {
                true => Settled::NoRoom,
                false => Settled::Done,
            };
        }
        let ends = Intents::FLUSH | Intents::SHUT | Intents::CLOSE;
        if self.socket(number).intents.intersects(ends) {
            match self.flush(now, link, number, false) {
                Ok(()) => {}
                Err(NoRoom::Ring) => return Settled::NoRoom,
                Err(_) => return Settled::Done,
            }
            self.socket_mut(number).intents.remove(Intents::FLUSH);
        }
        for (intent, how) in [(Intents::SHUT, Close::Write), (Intents::CLOSE, Close::Both)] {
            if self.socket(number).intents.contains(intent) && !self.submit_close(now, number, how)
            {
                return Settled::NoRoom;
            }
        }
        Settled::Done
    }

    /// Submits the next step of setting up a socket. Returns false if there is no space.
    fn set_up(&mut self, now: Time, number: u32) -> bool {
        let entry = self.socket(number);
        let endpoint = entry.endpoint;
        let (action, operation, next) = match entry.set_up {
            SetUp::Socket if entry.phase == Phase::Packets => {
                (Action::PacketSocket, Operation::Socket, SetUp::Bind)
            }
            SetUp::Bind if entry.phase == Phase::Packets => {
                (Action::Bind(endpoint), Operation::Bind, SetUp::Name)
            }
            SetUp::Socket if entry.phase == Phase::Listening => {
                let next = match self.options_of(number) {
                    ListenOptions { share: 1.., .. } => SetUp::Share,
                    ListenOptions { fast_open: 1.., .. } => SetUp::FastOpen,
                    _ => SetUp::Bind,
                };
                (Action::Socket, Operation::Socket, next)
            }
            SetUp::Share => {
                let options = self.options_of(number);
                let (option, value) = (SocketOption::Share, options.share);
                let next = match options.fast_open {
                    0 => SetUp::Bind,
                    _ => SetUp::FastOpen,
                };
                let action = Action::SetOption { option, value };
                (action, Operation::SetUpOption, next)
            }
            SetUp::FastOpen => {
                let option = SocketOption::FastOpen;
                let (value, next) = match entry.phase {
                    Phase::Listening => (self.options_of(number).fast_open, SetUp::Bind),
                    _ => (entry.opens_fast.unwrap_or(0), SetUp::Connect),
                };
                let action = Action::SetOption { option, value };
                (action, Operation::SetUpOption, next)
            }
            SetUp::Socket if entry.opens_fast.is_some() => {
                (Action::Socket, Operation::Socket, SetUp::FastOpen)
            }
            SetUp::Socket => (Action::Socket, Operation::Socket, SetUp::Connect),
            SetUp::Bind => (Action::Bind(endpoint), Operation::Bind, SetUp::Listen),
            SetUp::Listen => {
                let backlog = self.listener(number).map_or(0, |l| l.backlog);
                let next = match endpoint.port {
                    0 => SetUp::Name,
                    _ => SetUp::Done,
                };
                (Action::Listen { backlog }, Operation::Listen, next)
            }
            SetUp::Name => (Action::Name, Operation::Name, SetUp::Done),
            SetUp::Connect => (Action::Connect(endpoint), Operation::Connect, SetUp::Done),
            SetUp::Done => {
                self.socket_mut(number).intents.remove(Intents::SET_UP);
                return true;
            }
        };
        let done = self.request(now, number, action, operation, Urgency::Awaited);
        if done {
            self.socket_mut(number).set_up = next;
            self.settle_pledge(number);
        }
        done
    }

    fn submit_close(&mut self, now: Time, number: u32, how: Close) -> bool {
        let (operation, intent) = match how {
            Close::Write => (Operation::Shut, Intents::SHUT),
            Close::Both => (Operation::Close, Intents::CLOSE),
            Close::Abort => (Operation::Close, Intents::all()),
        };
        let done = self.request(now, number, Action::Close(how), operation, Urgency::Awaited);
        if done {
            self.socket_mut(number).intents.remove(intent);
        }
        done
    }

    /// Queues a request without data. Returns false if there is no space.
    pub(super) fn request(
        &mut self,
        now: Time,
        number: u32,
        action: Action,
        operation: Operation,
        urgency: Urgency,
    ) -> bool {
        if self.queue.room() == 0 {
            return false;
        }
        let tag = self.remember(number, operation);
        let request = descriptor::Request {
            socket: number,
            tag,
            action,
        };
        let pushed = self.queue.push(now, &[request.encode()], 0, urgency);
        debug_assert!(pushed, "there was room");
        true
    }

    /// Records an unanswered request. Returns its tag.
    pub(super) fn remember(&mut self, number: u32, operation: Operation) -> u32 {
        self.stats.requests += 1;
        self.releasing += usize::from(operation.is_releasing());
        let entry = &mut self.sockets[number as usize];
        let chain = match operation {
            Operation::Send { .. } => &mut entry.sends,
            Operation::Receive { .. } => &mut entry.receives,
            _ => &mut entry.control,
        };
        let request = Request {
            socket: number,
            operation,
        };
        self.requests.push(chain, request)
    }
}
