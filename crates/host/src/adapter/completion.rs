//! Responses: each completes a waiting request, or is an event of a socket. Any other response is a violation.

use super::OsLayer;
use super::control::{Completed, Completion};
use super::socket::{Intents, Operation, Phase};
use crate::SocketId;
use baton_bus::descriptor::{
    MOST_INLINE_BYTES, Opcode, Outcome, Response, SocketInfo, Status, entries, read_inline,
};
use baton_bus::link::{Inline, Violation};
use baton_bus::{Descriptor, HostLink};
use baton_wire::{Endpoint, Time};

impl<P: Inline> OsLayer<P> {
    /// Handles responses from the link.
    ///
    /// # Errors
    /// The adapter cannot be trusted any more: continue with [`OsLayer::handle_link_lost`].
    pub fn handle_responses<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        responses: &[Descriptor],
    ) -> Result<(), Violation> {
        self.now = now;
        for entry in entries(responses) {
            let entry = entry?;
            let response = Response::decode(&entry[0])?;
            self.stats.responses += 1;
            self.handle_response(link, &response, entry)?;
        }
        Ok(())
    }

    fn handle_response<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        entry: &[Descriptor],
    ) -> Result<(), Violation> {
        match response.outcome {
            Outcome::Sent { len, cumulative } => self.handle_sent(link, response, len, cumulative),
            Outcome::Received(buffer) => self.handle_received(link, response, buffer, entry),
            Outcome::Accepted(_) | Outcome::AcceptedBulk { .. } => {
                self.handle_accepted(response, entry)
            }
            Outcome::Done(opcode) => self.handle_done(link, response, opcode),
            Outcome::Status(info) => self.handle_info(response, info),
            Outcome::Name(local) => self.handle_name(response, local),
            Outcome::Info { len } => self.handle_told(response, len, entry),
            Outcome::PeerClosed => self.handle_peer_closed(response),
            Outcome::Unread { len, ended } => self.handle_unread(response, len, ended),
            Outcome::Over => self.handle_over(response),
            Outcome::Exported { address, len, more } => {
                self.handle_exported(link, response, (address, len, more))
            }
            Outcome::CacheReady {
                bytes,
                most_inserts,
            } => self.handle_cache_ready(response, bytes, most_inserts),
            Outcome::Relief => self.handle_relief(response),
            Outcome::SoftLimit { connections } => self.handle_soft_limit(response, connections),
            Outcome::Time { what, at_ns } => self.handle_time(response, what, at_ns),
        }
    }

    /// Returns the operation that a response completes, and the violation to report if the response does not match.
    pub(super) fn operation_of(
        &self,
        response: &Response,
    ) -> Result<(Operation, Violation), Violation> {
        let unrequested = unrequested(response);
        let request = self.requests.get(response.tag).ok_or(unrequested)?;
        if request.socket != response.socket {
            return Err(unrequested);
        }
        Ok((request.operation, unrequested))
    }

    /// Returns the tag of a waiting request other than a send or receive.
    pub(super) fn waiting_request(&self, number: u32, operation: Operation) -> Option<u32> {
        let control = &self.socket(number).control;
        self.requests.numbers(control).find(|&tag| {
            let request = self.requests.get(tag);
            request.is_some_and(|request| request.operation == operation)
        })
    }

    /// Removes the completed request of a matching response.
    pub(super) fn completed(&mut self, response: &Response) {
        let Some(request) = self.requests.get(response.tag) else {
            return;
        };
        let entry = &mut self.sockets[request.socket as usize];
        let chain = match request.operation {
            Operation::Send { .. } => &mut entry.sends,
            Operation::Receive { .. } => &mut entry.receives,
            _ => &mut entry.control,
        };
        let operation = request.operation;
        let removed = self.requests.remove(chain, response.tag);
        debug_assert!(removed.is_some(), "a request is in its socket's queue");
        self.released(operation);
    }

    /// Updates the counters for a removed request.
    pub(super) fn released(&mut self, operation: Operation) {
        self.releasing -= usize::from(operation.is_releasing());
        self.starved &= self.releasing > 0;
    }

    fn handle_done<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        opcode: Opcode,
    ) -> Result<(), Violation> {
        let (operation, unrequested) = self.operation_of(response)?;
        let expected = match operation {
            Operation::Socket if opcode == Opcode::PacketSocket => Opcode::PacketSocket,
            Operation::Socket => Opcode::Socket,
            Operation::Import { .. } => Opcode::Import,
            Operation::Insert { .. } => Opcode::CacheInsert,
            Operation::Forward { .. } => Opcode::Forward,
            Operation::Bind => Opcode::Bind,
            Operation::Listen => Opcode::Listen,
            Operation::Connect => Opcode::Connect,
            Operation::Close | Operation::Shut => Opcode::Close,
            Operation::SetOption(_) | Operation::SetUpOption => Opcode::SetOption,
            Operation::Cancel | Operation::Reclaim => Opcode::Cancel,
            _ => return Err(unrequested),
        };
        if opcode != expected {
            return Err(unrequested);
        }
        if let Operation::Insert { address } = operation {
            self.handle_inserted(link, response, (operation, address));
            return Ok(());
        }
        self.completed(response);
        let (number, status) = (response.socket, response.status);
        match operation {
            Operation::Connect => self.handle_connected(number, status),
            Operation::Socket | Operation::SetUpOption | Operation::Bind | Operation::Listen
                if status != Status::Ok =>
            {
                self.fail(number, status);
            }
            Operation::Import { address, is_last } => {
                self.handle_imported(link, response, address, is_last);
                return Ok(());
            }
            Operation::Forward { address } => self.free_placed(link, address),
            Operation::Close => self.socket_mut(number).unknown = true,
            Operation::SetOption(option) => {
                self.stats.options_refused += u64::from(status != Status::Ok);
                let refused = Completed::OptionRefused { option, status };
                self.completion(number, (status != Status::Ok).then_some(refused));
            }
            Operation::Cancel => self.completion(number, Some(Completed::Cancelled(status))),
            Operation::Reclaim => self.reclaiming = false,
            _ => {}
        }
        self.finish_closing(number);
        Ok(())
    }

    fn handle_info(&mut self, response: &Response, info: SocketInfo) -> Result<(), Violation> {
        let (operation, unrequested) = self.operation_of(response)?;
        if operation != Operation::Status {
            return Err(unrequested);
        }
        self.completed(response);
        let info = match response.status {
            Status::Ok => Ok(info),
            status => Err(status),
        };
        self.completion(response.socket, Some(Completed::Status(info)));
        self.finish_closing(response.socket);
        Ok(())
    }

    /// Handles the answer with a socket's local address.
    fn handle_name(&mut self, response: &Response, local: Endpoint) -> Result<(), Violation> {
        let (operation, unrequested) = self.operation_of(response)?;
        if operation != Operation::Name {
            return Err(unrequested);
        }
        self.completed(response);
        let number = response.socket;
        let entry = self.socket_mut(number);
        match (entry.phase, response.status) {
            (Phase::Listening, Status::Ok) => entry.endpoint = local,
            (Phase::Listening | Phase::Packets, status) if status != Status::Ok => {
                self.fail(number, status);
            }
            (_, Status::Ok) => {
                entry.own = Some(local);
                self.wake_writer(number);
            }
            // The connection has ended, which another response reports.
            (_, _) => {}
        }
        self.finish_closing(number);
        Ok(())
    }

    /// Handles an answer that contains TCP's information about a connection.
    fn handle_told(
        &mut self,
        response: &Response,
        len: u16,
        entry: &[Descriptor],
    ) -> Result<(), Violation> {
        let (operation, unrequested) = self.operation_of(response)?;
        if operation != Operation::Info {
            return Err(unrequested);
        }
        let mut room = [0; MOST_INLINE_BYTES];
        let told = match len {
            0 => &[][..],
            _ => read_inline(entry, &mut room)?,
        };
        self.completed(response);
        self.socket_mut(response.socket).info = Some(told.into());
        self.wake_writer(response.socket);
        self.finish_closing(response.socket);
        Ok(())
    }

    /// Handles the answer to one of the application's own requests.
    fn completion(&mut self, number: u32, what: Option<Completed>) {
        self.completions_due -= 1;
        let is_known = self.socket(number).is_known();
        if let Some(what) = what.filter(|_| is_known) {
            let socket = SocketId(number);
            self.completions.push_back(Completion { socket, what });
        }
    }

    fn handle_peer_closed(&mut self, response: &Response) -> Result<(), Violation> {
        self.news_of(response)?;
        self.end_of_stream(response.socket);
        Ok(())
    }

    fn handle_over(&mut self, response: &Response) -> Result<(), Violation> {
        self.news_of(response)?;
        let number = response.socket;
        let entry = self.socket_mut(number);
        entry.unknown = true;
        entry.intents = Intents::empty();
        self.drop_held(number);
        match response.status {
            Status::Ok => self.end_of_stream(number),
            status => self.fail(number, status),
        }
        self.settle_pledge(number);
        self.finish_closing(number);
        Ok(())
    }

    /// Checks that a socket can have events: it must be a connection that the adapter knows.
    pub(super) fn news_of(&self, response: &Response) -> Result<(), Violation> {
        let entry = self.sockets.get(response.socket as usize);
        let is_connection = entry.is_some_and(|entry| {
            matches!(entry.phase, Phase::Opening | Phase::Open | Phase::Closing) && !entry.unknown
        });
        if is_connection {
            Ok(())
        } else {
            Err(unrequested(response))
        }
    }
}

pub(super) fn unrequested(response: &Response) -> Violation {
    Violation::Unasked {
        socket: response.socket,
        tag: response.tag,
    }
}
