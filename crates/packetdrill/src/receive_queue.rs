//! What arrived and was not read. It lies here and not in the engine, so that it survives the connection's end:
//! a reset takes away nothing that was delivered.

use bytes::Bytes;
use std::collections::VecDeque;

/// Bytes in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveQueue {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl ReceiveQueue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        self.pieces.push_back(piece);
    }

    /// Copies from byte `skip` on, without taking anything; returns how many bytes there were.
    pub(crate) fn peek(&self, mut skip: usize, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for piece in &self.pieces {
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

    /// Takes the first bytes, at most `most`, as they lie in one piece.
    pub(crate) fn take(&mut self, most: usize) -> Option<Bytes> {
        let first = self.pieces.front_mut()?;
        let piece = if first.len() <= most {
            self.pieces.pop_front()?
        } else {
            first.split_to(most)
        };
        self.len -= piece.len();
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
        queue.push(Bytes::from_static(b"hello "));
        queue.push(Bytes::from_static(b"world"));
        queue
    }

    #[test]
    fn peeking_leaves_everything() {
        let queue = queue();
        let mut into = [0; 7];
        assert_eq!(queue.peek(2, &mut into), 7);
        assert_eq!((&into, queue.len()), (b"llo wor", 11));
        assert_eq!(queue.peek(8, &mut into), 3);
        assert_eq!(queue.peek(11, &mut into), 0);
    }

    #[test]
    fn what_is_taken_is_gone() {
        let mut queue = queue();
        queue.advance(8);
        assert_eq!(queue.take(100).as_deref(), Some(&b"rld"[..]));
        assert_eq!((queue.len(), queue.take(1)), (0, None));
    }
}
