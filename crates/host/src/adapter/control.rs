//! What an application may ask of the adapter itself: options, states, and to take requests back.

use super::OsLayer;
use super::socket::{Intents, Operation, SetUp};
use crate::SocketId;
use baton_bus::Urgency;
use baton_bus::descriptor::{Action, SocketInfo, SocketOption, Status};
use baton_bus::link::Inline;
use baton_wire::Time;

/// Requests of the application's own that may wait to be completed, or completions for the application.
const MOST_COMPLETIONS: usize = 256;

/// The completion of a request of the application's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Of which socket.
    pub socket: SocketId,
    /// What.
    pub what: Completed,
}

/// What is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// The state of the socket on the adapter, or why it cannot be told.
    Status(Result<SocketInfo, Status>),
    /// An option was not set. That one was set is not told.
    OptionRefused {
        /// Which.
        option: SocketOption,
        /// Why.
        status: Status,
    },
    /// How it went to take requests back; these have been answered before.
    Cancelled(Status),
}

/// Why a request could not be submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubmitted {
    /// There is no such socket, or the adapter does not know it.
    #[error("there is no such socket")]
    NoSuchSocket,
    /// Too many requests wait, or the ring is full.
    #[error("no room to submit it now")]
    NoRoom,
    /// There is nothing to take back.
    #[error("there is no such request")]
    NothingToCancel,
}

impl<P: Inline> OsLayer<P> {
    /// Sets an option of a socket. [`OsLayer::poll_completion`] tells only if it cannot be set.
    ///
    /// # Errors
    /// There is no such socket, or no room now.
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

    /// Asks for the state of a socket on the adapter; it comes with [`OsLayer::poll_completion`].
    ///
    /// # Errors
    /// There is no such socket, or no room now.
    pub fn status(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.submit_for(now, socket, Action::Status, Operation::Status)
    }

    /// Asks for this end of a connection; when [`OsLayer::local`] knows it the connection becomes writable.
    ///
    /// # Errors
    /// There is no such socket, or no room now.
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

    /// Takes the oldest buffer back that waits for data on a connection, so that others can have it. When its last one has gone the
    /// connection receives nothing until [`OsLayer::resume_receiving`].
    ///
    /// # Errors
    /// There is no such socket, no such buffer, or no room now.
    pub fn cancel_receive(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        let entry = self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        let target = self.requests.first(&entry.receives);
        let target = target.ok_or(NotSubmitted::NothingToCancel)?;
        self.submit_for(now, socket, Action::Cancel { target }, Operation::Cancel)
    }

    /// Posts buffers again for a connection from which they were taken back.
    pub fn resume_receiving(&mut self, now: Time, socket: SocketId) {
        self.now = now;
        if self.known(socket).is_some() {
            self.socket_mut(socket.0).no_receive = false;
            self.intend(socket.0, Intents::RECEIVE);
        }
    }

    /// Gives up opening a connection that is not open yet; it ends with the status `Cancelled`.
    ///
    /// # Errors
    /// There is no such socket, it is not being opened, or there is no room now.
    pub fn cancel_connect(&mut self, now: Time, socket: SocketId) -> Result<(), NotSubmitted> {
        self.known(socket).ok_or(NotSubmitted::NoSuchSocket)?;
        let target = self.waiting_request(socket.0, Operation::Connect);
        let target = target.ok_or(NotSubmitted::NothingToCancel)?;
        self.submit_for(now, socket, Action::Cancel { target }, Operation::Cancel)
    }

    /// The next answer to a question of the application.
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
