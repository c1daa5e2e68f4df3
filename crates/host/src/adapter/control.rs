//! Requests of the application to the adapter itself: options, states, and cancellation of requests.

use super::OsLayer;
use super::socket::{Intents, Operation, SetUp};
use crate::SocketId;
use baton_bus::Urgency;
use baton_bus::descriptor::{Action, SocketInfo, SocketOption, Status};
use baton_bus::link::Inline;
use baton_wire::Time;

/// Maximum number of the application's own requests that wait to be completed, and of completions that wait for the application.
const MOST_COMPLETIONS: usize = 256;

/// The completion of one of the application's own requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The socket.
    pub socket: SocketId,
    /// The result.
    pub what: Completed,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The state of the socket on the adapter, or why it is unknown.
    Status(Result<SocketInfo, Status>),
    /// The adapter refused to set an option. Success is not reported.
    OptionRefused {
        /// The option.
        option: SocketOption,
        /// The reason.
        status: Status,
    },
    /// Result of a cancellation. The cancelled requests have already been answered.
    Cancelled(Status),
}

/// Why a request could not be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubmitted {
    /// There is no such socket, or the adapter does not know it.
    #[error("there is no such socket")]
    NoSuchSocket,
    /// Too many requests are waiting, or the ring is full.
    #[error("the queue has no space for the request now")]
    NoRoom,
    /// There is nothing to cancel.
    #[error("there is no such request")]
    NothingToCancel,
}

impl<P: Inline> OsLayer<P> {
    /// Sets an option of a socket. [`OsLayer::poll_completion`] reports only failures.
    ///
    /// # Errors
    /// There is no such socket, or no space for the request now.
    pub fn set_option(
        &mut self,
        now: Time,
        socket: SocketId,
        option: SocketOption,
        value: u32,
    ) -> Result<(), NotSubmitted> {
        let action = Action::SetOption { option, value };
        self.submit_for(now, socket, action, Operation::SetOption(option))
    }

    /// Asks for the state of a socket on the adapter; [`OsLayer::poll_completion`] returns the answer.
    ///
    /// # Errors
    /// There is no such socket, or no space for the request now.
    pub fn status(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.submit_for(now, socket, Action::Status, Operation::Status)
    }

    /// Asks for the local endpoint of a connection. The connection becomes writable when [`OsLayer::local`] knows it.
    ///
    /// # Errors
    /// There is no such socket, or no space for the request now.
    pub fn query_local(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.now = now;
        let entry = self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        if entry.unknown || entry.set_up != SetUp::Done {
            return Err(NotSubmitted::NoSuchSocket);
        }
        let is_asked = self.waiting_request(socket.0, Operation::Name).is_some();
        let (action, operation) = (Action::Name, Operation::Name);
        if is_asked || self.request(now, socket.0, action, operation, Urgency::Awaited) {
            Ok(())
        } else {
            Err(NotSubmitted::NoRoom)
        }
    }

    /// Asks for TCP's information about a connection. The connection becomes writable when [`OsLayer::take_info`] has the answer.
    ///
    /// # Errors
    /// There is no such connection, or no space for the request now.
    pub fn query_info(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.now = now;
        let entry = self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        if entry.unknown || entry.set_up != SetUp::Done {
            return Err(NotSubmitted::NoSuchSocket);
        }
        let is_asked = self.waiting_request(socket.0, Operation::Info).is_some();
        let (action, operation) = (Action::Info, Operation::Info);
        match is_asked || self.request(now, socket.0, action, operation, Urgency::Awaited) {
            true => Ok(()),
            false => Err(NotSubmitted::NoRoom),
        }
    }

    /// Takes the adapter's answer: `baton_tcp::Info` as bytes. Empty if the adapter could not answer.
    pub fn take_info(&mut self, socket: SocketId) -> Option<Box<[u8]>> {
        self.known(socket)?;
        self.socket_mut(socket.0).info.take()
    }

    /// Cancels a connection's oldest posted buffer, so that others can use it. After its last buffer was cancelled, the connection receives
    /// nothing until [`OsLayer::resume_receiving`].
    ///
    /// # Errors
    /// There is no such socket, no such buffer, or no space for the request now.
    pub fn cancel_receive(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        let entry = self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        let target = self.requests.first(&entry.receives);
        let target = target.ok_or(NotSubmitted::NothingToCancel)?;
        self.submit_for(now, socket, Action::Cancel { target }, Operation::Cancel)
    }

    /// Posts buffers again for a connection whose buffers were cancelled.
    pub fn resume_receiving(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.socket_mut(socket.0).no_receive = false;
            self.intend(socket.0, Intents::RECEIVE);
        }
    }

    /// Cancels the opening of a connection that is not established yet; it ends with the status `Cancelled`.
    ///
    /// # Errors
    /// There is no such socket, it is not being opened, or there is no space for the request now.
    pub fn cancel_connect(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        let target = self.waiting_request(socket.0, Operation::Connect);
        let target = target.ok_or(NotSubmitted::NothingToCancel)?;
        self.submit_for(now, socket, Action::Cancel { target }, Operation::Cancel)
    }

    /// Returns the next completion of one of the application's own requests.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    fn submit_for(
        &mut self,
        now: Time,
        socket: SocketId,
        action: Action,
        operation: Operation,
    ) -> Result<(), NotSubmitted> {
        self.now = now;
        let entry = self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        if entry.unknown || entry.set_up != SetUp::Done {
            return Err(NotSubmitted::NoSuchSocket);
        }
        if self.completions_due + self.completions.len() >= MOST_COMPLETIONS
            || !self.request(now, socket.0, action, operation, Urgency::Awaited)
        {
            return Err(NotSubmitted::NoRoom);
        }
        self.completions_due += 1;
        Ok(())
    }
}
