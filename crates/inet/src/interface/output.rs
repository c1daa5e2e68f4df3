//! Output: segments of the stack, and the interface's own packets.

use super::{Interface, MOST_OUTBOX, Way};
use crate::addresses::group_mac;
use crate::arp;
use crate::config::Medium;
use crate::neighbours::{Advertisement, Released, Resolution};
use crate::stats::SendRefusal;
use baton_tcp::{Outgoing, OutgoingRun, PathError};
use baton_wire::{
    Buffer, Cut, Link, LowerHeaders, Span, Time, encode_link, encode_pieces, encode_run,
};
use bytes::Bytes;
use etherparse::IpSlice;
use std::net::IpAddr;

/// Time for which known headers are used without a lookup; a neighbour's states last for seconds.
const WAY_HOLDS: Span = Span::from_ms(500);

/// Result of sending a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its frame was appended.
    Frame,
    /// The segment waits until its neighbour's Ethernet address is known; [`Interface::poll_frame`] will return it.
    Waits,
    /// The segment was not sent, and the refusal was counted.
    Refused(SendRefusal),
}

impl SendRefusal {
    /// The error for the segment's connection, if any; `mtu` is the interface's.
    pub fn path_error(self, mtu: u16) -> Option<PathError> {
        match self {
            Self::NoRoute => Some(PathError::NetUnreachable),
            Self::NeighbourFailed => Some(PathError::HostUnreachable),
            Self::TooLong => Some(PathError::FragmentationNeeded { mtu }),
            Self::NotOwnSource | Self::Unencodable => None,
        }
    }
}

impl Interface {
    /// Sends a segment: appends its frame to `frame`, with one copy of its data, or lets it wait for its neighbour.
    #[inline]
    pub fn send(
        &mut self,
        now: Time,
        segment: &Outgoing<'_, Bytes>,
        frame: &mut impl Buffer,
    ) -> Sent {
        let start = frame.len();
        let sent = self.place(now, segment, frame);
        self.note_sent(sent, start, frame)
    }

    /// Sends the segments of a run: appends their frames to `frames`, and calls `end` after each. Returns false if the next hop is
    /// not known or the run cannot be encoded; the caller must then send each segment by itself.
    pub fn send_run<B: Buffer>(
        &mut self,
        now: Time,
        run: &OutgoingRun<'_, Bytes>,
        frames: &mut B,
        end: impl FnMut(&mut B),
    ) -> bool {
        let (src, dst) = (run.first.src.addr, run.first.dst.addr);
        let Some(way) = self.known_way_to(now, src, dst) else {
            return false;
        };
        debug_assert!(
            run.packet_len() <= usize::from(self.mtu),
            "runs are cut to fit"
        );
        let cut = Cut {
            segments: run.segments,
            segment_len: run.segment_len(),
            pushes: run.pushes,
        };
        let pieces = run.first.payload.parts();
        let pieces = pieces.map(|(piece, range)| &piece[range]);
        let head = run.first.head();
        let Ok(frame_len) = encode_run(&way.headers, head, cut, pieces, frames, end) else {
            return false;
        };
        self.stats.frames_sent += u64::from(run.segments);
        self.stats.bytes_sent += u64::from(run.segments) * frame_len as u64;
        true
    }

    /// Returns the last headers, if they are still valid and lead from `src` to `dst`.
    #[inline]
    fn known_way_to(&self, now: Time, src: IpAddr, dst: IpAddr) -> Option<&Way> {
        self.known_way
            .as_ref()
            .filter(|way| (way.src, way.dst) == (src, dst) && now < way.until)
    }

    #[inline]
    fn place(
        &mut self,
        now: Time,
        segment: &Outgoing<'_, Bytes>,
        frame: &mut impl Buffer,
    ) -> Result<Sent, SendRefusal> {
        if segment.packet_len() > usize::from(self.mtu) {
            return Err(SendRefusal::TooLong);
        }
        let (src, dst) = (segment.src.addr, segment.dst.addr);
        if let Some(way) = self.known_way_to(now, src, dst) {
            encode(&way.headers, segment, frame)?;
            return Ok(Sent::Frame);
        }
        self.find_way(now, segment, frame)
    }

    /// Looks up the segment's next hop, and sends the segment if the neighbour is known.
    fn find_way(
        &mut self,
        now: Time,
        segment: &Outgoing<'_, Bytes>,
        frame: &mut impl Buffer,
    ) -> Result<Sent, SendRefusal> {
        let (src, dst) = (segment.src.addr, segment.dst.addr);
        if !self.addresses.owns(src) {
            return Err(SendRefusal::NotOwnSource);
        }
        let next_hop = self
            .routes
            .next_hop(dst, &self.addresses)
            .ok_or(SendRefusal::NoRoute)?;
        let mut link = None;
        if self.config.medium == Medium::Ethernet {
            match self.resolve(now, next_hop) {
                Resolution::Known(mac) => link = Some(self.link_to(mac)),
                Resolution::Failed => return Err(SendRefusal::NeighbourFailed),
                Resolution::Asked => {
                    let mut packet = Vec::new();
                    encode(&self.lower_headers(None, src, dst)?, segment, &mut packet)?;
                    self.neighbours.wait(next_hop, packet, &mut self.stats);
                    return Ok(Sent::Waits);
                }
            }
        }
        let headers = self.lower_headers(link, src, dst)?;
        self.known_way = Some(Way {
            src,
            dst,
            headers,
            until: now + WAY_HOLDS,
        });
        encode(&headers, segment, frame)?;
        Ok(Sent::Frame)
    }

    fn lower_headers(
        &self,
        link: Option<Link>,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<LowerHeaders, SendRefusal> {
        let headers = LowerHeaders::new(link, src, dst).map_err(|_| SendRefusal::Unencodable)?;
        let headers = headers.with_flow_labels(self.flow_label_key);
        Ok(headers.leaving_checksums(self.leaves_checksums))
    }

    /// Counts the result for a frame that begins at `start`, and removes a frame that was refused.
    #[inline(always)]
    fn note_sent(
        &mut self,
        sent: Result<Sent, SendRefusal>,
        start: usize,
        frame: &mut impl Buffer,
    ) -> Sent {
        let sent = sent.unwrap_or_else(Sent::Refused);
        match sent {
            Sent::Frame => self.count_sent(frame.len() - start),
            Sent::Waits => self.stats.segments_waited += 1,
            Sent::Refused(reason) => {
                frame.shorten(start);
                self.stats.send_refused.count(reason);
            }
        }
        sent
    }

    /// Sends an IP packet of another stack: appends its frame to `frame`, or lets it wait for its neighbour.
    pub fn send_packet(&mut self, now: Time, packet: &[u8], frame: &mut impl Buffer) -> Sent {
        let start = frame.len();
        let sent = self.place_packet(now, packet, frame);
        self.note_sent(sent, start, frame)
    }

    fn place_packet(
        &mut self,
        now: Time,
        packet: &[u8],
        frame: &mut impl Buffer,
    ) -> Result<Sent, SendRefusal> {
        let (src, dst) = addresses_of(packet).ok_or(SendRefusal::Unencodable)?;
        if packet.len() > usize::from(self.mtu) {
            return Err(SendRefusal::TooLong);
        }
        if !self.addresses.owns(src) {
            return Err(SendRefusal::NotOwnSource);
        }
        if self.config.medium == Medium::Ethernet {
            let next_hop = self.routes.next_hop(dst, &self.addresses);
            let next_hop = next_hop.ok_or(SendRefusal::NoRoute)?;
            match self.resolve(now, next_hop) {
                Resolution::Known(mac) => {
                    self.link_header.clear();
                    encode_link(self.link_to(mac), src, &mut self.link_header);
                    frame.append(&self.link_header);
                }
                Resolution::Failed => return Err(SendRefusal::NeighbourFailed),
                Resolution::Asked => {
                    let packet = packet.to_vec();
                    self.neighbours.wait(next_hop, packet, &mut self.stats);
                    return Ok(Sent::Waits);
                }
            }
        }
        frame.append(packet);
        Ok(Sent::Frame)
    }

    /// Appends the next of the interface's own frames to `frame`: requests for neighbours and answers to such requests, echo
    /// replies, ICMP errors, segments whose neighbour became known. Returns false if there is none.
    #[inline]
    pub fn poll_frame(&mut self, _now: Time, frame: &mut impl Buffer) -> bool {
        let has_own = self.solicits() || !self.outbox.is_empty();
        has_own && self.poll_own(frame)
    }

    /// Returns the next neighbour whose Ethernet address the owner has to find, if the interface does not find neighbours itself. The
    /// request is repeated each second, three times in all, until [`Interface::found`] answers it.
    pub fn poll_sought(&mut self) -> Option<IpAddr> {
        if self.config.finds_neighbours {
            return None;
        }
        Some(self.neighbours.poll_solicitation()?.target)
    }

    /// Sets the Ethernet address of a neighbour that the interface asked for.
    pub fn found(&mut self, now: Time, addr: IpAddr, mac: [u8; 6]) {
        let said = Advertisement {
            addr,
            mac: Some(mac),
            solicited: true,
            overrides: true,
            router: None,
        };
        let released = self.neighbours.advertised(now, said);
        self.send_released(released);
    }

    fn solicits(&self) -> bool {
        self.config.finds_neighbours && self.neighbours.solicits()
    }

    fn poll_own(&mut self, frame: &mut impl Buffer) -> bool {
        while self.solicits() {
            let Some(solicitation) = self.neighbours.poll_solicitation() else {
                break;
            };
            let own = self.solicitation_frame(solicitation);
            if !own.is_empty() {
                self.stats.solicitations_sent += 1;
                frame.append(&own);
                self.count_sent(own.len());
                return true;
            }
        }
        let Some(own) = self.outbox.pop_front() else {
            return false;
        };
        frame.append(&own);
        self.count_sent(own.len());
        true
    }

    fn count_sent(&mut self, len: usize) {
        self.stats.frames_sent += 1;
        self.stats.bytes_sent += len as u64;
    }

    pub(super) fn link_to(&self, mac: [u8; 6]) -> Link {
        Link {
            src: self.config.mac,
            dst: mac,
        }
    }

    /// Sends one of the interface's own packets, or drops it if there is no route.
    pub(super) fn send_own(&mut self, now: Time, dst: IpAddr, packet: Vec<u8>) {
        if self.config.medium == Medium::Ip {
            self.push_frame(packet);
            return;
        }
        if let IpAddr::V6(group) = dst
            && group.is_multicast()
        {
            self.push_packet(group_mac(group), &packet);
            return;
        }
        let Some(next_hop) = self.routes.next_hop(dst, &self.addresses) else {
            return;
        };
        match self.resolve(now, next_hop) {
            Resolution::Known(mac) => self.push_packet(mac, &packet),
            Resolution::Asked => self.neighbours.wait(next_hop, packet, &mut self.stats),
            Resolution::Failed => {}
        }
    }

    /// Sends packets whose neighbour became known.
    pub(super) fn send_released(&mut self, released: Released) {
        for packet in released.packets {
            self.push_packet(released.mac, &packet);
        }
    }

    /// Queues an IP packet to a known Ethernet address.
    pub(super) fn push_packet(&mut self, mac: [u8; 6], packet: &[u8]) {
        let src = match packet.first().map(|first| first >> 4) {
            Some(4) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            _ => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        };
        let mut frame = Vec::new();
        encode_link(self.link_to(mac), src, &mut frame);
        frame.extend_from_slice(packet);
        self.push_frame(frame);
    }

    pub(super) fn push_frame(&mut self, frame: Vec<u8>) {
        if self.outbox.len() >= MOST_OUTBOX {
            self.stats.outbox_dropped += 1;
            return;
        }
        self.outbox.push_back(frame);
    }

    /// Queues the ARP announcement of `addr` (RFC 5227 2.3).
    pub(super) fn announce(&mut self, addr: std::net::Ipv4Addr) {
        let mut frame = Vec::new();
        arp::write_request(self.config.mac, addr, addr, None, &mut frame);
        self.push_frame(frame);
    }
}

/// Source and destination of an IP packet.
fn addresses_of(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match IpSlice::from_slice(packet).ok()? {
        IpSlice::Ipv4(ip) => {
            let header = ip.header();
            Some((
                header.source_addr().into(),
                header.destination_addr().into(),
            ))
        }
        IpSlice::Ipv6(ip) => {
            let header = ip.header();
            Some((
                header.source_addr().into(),
                header.destination_addr().into(),
            ))
        }
    }
}

fn encode(
    headers: &LowerHeaders,
    segment: &Outgoing<'_, Bytes>,
    out: &mut impl Buffer,
) -> Result<(), SendRefusal> {
    let encoded = match segment.payload.only_part() {
        // The data of a segment is usually within one piece.
        Some((piece, range)) => {
            let data = std::iter::once(&piece[range]);
            encode_pieces(headers, segment.head(), data, out)
        }
        None => {
            let pieces = segment.payload.parts();
            let pieces = pieces.map(|(piece, range)| &piece[range]);
            encode_pieces(headers, segment.head(), pieces, out)
        }
    };
    encoded.map_err(|_| SendRefusal::Unencodable)
}
