//! Listeners: ACCEPTs posted ahead, and the connections that they return.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::{Action, Outcome, Response, Status, read_peer};
use baton_bus::link::{Inline, Violation};
use baton_bus::{Descriptor, HostLink, Urgency};
use baton_wire::{Endpoint, Time};
use std::collections::VecDeque;

/// Options of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenOptions {
    /// Maximum number of connections with TCP Fast Open (RFC 7413) whose handshake is not complete; 0 disables Fast Open. Such connections
    /// are accepted, read and written like all others, but in a network that duplicates packets a request may arrive twice, on two
    /// connections: use it only for services where that does no harm (RFC 7413 2.1).
    pub fast_open: u32,
    /// Listeners of several processes of one user, with the same number here, may have the same address. Each in turn accepts a connection,
    /// as long as its process does not have too many that wait to be accepted. 0 means that the listener has its address alone.
    pub share: u32,
}

/// One listener.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub number: u32,
    pub backlog: u32,
    pub options: ListenOptions,
    /// Connections that the application has not accepted yet.
    pub untaken: VecDeque<u32>,
    /// Number of socket numbers reserved for future connections.
    pub reserved: usize,
    /// Whether the adapter has no resources for more connections until a socket is closed.
    pub paused: bool,
}

impl<P: Inline> OsLayer<P> {
    /// Waits for connections to `local`, of which at most `backlog` wait on the adapter. For port 0 the adapter chooses a port, which
    /// [`OsLayer::local`] returns once [`OsLayer::is_listening`]. If listening fails, the listener becomes readable and
    /// [`OsLayer::error_of`] says why.
    ///
    /// # Errors
    /// The maximum number of sockets is reached.
    pub fn listen(&mut self, now: Time, local: Endpoint, backlog: u32) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let entry = self.occupy(number, Phase::Listening);
        entry.endpoint = local;
        entry.set_up = SetUp::Socket;
        self.listeners.push(Listener {
            number,
            backlog,
            options: ListenOptions::default(),
            untaken: VecDeque::new(),
            reserved: 0,
            paused: false,
        });
        self.intend(number, Intents::SET_UP);
        Ok(SocketId(number))
    }

    /// Works like [`OsLayer::listen`], with options.
    ///
    /// # Errors
    /// The errors of [`OsLayer::listen`].
    pub fn listen_with(
        &mut self,
        now: Time,
        local: Endpoint,
        backlog: u32,
        options: ListenOptions,
    ) -> Result<SocketId, Status> {
        let listener = self.listen(now, local, backlog)?;
        if let Some(listener) = self.listener_mut(listener.0) {
            listener.options = options;
        }
        Ok(listener)
    }

    /// Returns the options of a listener.
    pub(super) fn options_of(&self, number: u32) -> ListenOptions {
        self.listener(number)
            .map(|it| it.options)
            .unwrap_or_default()
    }

    /// Accepts the oldest connection of any listener.
    pub fn accept(&mut self) -> Option<SocketId> {
        let number = self
            .listeners
            .iter_mut()
            .find_map(|listener| listener.untaken.pop_front())?;
        Some(self.take(number))
    }

    /// Accepts the oldest connection of one listener.
    pub fn accept_on(&mut self, listener: SocketId) -> Option<SocketId> {
        let number = self.listener_mut(listener.0)?.untaken.pop_front()?;
        Some(self.take(number))
    }

    /// Returns the number of connections of a listener that can be accepted.
    pub fn acceptable(&self, listener: SocketId) -> usize {
        self.listener(listener.0).map_or(0, |l| l.untaken.len())
    }

    fn take(&mut self, number: u32) -> SocketId {
        self.stats.accepted += 1;
        self.acceptable = self.has_untaken();
        let entry = self.socket_mut(number);
        entry.untaken = false;
        if !entry.received.is_empty() || entry.ended || entry.error.is_some() {
            self.wake_reader(number);
        }
        SocketId(number)
    }

    pub(super) fn has_untaken(&self) -> bool {
        self.listeners.iter().any(|l| !l.untaken.is_empty())
    }

    pub(super) fn listener(&self, number: u32) -> Option<&Listener> {
        self.listeners.iter().find(|l| l.number == number)
    }

    fn listener_mut(&mut self, number: u32) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|l| l.number == number)
    }

    /// Posts ACCEPTs as far as there are numbers, buffers and space in the ring.
    pub(super) fn post_accepts<L: HostLink<Data = P>>(&mut self, now: Time, link: &L) {
        for index in 0..self.listeners.len() {
            while self.wants_accept(index) {
                if !self.post_accept(now, link, index) {
                    self.starved = true;
                    break;
                }
            }
        }
    }

    fn wants_accept(&self, index: usize) -> bool {
        let listener = &self.listeners[index];
        let entry = self.socket(listener.number);
        let bulk = usize::from(self.bulk_of(listener));
        let most = bulk * self.config.accepts_posted as usize;
        let is_set_up = entry.set_up == SetUp::Done && entry.error.is_none();
        is_set_up && !listener.paused && listener.reserved + listener.untaken.len() + bulk <= most
    }

    /// Returns the number of connections of one ACCEPT. All connections of a bulk accept must fit into the backlog.
    fn bulk_of(&self, listener: &Listener) -> u16 {
        let bulk = self.config.bulk_accept;
        if u32::from(bulk) > listener.backlog {
            1
        } else {
            bulk
        }
    }

    fn post_accept<L: HostLink<Data = P>>(&mut self, now: Time, link: &L, index: usize) -> bool {
        let spare = self.room_for_pledges(link);
        let on_demand = self.is_on_demand(spare);
        if !self.has_buffers(spare) || self.queue.room() == 0 {
            return false;
        }
        let bulk = self.bulk_of(&self.listeners[index]);
        let block = if bulk > 1 && spare >= usize::from(bulk) {
            self.numbers.take_block()
        } else {
            None
        };
        let (first, count) = match block {
            Some(first) => (first, bulk),
            None => match self.take_number() {
                Some(first) => (first, 1),
                None => return false,
            },
        };
        for number in first..first + u32::from(count) {
            let entry = self.occupy(number, Phase::Reserved);
            (entry.untaken, entry.on_demand) = (true, on_demand);
            self.settle_pledge(number);
        }
        self.listeners[index].reserved += usize::from(count);
        let action = Action::Accept {
            first,
            count,
            timeout_us: self.config.accept_timeout_us,
        };
        let operation = Operation::Accept { first, count };
        let listener = self.listeners[index].number;
        self.request(now, listener, action, operation, Urgency::Awaited)
    }

    /// Handles the answer to an ACCEPT, with or without connections.
    pub(super) fn handle_accepted(
        &mut self,
        response: &Response,
        entry: &[Descriptor],
    ) -> Result<(), Violation> {
        let listener = response.socket;
        let (operation, unrequested) = self.operation_of(response)?;
        let Operation::Accept { first, count } = operation else {
            return Err(unrequested);
        };
        let peers = &entry[1..];
        if peers.len() > usize::from(count) {
            return Err(unrequested);
        }
        for (number, peer) in (first..).zip(peers) {
            if read_peer(peer)?.socket != number {
                return Err(unrequested);
            }
        }
        self.completed(response);
        if let Some(listener) = self.listener_mut(listener) {
            listener.reserved -= usize::from(count);
        }
        let mut got = 0;
        if let Outcome::Accepted(remote) = response.outcome {
            self.establish(listener, first, remote);
            got = 1;
        }
        for peer in peers {
            self.establish(listener, first + got, read_peer(peer)?.remote);
            got += 1;
        }
        for number in first + got..first + u32::from(count) {
            self.release(number);
        }
        if got == 0 {
            self.accept_refused(listener, response.status);
        }
        self.finish_closing(listener);
        Ok(())
    }

    fn establish(&mut self, listener: u32, number: u32, remote: Endpoint) {
        let entry = self.socket_mut(number);
        entry.phase = Phase::Open;
        entry.endpoint = remote;
        match self.listener_mut(listener) {
            Some(listener) => {
                listener.untaken.push_back(number);
                self.acceptable = true;
                self.intend(number, Intents::RECEIVE);
            }
            // The listener was closed while the answer was in flight.
            None => self.let_go(number, true),
        }
    }

    /// Handles an ACCEPT that returned no connection.
    fn accept_refused(&mut self, listener: u32, status: Status) {
        if status == Status::Cancelled {
            return;
        }
        self.stats.accepts_refused += 1;
        match status {
            Status::TooManySockets | Status::TooManyRequests | Status::Partial => {
                // Another ACCEPT can succeed only after a socket is closed.
                if let Some(listener) = self.listener_mut(listener) {
                    listener.paused = true;
                    self.starved = true;
                }
            }
            _ => self.fail(listener, status),
        }
    }
}
