//! Segments between the engine and its peers.

use super::{OURS, PEER_ISS, PEERS, Peer, Player, START, Sent};
use crate::render;
use crate::segment::{OptionsText, SegmentText};
use baton_tcp::{Pieces, Segment, Symbolic};
use baton_wire::{Ecn, Flags, Header, Options, SackBlock, SeqNr, Time, Timestamps};

/// Window of injected segments that do not name one.
const USUAL_WINDOW: u16 = 65_535;

impl Player {
    /// A segment of the current peer arrives.
    pub(super) fn inject(&mut self, text: &SegmentText) -> Result<(), String> {
        let now = self.now;
        let segment = self.peer().segment(now, text);
        let handled = self.stack.handle_segment(self.now, segment);
        self.last_refusal = handled.refused;
        if let Some(id) = handled.conn {
            for peer in &mut self.peers {
                if peer.id == Some(id) {
                    peer.id = None;
                }
            }
            self.peer().id = Some(id);
        }
        Ok(())
    }

    /// What the engine sends now.
    pub(super) fn take_output(&mut self) -> Result<(), String> {
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            let port = segment.dst.port;
            let peer = self
                .peers
                .iter_mut()
                .find(|peer| peer.flow.remote.port == port);
            let peer = peer.ok_or("something was sent to nobody")?;
            let text = peer.describe(&segment)?;
            self.sent.push_back(Sent {
                at: self.now,
                peer: peer.number,
                segment: text,
            });
        }
        Ok(())
    }

    /// The engine sent this to the current peer, next and now.
    pub(super) fn expect(&mut self, expected: &SegmentText) -> Result<(), String> {
        let at = render::seconds(self.now - START);
        let wanted = format!("expected\n    @{at} > {}", render::segment(expected));
        let number = self.peer().number;
        let Some(sent) = self.sent.front() else {
            return Err(format!("{wanted}\nsent: nothing"));
        };
        let mut seen = sent.segment.clone();
        if expected.window.is_none() {
            seen.window = None;
        }
        if expected.options.is_none() {
            seen.options = None;
        }
        if expected.ecn.is_none() {
            seen.ecn = None;
        }
        if seen != *expected || sent.at != self.now || sent.peer != number {
            return Err(format!("{wanted}\nsent\n{}", self.outstanding()));
        }
        self.sent.pop_front();
        Ok(())
    }
}

impl Peer {
    /// What its text says, as a segment.
    fn segment(&mut self, now: Time, text: &SegmentText) -> Segment<Symbolic> {
        let iss = self.iss.unwrap_or(SeqNr(0));
        let given = text.options.clone().unwrap_or_default();
        let timestamps = self.timestamps_of(now, text.flags, &given);
        let blocks = given.sack.iter();
        let header = Header {
            seq: PEER_ISS + text.start,
            ack: text.ack.map_or(SeqNr(0), |ack| iss + ack),
            flags: text.flags,
            window: text.window.unwrap_or(USUAL_WINDOW),
            options: Options {
                mss: given.mss,
                window_scale: given.window_scale,
                sack_permitted: given.sack_permitted,
                timestamps,
                sack: blocks
                    .map(|(start, end)| SackBlock {
                        start: iss + *start,
                        end: iss + *end,
                    })
                    .collect(),
            },
        };
        let mut payload = Pieces::new();
        let len = text.end.wrapping_sub(text.start);
        if len > 0 {
            payload.push(Symbolic {
                source: PEERS,
                offset: text.start.into(),
                len,
            });
        }
        Segment {
            src: self.flow.remote,
            dst: self.flow.local,
            ecn: text.ecn.unwrap_or(Ecn::NotCapable),
            header,
            payload,
        }
    }

    /// Those that stand in the text, or what its clock shows and what it last heard.
    fn timestamps_of(
        &mut self,
        now: Time,
        flags: Flags,
        given: &OptionsText,
    ) -> Option<Timestamps> {
        let (base, last) = self.timestamps.unwrap_or((0, 0));
        if let Some((value, echo)) = given.timestamps {
            if flags.contains(Flags::SYN) {
                self.clock = Some((value, now));
            }
            let echo = base.wrapping_add(echo);
            return Some(Timestamps { value, echo });
        }
        if given.bare || flags.contains(Flags::SYN) {
            return None;
        }
        let (value, since) = self.clock?;
        let value = value.wrapping_add(((now - since).as_us() / 1000) as u32);
        Some(Timestamps { value, echo: last })
    }

    /// A segment of the engine in words.
    fn describe(&mut self, segment: &Segment<Symbolic>) -> Result<SegmentText, String> {
        let header = &segment.header;
        if header.flags.contains(Flags::SYN) {
            self.iss = Some(header.seq);
        }
        let start = header.seq - self.iss.unwrap_or(SeqNr(0));
        self.check_data(start, segment)?;
        let timestamps = header.options.timestamps.map(|timestamps| {
            let (base, _) = self.timestamps.unwrap_or((timestamps.value, 0));
            self.timestamps = Some((base, timestamps.value));
            (timestamps.value.wrapping_sub(base), timestamps.echo)
        });
        let blocks = header.options.sack.iter();
        Ok(SegmentText {
            flags: header.flags,
            start,
            end: start.wrapping_add(segment.payload_len() as u32),
            ack: header
                .flags
                .contains(Flags::ACK)
                .then(|| header.ack - PEER_ISS),
            window: Some(header.window),
            options: Some(OptionsText {
                mss: header.options.mss,
                window_scale: header.options.window_scale,
                sack_permitted: header.options.sack_permitted,
                timestamps,
                sack: blocks
                    .map(|block| (block.start - PEER_ISS, block.end - PEER_ISS))
                    .collect(),
                bare: false,
            }),
            ecn: Some(segment.ecn),
        })
    }

    /// The segment carries the bytes that were written for these numbers.
    fn check_data(&self, start: u32, segment: &Segment<Symbolic>) -> Result<(), String> {
        let mut offset = u64::from(start).wrapping_sub(1);
        for piece in &segment.payload {
            if piece.source != OURS || piece.offset != offset {
                return Err(format!("sent {piece:?} where byte {offset} belongs"));
            }
            offset += u64::from(piece.len);
        }
        Ok(())
    }
}
