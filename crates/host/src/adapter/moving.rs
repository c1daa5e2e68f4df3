//! Connections that move to the adapter and back: IMPORT and EXPORT (handoff-policies 2).

use super::OsLayer;
use super::socket::{Intents, Later, Operation, Phase, SetUp};
use super::stats::NoRoom;
use crate::SocketId;
use baton_bus::descriptor::{Action, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};
use std::collections::VecDeque;

/// Events of moving connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveNews {
    /// The adapter has the connection.
    Imported(SocketId),
    /// The adapter has refused the connection, for this reason; the socket does not exist any more, and the connection's previous owner
    /// continues with it. With [`Status::Aborted`] the adapter was lost, and whether it has the connection is unknown.
    ImportRefused(SocketId, Status),
    /// The connection has left the adapter: see [`OsLayer::take_exported`].
    Exported(SocketId),
    /// The connection ended before it could leave the adapter. Another event reports the end.
    NotExported(SocketId),
    /// The adapter asks for the connection to be taken back.
    Relief(SocketId),
    /// The connection's adapter is gone. The connection's data on the host waits to be taken: see [`OsLayer::take_exported`].
    Lost(SocketId),
    /// An imported connection has ended on the adapter or was lost with it, and its socket is closed: the number is free.
    Over(SocketId),
}

/// A connection that has left the adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported<P> {
    /// The state from EXPORT: a [`Moved`](baton_tcp::Moved) as bytes. Empty for a lost connection.
    pub state: Vec<u8>,
    /// Number of bytes given to the adapter to send since IMPORT, modulo 2^32.
    pub sent: u32,
    /// Number of bytes received from the adapter since IMPORT, modulo 2^32.
    pub came: u32,
    /// Data that was received before and is not read yet.
    pub received: VecDeque<P>,
    /// Data that was taken to be sent and was not given to the adapter: it follows all data in the state.
    pub held: VecDeque<P>,
    /// Whether sending is shut down after `held`, which the adapter does not know yet.
    pub shut: bool,
}

/// The state of a moving connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    bytes: Vec<u8>,
    /// Number of bytes of the state given to the adapter.
    given: usize,
}

impl<P: Inline> OsLayer<P> {
    /// Returns whether there is a receive buffer for a connection imported now, or none has to be pledged to it. Otherwise it would wait
    /// until another connection ends.
    pub fn has_room_for_import(&self) -> bool {
        self.has_buffers(self.room_for_imports)
    }

    /// Hands a connection to the adapter, in the state that its owner has exported (a [`Moved`](baton_tcp::Moved) as bytes); `shut` says
    /// that the state has a FIN of this side. [`OsLayer::poll_move`] reports the outcome.
    ///
    /// # Errors
    /// The maximum number of sockets is reached.
    pub fn import(
        &mut self,
        now: Time,
        remote: Endpoint,
        state: Vec<u8>,
        shut: bool,
    ) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let on_demand = self.is_on_demand(self.room_for_imports);
        let entry = self.occupy(number, Phase::Importing);
        entry.on_demand = on_demand;
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

    /// Takes a connection back from the adapter, once the adapter has all data that was given to it. [`OsLayer::poll_move`] reports its
    /// arrival. Until then received data can be read and nothing can be sent. Returns false if there is no such connection, or it is
    /// already moving or ending.
    pub fn export(&mut self, now: Time, socket: SocketId) -> bool {
        self.now = now;
        let can_move = self.known(socket).is_some_and(|entry| {
            let is_open =
                entry.phase == Phase::Open && !entry.unknown && entry.why_failed().is_none();
            is_open && !entry.exporting
        });
        if can_move {
            let entry = self.socket_mut(socket.0);
            entry.exporting = true;
            entry.corked = false;
            entry.wants_room = false;
            entry.intents.remove(Intents::RECEIVE | Intents::FLUSH);
            // Held data moves with the connection, so the timer must not send it.
            self.stop_cork_timer(socket.0);
            self.settle_pledge(socket.0);
            self.intend(socket.0, Intents::EXPORT);
        }
        can_move
    }

    /// Returns the next event of a moving connection.
    pub fn poll_move(&mut self) -> Option<MoveNews> {
        let news = self.moves.pop_front()?;
        if let MoveNews::ImportRefused(SocketId(number), _) = news {
            self.socket_mut(number).untold = false;
            self.finish_closing(number);
        }
        Some(news)
    }

    /// Makes imported connections wait to be [taken](OsLayer::take_exported) when their adapter is lost, instead of failing.
    pub fn keep_lost(&mut self) {
        self.keeps_lost = true;
    }

    /// Returns whether the connection's adapter is gone. [`OsLayer::poll_move`] reports that, after earlier events.
    pub(crate) fn is_lost(&self, socket: SocketId) -> bool {
        let entry = self.sockets.get(socket.0 as usize);
        self.keeps_lost && entry.is_some_and(|entry| entry.phase == Phase::Exported)
    }

    /// Keeps the data of an imported connection whose adapter is gone.
    pub(super) fn lose_imported(&mut self, number: u32) {
        let entry = &mut self.sockets[number as usize];
        entry.phase = Phase::Exported;
        entry.exporting = false;
        // A shutdown that was submitted to the lost adapter must be repeated; all other intents are void.
        entry.intents = match entry.shut {
            true => Intents::SHUT,
            false => Intents::empty(),
        };
        self.carried.insert(number, Carried::default());
        self.moves.push_back(MoveNews::Lost(SocketId(number)));
    }

    /// Takes the data of a connection that has left the adapter, and removes its socket.
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
        entry.later = Later::default();
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

    /// Removes a socket that neither the host nor the adapter needs any longer.
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

    /// Gives the adapter the next parts of a state. Returns false if the ring is full.
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

    /// Asks for the next part of a state. Returns false if the ring is full.
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

    /// Called when the adapter has fetched a part of a state; with the last part, it has accepted or refused the connection.
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

    /// Handles a part of a connection's state from the adapter.
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

    /// Called when the adapter asks for a connection to be taken back.
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
