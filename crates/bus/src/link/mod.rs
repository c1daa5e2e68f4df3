//! The link between host and adapter: put and get over any transport (batching 2.1, IOLib).
//!
//! Host and adapter are written against [`HostLink`] and [`AdapterLink`]. The transport may be a simulated interconnect, memory shared by
//! two processes, or a TCP connection. The adapter is bus master: only the adapter starts data transfers, and its responses say when the
//! host may reuse its buffers.

mod counted;
mod inline;
mod memory;

#[cfg(test)]
mod tests;

pub use counted::{Counted, Traffic};
pub use inline::{Inline, embed, extract, fits_inline};
pub use memory::{Faults, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};

use crate::descriptor::{Descriptor, Malformed};
use baton_wire::Time;

/// The link can no longer be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side has gone.
    #[error("the other side has closed the link")]
    Gone,
    /// The other side violated the protocol and must not be trusted any further.
    #[error("the other side violated the protocol: {0}")]
    Violation(#[from] Violation),
}

/// A violation of the protocol by the other side. All input from the other side is checked before use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// A ring index claims more entries than possible.
    #[error("a ring index claims {claimed} descriptors, but the ring holds at most {depth}")]
    Index {
        /// Number of descriptors according to the index.
        claimed: u32,
        /// Maximum number of descriptors.
        depth: u32,
    },
    /// A descriptor is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A buffer is not in shared memory.
    #[error("buffer of {len} bytes at {address:#x} is not in shared memory")]
    Range {
        /// Address of the buffer.
        address: u64,
        /// Number of bytes.
        len: u32,
    },
    /// A transfer is longer than agreed on.
    #[error("transfer of {0} bytes is longer than the agreed maximum")]
    Length(u32),
    /// An answer without a request, or a notification about something that does not exist.
    #[error("unexpected response or event for socket {socket}, tag {tag}")]
    Unasked {
        /// Number of the socket.
        socket: u32,
        /// Tag of the answer.
        tag: u32,
    },
    /// Data that was not requested, or of another length.
    #[error("{len} bytes of data that were not requested, in transfer {id}")]
    Unwanted {
        /// The transfer to which the data claims to belong.
        id: u32,
        /// Number of bytes.
        len: u32,
    },
    /// A message of unknown type.
    #[error("message {0:#04x} does not exist")]
    Message(u8),
}

/// The host's end.
pub trait HostLink {
    /// Type of the data sent and received.
    type Data;

    /// Sends requests in one transfer: whole entries, in order. Returns how many descriptors fitted; the caller must put the others again
    /// later.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError>;

    /// Sets whether responses that nobody waits for ([`AdapterLink::put_lazily`]) may stay in the link until others arrive, if the link
    /// distinguishes them.
    fn mask_lazy(&mut self, _masked: bool) {}

    /// Appends the responses that have arrived, as whole entries.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError>;

    /// Returns the size of the longest buffer, bytes.
    fn buffer_bytes(&self) -> u32;

    /// Returns the number of free buffers.
    fn free_buffers(&self) -> usize;

    /// Places data in a buffer for the adapter to fetch. Returns the buffer's address.
    ///
    /// # Errors
    /// Returns the data if no buffer is free, or none is long enough.
    fn place(&mut self, data: Self::Data) -> Result<u64, Self::Data>;

    /// Appends `data` after the first `used` bytes of a buffer in which data was placed earlier. Returns false if it does not fit, or if
    /// the link does not support this.
    fn append(&mut self, _address: u64, _used: u32, _data: &Self::Data) -> bool {
        false
    }

    /// Reserves a buffer for the adapter to write to, or returns `None` if none is free.
    fn reserve(&mut self) -> Option<u64>;

    /// Takes the first `len` bytes that the adapter has written to a reserved buffer, and frees the buffer.
    ///
    /// # Errors
    /// Fails if there is no such buffer, or if it holds less data.
    fn take(&mut self, address: u64, len: u32) -> Result<Self::Data, Violation>;

    /// Frees a buffer of either kind, or ends a use of a file. How a use of a file begins depends on the link.
    fn free(&mut self, address: u64);
}

/// Identifies a data transfer that the adapter has requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmaId(pub u32);

/// A completed transfer.
#[derive(Clone, Debug, PartialEq)]
pub enum Dma<D> {
    /// Data of the host has been fetched.
    Read {
        /// The transfer.
        id: DmaId,
        /// The fetched data.
        data: D,
    },
    /// Data has been written to the host's buffer.
    Written {
        /// The transfer.
        id: DmaId,
    },
    /// A file could not be read up to the end of the requested data: it is shorter by now, or there was an error.
    Failed {
        /// The transfer.
        id: DmaId,
    },
}

/// The adapter's end.
pub trait AdapterLink {
    /// Type of the data sent and received.
    type Data;

    /// Appends requests that have arrived, as whole entries: at most `most` descriptors unless the first entry is longer.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn get(
        &mut self,
        now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError>;

    /// Sends responses in one transfer: whole entries, in order. Returns how many descriptors fitted.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn put(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError>;

    /// Sends responses that nobody waits for: a host that [masks them](HostLink::mask_lazy) need not be woken up for them.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn put_lazily(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        self.put(now, responses)
    }

    /// Starts to fetch `len` bytes at `address` of host memory or of a [file](crate::descriptor::FilePlace). [`AdapterLink::poll_dma`] returns
    /// the data, in the order of the calls.
    ///
    /// # Errors
    /// Fails if the link can no longer be used, or if the host's descriptor was wrong.
    fn read(&mut self, now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError>;

    /// Starts to write `data` to `address` of host memory. [`AdapterLink::poll_dma`] reports the completion.
    ///
    /// # Errors
    /// Fails if the link can no longer be used, or if the host's descriptor was wrong.
    fn write(
        &mut self,
        now: Time,
        id: DmaId,
        address: u64,
        data: Self::Data,
    ) -> Result<(), LinkError>;

    /// Returns the next completed transfer.
    ///
    /// # Errors
    /// Fails if the link can no longer be used.
    fn poll_dma(&mut self, now: Time) -> Result<Option<Dma<Self::Data>>, LinkError>;
}
