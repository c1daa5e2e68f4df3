//! Wires that carry real frames and lose, delay, reorder and duplicate them.

use super::Random;
use baton_tcp::Segment;
use baton_wire::{Packet, Span, Time, decode_frame};
use bytes::Bytes;

/// Frames on their way, each with the time it arrives.
#[derive(Default)]
pub struct Network {
    frames: Vec<(Time, Vec<u8>)>,
    loss_percent: u64,
    duplicate_percent: u64,
    most_delay_us: u64,
}

impl Network {
    pub fn new(lossy: bool, random: &mut Random) -> Self {
        Self {
            frames: Vec::new(),
            loss_percent: if lossy { random.below(12) } else { 0 },
            duplicate_percent: if lossy { random.below(8) } else { 0 },
            most_delay_us: 1 + random.below(300),
        }
    }

    /// Puts a segment's frame on the wire, with the checksums that a NIC computes.
    pub fn send(&mut self, now: Time, segment: &Segment<Bytes>, random: &mut Random) {
        if random.percent(self.loss_percent) {
            return;
        }
        let copies = if random.percent(self.duplicate_percent) {
            2
        } else {
            1
        };
        let mut frame = Vec::new();
        baton_nic::write_frame(segment, &mut frame).expect("a frame");
        for _ in 0..copies {
            let delay = Span::from_us(5 + random.below(self.most_delay_us));
            self.frames.push((now + delay, frame.clone()));
        }
    }

    pub fn next_arrival(&self) -> Option<Time> {
        self.frames.iter().map(|(at, _)| *at).min()
    }

    /// The next segment that has arrived, if its checksums are right; that they are is asserted.
    pub fn receive(&mut self, now: Time) -> Option<Segment<Bytes>> {
        let first = (0..self.frames.len()).min_by_key(|&i| self.frames[i].0)?;
        if self.frames[first].0 > now {
            return None;
        }
        let (_, frame) = self.frames.swap_remove(first);
        let (packet, data) = decode_frame(&frame).expect("a right frame");
        let Packet {
            src,
            dst,
            ecn,
            header,
        } = packet;
        let payload = if data.is_empty() {
            Default::default()
        } else {
            std::iter::once(Bytes::copy_from_slice(data)).collect()
        };
        Some(Segment {
            src,
            dst,
            ecn,
            header,
            payload,
        })
    }
}
