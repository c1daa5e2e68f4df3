//! Outgoing packets: segments of the engine, joined into super-segments and encoded.

use crate::flags::Gso;
use crate::gso::{Burst, Pacing};
use crate::limits::{Activity, Limits};
use crate::send_queue::{RunEnd, SendQueue};
use crate::world::World;
use baton_tcp::{ConnId, Segment};
use baton_wire::{Flags, Flow, Packet, SeqNr, Span, Time, Timestamps, encode_packet};
use bytes::Bytes;
use rustc_hash::FxHashSet;
use std::net::IpAddr;

/// Maximum number of packets that wait to be fetched. A tool that does not fetch them gets no more.
const MOST_OUTGOING: usize = 1 << 16;

/// A packet that left the engine.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// When the packet left.
    pub at: Time,
    /// Headers of the packet.
    pub packet: Packet,
    /// Data of the packet.
    pub payload: Vec<u8>,
    /// Bytes of data of each segment in the packet. The last one may have less.
    pub segment_len: usize,
    /// Type of service, without the ECN bits.
    pub service: u8,
    /// The IPv4 identification.
    pub id: u16,
    /// The packet must not be fragmented (RFC 1191).
    pub dont_fragment: bool,
}

/// The sending side of a connection's socket: state that shapes its packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    pub(crate) queue: SendQueue,
    pub(crate) pacing: Pacing,
    pub(crate) limits: Limits,
    /// Bytes were acknowledged since the send buffer was last tuned.
    pub(crate) acknowledged: bool,
    /// Largest window the peer offered.
    pub(crate) largest_window: u32,
    /// The number after the last one sent; `None` before the SYN.
    next: Option<SeqNr>,
    /// Type of service, without the ECN bits (IP_TOS, IPV6_TCLASS).
    pub(crate) service: u8,
    /// Fragmentation is allowed (IP_PMTUDISC_DONT).
    pub(crate) may_fragment: bool,
    ids: u16,
    /// The last timestamps sent, and when.
    stamp: Option<(Timestamps, Time)>,
    /// The peer's last timestamp.
    pub(crate) heard: Option<u32>,
    /// Data of the SYN was acknowledged with the SYN.
    pub(crate) syn_data: bool,
    /// Probes without an answer.
    pub(crate) probes: u8,
}

/// Length of a tick of a timestamp clock.
const STAMP_TICK: Span = Span::from_ms(1);

impl Link {
    /// The timestamps of a segment sent now.
    fn stamp_at(&self, now: Time) -> Option<Timestamps> {
        let (stamp, at) = self.stamp?;
        let ticks = now.saturating_since(at).as_ps() / STAMP_TICK.as_ps();
        Some(Timestamps {
            value: stamp.value.wrapping_add(ticks as u32),
            echo: self.heard.unwrap_or(stamp.echo),
        })
    }

    /// Age, in whole ticks, of our timestamp that the peer echoes.
    pub(crate) fn age_of(&self, now: Time, echo: u32) -> Option<Span> {
        let ticks = self.stamp_at(now)?.value.wrapping_sub(echo);
        (ticks < 1 << 31).then(|| STAMP_TICK * u64::from(ticks))
    }

    /// Records that `segment` leaves `now`, and sets its PSH; `joins` says that it shares a packet with the previous segment,
    /// `partial` that it could hold more data.
    fn note(
        &mut self,
        now: Time,
        segment: &mut Segment<Bytes>,
        joins: bool,
        partial: bool,
    ) -> RunEnd {
        let (seq, flags) = (segment.header.seq, segment.header.flags);
        let len = segment.payload_len() as u32;
        let end = seq + len;
        if flags.contains(Flags::SYN) {
            let end = end + 1;
            self.next = Some(self.next.map_or(end, |next| next.latest(end)));
            if len > 0 {
                // Data of a SYN is not pushed.
                self.queue.send(now, len, end, false, false);
            }
            return RunEnd {
                push: false,
                boundary: true,
            };
        }
        let next = *self.next.get_or_insert(seq);
        if len == 0 {
            return RunEnd {
                push: false,
                boundary: true,
            };
        }
        let run = if end.after(next) {
            self.next = Some(end);
            self.queue.send(now, end - next, end, joins, partial)
        } else {
            self.queue.sent_again(now, end)
        };
        segment.header.flags.set(Flags::PSH, run.push);
        run
    }

    /// Reports whether `segment` carries data that was sent before.
    fn is_again(&self, segment: &Segment<Bytes>) -> bool {
        self.next
            .is_some_and(|next| segment.header.seq.before(next))
    }

    fn next_id(&mut self, segments: usize) -> u16 {
        let id = self.ids;
        self.ids = self.ids.wrapping_add(segments as u16);
        id
    }
}

impl World {
    /// Fetches segments from the engine. Returns false if there was none.
    pub(crate) fn take_segments(&mut self) -> bool {
        let mut burst: Option<(ConnId, Burst)> = None;
        let mut any = false;
        loop {
            let open = burst.as_ref().filter(|(_, burst)| burst.is_open());
            self.defer_bursts(open.map(|(conn, _)| *conn));
            let Some((conn, mut segment)) = self.stack.poll_transmit(self.now()) else {
                break;
            };
            any = true;
            let Some(conn) = conn else {
                self.stamp_reset(&mut segment);
                self.finish_burst(burst.take());
                self.put_out(Link::default(), Burst::new(segment, 1));
                continue;
            };
            burst = Some((conn, self.join_or_start(burst.take(), conn, segment)));
        }
        self.finish_burst(burst);
        any
    }

    /// Aborts a connection; its reset gets timestamps if they were negotiated (RFC 7323 3.2: "SHOULD").
    pub(crate) fn abort(&mut self, conn: ConnId) {
        let flow = self.stack.flow(conn);
        let stamp = self
            .links
            .get(&conn)
            .and_then(|link| link.stamp_at(self.now()));
        self.aborted = stamp.map(|stamp| (flow, stamp));
        self.stack.abort(conn);
        self.pump();
        self.aborted = None;
    }

    /// Puts timestamps into the reset of a connection that is being aborted.
    fn stamp_reset(&self, segment: &mut Segment<Bytes>) {
        let ours = Flow {
            local: segment.src,
            remote: segment.dst,
        };
        let reset = segment.header.flags == Flags::RST | Flags::ACK;
        if let Some((_, stamp)) = self.aborted.filter(|(flow, _)| reset && *flow == ours) {
            segment.header.options.timestamps = Some(stamp);
        }
    }

    /// Adds `segment` to the burst, or starts a new one, and returns it.
    fn join_or_start(
        &mut self,
        burst: Option<(ConnId, Burst)>,
        conn: ConnId,
        mut segment: Segment<Bytes>,
    ) -> Burst {
        let fits = burst
            .as_ref()
            .is_some_and(|(of, burst)| *of == conn && burst.takes(&segment));
        let again = self.link(conn).is_again(&segment);
        let now = self.now();
        let send_mss = self.stack.info(now, conn).send_mss as usize;
        let partial = segment.payload_len() < send_mss;
        // An MTU probe is sent alone.
        let probes = segment.payload_len() > send_mss;
        let run = self.link(conn).note(now, &mut segment, fits, partial);
        self.link(conn).stamp = segment.header.options.timestamps.map(|stamp| (stamp, now));
        self.stamp(conn, Some(&segment));
        let mut burst = match burst {
            Some((_, mut burst)) if fits => {
                burst.join(segment);
                burst
            }
            other => {
                self.finish_burst(other);
                let most = self.most_segments(conn, again);
                Burst::new(segment, most)
            }
        };
        if run.boundary || probes {
            burst.close();
        }
        burst
    }

    /// Maximum number of segments that a packet of this connection may hold now.
    fn most_segments(&self, conn: ConnId, again: bool) -> u32 {
        if self.settings.gso == Gso::Off {
            return 1;
        }
        let info = self.stack.info(self.now(), conn);
        let by_rate = self.links[&conn]
            .pacing
            .segments(&info, self.settings.min_tso_segs);
        match again {
            true => by_rate,
            false => by_rate.min(crate::gso::half_window(&info)),
        }
    }

    /// Updates the activity of each sender.
    pub(crate) fn note_activities(&mut self) {
        let now = self.now();
        if self.links.len() > self.stack.len() {
            // The engine does not report the end of a connection that was not accepted.
            let live: FxHashSet<ConnId> = self.stack.connections().collect();
            self.links.retain(|conn, _| live.contains(conn));
        }
        for (&conn, link) in &mut self.links {
            let owner = self.owners.get(&conn).and_then(|&id| self.sockets.get(id));
            let info = self.stack.info(now, conn);
            let unsent = link.queue.unsent_len();
            let window_full = info.send_window < link.queue.sent_len() + unsent.min(info.send_mss);
            let network_full = info.unacked_segments >= crate::gso::window_segments(&info);
            let wants_room = owner.is_some_and(|socket| socket.no_space);
            let activity = if link.queue.is_empty() {
                Activity::Idle
            } else if unsent > 0 && window_full && !network_full {
                Activity::WindowLimited
            } else if unsent == 0 && wants_room && !crate::gso::fills_window(&info) {
                Activity::BufferLimited
            } else {
                Activity::Busy
            };
            link.limits.turn_to(now, activity);
            link.probes = info.probes;
        }
    }

    /// The link of a connection.
    pub(crate) fn link(&mut self, conn: ConnId) -> &mut Link {
        self.links.entry(conn).or_default()
    }

    fn finish_burst(&mut self, burst: Option<(ConnId, Burst)>) {
        if let Some((conn, mut burst)) = burst {
            if self.settings.tcp.linux.push_bursts {
                burst.push_several();
            }
            let link = self.link(conn);
            let id = link.next_id(burst.count());
            let sketch = Link {
                ids: id,
                service: link.service,
                may_fragment: link.may_fragment,
                ..Link::default()
            };
            self.put_out(sketch, burst);
        }
    }

    fn put_out(&mut self, link: Link, burst: Burst) {
        if self.outgoing.len() >= MOST_OUTGOING {
            return;
        }
        let (segment, segment_len) = burst.into_segment();
        let packet = Outgoing {
            at: self.now(),
            payload: segment.payload.concat(),
            packet: Packet {
                src: segment.src,
                dst: segment.dst,
                ecn: segment.ecn,
                header: segment.header,
            },
            segment_len,
            service: link.service,
            id: link.ids,
            dont_fragment: !link.may_fragment,
        };
        if self.settings.gso != Gso::Device {
            self.outgoing.push_back(packet);
            return;
        }
        let mut rest = Some(packet);
        while let Some((part, next)) = rest.map(|packet| packet.cut(0)) {
            self.outgoing.push_back(part);
            rest = next;
        }
    }
}

impl Outgoing {
    /// Encodes the packet. Returns `None` if it cannot be encoded, which would be a fault of the engine.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.payload.len() + 120);
        encode_packet(&self.packet, &self.payload, &mut bytes).ok()?;
        match self.packet.src.addr {
            IpAddr::V4(_) => self.fill_ipv4(&mut bytes),
            IpAddr::V6(_) => {
                // The traffic class spans the first two bytes (RFC 8200 3).
                bytes[0] |= self.service >> 4;
                bytes[1] |= self.service << 4;
            }
        }
        Some(bytes)
    }

    /// Fills in the fields of the IPv4 header that belong to the socket (RFC 791 3.1).
    fn fill_ipv4(&self, bytes: &mut [u8]) {
        bytes[1] |= self.service;
        bytes[4..6].copy_from_slice(&self.id.to_be_bytes());
        let fragment: u16 = if self.dont_fragment { 0x4000 } else { 0 };
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes[10..12].fill(0);
        let words = bytes[..20].chunks(2);
        let sum: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        bytes[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }

    /// Splits a super-segment so that the first part has at most `most` bytes. Returns the first part, and the rest if any.
    pub fn cut(mut self, most: usize) -> (Self, Option<Self>) {
        let headers = match self.packet.src.addr {
            IpAddr::V4(_) => 40,
            IpAddr::V6(_) => 60,
        } + self.packet.header.options.len();
        let room = most.saturating_sub(headers);
        let unit = self.segment_len.max(1);
        let kept = (room / unit).max(1) * unit;
        if self.payload.len() <= room || self.payload.len() <= kept {
            return (self, None);
        }
        let rest = Self {
            payload: self.payload.split_off(kept),
            packet: Packet {
                header: baton_wire::Header {
                    seq: self.packet.header.seq + kept as u32,
                    flags: self.packet.header.flags - Flags::CWR,
                    ..self.packet.header
                },
                ..self.packet.clone()
            },
            id: self.id.wrapping_add((kept / unit) as u16),
            ..self.clone()
        };
        // These flags stay with the last part, as in segmentation offload.
        self.packet.header.flags -= Flags::PSH | Flags::FIN;
        (self, Some(rest))
    }
}
