//! SYN cookies: answers SYNs without keeping state, and completes the handshake from the cookie that comes back (RFC 4987 3.6).

use super::Stack;
use crate::clock::TimestampClock;
use crate::config::{EcnMode, SynCookies};
use crate::connection::{Connection, shift_for};
use crate::cookie::{self, Agreed};
use crate::segment::Segment;
use crate::types::{Handled, ListenerId, Refusal};
use baton_wire::{Ecn, Flags, Flow, Header, Options, Payload, Pieces, Time, Timestamps};

impl<P: Payload> Stack<P> {
    /// Reports whether a SYN to this listener is to be answered by a cookie.
    pub(super) fn wants_cookie(&self, listener: ListenerId) -> bool {
        let waiting = &self.listeners[listener.0 as usize];
        match self.profiles[waiting.profile].syn_cookies {
            SynCookies::Off => false,
            SynCookies::OnOverflow => !waiting.has_room_for_half_open(),
            SynCookies::Always => true,
        }
    }

    /// Answers a SYN by a cookie. Without timestamps the cookie holds no option but the MSS.
    pub(super) fn send_cookie(&mut self, now: Time, flow: Flow, id: ListenerId, syn: &Header) {
        let listener = &mut self.listeners[id.0 as usize];
        listener.cookie_sent(now);
        let config = &self.profiles[listener.profile];
        let peer = &syn.options;
        let timestamps = peer.timestamps.filter(|_| config.timestamps);
        let agreed = Agreed {
            shift: peer
                .window_scale
                .filter(|_| config.window_scaling && timestamps.is_some()),
            sack: peer.sack_permitted && config.sack && timestamps.is_some(),
            ecn: asks_for_ecn(syn.flags) && config.ecn != EcnMode::Off && timestamps.is_some(),
        };
        let clock = TimestampClock::new(self.secret.timestamp_offset(&flow));
        let mss = peer.mss.unwrap_or(0);
        let own_shift = config
            .window_scale
            .unwrap_or_else(|| shift_for(config.receive_buffer));
        let window = config.receive_buffer.min(config.window_clamp);
        let header = Header {
            seq: cookie::sequence(&self.secret, now, &flow, syn.seq, mss),
            ack: syn.seq + 1,
            flags: Flags::SYN
                | Flags::ACK
                | if agreed.ecn {
                    Flags::ECE
                } else {
                    Flags::empty()
                },
            window: window.min(u16::MAX.into()) as u16,
            options: Options {
                mss: Some(config.advertised_mss()),
                window_scale: agreed.shift.map(|_| own_shift),
                sack_permitted: agreed.sack,
                timestamps: timestamps.map(|timestamps| Timestamps {
                    value: cookie::timestamp(clock.value(now), agreed),
                    echo: timestamps.value,
                }),
                ..Options::default()
            },
        };
        self.stats.syn_cookies_sent += 1;
        self.answer(flow, header);
    }

    /// Returns the MSS in the cookie that an ACK without connection brings back, or `None` if it brings none.
    pub(super) fn returned_cookie(
        &mut self,
        now: Time,
        flow: &Flow,
        id: ListenerId,
        header: &Header,
        handled: &mut Handled,
    ) -> Option<u16> {
        let answers = header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::ACK;
        if !answers || !self.listeners[id.0 as usize].awaits_cookie(now) {
            return None;
        }
        let mss = cookie::mss(&self.secret, now, flow, header.seq - 1, header.ack - 1);
        if mss.is_none() {
            self.stats.syn_cookies_refused += 1;
            handled.refused = Some(Refusal::BadCookie);
        }
        mss
    }

    /// Creates the connection for a valid cookie with this MSS.
    pub(super) fn open_from_cookie(
        &mut self,
        now: Time,
        id: ListenerId,
        mss: u16,
        segment: &mut Segment<P>,
        handled: &mut Handled,
    ) {
        let (header, flow) = (&segment.header, segment.flow_at_receiver());
        let (irs, iss) = (header.seq - 1, header.ack - 1);
        let listener = &self.listeners[id.0 as usize];
        if !listener.takes_established() {
            handled.refused = Some(Refusal::AcceptQueueFull);
            return;
        }
        if !self.has_memory_for(None, 0) {
            handled.refused = Some(Refusal::NoMemory);
            return;
        }
        self.stats.syn_cookies_accepted += 1;
        let syn = Segment {
            src: segment.src,
            dst: segment.dst,
            ecn: Ecn::NotCapable,
            header: Header {
                seq: irs,
                flags: cookie::syn_flags(header),
                window: header.window,
                options: cookie::syn_options(header, mss),
                ..Header::default()
            },
            payload: Pieces::new(),
        };
        let profile = self.profiles.share(listener.profile);
        let config = &self.profiles[profile];
        let clock = TimestampClock::new(self.secret.timestamp_offset(&flow));
        let mut conn = Connection::answering(now, &syn, config, iss, clock, id);
        conn.profile = profile;
        conn.answered_by_cookie(now, config);
        self.listeners[id.0 as usize].half_opened();
        let conn = self.insert(conn);
        self.hear_of_path(now, conn);
        self.deliver(now, conn, segment, handled);
    }
}

/// Reports whether these are the flags of an ECN-setup SYN (RFC 3168 6.1.1).
fn asks_for_ecn(flags: Flags) -> bool {
    flags.contains(Flags::ECE | Flags::CWR)
}
