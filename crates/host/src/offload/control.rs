//! What an application may ask of the adapter itself: options, states, and to take requests back.

use super::OsLayer;
use super::socket::{Asked, Intents, SetUp};
use crate::SocketId;
use baton_bus::Urgency;
use baton_bus::descriptor::{Action, SocketInfo, SocketOption, Status};
use baton_bus::link::Inline;
use baton_wire::Time;

/// Questions of the application that may wait for their answers, or answers for the application.
const MOST_ANSWERS: usize = 256;

/// An answer to the application's own question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Of which socket.
    pub socket: SocketId,
    /// What.
    pub what: Answered,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
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

/// Why a question could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAsked {
    /// There is no such socket, or the adapter does not know it.
    #[error("there is no such socket")]
    NoSuchSocket,
    /// Too many questions wait, or the ring is full.
    #[error("no room to ask now")]
    NoRoom,
    /// There is nothing to take back.
    #[error("there is no such request")]
    NothingToCancel,
}

impl<P: Inline> OsLayer<P> {
    /// Sets an option of a socket. [`OsLayer::poll_answer`] tells only if it cannot be set.
    ///
    /// # Errors
    /// There is no such socket, or no room now.
    pub fn set_option(
        &mut self,
        now: Time,
        socket: SocketId,
        option: SocketOption,
        value: u32,
    ) -> Result<(), NotAsked> {
        let action = Action::SetOption { option, value };
        self.ask_for(now, socket, action, Asked::SetOption(option))
    }

    /// Asks for the state of a socket on the adapter; it comes with [`OsLayer::poll_answer`].
    ///
    /// # Errors
    /// There is no such socket, or no room now.
    pub fn status(&mut self, now: Time, socket: SocketId) -> Result<(), NotAsked> {
        self.ask_for(now, socket, Action::Status, Asked::Status)
    }

    /// Asks for this end of a connection; when [`OsLayer::local`] knows it the connection becomes writable.
    ///
    /// # Errors
    /// There is no such socket, or no room now.
    pub fn ask_local(&mut self, now: Time, socket: SocketId) -> Result<(), NotAsked> {
        self.now = now;
        let entry = self.known(socket).ok_or(NotAsked::NoSuchSocket)?;
        if entry.unknown || entry.set_up != SetUp::Done {
            return Err(NotAsked::NoSuchSocket);
        }
        let is_asked = self.waiting_request(socket.0, Asked::Name).is_some();
        let (action, asked) = (Action::Name, Asked::Name);
        if is_asked || self.request(now, socket.0, action, asked, Urgency::Awaited) {
            Ok(())
        } else {
            Err(NotAsked::NoRoom)
        }
    }

    /// Takes the oldest buffer back that waits for data on a connection, so that others can have it. When its last one has gone the
    /// connection receives nothing until [`OsLayer::resume_receiving`].
    ///
    /// # Errors
    /// There is no such socket, no such buffer, or no room now.
    pub fn cancel_receive(&mut self, now: Time, socket: SocketId) -> Result<(), NotAsked> {
        let entry = self.known(socket).ok_or(NotAsked::NoSuchSocket)?;
        let target = self.requests.first(&entry.receives);
        let target = target.ok_or(NotAsked::NothingToCancel)?;
        self.ask_for(now, socket, Action::Cancel { target }, Asked::Cancel)
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
    pub fn cancel_connect(&mut self, now: Time, socket: SocketId) -> Result<(), NotAsked> {
        self.known(socket).ok_or(NotAsked::NoSuchSocket)?;
        let target = self.waiting_request(socket.0, Asked::Connect);
        let target = target.ok_or(NotAsked::NothingToCancel)?;
        self.ask_for(now, socket, Action::Cancel { target }, Asked::Cancel)
    }

    /// The next answer to a question of the application.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    fn ask_for(
        &mut self,
        now: Time,
        socket: SocketId,
        action: Action,
        asked: Asked,
    ) -> Result<(), NotAsked> {
        self.now = now;
        let entry = self.known(socket).ok_or(NotAsked::NoSuchSocket)?;
        if entry.unknown || entry.set_up != SetUp::Done {
            return Err(NotAsked::NoSuchSocket);
        }
        if self.answers_due + self.answers.len() >= MOST_ANSWERS
            || !self.request(now, socket.0, action, asked, Urgency::Awaited)
        {
            return Err(NotAsked::NoRoom);
        }
        self.answers_due += 1;
        Ok(())
    }
}
