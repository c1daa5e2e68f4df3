//! Packet sockets: pass packets that belong to no connection on the adapter to the host, and packets of the host to the wire.

use super::dma::Job;
use super::owners::Place;
use super::receiving::Receive;
use super::sending::{Send, SendData};
use super::session::{Session, Work};
use super::socket::Phase;
use super::{Adapter, SessionId};
use baton_bus::descriptor::{Action, Opcode, Outcome, Request, Status};
use baton_bus::link::Inline;
use baton_bus::{Descriptor, Urgency};
use baton_wire::{Endpoint, Payload, Pieces, Time};

/// A packet of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPacket<P> {
    /// The parts of the IP packet, at least one.
    pub parts: Pieces<P>,
    /// Whether the packet goes to the wire. If not, it is treated as if it had just been received.
    pub to_wire: bool,
}

impl<P: Inline> HostPacket<P> {
    /// Joins the parts into one packet, or returns `None` if the payload type cannot be joined.
    pub fn joined(self) -> Option<P> {
        let mut parts = self.parts.into_iter();
        let first = parts.next()?;
        parts.try_fold(first, |joined, part| joined.followed_by(&part))
    }
}

/// A packet socket of some host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSocket(Place);

/// The packets that a packet socket receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) local: Option<Endpoint>,
}

impl Wanted {
    /// Returns how closely `local` matches, or `None` if it does not.
    fn fits(&self, local: Endpoint) -> Option<u32> {
        let Some(wanted) = self.local else {
            return Some(0);
        };
        let of_addr = match wanted.addr {
            any if any.is_unspecified() && any.is_ipv4() == local.addr.is_ipv4() => 0,
            addr if addr == local.addr => 1,
            _ => return None,
        };
        let of_port = match wanted.port {
            0 => 0,
            port if port == local.port => 2,
            _ => return None,
        };
        Some(of_addr + of_port)
    }
}

impl<P: Payload + Inline> Adapter<P> {
    /// Returns whether any host receives packets.
    pub fn passes_packets(&self) -> bool {
        !self.shared.wanted.is_empty()
    }

    /// Returns the packet socket that receives packets to `local`, if any.
    pub fn host_for(&self, local: Endpoint) -> Option<PacketSocket> {
        let wanted = self.shared.wanted.iter();
        let fits = wanted.filter_map(|wanted| Some((wanted.fits(local)?, wanted.place)));
        let (_, place) = fits.max_by_key(|&(fit, _)| fit)?;
        Some(PacketSocket(place))
    }

    /// Passes a packet to a host. If the host has posted no buffer for the packet, the packet is dropped and counted.
    pub fn pass(&mut self, to: PacketSocket, packet: P) {
        let PacketSocket(Place { session, slot }) = to;
        self.shared.packets_passed += 1;
        self.sessions[session as usize].pass(slot, packet);
    }

    /// Returns whether a request sends a packet of a host, or posts a buffer for one.
    pub(super) fn is_about_packets(&self, session: SessionId, entry: &[Descriptor]) -> bool {
        let session = self.session(session);
        let Some(slot) = session.numbers.get(entry[0].socket()) else {
            return false;
        };
        matches!(session.sockets[slot as usize].phase, Phase::Packets)
            && entry.len() == 1
            && matches!(
                entry[0].opcode(),
                Ok(Opcode::Send | Opcode::SendCached | Opcode::Receive)
            )
    }

    /// Returns the next packet that a host sends.
    pub fn poll_packet(&mut self) -> Option<HostPacket<P>> {
        let packet = self.shared.packets.pop_front()?;
        self.shared.packets_passed += 1;
        Some(packet)
    }
}

impl<P: Payload + Inline> Session<P> {
    /// Executes PACKET SOCKET.
    pub(super) fn make_packet_socket(
        &mut self,
        work: &mut Work<'_, P>,
        number: u32,
        tag: u32,
    ) -> Result<(), Status> {
        self.may_add(work)?;
        let slot = self.insert(number, Phase::Packets);
        let (place, local) = (self.place(slot), None);
        work.shared.wanted.push(Wanted { place, local });
        let done = Outcome::Done(Opcode::PacketSocket);
        self.respond(work.now, number, tag, Status::Ok, done);
        let connections = work.shared.limits.soft_limit();
        self.notify(
            work.now,
            number,
            Status::Ok,
            Outcome::SoftLimit { connections },
        );
        Ok(())
    }

    /// Executes BIND of a packet socket, which selects the packets that it receives.
    pub(super) fn want(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        local: Endpoint,
    ) -> Result<(), Status> {
        if !work.shared.ports.may_bind(local.addr) {
            return Err(Status::AddressNotAvailable);
        }
        let place = self.place(slot);
        let is_taken = |other: &Wanted| other.place != place && other.local == Some(local);
        if work.shared.wanted.iter().any(is_taken) {
            return Err(Status::AddressInUse);
        }
        let socket = &mut self.sockets[slot as usize];
        socket.local = Some(local);
        for wanted in &mut work.shared.wanted {
            if wanted.place == place {
                wanted.local = Some(local);
            }
        }
        let (number, done) = (socket.number, Outcome::Done(Opcode::Bind));
        self.respond(work.now, number, tag, Status::Ok, done);
        Ok(())
    }

    /// Writes a packet to the buffer that was posted first.
    fn pass(&mut self, slot: u32, packet: P) {
        let receiving = &mut self.sockets[slot as usize].receiving;
        let Some(receive) = self.receives.front_mut(&receiving.posted) else {
            self.stats.packets_without_buffer += 1;
            return;
        };
        if packet.len() > receive.len as usize {
            self.stats.packets_too_long += 1;
            return;
        }
        receive.fill_with(packet.len() as u32);
        let address = receive.address;
        let moved = self
            .receives
            .move_front(&mut receiving.posted, &mut receiving.filling);
        if let Some(key) = moved {
            self.ask_write(Job::Write { slot, receive: key }, address, packet);
            self.stats.packets_passed += 1;
        }
    }

    /// Executes FORWARD: fetches the packet immediately.
    pub(super) fn forward(
        &mut self,
        work: &Work<'_, P>,
        slot: u32,
        tag: u32,
        (address, len): (u64, u32),
    ) -> Result<(), Status> {
        let socket = &mut self.sockets[slot as usize];
        if !matches!(socket.phase, Phase::Packets) {
            return Err(Status::WrongState);
        }
        if len == 0 {
            return Err(Status::BadValue);
        }
        if socket.forwarding >= work.shared.config.most_packets {
            return Err(Status::TooManyRequests);
        }
        socket.forwarding += 1;
        self.ask_read(Job::Forward { slot, tag, len }, address, len);
        Ok(())
    }

    /// Processes a fetched packet that is treated as if it had just been received.
    pub(super) fn forward_fetched(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        tag: u32,
        packet: P,
    ) {
        let socket = &mut self.sockets[slot as usize];
        socket.forwarding -= 1;
        let number = socket.number;
        self.stats.packets_forwarded += 1;
        work.shared.packets.push_back(HostPacket {
            parts: std::iter::once(packet).collect(),
            to_wire: false,
        });
        let done = Outcome::Done(Opcode::Forward);
        let urgency = Some(Urgency::Lazy);
        self.answer_as(work.now, number, tag, Status::Ok, done, urgency);
        self.finish_if_quiet(work.now, slot);
    }

    /// Executes SEND on a packet socket: fetches data from host memory immediately, and assembles parts in order.
    pub(super) fn send_part(
        &mut self,
        work: &mut Work<'_, P>,
        slot: u32,
        send: Send<P>,
    ) -> Result<(), Status> {
        let sending = &mut self.sockets[slot as usize].sending;
        let is_inline = matches!(send.data, SendData::Here(_));
        if send.len() == 0 || is_inline || send.is_in_file() || sending.skips {
            return Err(Status::BadValue);
        }
        if sending.unwritten.len() + sending.fetching.len() >= work.shared.config.most_packets {
            return Err(Status::TooManyRequests);
        }
        sending.more_follows = send.more;
        let there = match send.data {
            SendData::There { address, len } => Some((address, len)),
            SendData::Here(_) | SendData::Cached(_) => None,
        };
        self.sends.push(&mut sending.fetching, send);
        match there {
            Some((address, len)) => {
                sending.fetching_bytes += len;
                self.ask_read(Job::Read { slot, len }, address, len);
            }
            None => self.gather_packets(work, slot),
        }
        Ok(())
    }

    /// Handles the refusal of a request. If the request is a SEND on a packet socket, it may be part of a packet, which is then not sent at
    /// all.
    pub(super) fn refuse_part(&mut self, now: Time, request: &Request) {
        let more = match request.action {
            Action::Send { more, .. } | Action::SendCached { more, .. } => more,
            _ => return,
        };
        let Some(slot) = self.numbers.get(request.socket) else {
            return;
        };
        let socket = &mut self.sockets[slot as usize];
        if matches!(socket.phase, Phase::Packets) {
            socket.sending.skips = more;
            self.cut_packet(now, slot);
        }
    }

    /// Marks the current, incomplete packet as cut off, if there is one.
    fn cut_packet(&mut self, now: Time, slot: u32) {
        let sending = &mut self.sockets[slot as usize].sending;
        if std::mem::take(&mut sending.more_follows) {
            match self.sends.back_mut(&sending.fetching) {
                Some(last) => last.is_cut = true,
                None => self.drop_gathered(now, slot),
            }
        }
    }

    /// Stores the fetched data of the oldest part that was being fetched. Transfers complete in order, so that earlier parts are available.
    pub(super) fn part_fetched(&mut self, work: &mut Work<'_, P>, slot: u32, data: P) {
        let sending = &mut self.sockets[slot as usize].sending;
        sending.fetching_bytes -= data.len() as u32;
        let Some(send) = self.sends.front_mut(&sending.fetching) else {
            return debug_assert!(false, "a packet is being fetched");
        };
        debug_assert!(matches!(send.data, SendData::There { .. }));
        send.data = SendData::Here(data);
        self.gather_packets(work, slot);
        self.finish_if_quiet(work.now, slot);
    }

    /// Assembles packets from the parts that are available, in order.
    pub(super) fn gather_packets(&mut self, work: &mut Work<'_, P>, slot: u32) {
        loop {
            let sending = &mut self.sockets[slot as usize].sending;
            let Some(first) = self.sends.front(&sending.fetching) else {
                return;
            };
            let is_here = match &first.data {
                SendData::There { .. } => false,
                SendData::Here(_) => true,
                SendData::Cached(parts) => {
                    (self.cache).is_here(parts, slot, &mut sending.awaited_insert)
                }
            };
            if !is_here {
                return;
            }
            let (more, is_cut) = (first.more, first.is_cut);
            self.sends
                .move_front(&mut sending.fetching, &mut sending.unwritten);
            if is_cut {
                self.drop_gathered(work.now, slot);
            } else if !more {
                self.send_gathered(work, slot);
            }
        }
    }

    /// Discards the assembled parts of a packet. The answer to the last SEND completes all of them.
    fn drop_gathered(&mut self, now: Time, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let (number, mut last) = (socket.number, None);
        while let Some(send) = self.sends.pop(&mut socket.sending.unwritten) {
            last = Some((send.tag, send.len()));
        }
        if let Some((tag, len)) = last {
            let cumulative = true;
            let outcome = Outcome::Sent { len, cumulative };
            self.respond(now, number, tag, Status::BadValue, outcome);
        }
    }

    /// Sends a complete packet. The answer to its last SEND completes all of them.
    fn send_gathered(&mut self, work: &mut Work<'_, P>, slot: u32) {
        let socket = &mut self.sockets[slot as usize];
        let number = socket.number;
        let cumulative = socket.sending.unwritten.len() > 1;
        let mut parts = Pieces::new();
        let mut last = None;
        while let Some(send) = self.sends.pop(&mut socket.sending.unwritten) {
            last = Some((send.tag, send.len()));
            send.data.move_to(&mut parts);
        }
        let Some((tag, len)) = last else {
            return debug_assert!(false, "a packet has a part");
        };
        self.stats.packets_sent += 1;
        work.shared.packets.push_back(HostPacket {
            parts,
            to_wire: true,
        });
        let outcome = Outcome::Sent { len, cumulative };
        let urgency = Some(Urgency::Lazy);
        self.answer_as(work.now, number, tag, Status::Ok, outcome, urgency);
    }

    /// Executes CLOSE of a packet socket, which is answered when no transfer is in progress.
    pub(super) fn close_packets(&mut self, work: &mut Work<'_, P>, slot: u32, tag: u32) {
        let place = self.place(slot);
        work.shared.wanted.retain(|wanted| wanted.place != place);
        self.cut_packet(work.now, slot);
        let socket = &mut self.sockets[slot as usize];
        socket.closing.both = Some(tag);
        socket.phase = Phase::Ending(Status::Ok);
        self.finish_if_quiet(work.now, slot);
    }

    /// Executes RECV on a packet socket.
    pub(super) fn post_packet_buffer(
        &mut self,
        work: &Work<'_, P>,
        slot: u32,
        receive: Receive,
    ) -> Result<(), Status> {
        let receiving = &mut self.sockets[slot as usize].receiving;
        if receive.len == 0 {
            return Err(Status::BadValue);
        }
        if receiving.posted.len() + receiving.filling.len() >= work.shared.config.most_packets {
            return Err(Status::TooManyRequests);
        }
        self.receives.push(&mut receiving.posted, receive);
        Ok(())
    }
}
