//! Conversion between segments in text form and headers.

use super::{OptionsText, SegmentText};
use baton_wire::{Ecn, Flags, Header, Options, SackBlock, SeqNr, Timestamps};

/// Origins of a segment's relative numbers: the initial sequence numbers of its sender and receiver.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Initial sequence number of the sender.
    pub sender: SeqNr,
    /// Initial sequence number of the receiver.
    pub receiver: SeqNr,
}

/// Window of segments that do not specify one.
const USUAL_WINDOW: u16 = 65_535;

impl SegmentText {
    /// Returns the segment's header, with the given timestamps.
    pub fn header(&self, numbers: Numbers, timestamps: Option<Timestamps>) -> Header {
        let Numbers { sender, receiver } = numbers;
        let given = self.options.clone().unwrap_or_default();
        let block = |&(start, end): &(u32, u32)| SackBlock {
            start: receiver + start,
            end: receiver + end,
        };
        Header {
            seq: sender + self.start,
            ack: self.ack.map_or(SeqNr(0), |ack| receiver + ack),
            flags: self.flags,
            window: self.window.unwrap_or(USUAL_WINDOW),
            options: Options {
                mss: given.mss,
                window_scale: given.window_scale,
                sack_permitted: given.sack_permitted,
                timestamps,
                sack: given.sack.iter().map(block).collect(),
                fast_open: given.fast_open,
                urgent: self.urgent.unwrap_or(0),
            },
        }
    }

    /// Converts a header followed by `len` bytes of data to text form; timestamps are relative to `first_timestamp`.
    pub fn of(header: &Header, len: u32, ecn: Ecn, numbers: Numbers, first_timestamp: u32) -> Self {
        let Numbers { sender, receiver } = numbers;
        let start = header.seq - sender;
        let has_ack = header.flags.contains(Flags::ACK);
        let timestamps = header.options.timestamps.map(|timestamps| {
            let value = timestamps.value.wrapping_sub(first_timestamp);
            (value, timestamps.echo)
        });
        let blocks = header.options.sack.iter();
        Self {
            flags: header.flags,
            start,
            end: start.wrapping_add(len),
            ack: has_ack.then(|| header.ack - receiver),
            window: Some(header.window),
            urgent: header
                .flags
                .contains(Flags::URG)
                .then_some(header.options.urgent),
            options: Some(OptionsText {
                mss: header.options.mss,
                window_scale: header.options.window_scale,
                sack_permitted: header.options.sack_permitted,
                timestamps,
                sack: blocks
                    .map(|block| (block.start - receiver, block.end - receiver))
                    .collect(),
                fast_open: header.options.fast_open,
                bare: false,
            }),
            ecn: Some(ecn),
        }
    }
}
