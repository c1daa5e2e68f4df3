//! Packet sockets: packets that are of no connection here go to the host, and those of the host to the wire.

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
use baton_wire::{Endpoint, Payload};

/// A packet of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPacket<P> {
    /// The IP packet.
    pub packet: P,
    /// Whether it goes to the wire; otherwise it is to be treated as if it had just arrived.
    pub to_wire: bool,
}

/// A packet socket of some host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSocket(Place);

/// Which packets a packet socket wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) local: Option<Endpoint>,
}

impl Wanted {
    /// How closely it fits; none when it does not.
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
    /// Whether any host wants packets.
    pub fn passes_packets(&self) -> bool {
        !self.shared.wanted.is_empty()
    }

    /// The packet socket that wants packets to `local`, if there is one.
    pub fn host_for(&self, local: Endpoint) -> Option<PacketSocket> {
        let wanted = self.shared.wanted.iter();
        let fits = wanted.filter_map(|wanted| Some((wanted.fits(local)?, wanted.place)));
        let (_, place) = fits.max_by_key(|&(fit, _)| fit)?;
        Some(PacketSocket(place))
    }

    /// Passes a packet to a host. It is dropped by name where the host has posted no buffer for it, as on a wire.
    pub fn pass(&mut self, to: PacketSocket, packet: P) {
        let PacketSocket(Place { session, slot }) = to;
        self.sessions[session as usize].pass(slot, packet);
    }

    /// Whether a request sends a packet of a host, or posts a buffer for one.
    pub(super) fn is_about_packets(&self, session: SessionId, entry: &[Descriptor]) -> bool {
        let session = self.session(session);
        let Some(slot) = session.numbers.get(entry[0].socket()) else {
            return false;
        };
        matches!(session.sockets[slot as usize].phase, Phase::Packets)
            && entry.len() == 1
            && matches!(
                Request::decode(&entry[0]).map(|request| request.action),
                Ok(Action::Send { .. } | Action::Receive { .. })
            )
    }

    /// The next packet that a host wants sent.
    pub fn poll_packet(&mut self) -> Option<HostPacket<P>> {
        self.shared.packets.pop_front()
    }
}

impl<P: Payload + Inline> Session<P> {
    /// PACKET SOCKET.
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
        self.tell(
            work.now,
            number,
            Status::Ok,
            Outcome::SoftLimit { connections },
        );
        Ok(())
    }

    /// BIND of a packet socket: which packets it wants.
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

    /// A packet goes into the buffer that was posted first.
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

    /// SEND and FORWARD on a packet socket: the packet is fetched at once.
    pub(super) fn send_packet(&mut self, slot: u32, send: Send<P>) {
        let sending = &mut self.sockets[slot as usize].sending;
        let SendData::There { address, len } = send.data else {
            return debug_assert!(false, "packets stand in buffers");
        };
        self.sends.push(&mut sending.fetching, send);
        sending.fetching_bytes += len;
        self.ask_read(Job::Read { slot, len }, address, len);
    }

    /// A packet of the host has been fetched.
    pub(super) fn packet_fetched(&mut self, work: &mut Work<'_, P>, slot: u32, packet: P) {
        let socket = &mut self.sockets[slot as usize];
        socket.sending.fetching_bytes -= packet.len() as u32;
        let Some(send) = self.sends.pop(&mut socket.sending.fetching) else {
            return debug_assert!(false, "a packet is being fetched");
        };
        let number = socket.number;
        let (len, cumulative) = (packet.len() as u32, false);
        let outcome = match send.forward {
            true => Outcome::Done(Opcode::Forward),
            false => Outcome::Sent { len, cumulative },
        };
        self.stats.packets_sent += u64::from(!send.forward);
        self.stats.packets_forwarded += u64::from(send.forward);
        work.shared.packets.push_back(HostPacket {
            packet,
            to_wire: !send.forward,
        });
        let urgency = Some(Urgency::Lazy);
        self.answer_as(work.now, number, send.tag, Status::Ok, outcome, urgency);
        self.finish_if_quiet(work.now, slot);
    }

    /// CLOSE of a packet socket, answered when no packet is on its way.
    pub(super) fn close_packets(&mut self, work: &mut Work<'_, P>, slot: u32, tag: u32) {
        let place = self.place(slot);
        work.shared.wanted.retain(|wanted| wanted.place != place);
        let socket = &mut self.sockets[slot as usize];
        socket.closing.both = Some(tag);
        socket.phase = Phase::Ending(Status::Ok);
        self.finish_if_quiet(work.now, slot);
    }

    /// RECV on a packet socket.
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
