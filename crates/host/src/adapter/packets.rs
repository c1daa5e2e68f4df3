//! Packets that belong to no connection on the adapter: those that the host's own stack receives and sends.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::{Bypass, FileContent, SocketId};
use baton_bus::descriptor::{Action, Buffer, Request, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};

/// A part of a packet after its head, contiguous in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketPart<P> {
    /// The bytes.
    pub data: P,
    /// The content of a file that these bytes are, if any.
    pub content: Option<FileContent>,
}

impl<P: Inline> OsLayer<P> {
    /// Creates a socket for packets to `local`; for port 0, for packets to every port. [`OsLayer::next_packet`] returns received packets.
    /// On a new link the socket is set up again. If that fails, it becomes readable, and [`OsLayer::error_of`] says why.
    ///
    /// # Errors
    /// The maximum number of sockets is reached.
    pub fn packet_socket(&mut self, now: Time, local: Endpoint) -> Result<SocketId, Status> {
        self.now = now;
        let number = self.take_number().ok_or(Status::TooManySockets)?;
        let window = self.config.packet_buffers;
        let entry = self.occupy(number, Phase::Packets);
        entry.endpoint = local;
        entry.set_up = SetUp::Socket;
        entry.receive_window = window;
        self.intend(number, Intents::SET_UP | Intents::RECEIVE);
        Ok(SocketId(number))
    }

    /// Returns the next received packet.
    pub fn next_packet(&mut self, socket: SocketId) -> Option<P> {
        self.known(socket)?;
        self.read(socket.0, usize::MAX)
    }

    /// Returns whether there is space for a packet of this many SENDs. If not, the caller has to make the adapter
    /// [report](OsLayer::unmask_lazy) when there is space again.
    pub fn has_room_for_packet<L: HostLink<Data = P>>(
        &self,
        link: &L,
        socket: SocketId,
        sends: usize,
    ) -> bool {
        let may_send = self.known(socket).is_some_and(|entry| {
            let is_made = entry.phase == Phase::Packets && entry.set_up != SetUp::Socket;
            let under_way = entry.sends.len() as usize + entry.control.len() as usize;
            let most = self.config.packet_sends() as usize;
            is_made && entry.error.is_none() && under_way + sends <= most
        });
        may_send && self.queue.room() >= sends && self.spare(link) >= sends
    }

    /// Sends a packet, or forwards a received packet whose connection has moved to the adapter meanwhile. If there is no space, drops and
    /// counts the packet, and returns false.
    pub fn send_packet<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        packet: P,
        forward: bool,
    ) -> bool {
        self.now = now;
        let fits = packet.len() <= self.transfer_bytes(link) as usize;
        let has_room = fits && self.has_room_for_packet(link, socket, 1);
        let is_sent = has_room
            && match forward {
                true => self.forward_from_memory(now, link, socket.0, packet),
                false => self.send_from_memory(now, link, socket.0, packet, false),
            };
        if !is_sent {
            self.stats.packets_dropped += 1;
            return false;
        }
        self.stats.packets_sent += u64::from(!forward);
        self.stats.packets_forwarded += u64::from(forward);
        true
    }

    /// Sends a packet whose data consists of several parts: content of a file that is in the adapter's cache or is inserted now by
    /// reference (data-caching 4.3), the rest as bytes. `block` returns a whole block of a file from a byte on, if it is in memory and of
    /// the same revision. If there is no space, drops and counts the packet, and returns false.
    pub fn send_packet_in_parts<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        socket: SocketId,
        (head, parts): (P, &[PacketPart<P>]),
        mut block: impl FnMut(&FileContent, u64) -> Result<P, Bypass>,
    ) -> bool {
        self.now = now;
        let sends = self.sends_of(parts);
        if !self.has_room_for_packet(link, socket, sends) {
            self.stats.packets_dropped += 1;
            return false;
        }
        let mut left: usize = parts.iter().map(|part| part.data.len()).sum();
        let mut sent = self.send_from_memory(now, link, socket.0, head, left > 0);
        for PacketPart { data, content } in parts {
            let mut at = 0;
            while at < data.len() {
                let rest = data.len() - at;
                let in_block = (content.as_ref()).and_then(|content| {
                    Some((content, self.part(content, at as u64, rest as u64)?))
                });
                let (len, cached) = match in_block {
                    Some((content, part)) => {
                        let whole = |start| block(content, start);
                        let cached = self.find_or_insert(now, link, &part, sends, whole);
                        (part.len as usize, cached)
                    }
                    None => (rest, None),
                };
                left -= len;
                match cached {
                    Some(offset) => {
                        self.queue_cached(now, socket.0, (offset, len as u32), left > 0);
                    }
                    None => {
                        let data = data.slice(at, len);
                        sent &= self.send_from_memory(now, link, socket.0, data, left > 0);
                    }
                }
                at += len;
            }
        }
        debug_assert!(sent, "there was room, and a part is shorter than a buffer");
        self.stats.packets_sent += 1;
        true
    }

    /// Returns the maximum number of SENDs for a packet with these parts: one for its head, and one for each block of each part.
    fn sends_of(&self, parts: &[PacketPart<P>]) -> usize {
        let block = self.config.nic_cache.block_bytes as usize;
        let blocks = parts.iter().map(|part| match part.content {
            Some(_) => part.data.len().div_ceil(block) + 1,
            None => 1,
        });
        1 + blocks.sum::<usize>()
    }

    /// Sends a packet, or a part of a packet if `more` follows. Returns false if no buffer can hold it.
    fn send_from_memory<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
        data: P,
        more: bool,
    ) -> bool {
        let len = data.len() as u32;
        let Ok(address) = link.place(data) else {
            return false;
        };
        let operation = Operation::Send {
            address: Some(address),
            len,
            end: self.give(number, len),
        };
        let data = Buffer::Memory { address, len };
        self.request_of_packets(now, number, operation, Action::send(data, more), len);
        true
    }

    /// Gives a packet back to the adapter. Returns false if no buffer can hold it.
    fn forward_from_memory<L: HostLink<Data = P>>(
        &mut self,
        now: Time,
        link: &mut L,
        number: u32,
        packet: P,
    ) -> bool {
        let len = packet.len() as u32;
        let Ok(address) = link.place(packet) else {
            return false;
        };
        let (operation, action) = (
            Operation::Forward { address },
            Action::Forward { address, len },
        );
        self.request_of_packets(now, number, operation, action, len);
        true
    }

    /// Queues a request with a buffer; the caller has checked for space.
    fn request_of_packets(
        &mut self,
        now: Time,
        socket: u32,
        operation: Operation,
        action: Action,
        len: u32,
    ) {
        self.placed += 1;
        let tag = self.remember(socket, operation);
        let request = Request {
            socket,
            tag,
            action,
        };
        let entry = [request.encode()];
        let pushed = self.queue.push(now, &entry, len, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
    }

    /// Returns Soft_Limit: the maximum number of connections on the adapter now, or `None` while it is unknown.
    pub fn soft_limit(&self) -> Option<u32> {
        self.soft_limit
    }

    pub(super) fn handle_soft_limit(
        &mut self,
        response: &Response,
        connections: u32,
    ) -> Result<(), Violation> {
        let entry = self.sockets.get(response.socket as usize);
        match entry.map(|entry| entry.phase) {
            Some(Phase::Packets) => self.soft_limit = Some(connections),
            Some(Phase::Closing) => {}
            _ => return Err(super::completion::unrequested(response)),
        }
        Ok(())
    }
}
