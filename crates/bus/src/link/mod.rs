//! The link between host and adapter: put and get, whatever is below (batching 2.1, IOLib).
//!
//! Host and adapter are written against [`HostLink`] and [`AdapterLink`]. Below may be a simulated interconnect, memory that two
//! processes share, or a TCP connection. The adapter is bus master: it alone starts transfers of data, and says by its
//! responses when the host may use its buffers again.

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

/// The link is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The other side is gone.
    #[error("the other side is gone")]
    Gone,
    /// The other side does what it must not; it is not to be trusted with more.
    #[error("the other side broke the rules: {0}")]
    Violation(#[from] Violation),
}

/// What the other side must not do. Nothing that it writes is believed before it has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Violation {
    /// An index of a ring tells of more entries than it holds.
    #[error("an index of the ring tells of {claimed} descriptors, at most {depth} can be there")]
    Index {
        /// Descriptors, by the index.
        claimed: u32,
        /// The most that can be there.
        depth: u32,
    },
    /// A descriptor makes no sense.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A buffer that does not lie in the memory that both share.
    #[error("buffer of {len} bytes at {address:#x} is not in shared memory")]
    Range {
        /// Address.
        address: u64,
        /// Bytes.
        len: u32,
    },
    /// More in one transfer than was agreed on.
    #[error("transfer of {0} bytes is longer than was agreed on")]
    Length(u32),
    /// An answer to what was not asked, or news of what there is not.
    #[error("answer or news about socket {socket} that does not fit, tag {tag}")]
    Unasked {
        /// The socket.
        socket: u32,
        /// The tag.
        tag: u32,
    },
    /// Data that was not asked for, or not so much of it.
    #[error("{len} bytes of data that were not asked for, as transfer {id}")]
    Unwanted {
        /// The transfer that it is said to belong to.
        id: u32,
        /// Bytes.
        len: u32,
    },
    /// A message that is none.
    #[error("message {0:#04x} does not exist")]
    Message(u8),
}

/// The host's end.
pub trait HostLink {
    /// What is sent and received.
    type Data;

    /// Sends requests, as one transfer: whole entries, in order. Gives how many descriptors the other side had room for; the rest
    /// is to be put again later.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError>;

    /// Whether what the adapter puts and nobody waits for ([`AdapterLink::put_lazily`]) may be left until something else comes, if
    /// the link knows the difference.
    fn mask_lazy(&mut self, _patient: bool) {}

    /// Appends the responses that have arrived, whole entries.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError>;

    /// The longest buffer, bytes.
    fn buffer_bytes(&self) -> u32;

    /// Buffers that are free.
    fn free_buffers(&self) -> usize;

    /// Puts data into a buffer that the adapter can fetch it from; gives its address.
    ///
    /// # Errors
    /// Gives the data back when no buffer is free, or none is long enough.
    fn place(&mut self, data: Self::Data) -> Result<u64, Self::Data>;

    /// Puts `data` behind the first `used` bytes of a buffer in which data was placed before; false when it does not fit there, or the
    /// link cannot do that.
    fn append(&mut self, _address: u64, _used: u32, _data: &Self::Data) -> bool {
        false
    }

    /// Takes a buffer for the adapter to write to; none when none is free.
    fn reserve(&mut self) -> Option<u64>;

    /// Takes the first `len` bytes that the adapter has written to a reserved buffer, which is free after that.
    ///
    /// # Errors
    /// There is no such buffer, or not so much in it.
    fn take(&mut self, address: u64, len: u32) -> Result<Self::Data, Violation>;

    /// Gives a buffer back, of either kind.
    fn free(&mut self, address: u64);
}

/// A transfer of data that the adapter has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmaId(pub u32);

/// A transfer that is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Dma<D> {
    /// Data of the host has been fetched.
    Read {
        /// Which.
        id: DmaId,
        /// What stood there.
        data: D,
    },
    /// Data stands in the host's buffer.
    Written {
        /// Which.
        id: DmaId,
    },
}

/// The adapter's end.
pub trait AdapterLink {
    /// What is sent and received.
    type Data;

    /// Appends requests that have arrived, whole entries, at most `most` descriptors if the first entry is not longer.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn get(
        &mut self,
        now: Time,
        most: usize,
        requests: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError>;

    /// Sends responses, as one transfer: whole entries, in order. Gives how many descriptors the other side had room for.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn put(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError>;

    /// The same for responses that nobody waits for: a host that [masks them](HostLink::mask_lazy) need not be woken for them.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn put_lazily(&mut self, now: Time, responses: &[Descriptor]) -> Result<usize, LinkError> {
        self.put(now, responses)
    }

    /// Begins to fetch `len` bytes at `address` of host memory. What it gives comes with [`AdapterLink::poll_dma`], in the order of
    /// the calls.
    ///
    /// # Errors
    /// The link is of no use any more, or the host's descriptor was wrong.
    fn read(&mut self, now: Time, id: DmaId, address: u64, len: u32) -> Result<(), LinkError>;

    /// Begins to write `data` to `address` of host memory. That it is done comes with [`AdapterLink::poll_dma`].
    ///
    /// # Errors
    /// The link is of no use any more, or the host's descriptor was wrong.
    fn write(
        &mut self,
        now: Time,
        id: DmaId,
        address: u64,
        data: Self::Data,
    ) -> Result<(), LinkError>;

    /// The next transfer that is over.
    ///
    /// # Errors
    /// The link is of no use any more.
    fn poll_dma(&mut self, now: Time) -> Result<Option<Dma<Self::Data>>, LinkError>;
}
