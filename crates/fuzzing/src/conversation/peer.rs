//! Segments of the peer and errors of the network.

use baton_tcp::{PathError, Segment};
use baton_testkit::{Random, symbolic};
use baton_wire::{
    Ecn, FastOpenCookie, FastOpenOption, Flags, Header, Options, Pieces, SackBlock, SackBlocks,
    SeqNr, Timestamps,
};

use super::{Conversation, PEER_ISS, Peer};

impl Conversation {
    /// Reports an ICMP error about a segment that the stack may have sent.
    pub(super) fn report(&mut self) {
        let mtu = self.random.below(1 << 16) as u16;
        let error = self.random.one_of(&[
            PathError::FragmentationNeeded { mtu },
            PathError::HostUnreachable,
            PathError::PortUnreachable,
            PathError::TimeExceeded,
        ]);
        let Peer { flow, received, .. } = &self.peers[self.current];
        let seq = number(&mut self.random, received.seq);
        let _ = self.stack.handle_path_error(self.now, flow, seq, error);
    }

    pub(super) fn peer_next(&self) -> SeqNr {
        let received = &self.peers[self.current].received;
        if received.flags.contains(Flags::ACK) {
            received.ack
        } else {
            PEER_ISS
        }
    }

    pub(super) fn timestamps(&self, later: i16) -> Option<Timestamps> {
        let received = &self.peers[self.current].received;
        let echo = received.options.timestamps.map_or(0, |sent| sent.value);
        Some(Timestamps {
            value: 1_000_u32.wrapping_add_signed(later.into()),
            echo,
        })
    }

    pub(super) fn usual(&self) -> Options {
        Options {
            timestamps: self.timestamps(0),
            ..Options::default()
        }
    }

    pub(super) fn send(&mut self, seq: SeqNr, flags: Flags, len: u32, options: Options) {
        let header = Header {
            seq,
            ack: self.peer().received_end,
            flags,
            window: 20_000,
            options,
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    pub(super) fn send_acknowledging(&mut self, ack: SeqNr, seq: SeqNr, flags: Flags, len: u32) {
        let header = Header {
            seq,
            ack,
            flags,
            window: 20_000,
            options: self.usual(),
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    /// Sends a segment that may be right, nearly right, or arbitrary.
    pub(super) fn send_any(&mut self) {
        let (next, received_end) = (self.peer_next(), self.peer().received_end);
        let random = &mut self.random;
        let word = |random: &mut Random| random.below(1 << 16) as u16;
        let mut sack = SackBlocks::new();
        for _ in 0..random.below(7).saturating_sub(3) {
            let start = number(random, received_end);
            let end = SeqNr(start.0.wrapping_add_signed((word(random) as i16).into()));
            sack.push(SackBlock { start, end });
        }
        let cookie = match random.below(3) {
            0 => Ok(FastOpenCookie::REQUEST),
            1 => Ok(self.cookie),
            _ => FastOpenCookie::new(&random.word().to_le_bytes()[..random.below(9) as usize]),
        };
        let fast_open = cookie.ok().filter(|_| random.percent(30));
        let fast_open = fast_open.map(|cookie| FastOpenOption {
            cookie,
            experimental: random.percent(50),
        });
        let timestamps = random.percent(50).then(|| word(random) as i16);
        let (seq, ack) = (number(random, next), number(random, received_end));
        let options = Options {
            mss: random.percent(50).then(|| word(random)),
            window_scale: random.percent(50).then(|| word(random) as u8),
            sack_permitted: random.percent(50),
            sack,
            fast_open,
            urgent: word(random),
            timestamps: None,
        };
        let (len, ecn) = (
            u32::from(word(random)),
            random.one_of(&[Ecn::Congested, Ecn::NotCapable]),
        );
        let header = Header {
            seq,
            ack,
            flags: Flags::from_bits_truncate(word(random) as u8),
            window: word(random),
            options: Options {
                timestamps: timestamps.and_then(|later| self.timestamps(later)),
                ..options
            },
        };
        self.deliver(header, len, ecn);
    }

    fn deliver(&mut self, header: Header, len: u32, ecn: Ecn) {
        let mut payload = Pieces::new();
        if len > 0 {
            payload.push(symbolic(2, header.seq.0.into(), len));
        }
        let flow = self.peer().flow;
        let segment = Segment {
            src: flow.remote,
            dst: flow.local,
            ecn,
            header,
            payload,
        };
        self.stack.handle_segment(self.now, segment);
        self.settle();
    }
}

/// Draws a number: the right one, one near it, or any.
fn number(random: &mut Random, right: SeqNr) -> SeqNr {
    match random.below(3) {
        0 => right,
        1 => SeqNr(right.0.wrapping_add_signed((random.draw() as i16).into())),
        _ => SeqNr(random.word() as u32),
    }
}
