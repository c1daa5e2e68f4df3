//! Responses: each answers a request that waits, or is news of a socket. Nothing else is believed.

use super::OsLayer;
use super::control::{Answer, Answered};
use super::socket::{Asked, Intents, Phase};
use crate::SocketId;
use baton_bus::descriptor::{Opcode, Outcome, Response, SocketInfo, Status, entries};
use baton_bus::link::{Inline, Violation};
use baton_bus::{Descriptor, HostLink};
use baton_wire::{Endpoint, Time};

impl<P: Inline> OsLayer<P> {
    /// Handles responses as the link gave them.
    ///
    /// # Errors
    /// The adapter is not to be trusted any more: go on with [`OsLayer::handle_link_lost`].
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
            Outcome::PeerClosed => self.handle_peer_closed(response),
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
        }
    }

    /// What a response answers, and what it is if it does not fit that.
    pub(super) fn asked(&self, response: &Response) -> Result<(Asked, Violation), Violation> {
        let unasked = unasked(response);
        let request = self.requests.get(response.tag).ok_or(unasked)?;
        if request.socket != response.socket {
            return Err(unasked);
        }
        Ok((request.asked, unasked))
    }

    /// The tag of a request, other than to send or receive, that waits for its answer.
    pub(super) fn waiting_request(&self, number: u32, asked: Asked) -> Option<u32> {
        let control = &self.socket(number).control;
        self.requests.numbers(control).find(|&tag| {
            let request = self.requests.get(tag);
            request.is_some_and(|request| request.asked == asked)
        })
    }

    /// The request of a response that fits it is answered.
    pub(super) fn answered(&mut self, response: &Response) {
        let Some(request) = self.requests.get(response.tag) else {
            return;
        };
        let entry = &mut self.sockets[request.socket as usize];
        let chain = match request.asked {
            Asked::Send { .. } => &mut entry.sends,
            Asked::Receive { .. } => &mut entry.receives,
            _ => &mut entry.control,
        };
        let asked = request.asked;
        let removed = self.requests.remove(chain, response.tag);
        debug_assert!(removed.is_some(), "a request is in its socket's queue");
        self.released(asked);
    }

    /// A request is no more.
    pub(super) fn released(&mut self, asked: Asked) {
        self.releasing -= usize::from(asked.is_releasing());
        self.starved &= self.releasing > 0;
    }

    fn handle_done<L: HostLink<Data = P>>(
        &mut self,
        link: &mut L,
        response: &Response,
        opcode: Opcode,
    ) -> Result<(), Violation> {
        let (asked, unasked) = self.asked(response)?;
        let expected = match asked {
            Asked::Socket if opcode == Opcode::PacketSocket => Opcode::PacketSocket,
            Asked::Socket => Opcode::Socket,
            Asked::Import { .. } => Opcode::Import,
            Asked::Insert { .. } => Opcode::CacheInsert,
            Asked::Send { .. } if opcode == Opcode::Forward => Opcode::Forward,
            Asked::Bind => Opcode::Bind,
            Asked::Listen => Opcode::Listen,
            Asked::Connect => Opcode::Connect,
            Asked::Close | Asked::Shut => Opcode::Close,
            Asked::SetOption(_) => Opcode::SetOption,
            Asked::Cancel | Asked::Reclaim => Opcode::Cancel,
            _ => return Err(unasked),
        };
        if opcode != expected {
            return Err(unasked);
        }
        if let Asked::Insert { address } = asked {
            self.handle_inserted(link, response, (asked, address));
            return Ok(());
        }
        self.answered(response);
        let (number, status) = (response.socket, response.status);
        match asked {
            Asked::Connect => self.handle_connected(number, status),
            Asked::Socket | Asked::Bind | Asked::Listen if status != Status::Ok => {
                self.fail(number, status);
            }
            Asked::Import { address, is_last } => {
                self.handle_imported(link, response, address, is_last);
                return Ok(());
            }
            Asked::Send { address, .. } => self.free_sent(link, address),
            Asked::Close => self.socket_mut(number).unknown = true,
            Asked::SetOption(option) => {
                self.stats.options_refused += u64::from(status != Status::Ok);
                let refused = Answered::OptionRefused { option, status };
                self.answer(number, (status != Status::Ok).then_some(refused));
            }
            Asked::Cancel => self.answer(number, Some(Answered::Cancelled(status))),
            Asked::Reclaim => self.reclaiming = false,
            _ => {}
        }
        self.finish_closing(number);
        Ok(())
    }

    fn handle_info(&mut self, response: &Response, info: SocketInfo) -> Result<(), Violation> {
        let (asked, unasked) = self.asked(response)?;
        if asked != Asked::Status {
            return Err(unasked);
        }
        self.answered(response);
        let info = match response.status {
            Status::Ok => Ok(info),
            status => Err(status),
        };
        self.answer(response.socket, Some(Answered::Status(info)));
        self.finish_closing(response.socket);
        Ok(())
    }

    /// The adapter tells a socket's own address.
    fn handle_name(&mut self, response: &Response, local: Endpoint) -> Result<(), Violation> {
        let (asked, unasked) = self.asked(response)?;
        if asked != Asked::Name {
            return Err(unasked);
        }
        self.answered(response);
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
            // The connection is over; that is told by itself.
            (_, _) => {}
        }
        self.finish_closing(number);
        Ok(())
    }

    /// Something that was asked by the application itself is answered.
    fn answer(&mut self, number: u32, what: Option<Answered>) {
        self.answers_due -= 1;
        let is_known = self.socket(number).is_known();
        if let Some(what) = what.filter(|_| is_known) {
            let socket = SocketId(number);
            self.answers.push_back(Answer { socket, what });
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

    /// Whether there can be news of a socket: only of a connection that the adapter knows.
    pub(super) fn news_of(&self, response: &Response) -> Result<(), Violation> {
        let entry = self.sockets.get(response.socket as usize);
        let is_connection = entry.is_some_and(|entry| {
            matches!(entry.phase, Phase::Opening | Phase::Open | Phase::Closing) && !entry.unknown
        });
        if is_connection {
            Ok(())
        } else {
            Err(unasked(response))
        }
    }
}

pub(super) fn unasked(response: &Response) -> Violation {
    Violation::Unasked {
        socket: response.socket,
        tag: response.tag,
    }
}
