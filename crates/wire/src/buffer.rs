//! Buffers that frames are written to.

use bytes::BytesMut;
use std::ops::DerefMut;

/// A buffer that grows as bytes are appended.
pub trait Buffer: DerefMut<Target = [u8]> {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]);

    /// Reserves memory for `additional` more bytes.
    fn make_room(&mut self, additional: usize);

    /// Keeps the first `len` bytes.
    fn shorten(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn make_room(&mut self, additional: usize) {
        self.reserve(additional);
    }

    fn shorten(&mut self, len: usize) {
        self.truncate(len);
    }
}

impl Buffer for BytesMut {
    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn make_room(&mut self, additional: usize) {
        self.reserve(additional);
    }

    fn shorten(&mut self, len: usize) {
        self.truncate(len);
    }
}
