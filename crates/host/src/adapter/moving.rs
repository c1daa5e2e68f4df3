//! Connections that move to the adapter and back: IMPORT and EXPORT (handoff-policies 2).

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use super::stats::NoRoom;
use crate::SocketId;
use baton_bus::descriptor::{Action, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};
use std::collections::VecDeque;

/// News of connections that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveNews {
    /// The adapter has the connection.
    Imported(SocketId),
    /// It has not, for this reason; the socket is no more, and whoever exported the connection goes on with it. After
    /// [`Status::Aborted`] the adapter was lost, and nobody knows.
    ImportRefused(SocketId, Status),
    /// The connection has left the adapter: see [`OsLayer::take_exported`].
    Exported(SocketId),
    /// It has not: it came to its end first, which is told as always.
    NotExported(SocketId),
    /// The adapter asks for it to be taken back.
    Relief(SocketId),
    /// The adapter is gone that had it, and what there is of it here waits to be taken: see [`OsLayer::take_exported`].
    Lost(SocketId),
    /// A connection that was imported is over on the adapter, or lost with it, and its socket closed: the number is free.
    Over(SocketId),
}

/// A connection that came from the adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported<P> {
    /// What EXPORT brought: a [`Moved`](baton_tcp::Moved) as bytes. Of a connection that was lost there is none.
    pub state: Vec<u8>,
    /// Bytes that the adapter was given to send since IMPORT, modulo 2^32, and bytes that it has brought.
    pub sent: u32,
    /// See there.
    pub came: u32,
    /// What had been received before and is not read yet.
    pub received: VecDeque<P>,
    /// What had been taken to be sent and was not given to the adapter: it follows all that the state has.
    pub held: VecDeque<P>,
    /// Nothing more will be sent after that, which the adapter was not told.
    pub shut: bool,
}

/// State on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    bytes: Vec<u8>,
    /// Bytes that were given to the adapter.
    given: usize,
}

impl<P: Inline> OsLayer<P> {
    /// Whether there is a buffer for what a connection that is imported now will receive. Without, it would wait for another's end.
    pub fn has_room_for_import(&self) -> bool {
        self.room_for_imports > 0
    }

    /// Hands a connection to the adapter, as the state that its owner has exported (a [`Moved`](baton_tcp::Moved) as bytes) says; `shut` if
    /// that has a FIN of this side. [`OsLayer::poll_move`] tells what came of it.
    ///
    /// # Errors
    /// There are as many sockets as may be.
    pub fn import(
        &mut self,
        now: Time,
        remote: Endpoint,
        state: Vec<u8>,
        shut: bool,
    ) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let entry = self.occupy(number, Phase::Importing);
        entry.endpoint = remote;
        entry.shut = shut;
        entry.given_before = entry.given;
        let carried = Carried {
            bytes: state,
            given: 0,
        };
        self.carried.insert(number, carried);
        self.settle_pledge(number);
        self.room_for_imports = self.room_for_imports.saturating_sub(1);
        self.intend(number, Intents::IMPORT);
        Ok(SocketId(number))
    }

    /// Takes a connection back from the adapter, after all that was given to it. [`OsLayer::poll_move`] tells when it is here. What has
    /// been received can be read meanwhile; nothing can be sent. False when it cannot be: there is none, or it is being closed.
    pub fn export(&mut self, now: Time, socket: SocketId) -> bool {
        self.now = now;
        let can_move = self.known(socket).is_some_and(|entry| {
            let is_open = entry.phase == Phase::Open && !entry.unknown && entry.error.is_none();
            is_open && !entry.exporting
        });
        if can_move {
            let entry = self.socket_mut(socket.0);
            entry.exporting = true;
            entry.corked = false;
            entry.wants_room = false;
            entry.intents.remove(Intents::RECEIVE | Intents::FLUSH);
            // What is held back comes along; no timer lets go of it any more.
            self.stop_cork_timer(socket.0);
            self.settle_pledge(socket.0);
            self.intend(socket.0, Intents::EXPORT);
        }
        can_move
    }

    /// The next news of connections that move.
    pub fn poll_move(&mut self) -> Option<MoveNews> {
        let news = self.moves.pop_front()?;
        if let MoveNews::ImportRefused(SocketId(number), _) = news {
            self.socket_mut(number).untold = false;
            self.finish_closing(number);
        }
        Some(news)
    }

    /// Has connections that came by IMPORT wait to be [taken](OsLayer::take_exported) when their adapter is lost, instead of failing.
    pub fn keep_lost(&mut self) {
        self.keeps_lost = true;
    }

    /// The adapter is gone that had this connection.
    pub(super) fn lose_imported(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        entry.phase = Phase::Exported;
        entry.exporting = false;
        // What the adapter was told of it counts for nothing.
        entry.intents = match entry.shut {
            true => Intents::SHUT,
            false => Intents::empty(),
        };
        self.carried.insert(number, Carried::default());
        self.moves.push_back(MoveNews::Lost(SocketId(number)));
    }

    /// Takes what came with a connection that has left the adapter; its socket is no more.
    pub fn take_exported(&mut self, socket: SocketId) -> Option<Exported<P>> {
        let number = socket.0;
        let entry = self.sockets.get_mut(number as usize)?;
        if entry.phase != Phase::Exported {
            return None;
        }
        let pieces = &mut self.pieces;
        let received = std::iter::from_fn(|| pieces.pop(&mut entry.received)).collect();
        let shut = entry.intents.contains(Intents::SHUT);
        let sent = entry.given - entry.held_len - entry.given_before;
        let held = std::iter::from_fn(|| pieces.pop(&mut entry.held)).collect();
        self.drop_held(number);
        let entry = self.socket_mut(number);
        let came = entry.came;
        entry.received_len = 0;
        entry.readable = false;
        entry.writable = false;
        let state = self.carried.remove(&number)?.bytes;
        self.retire(number);
        Some(Exported {
            state,
            sent,
            came,
            received,
            held,
            shut,
        })
    }

    /// Nobody knows the socket any more, here or on the adapter.
    fn retire(&mut self, number: u32) {
        self.carried.remove(&number);
        let entry = self.socket_mut(number);
        entry.imported = false;
        entry.phase = Phase::Closing;
        entry.unknown = true;
        entry.intents = Intents::empty();
        self.settle_pledge(number);
        self.finish_closing(number);
    }

    /// Gives the adapter the next parts of a state; false when the ring has no room.
    pub(super) fn give_state<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> bool {
        let most = self.transfer_bytes(link) as usize;
        while let Some(carried) = self.carried.get(&number) {
            let left = &carried.bytes[carried.given..];
            let part = &left[..left.len().min(most)];
            if part.is_empty() {
                break;
            }
            if self.queue.room() == 0 {
                return false;
            }
            if self.spare(link) == 0 {
                self.wait_for_room(number, NoRoom::Buffers);
                return true;
            }
            let (len, more) = (part.len() as u32, left.len() > most);
            let data = P::of_bytes(part.to_vec());
            let Some(address) = data.and_then(|data| link.place(data).ok()) else {
                self.import_ended(number, Status::BadState);
                return true;
            };
            if let Some(carried) = self.carried.get_mut(&number) {
                carried.given += len as usize;
            }
            self.carrying += 1;
            let action = Action::Import { address, len, more };
            let is_last = !more;
            let operation = Operation::Import { address, is_last };
            self.request(now, number, action, operation, Urgency::Awaited);
        }
        self.socket_mut(number).intents.remove(Intents::IMPORT);
        true
    }

    /// Asks for the next part of a state; false when the ring has no room.
    pub(super) fn submit_export<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
    ) -> bool {
        if self.queue.room() == 0 {
            return false;
        }
        let len = self.transfer_bytes(link);
        let buffer = match self.spare(link) {
            0 => None,
            _ => link.reserve(),
        };
        let Some(address) = buffer else {
            self.wait_for_room(number, NoRoom::Buffers);
            return true;
        };
        self.carrying += 1;
        let action = Action::Export { address, len };
        let operation = Operation::Export { address, len };
        self.socket_mut(number).intents.remove(Intents::EXPORT);
        self.request(now, number, action, operation, Urgency::Awaited)
    }

    /// A part of a state has been fetched; after the last one the adapter has the connection, or has not.
    pub(super) fn handle_imported<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        address: u64,
        is_last: bool,
    ) {
        self.carrying -= 1;
        link.free(address);
        let number = response.socket;
        if self.socket(number).phase != Phase::Importing {
            return self.finish_closing(number);
        }
        if response.status != Status::Ok {
            self.import_ended(number, response.status);
        } else if is_last {
            self.carried.remove(&number);
            self.stats.imported += 1;
            let entry = self.socket_mut(number);
            entry.phase = Phase::Open;
            entry.imported = true;
            entry.set_up = SetUp::Done;
            self.settle_pledge(number);
            self.intend(number, Intents::RECEIVE);
            self.moves.push_back(MoveNews::Imported(SocketId(number)));
        }
    }

    pub(super) fn import_ended(&mut self, number: u32, status: Status) {
        self.stats.imports_refused += 1;
        self.socket_mut(number).untold = true;
        let socket = SocketId(number);
        self.moves
            .push_back(MoveNews::ImportRefused(socket, status));
        self.retire(number);
    }

    /// A part of a connection's state has come.
    pub(super) fn handle_exported<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        (address, len, more): (u64, u32, bool),
    ) -> Result<(), Violation> {
        let number = response.socket;
        let (operation, unrequested) = self.operation_of(response)?;
        let Operation::Export {
            address: expected,
            len: room,
        } = operation
        else {
            return Err(unrequested);
        };
        if address != expected {
            return Err(unrequested);
        }
        if len > room {
            return Err(Violation::Length(len));
        }
        self.completed(response);
        self.carrying -= 1;
        if response.status != Status::Ok {
            link.free(address);
            let entry = self.socket_mut(number);
            entry.exporting = false;
            self.moves
                .push_back(MoveNews::NotExported(SocketId(number)));
            self.settle_pledge(number);
            self.intend(number, Intents::RECEIVE);
            self.finish_closing(number);
            return Ok(());
        }
        let part = link.take(address, len)?;
        let carried = self.carried.entry(number).or_default();
        carried
            .bytes
            .extend_from_slice(part.as_bytes().unwrap_or(&[]));
        if more {
            self.intend(number, Intents::EXPORT);
            return Ok(());
        }
        self.stats.exported += 1;
        let entry = self.socket_mut(number);
        entry.exporting = false;
        entry.phase = Phase::Exported;
        self.settle_pledge(number);
        self.moves.push_back(MoveNews::Exported(SocketId(number)));
        Ok(())
    }

    /// The adapter asks for a connection to be taken back.
    pub(super) fn handle_relief(&mut self, response: &Response) -> Result<(), Violation> {
        self.news_of(response)?;
        self.stats.relief_asked += 1;
        if self.socket(response.socket).phase == Phase::Open {
            let socket = SocketId(response.socket);
            self.moves.push_back(MoveNews::Relief(socket));
        }
        Ok(())
    }
}
