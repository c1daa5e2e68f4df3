//! Splits a capture file that arrives over a socket into blocks, and sorts the blocks of several sources by time.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Maximum length of a block, bytes: a frame with its comment and other options.
const MOST_BYTES: usize = 1 << 20;
/// Minimum length of a block, bytes: kind and length, and the length again.
const LEAST_BYTES: usize = 12;
/// Kinds of blocks.
const FRAME: u32 = 6;
const TOTALS: u32 = 5;
/// Options of totals: the number of frames, and the number of lost frames.
const RECEIVED: u16 = 4;
const LOST: u16 = 5;
/// Maximum number of bytes in blocks that wait to be ordered.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// A block of a capture file, in this machine's byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureBlock(Vec<u8>);

impl CaptureBlock {
    /// Removes all complete blocks from `bytes`, and passes each to `each`.
    ///
    /// # Errors
    /// The next bytes are not a block; or an error of `each`.
    pub fn take_all(
        bytes: &mut Vec<u8>,
        mut each: impl FnMut(Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut taken = 0;
        let outcome = loop {
            match Self::first_of(&bytes[taken..]) {
                Ok(Some(block)) => {
                    taken += block.0.len();
                    if let Err(error) = each(block) {
                        break Err(error);
                    }
                }
                outcome => break outcome.map(drop),
            }
        };
        bytes.drain(..taken);
        outcome
    }

    fn first_of(bytes: &[u8]) -> io::Result<Option<Self>> {
        let Some(len) = word(bytes, 4) else {
            return Ok(None);
        };
        let len = len as usize;
        if !(LEAST_BYTES..=MOST_BYTES).contains(&len) || !len.is_multiple_of(4) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(bytes.get(..len).map(|block| Self(block.to_vec())))
    }

    /// Returns the bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns when the frame in the block passed, since the start of 1970, or `None` if the block contains no frame.
    pub fn frame_at(&self) -> Option<Duration> {
        let of_kind = word(&self.0, 0)? == FRAME;
        let ns = u64::from(word(&self.0, 12)?) << 32 | u64::from(word(&self.0, 16)?);
        of_kind.then_some(Duration::from_nanos(ns))
    }

    /// Returns the number of frames and of lost frames, if this is a block of totals.
    pub fn totals(&self) -> Option<(u64, u64)> {
        if word(&self.0, 0)? != TOTALS {
            return None;
        }
        let mut options = self.0.get(20..self.0.len() - 4)?;
        let (mut received, mut lost) = (0, 0);
        while let Some(&[code, code_2, len, len_2]) = options.first_chunk() {
            let (code, len) = (
                u16::from_ne_bytes([code, code_2]),
                u16::from_ne_bytes([len, len_2]),
            );
            let value = options.get(4..4 + usize::from(len))?;
            let number = value.first_chunk().map(|value| u64::from_ne_bytes(*value));
            match code {
                RECEIVED => received = number?,
                LOST => lost = number?,
                _ => {}
            }
            options = options.get(4 + usize::from(len).next_multiple_of(4)..)?;
        }
        Some((received, lost))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

/// Blocks with frames of several sources, ordered by time.
#[derive(Debug, Default)]
pub struct Merge {
    waiting: BTreeMap<(Duration, u64), CaptureBlock>,
    bytes: usize,
    seen: u64,
}

impl Merge {
    /// Adds a block.
    pub fn add(&mut self, at: Duration, block: CaptureBlock) {
        self.seen += 1;
        self.bytes += block.0.len();
        self.waiting.insert((at, self.seen), block);
    }

    /// Removes the earliest block if its frame passed before `until`, or if too many wait.
    pub fn poll(&mut self, until: Duration) -> Option<CaptureBlock> {
        let earliest = self.waiting.first_entry()?;
        if earliest.key().0 >= until && self.bytes <= MOST_WAITING_BYTES {
            return None;
        }
        let block = earliest.remove();
        self.bytes -= block.0.len();
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::{CaptureWriter, FrameNotes, Span, Time};

    /// Returns a capture of frames at these times, ms.
    fn capture(times: &[u64]) -> Vec<u8> {
        let mut writer = CaptureWriter::new(Vec::new(), "eth0").expect("memory takes all");
        for time in times {
            let at = Time::ZERO + Span::from_ms(*time);
            writer
                .write_noted(at, &[0; 61], 61, FrameNotes::default())
                .expect("memory takes all");
        }
        writer
            .write_totals(Time::ZERO, 7, times.len() as u64)
            .expect("memory takes all");
        writer.into_inner()
    }

    fn taken(bytes: &mut Vec<u8>) -> Vec<CaptureBlock> {
        let mut blocks = Vec::new();
        let each = |block| {
            blocks.push(block);
            Ok(())
        };
        CaptureBlock::take_all(bytes, each).expect("a capture");
        blocks
    }

    #[test]
    fn blocks_are_found_in_pieces_of_any_size() {
        let file = capture(&[5, 9]);
        for step in [1, 7, 64, file.len()] {
            let (mut bytes, mut blocks) = (Vec::new(), Vec::new());
            for piece in file.chunks(step) {
                bytes.extend(piece);
                blocks.extend(taken(&mut bytes));
            }
            assert!(bytes.is_empty());
            let times: Vec<_> = blocks.iter().filter_map(CaptureBlock::frame_at).collect();
            assert_eq!(times, [5, 9].map(Duration::from_millis));
            let totals: Vec<_> = blocks.iter().filter_map(CaptureBlock::totals).collect();
            assert_eq!(totals, [(7, 2)]);
            let all: Vec<u8> = blocks
                .iter()
                .flat_map(|block| block.bytes())
                .copied()
                .collect();
            assert!(all == file);
        }
    }

    #[test]
    fn malformed_blocks_are_refused() {
        for len in [0, 8, 13, MOST_BYTES as u32 + 4, u32::MAX] {
            let mut bytes = vec![0; 16];
            bytes[4..8].copy_from_slice(&len.to_ne_bytes());
            let taken = CaptureBlock::take_all(&mut bytes, |_| Ok(()));
            assert!(taken.is_err(), "{len}");
        }
    }

    #[test]
    fn frames_leave_in_the_order_of_their_times() {
        let mut merge = Merge::default();
        let ms = Duration::from_millis;
        for time in [9, 3, 3, 7] {
            for block in taken(&mut capture(&[time])) {
                if let Some(at) = block.frame_at() {
                    merge.add(at, block);
                }
            }
        }
        let mut until = |limit| {
            let polled = std::iter::from_fn(|| merge.poll(ms(limit)));
            polled
                .filter_map(|block| block.frame_at())
                .collect::<Vec<_>>()
        };
        assert_eq!(until(8), [3, 3, 7].map(ms));
        assert_eq!(until(9), []);
        assert_eq!(until(10), [ms(9)]);
    }
}
