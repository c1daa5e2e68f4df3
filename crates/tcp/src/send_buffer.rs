//! Data that was written and is not yet acknowledged.

use crate::payload::push_joined;
use baton_wire::{Payload, Pieces};
use std::collections::VecDeque;
use std::ops::Range;

/// A queue of pieces, addressed by distance in bytes from the first unacknowledged byte.
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer<P> {
    pieces: VecDeque<P>,
    len: u32,
    /// Acknowledged bytes of the first piece, which are not cut off at each ACK because that would cost more.
    skipped: u32,
    /// The piece in which the last range started; the next one usually starts there or later.
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

    /// Number of pieces.
    pub(crate) fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// All pieces, each with the number of its acknowledged bytes.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&P, usize)> {
        let skipped = std::iter::once(self.skipped as usize).chain(std::iter::repeat(0));
        self.pieces.iter().zip(skipped)
    }

    /// Appends a piece; the caller enforces the limit.
    pub(crate) fn push(&mut self, piece: P) {
        let len = piece.len();
        if len == 0 {
            return;
        }
        self.len += len as u32;
        push_joined(&mut self.pieces, piece);
    }

    /// Removes the first `count` bytes, which were acknowledged.
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

    /// Borrows the `len` bytes from `offset` on.
    #[inline]
    pub(crate) fn lend(&mut self, offset: u32, len: u32) -> Lent<'_, P> {
        debug_assert!(offset + len <= self.len, "the range lies within the buffer");
        if len == 0 {
            return Lent::nothing();
        }
        let at = offset + self.skipped;
        self.seek(at);
        Lent {
            pieces: Some(&self.pieces),
            first: self.cursor.index,
            start: at - self.cursor.start,
            len,
        }
    }

    /// Moves the cursor to the piece that holds the byte at the distance `at` from the start of the first piece.
    fn seek(&mut self, at: u32) {
        let mut cursor = if at < self.cursor.start {
            Cursor::default()
        } else {
            self.cursor
        };
        loop {
            let end = cursor.start + self.pieces[cursor.index].len() as u32;
            if at < end {
                break;
            }
            cursor = Cursor {
                index: cursor.index + 1,
                start: end,
            };
        }
        self.cursor = cursor;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Converts the content to whole pieces.
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

    /// Returns the invariant that is violated, if any.
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

/// Part of a send buffer: the data of a segment, in one piece or in several consecutive ones.
#[derive(Clone, Copy, Debug)]
pub struct Lent<'a, P> {
    /// `None` if there is no data.
    pieces: Option<&'a VecDeque<P>>,
    /// The piece in which the data starts, and the position in that piece.
    first: usize,
    start: u32,
    len: u32,
}

impl<'a, P: Payload> Lent<'a, P> {
    pub(crate) fn nothing() -> Self {
        Self {
            pieces: None,
            first: 0,
            start: 0,
            len: 0,
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Reports whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The piece that holds all of the data, if it is one, with the range of the data in it.
    #[inline]
    pub fn only_part(&self) -> Option<(&'a P, Range<usize>)> {
        let piece = self.pieces?.get(self.first)?;
        let range = self.start as usize..(self.start + self.len) as usize;
        (range.end <= piece.len()).then_some((piece, range))
    }

    /// The pieces that hold the data, each with the range of the data in it.
    #[inline]
    pub fn parts(&self) -> impl Iterator<Item = (&'a P, Range<usize>)> + Clone + use<'a, P> {
        let Self {
            pieces,
            first,
            start,
            len,
        } = *self;
        let mut start = start as usize;
        let mut remaining = len as usize;
        let mut index = first;
        std::iter::from_fn(move || {
            if remaining == 0 {
                return None;
            }
            let piece = &pieces?[index];
            let take = remaining.min(piece.len() - start);
            let range = start..start + take;
            (index, start, remaining) = (index + 1, 0, remaining - take);
            Some((piece, range))
        })
    }

    /// Takes the first `len` bytes off.
    pub(crate) fn split_front(&mut self, len: usize) -> Self {
        debug_assert!(len <= self.len(), "no more is taken off than there is");
        let front = Self {
            len: len as u32,
            pieces: self.pieces,
            ..*self
        };
        self.len -= len as u32;
        self.start += len as u32;
        while self.len > 0
            && let Some(piece) = self.pieces.and_then(|pieces| pieces.get(self.first))
            && piece.len() <= self.start as usize
        {
            self.start -= piece.len() as u32;
            self.first += 1;
        }
        front
    }

    /// Converts to owned pieces, which share the bytes.
    pub fn to_pieces(&self) -> Pieces<P> {
        self.parts()
            .map(|(piece, range)| piece.slice(range.start, range.len()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
