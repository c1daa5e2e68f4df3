//! Packets that are of no connection on the adapter: those that come for the host's own stack, and those that it sends.

use super::OsLayer;
use super::socket::{Intents, Operation, Phase, SetUp};
use crate::SocketId;
use baton_bus::descriptor::{Action, Buffer, Request, Response, Status};
use baton_bus::link::{Inline, Violation};
use baton_bus::{HostLink, Urgency};
use baton_wire::{Endpoint, Time};

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

    /// Whether there is room to send a packet. If not, the adapter is to [tell](OsLayer::unmask_lazy) when there is.
    pub fn has_room_for_packet<L: HostLink<Data = P>>(&self, link: &L, socket: SocketId) -> bool {
        let may_send = self.known(socket).is_some_and(|entry| {
            let is_made = entry.phase == Phase::Packets && entry.set_up != SetUp::Socket;
            is_made && entry.error.is_none() && entry.sends.len() < self.config.packet_buffers
        });
        may_send && self.queue.room() > 0 && self.spare(link) > 0
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
        let number = socket.0;
        let len = packet.len() as u32;
        if !self.has_room_for_packet(link, socket) || len > self.transfer_bytes(link) {
            self.stats.packets_dropped += 1;
            return false;
        }
        let Ok(address) = link.place(packet) else {
            self.stats.packets_dropped += 1;
            return false;
        };
        self.placed += 1;
        let tag = self.remember(
            number,
            Operation::Send {
                address: Some(address),
                len,
            },
        );
        let action = match forward {
            true => Action::Forward { address, len },
            false => Action::Send {
                data: Buffer::Memory { address, len },
                more: false,
            },
        };
        let request = Request {
            socket: number,
            tag,
            action,
        };
        let pushed = self
            .queue
            .push(now, &[request.encode()], len, Urgency::Awaited);
        debug_assert!(pushed, "there was room");
        self.stats.packets_sent += u64::from(!forward);
        self.stats.packets_forwarded += u64::from(forward);
        true
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
