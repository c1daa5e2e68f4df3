//! Segments between the engine and its peers.

use super::{OURS, PEER_ISS, PEERS, Peer, Player, Sent, seconds};
use baton_tcp::Segment;
use baton_testkit::{Numbers, OptionsText, SegmentText, symbolic};
use baton_wire::{Ecn, Flags, Pieces, SeqNr, Span, Symbolic, Timestamps};

impl Player {
    /// Injects a segment of the current peer.
    pub(super) fn inject(&mut self, text: &SegmentText) -> Result<(), String> {
        let elapsed = self.elapsed();
        let segment = self.peer().segment(elapsed, text);
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

    /// Collects the segments that the engine sends now.
    pub(super) fn take_output(&mut self) -> Result<(), String> {
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            let port = segment.dst.port;
            let peer = self
                .peers
                .iter_mut()
                .find(|peer| peer.flow.remote.port == port);
            let peer = peer.ok_or("a segment was sent to an unknown peer")?;
            let text = peer.describe(&segment)?;
            self.sent.push_back(Sent {
                at: self.now - self.start,
                peer: peer.number,
                segment: text,
            });
        }
        Ok(())
    }

    /// Checks that the engine's next segment was sent now, to the current peer.
    pub(super) fn expect(&mut self, expected: &SegmentText) -> Result<(), String> {
        let at = seconds(self.elapsed());
        let wanted = format!("expected\n    @{at} > {}", expected);
        let number = self.peer().number;
        let Some(sent) = self.sent.front() else {
            return Err(format!("{wanted}\nsent: nothing"));
        };
        if !expected.says(&sent.segment) || sent.at != self.elapsed() || sent.peer != number {
            return Err(format!("{wanted}\nsent\n{}", self.outstanding()));
        }
        self.sent.pop_front();
        Ok(())
    }
}

/// Returns the distance from a segment's number to its data: a SYN takes one number.
fn first_of(flags: Flags) -> u32 {
    u32::from(flags.contains(Flags::SYN))
}

impl Peer {
    /// Creates the segment that a text describes.
    pub(super) fn segment(&mut self, now: Span, text: &SegmentText) -> Segment<Symbolic> {
        let iss = self.iss.unwrap_or(SeqNr(0));
        let given = text.options.clone().unwrap_or_default();
        let timestamps = self.timestamps_of(now, text.flags, &given);
        let numbers = Numbers {
            sender: PEER_ISS,
            receiver: iss,
        };
        let header = text.header(numbers, timestamps);
        let mut payload = Pieces::new();
        let len = text.end.wrapping_sub(text.start);
        if len > 0 {
            let first = text.start + first_of(text.flags);
            payload.push(symbolic(PEERS, first.into(), len));
        }
        Segment {
            src: self.flow.remote,
            dst: self.flow.local,
            ecn: text.ecn.unwrap_or(Ecn::NotCapable),
            header,
            payload,
        }
    }

    /// Returns the timestamps of the text, or those of the peer's clock and of the last received segment.
    fn timestamps_of(
        &mut self,
        now: Span,
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

    /// Describes a segment of the engine as text.
    fn describe(&mut self, segment: &Segment<Symbolic>) -> Result<SegmentText, String> {
        let header = &segment.header;
        if header.flags.contains(Flags::SYN) {
            self.iss = Some(header.seq);
        }
        let numbers = Numbers {
            sender: self.iss.unwrap_or(SeqNr(0)),
            receiver: PEER_ISS,
        };
        if let Some(timestamps) = header.options.timestamps {
            let (base, _) = self.timestamps.unwrap_or((timestamps.value, 0));
            self.timestamps = Some((base, timestamps.value));
        }
        let (base, _) = self.timestamps.unwrap_or_default();
        let len = segment.payload_len() as u32;
        let text = SegmentText::of(header, len, segment.ecn, numbers, base);
        self.check_data(text.start + first_of(text.flags), segment)?;
        Ok(text)
    }

    /// Checks that a segment carries the bytes that were written at its sequence numbers.
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
