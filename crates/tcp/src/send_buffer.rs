//! What was written and is not yet acknowledged.

use crate::payload::{Payload, Pieces, push_joined};
use std::collections::VecDeque;

/// A queue of pieces, addressed by distance in bytes from the first unacknowledged byte.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer<P> {
    pieces: VecDeque<P>,
    len: u32,
    /// Bytes of the first piece that are acknowledged: cutting them off at each ACK would cost more.
    skipped: u32,
    /// Where the last range taken ended: the next one usually starts there.
    cursor: Cursor,
}

/// A piece and its distance from the start of the first piece.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    index: usize,
    start: u32,
}

impl<P: Payload> SendBuffer<P> {
    pub(crate) fn new() -> Self {
        Self {
            pieces: VecDeque::new(),
            len: 0,
            skipped: 0,
            cursor: Cursor::default(),
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends one piece; the caller keeps the limit.
    pub(crate) fn push(&mut self, piece: P) {
        let len = piece.len();
        if len == 0 {
            return;
        }
        self.len += len as u32;
        push_joined(&mut self.pieces, piece);
    }

    /// Lets go of the first `count` bytes, which were acknowledged.
    pub(crate) fn release(&mut self, count: u32) {
        debug_assert!(count <= self.len, "only what is held is acknowledged");
        self.len -= count;
        self.skipped += count;
        while let Some(first) = self.pieces.front() {
            let len = first.len() as u32;
            if len > self.skipped {
                break;
            }
            self.pieces.pop_front();
            self.skipped -= len;
            self.cursor = match self.cursor.index {
                0 => Cursor::default(),
                index => Cursor {
                    index: index - 1,
                    start: self.cursor.start - len,
                },
            };
        }
    }

    /// Copies (by reference) the `len` bytes from `offset` on to the end of `out`.
    pub(crate) fn copy_range(&mut self, offset: u32, len: u32, out: &mut Pieces<P>) {
        debug_assert!(offset + len <= self.len, "the range lies within the buffer");
        if len == 0 {
            return;
        }
        let mut at = offset + self.skipped;
        let mut remaining = len;
        let mut cursor = if at < self.cursor.start {
            Cursor::default()
        } else {
            self.cursor
        };
        loop {
            let piece = &self.pieces[cursor.index];
            let piece_len = piece.len() as u32;
            let within = at - cursor.start;
            if within < piece_len {
                let take = remaining.min(piece_len - within);
                out.push(piece.slice(within as usize, take as usize));
                at += take;
                remaining -= take;
                if remaining == 0 {
                    break;
                }
            }
            cursor = Cursor {
                index: cursor.index + 1,
                start: cursor.start + piece_len,
            };
        }
        self.cursor = cursor;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Its content as whole pieces.
    pub(crate) fn into_pieces(mut self) -> Vec<P> {
        if self.skipped > 0
            && let Some(first) = self.pieces.front_mut()
        {
            let skipped = self.skipped as usize;
            *first = first.slice(skipped, first.len() - skipped);
        }
        self.pieces.into()
    }

    pub(crate) fn from_pieces(pieces: Vec<P>) -> Self {
        let len = pieces.iter().map(|piece| piece.len() as u32).sum();
        Self {
            pieces: pieces.into(),
            len,
            skipped: 0,
            cursor: Cursor::default(),
        }
    }

    /// The rule that is broken, if any.
    pub(crate) fn verify(&self) -> Result<(), &'static str> {
        let held: usize = self.pieces.iter().map(Payload::len).sum();
        if held != self.len as usize + self.skipped as usize {
            return Err("the send buffer holds as many bytes as it says");
        }
        if self.pieces.iter().any(Payload::is_empty) {
            return Err("no piece of the send buffer is empty");
        }
        if self
            .pieces
            .front()
            .is_some_and(|first| first.len() as u32 <= self.skipped)
        {
            return Err("acknowledged pieces leave the send buffer");
        }
        let before_cursor: usize = self
            .pieces
            .iter()
            .take(self.cursor.index)
            .map(Payload::len)
            .sum();
        if self.cursor.index > self.pieces.len() || before_cursor != self.cursor.start as usize {
            return Err("the send cursor stands at the start of a piece");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
