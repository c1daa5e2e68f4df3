//! One interface of a host: decodes arriving frames, and adds headers and routes to leaving packets.

mod discovery;
mod extensions;
mod merging;
mod output;
mod routed;
mod similar;
mod v4;
mod v6;

pub(crate) use merging::Run;
pub use output::Sent;
pub(crate) use v4::is_source_routed;

use crate::addresses::{Addresses, BROADCAST_MAC, is_group_mac};
use crate::config::{ConfigError, InterfaceConfig, Medium, Route};
use crate::icmp::Quote;
use crate::neighbours::{Neighbour, Neighbours};
use crate::rate_limit::RateLimit;
use crate::routes::Routes;
use crate::stats::{Refusal, Stats};
use baton_tcp::{PathError, Segment};
use baton_wire::{
    Checksum, Ecn, Endpoint, Flow, Header, LowerHeaders, Pieces, SeqNr, Time, pseudo_header,
};
use bytes::{Buf, Bytes};
use discovery::Duties;
use etherparse::{EtherType, Ethernet2HeaderSlice, IpNumber, Ipv6Header, LaxIpSlice};
use routed::Routed;
use similar::Head;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

/// Maximum number of own frames (answers, errors, packets whose neighbour became known) that wait to be polled.
const MOST_OUTBOX: usize = 1024;

/// Maximum number of errors about own segments that wait to be polled.
const MOST_PATH_ERRORS: usize = 256;

/// Content of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A segment for the stack. Its data is part of the frame, not a copy.
    Segment(Segment<Bytes>),
    /// An ICMP error about a segment that this host sent: for [`Stack::handle_path_error`](baton_tcp::Stack::handle_path_error).
    PathError {
        /// The connection as this host names it.
        flow: Flow,
        /// The segment's sequence number.
        seq: SeqNr,
        /// The error.
        error: PathError,
    },
    /// The interface handled the frame itself; there may be a frame to send.
    Consumed,
    /// The frame was refused and counted.
    Refused(Refusal),
}

/// Content of a frame. A segment's headers are in the caller's segment; its data is in this range of the frame.
enum Taken {
    Segment { payload: Range<usize> },
    PathError(Quote, PathError),
    Consumed,
}

/// Content of a frame, with a segment written to the caller's segment.
pub(crate) enum Received {
    Segment,
    PathError(Quote, PathError),
    Consumed,
    Refused(Refusal),
}

/// What the link layer says about a frame.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// The frame was sent to all hosts, or to a group.
    to_many: bool,
}

/// One interface.
///
/// Calling order: after `handle_frame`, `send` or `handle_timeouts`, call [`Interface::poll_frame`] until it returns false;
/// call [`Interface::handle_timeouts`] at the time that [`Interface::poll_timeout`] returns, and then
/// [`Interface::poll_path_error`] until it returns `None`. Time never goes back.
#[derive(Clone, Debug)]
pub struct Interface {
    config: InterfaceConfig,
    addresses: Addresses,
    routes: Routes,
    pub(crate) neighbours: Neighbours,
    duties: Duties,
    /// The link's current MTU, bytes.
    link_mtu: u16,
    /// Largest packet to send, bytes: the link's MTU, or less if a router advertised less.
    mtu: u16,
    /// Determines the flow labels of IPv6 packets.
    flow_label_key: u64,
    /// Whether the link completes the checksums of segments with much data.
    leaves_checksums: bool,
    icmp_limit: RateLimit,
    outbox: VecDeque<Vec<u8>>,
    path_errors: VecDeque<(Quote, PathError)>,
    /// Work for the router, if the interface is a router's.
    routed: Option<Box<Routed>>,
    /// The remote address that TCP confirmed last, and when, which saves a lookup for each segment.
    confirmed: Option<(IpAddr, Time)>,
    /// Addresses of the last valid packet to this host alone. The next packet usually has the same addresses.
    known_pair: Option<Pair>,
    /// Ethernet and IPv4 headers of the last frame with a segment, if the IPv4 header had no options.
    known_head: Option<Head>,
    /// Headers of the last segment that was sent. Those of the next segment are usually the same.
    known_way: Option<Way>,
    /// Buffer for the link header of a packet of another stack.
    link_header: Vec<u8>,
    stats: Stats,
}

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug)]
struct Pair {
    src: IpAddr,
    dst: IpAddr,
    /// Checksum of the pseudo-header of segments between them, without the length.
    pseudo_header: Checksum,
}

impl Pair {
    fn new(src: IpAddr, dst: IpAddr) -> Self {
        Self {
            src,
            dst,
            pseudo_header: pseudo_header(src, dst, IpNumber::TCP.0, 0),
        }
    }
}

/// Headers of segments from `src` to `dst`, valid until neighbours change.
#[derive(Clone, Copy, Debug)]
struct Way {
    src: IpAddr,
    dst: IpAddr,
    headers: LowerHeaders,
    until: Time,
}

impl Interface {
    /// Creates an interface with these parameters.
    ///
    /// # Errors
    /// Fails if an interface cannot work with them.
    pub fn new(config: InterfaceConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let detect_duplicates =
            config.duplicate_address_detection && config.medium == Medium::Ethernet;
        Ok(Self {
            addresses: Addresses::new(&config.addresses, detect_duplicates, config.is_loopback),
            routes: Routes::new(config.routes.clone()),
            neighbours: Neighbours::new(),
            duties: Duties::new(&config),
            link_mtu: config.mtu,
            mtu: config.mtu,
            flow_label_key: 0,
            leaves_checksums: false,
            icmp_limit: RateLimit::new(config.icmp_errors_per_second),
            outbox: VecDeque::new(),
            path_errors: VecDeque::new(),
            routed: None,
            confirmed: None,
            known_pair: None,
            known_head: None,
            known_way: None,
            link_header: Vec::new(),
            stats: Stats::default(),
            config,
        })
    }

    /// Sets the secret from which the flow labels of IPv6 packets follow.
    pub fn set_flow_label_key(&mut self, key: u64) {
        self.flow_label_key = key;
    }

    /// Leaves the checksums of segments with much data to the link.
    pub fn leave_checksums(&mut self) {
        self.leaves_checksums = true;
        self.known_way = None;
    }

    // --- getters ---

    /// The interface's parameters.
    pub fn config(&self) -> &InterfaceConfig {
        &self.config
    }

    /// Largest IP packet that the interface sends, bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Totals since the interface was created.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The neighbours that are known or being resolved, in any order.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> + '_ {
        self.neighbours.iter()
    }

    /// Routes beyond the link: given ones, longest prefix first, then default routers that advertised themselves.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.routes.iter()
    }

    /// Addresses of the interface that another host has too (RFC 4862 5.4.5). They are not used.
    pub fn duplicates(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let duplicate = |assigned: &&crate::addresses::Assigned| {
            assigned.standing == crate::addresses::Standing::Duplicate
        };
        self.addresses
            .iter()
            .filter(duplicate)
            .map(|assigned| assigned.cidr.addr())
    }

    /// The source address for packets to `remote`; `None` if there is no route.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let next_hop = self.routes.next_hop(remote, &self.addresses)?;
        self.addresses.source_for(remote, next_hop)
    }

    /// When [`Interface::handle_timeouts`] must be called next, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        let tentative = self
            .addresses
            .iter()
            .map(|assigned| match assigned.standing {
                crate::addresses::Standing::Tentative { until, .. } => until,
                _ => Time::NEVER,
            });
        let own = tentative.min().unwrap_or(Time::NEVER);
        let others = self.neighbours.deadline().min(self.duties.deadline());
        let next = own.min(others).min(self.routes.deadline());
        (next != Time::NEVER).then_some(next)
    }

    // --- events in ---

    /// Sets the link's MTU, which the configured MTU limits.
    pub fn handle_link_mtu(&mut self, mtu: u16) {
        let mtu = mtu.min(self.config.mtu);
        if mtu != self.link_mtu {
            self.link_mtu = mtu;
            self.mtu = mtu;
        }
    }

    /// Processes an arriving frame: an Ethernet frame without check sequence, or an IP packet, depending on the medium.
    pub fn handle_frame(&mut self, now: Time, frame: Bytes) -> Input {
        let mut segment = empty_segment();
        match self.receive(now, frame, &mut segment) {
            Received::Segment => Input::Segment(segment),
            Received::PathError(Quote { flow, seq }, error) => {
                Input::PathError { flow, seq, error }
            }
            Received::Consumed => Input::Consumed,
            Received::Refused(reason) => Input::Refused(reason),
        }
    }

    /// Processes an arriving frame and writes a segment to `segment`, whose old content is lost.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        frame: Bytes,
        segment: &mut Segment<Bytes>,
    ) -> Received {
        self.stats.frames_received += 1;
        self.stats.bytes_received += frame.len() as u64;
        self.receive_as(now, self.config.medium, frame, segment)
    }

    /// Processes a frame of `medium` that may not have arrived over the link.
    pub(crate) fn receive_as(
        &mut self,
        now: Time,
        medium: Medium,
        frame: Bytes,
        segment: &mut Segment<Bytes>,
    ) -> Received {
        let taken = match medium {
            Medium::Ethernet => match self.take_similar(&frame, segment) {
                Some(taken) => taken,
                None => self.take_ethernet(now, &frame, segment),
            },
            Medium::Ip => self.take_ip(now, &frame, 0, Arrival { to_many: false }, segment),
        };
        match taken {
            Ok(Taken::Segment { payload }) => {
                self.stats.segments_received += 1;
                segment.payload.clear();
                if !payload.is_empty() {
                    push_data(segment, frame, payload);
                }
                Received::Segment
            }
            Ok(Taken::PathError(quote, error)) => {
                self.stats.path_errors += 1;
                Received::PathError(quote, error)
            }
            Ok(Taken::Consumed) => Received::Consumed,
            Err(reason) => {
                self.stats.refused.count(reason);
                Received::Refused(reason)
            }
        }
    }

    fn take_ethernet(
        &mut self,
        now: Time,
        frame: &[u8],
        segment: &mut Segment<Bytes>,
    ) -> Result<Taken, Refusal> {
        let ethernet = Ethernet2HeaderSlice::from_slice(frame).map_err(|_| Refusal::BadFrame)?;
        let (src, dst) = (ethernet.source(), ethernet.destination());
        if is_group_mac(src) {
            return Err(Refusal::BadFrame);
        }
        if src == self.config.mac && !self.config.is_loopback {
            return Err(Refusal::OwnSource);
        }
        let to_many = is_group_mac(dst);
        if dst != self.config.mac && !to_many {
            return Err(Refusal::OtherMac);
        }
        let start = ethernet.slice().len();
        match ethernet.ether_type() {
            EtherType::IPV4 | EtherType::IPV6 => {
                self.take_ip(now, frame, start, Arrival { to_many }, segment)
            }
            EtherType::ARP => self.take_arp(now, &frame[start..], dst == BROADCAST_MAC),
            _ => Err(Refusal::UnknownEtherType),
        }
    }

    /// Processes the IP packet that starts at `start`.
    fn take_ip(
        &mut self,
        now: Time,
        frame: &[u8],
        start: usize,
        arrival: Arrival,
        segment: &mut Segment<Bytes>,
    ) -> Result<Taken, Refusal> {
        match frame.get(start).map(|first| first >> 4) {
            Some(4) => self.take_v4(now, frame, start, arrival, segment),
            Some(6) => self.take_v6(now, frame, start, arrival, segment),
            // RFC 1122 3.2.1.1.
            _ => Err(Refusal::BadIpHeader),
        }
    }

    /// Confirms that the next hop to `remote` is reachable, since TCP got an acknowledgment of new data from there (RFC 4861 7.3.1).
    pub fn confirm(&mut self, now: Time, remote: IpAddr) {
        /// Time within which a repeated confirmation is skipped; confirmations are valid much longer.
        const OFTEN_ENOUGH_MS: u64 = 1000;
        if let Some((addr, at)) = self.confirmed
            && addr == remote
            && now.as_ms() - at.as_ms() < OFTEN_ENOUGH_MS
        {
            return;
        }
        if let Some(next_hop) = self.routes.next_hop(remote, &self.addresses) {
            self.neighbours.confirm(now, next_hop);
            self.confirmed = Some((remote, now));
        }
    }

    /// Runs the timers that are due.
    pub fn handle_timeouts(&mut self, now: Time) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        (self.known_pair, self.known_head, self.known_way) = (None, None, None);
        self.routes.handle_timeouts(now);
        self.check_neighbours(now);
        self.check_addresses(now);
        self.do_duties(now);
    }

    // --- effects out ---

    /// Returns the next error about a segment that could not be delivered on this link.
    pub fn poll_path_error(&mut self) -> Option<(Flow, SeqNr, PathError)> {
        let (Quote { flow, seq }, error) = self.path_errors.pop_front()?;
        Some((flow, seq, error))
    }

    /// Asserts the interface's invariants.
    pub fn check(&self) {
        self.neighbours.check();
        assert!(self.outbox.len() <= MOST_OUTBOX, "own frames are limited");
        assert!(
            self.path_errors.len() <= MOST_PATH_ERRORS,
            "errors are limited"
        );
        assert!(
            self.mtu <= self.link_mtu && self.link_mtu <= self.config.mtu,
            "the MTU is at most that of the link and of the configuration"
        );
    }
}

/// The IP packet in a frame, without the padding that may follow it.
pub(crate) fn packet_of(medium: Medium, frame: &Bytes) -> Option<Bytes> {
    let start = match medium {
        Medium::Ethernet => Ethernet2HeaderSlice::from_slice(frame).ok()?.slice().len(),
        Medium::Ip => 0,
    };
    let len = match LaxIpSlice::from_slice(&frame[start..]).ok()?.0 {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => Ipv6Header::LEN + usize::from(ip.header().payload_length()),
    };
    let end = (start + len).min(frame.len());
    Some(frame.slice(start..end))
}

/// Makes a part of the frame the segment's data, without a copy and without another reference count.
#[inline]
pub(crate) fn push_data(segment: &mut Segment<Bytes>, frame: Bytes, part: Range<usize>) {
    segment.payload.push(frame);
    if let Some(data) = segment.payload.last_mut() {
        data.truncate(part.end);
        data.advance(part.start);
    }
}

/// Creates an empty segment, to be filled.
pub(crate) fn empty_segment() -> Segment<Bytes> {
    let nobody = Endpoint::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    Segment {
        src: nobody,
        dst: nobody,
        ecn: Ecn::NotCapable,
        header: Header::default(),
        payload: Pieces::new(),
    }
}
