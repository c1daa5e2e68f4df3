//! Segments of the peer and errors of the network.

use baton_tcp::{PathError, Segment};
use baton_testkit::symbolic;
use baton_wire::{
    Ecn, FastOpenCookie, FastOpenOption, Flags, Header, Options, Pieces, SackBlock, SeqNr,
    Timestamps,
};

use super::input::{Number, Presented, Reported, Sent};
use super::{Conversation, PEER_ISS, Peer};

impl Conversation {
    /// Reports an ICMP error about a segment that the stack may have sent.
    pub(super) fn report(&mut self, seq: &Number, error: &Reported) {
        let error = match *error {
            Reported::FragmentationNeeded(mtu) => PathError::FragmentationNeeded { mtu },
            Reported::HostUnreachable => PathError::HostUnreachable,
            Reported::PortUnreachable => PathError::PortUnreachable,
            Reported::TimeExceeded => PathError::TimeExceeded,
        };
        let Peer { flow, received, .. } = &self.peers[self.current];
        let seq = seq.from(received.seq);
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

    pub(super) fn send(&mut self, seq: SeqNr, flags: Flags, len: u16, options: Options) {
        let header = Header {
            seq,
            ack: self.peer().received_end,
            flags,
            window: 20_000,
            options,
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    pub(super) fn send_acknowledging(&mut self, ack: SeqNr, seq: SeqNr, flags: Flags, len: u16) {
        let header = Header {
            seq,
            ack,
            flags,
            window: 20_000,
            options: self.usual(),
        };
        self.deliver(header, len, Ecn::NotCapable);
    }

    pub(super) fn send_any(&mut self, sent: &Sent) {
        let received_end = self.peer().received_end;
        let blocks = sent
            .sack
            .iter()
            .flatten()
            .map(|(start, len)| {
                let start = start.from(received_end);
                SackBlock {
                    start,
                    end: SeqNr(start.0.wrapping_add_signed((*len).into())),
                }
            })
            .collect();
        let fast_open = sent
            .fast_open
            .as_ref()
            .and_then(|(presented, experimental)| {
                let cookie = match presented {
                    Presented::Request => FastOpenCookie::REQUEST,
                    Presented::Given => self.cookie,
                    Presented::Any(bytes, len) => {
                        let len = usize::from(*len).min(bytes.len());
                        FastOpenCookie::new(&bytes[..len]).ok()?
                    }
                };
                Some(FastOpenOption {
                    cookie,
                    experimental: *experimental,
                })
            });
        let header = Header {
            seq: sent.seq.from(self.peer_next()),
            ack: sent.ack.from(received_end),
            flags: Flags::from_bits_truncate(sent.flags),
            window: sent.window,
            options: Options {
                mss: sent.mss,
                window_scale: sent.window_scale,
                sack_permitted: sent.sack_permitted,
                timestamps: sent.timestamps.and_then(|later| self.timestamps(later)),
                sack: blocks,
                fast_open,
                urgent: sent.window,
            },
        };
        let ecn = if sent.congested {
            Ecn::Congested
        } else {
            Ecn::NotCapable
        };
        self.deliver(header, sent.len, ecn);
    }

    fn deliver(&mut self, header: Header, len: u16, ecn: Ecn) {
        let mut payload = Pieces::new();
        if len > 0 {
            payload.push(symbolic(2, header.seq.0.into(), len.into()));
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
