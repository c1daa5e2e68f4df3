//! Packets that are of no connection on the adapter: those that come for the host's own stack, and those that it sends.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::{Bypass, FileContent, SocketId};
use baton_bus::descriptor::{Action, Buffer, Request, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};

/// A part of a packet behind its head; it lies in one piece in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketPart<P> {
    /// What it carries.
    pub data: P,
    /// Which content of a file that is, if it is some.
    pub content: Option<FileContent>,
}

impl<P: Inline> OsLayer<P> {
    /// Makes a socket for packets to `local`: each if its port is 0. [`OsLayer::next_packet`] gives those that come. On a new link it is set
    /// up again. When that is impossible it becomes readable, and [`OsLayer::error_of`] says why.
    ///
    /// # Errors
    /// There are as many sockets as may be.
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

    /// The next packet that has come.
    pub fn next_packet(&mut self, socket: SocketId) -> Option<P> {
        self.known(socket)?;
        self.read(socket.0, usize::MAX)
    }

    /// Whether there is room to send a packet by so many SENDs. If not, the adapter is to [tell](OsLayer::unmask_lazy) when there is.
    pub fn has_room_for_packet<L: HostLink<Data = P>>(
        &self,
        link: &L,
        socket: SocketId,
        sends: usize,
    ) -> bool {
        let may_send = self.known(socket).is_some_and(|entry| {
            let is_made = entry.phase == Phase::Packets && entry.set_up != SetUp::Socket;
            let under_way = entry.sends.len() as usize + entry.control.len() as usize;
            let most = self.config.packet_buffers as usize;
            is_made && entry.error.is_none() && under_way + sends <= most
        });
        may_send && self.queue.room() >= sends && self.spare(link) >= sends
    }

    /// Sends a packet, or forwards one that came for a connection which has moved to the adapter meanwhile. False when there is no
    /// room for it: it is lost, and counted, as on a wire.
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

    /// Sends a packet whose data lies here and there: content of a file by reference if it stands in the adapter's cache or goes there now
    /// (data-caching 4.3), the rest as it is. `block` gives a whole block of the file of some content from a byte on, if it is in memory
    /// and of the same revision. False when there is no room for it: it is lost, and counted.
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

    /// SENDs that a packet with these parts may take: one for its head, and one for each block of each part.
    fn sends_of(&self, parts: &[PacketPart<P>]) -> usize {
        let block = self.config.nic_cache.block_bytes as usize;
        let blocks = parts.iter().map(|part| match part.content {
            Some(_) => part.data.len().div_ceil(block) + 1,
            None => 1,
        });
        1 + blocks.sum::<usize>()
    }

    /// Sends a packet, or a part of one if there is more; false when no buffer takes it.
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

    /// Gives a packet back to the adapter; false when no buffer takes it.
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

    /// Makes a request for which there is room, with a buffer.
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

    /// Soft_Limit: the most connections that may be on the adapter now; none as long as it is not known.
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
