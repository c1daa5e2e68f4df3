//! Data that arrived and was not read. It is stored here and not in the engine, so that it survives the connection's end:
//! a reset does not discard delivered data.

use baton_wire::Time;
use bytes::Bytes;
use std::collections::VecDeque;

/// In-order bytes that were not read.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveQueue {
    /// Pieces with their arrival times.
    pieces: VecDeque<(Bytes, Time)>,
    len: usize,
    /// Bytes taken so far.
    taken: u64,
}

impl ReceiveQueue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of bytes taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn push(&mut self, piece: Bytes, now: Time) {
        self.len += piece.len();
        self.pieces.push_back((piece, now));
    }

    /// Copies bytes from byte `skip` on without taking them. Returns how many bytes were copied.
    pub(crate) fn peek(&self, mut skip: usize, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for (piece, _) in &self.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let piece = &piece[skip..];
            skip = 0;
            let len = piece.len().min(into.len() - copied);
            into[copied..copied + len].copy_from_slice(&piece[..len]);
            copied += len;
            if copied == into.len() {
                break;
            }
        }
        copied
    }

    /// When the last of the first `count` bytes arrived.
    pub(crate) fn arrival_of(&self, count: usize) -> Option<Time> {
        let mut end = 0;
        let holder = self.pieces.iter().find(|(piece, _)| {
            end += piece.len();
            end >= count
        });
        holder.filter(|_| count > 0).map(|&(_, at)| at)
    }

    /// Takes at most `most` of the first bytes, from a single piece.
    pub(crate) fn take(&mut self, most: usize) -> Option<Bytes> {
        let (first, _) = self.pieces.front_mut()?;
        let piece = if first.len() <= most {
            self.pieces.pop_front()?.0
        } else {
            first.split_to(most)
        };
        self.len -= piece.len();
        self.taken += piece.len() as u64;
        Some(piece)
    }

    /// Drops the first `count` bytes.
    pub(crate) fn advance(&mut self, mut count: usize) {
        while count > 0 {
            match self.take(count) {
                Some(piece) => count -= piece.len(),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> ReceiveQueue {
        let mut queue = ReceiveQueue::default();
        queue.push(Bytes::from_static(b"hello "), Time::ZERO);
        queue.push(Bytes::from_static(b"world"), Time::NEVER);
        queue
    }

    #[test]
    fn peeking_removes_nothing() {
        let queue = queue();
        let mut into = [0; 7];
        assert_eq!(queue.peek(2, &mut into), 7);
        assert_eq!((&into, queue.len()), (b"llo wor", 11));
        assert_eq!(queue.peek(8, &mut into), 3);
        assert_eq!(queue.peek(11, &mut into), 0);
    }

    #[test]
    fn each_byte_has_its_arrival_time() {
        let arrivals = [0, 1, 6, 7, 11].map(|count| queue().arrival_of(count));
        let (first, second) = (Some(Time::ZERO), Some(Time::NEVER));
        assert_eq!(arrivals, [None, first, first, second, second]);
    }

    #[test]
    fn taken_bytes_are_removed() {
        let mut queue = queue();
        queue.advance(8);
        assert_eq!(queue.take(100).as_deref(), Some(&b"rld"[..]));
        assert_eq!((queue.len(), queue.take(1)), (0, None));
    }
}
