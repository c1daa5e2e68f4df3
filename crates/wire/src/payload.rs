//! The data of connections. Live connections carry reference-counted bytes, simulated ones a symbolic range: no copies, yet every delivered
//! byte can be compared with what was sent.

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt::Debug;

/// A run of bytes that can be cut and joined without copying.
pub trait Payload: Clone + Debug + PartialEq {
    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// Returns whether the run is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns `len` bytes from `start` on. Panics if the run does not contain all of them.
    fn slice(&self, start: usize, len: usize) -> Self;

    /// Appends `next` if it continues this run without a copy; otherwise leaves both alone and returns false.
    fn try_append(&mut self, next: &Self) -> bool;

    /// Appends `next`, if necessary by copying both into a single allocation; returns false if that is impossible.
    fn join(&mut self, next: &Self) -> bool {
        self.try_append(next)
    }
}

impl Payload for Bytes {
    fn len(&self) -> usize {
        Bytes::len(self)
    }

    fn slice(&self, start: usize, len: usize) -> Self {
        Bytes::slice(self, start..start + len)
    }

    fn try_append(&mut self, _next: &Self) -> bool {
        false
    }

    fn join(&mut self, next: &Self) -> bool {
        let own = std::mem::take(self).try_into_mut();
        let mut whole = own.unwrap_or_else(|shared| {
            let mut copy = BytesMut::with_capacity(shared.len() + next.len());
            copy.extend_from_slice(&shared);
            copy
        });
        whole.extend_from_slice(next);
        *self = whole.freeze();
        true
    }
}

/// A range of bytes that are named instead of stored: `len` bytes of `source` from `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbolic {
    /// Identifies the data that the bytes are part of; the creator defines the meaning.
    pub source: u64,
    /// Offset of the first byte within the source.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

impl Payload for Symbolic {
    fn len(&self) -> usize {
        self.len as usize
    }

    fn slice(&self, start: usize, len: usize) -> Self {
        assert!(
            start + len <= self.len as usize,
            "slice lies within the range"
        );
        Self {
            source: self.source,
            offset: self.offset + start as u64,
            len: len as u32,
        }
    }

    fn try_append(&mut self, next: &Self) -> bool {
        let continues =
            self.source == next.source && self.offset + u64::from(self.len) == next.offset;
        if continues {
            self.len += next.len;
        }
        continues
    }
}

/// The pieces of a segment's data, in order: a response header and file content may share a segment.
pub type Pieces<P> = SmallVec<[P; 2]>;
