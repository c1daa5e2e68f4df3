//! The link to the adapter, if there is one.

use baton_bus::Descriptor;
use baton_bus::link::{HostLink, LinkError, Violation};
use baton_iolib::{AnyHostLink, LinkCounters, LiveLink};
use baton_wire::Time;
use bytes::Bytes;
use rustix::event::{PollFlags, epoll};
use std::os::fd::{AsFd, BorrowedFd};

/// The application's end of a link.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostEnd {
    /// There is an adapter.
    Attached(AnyHostLink),
    /// The adapter is gone: no operation on the link succeeds.
    Lost(LinkCounters),
}

impl HostEnd {
    /// Returns the kind of the link.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Attached(AnyHostLink::Shm(_)) => "shared_memory",
            Self::Attached(AnyHostLink::Tcp(_)) => "tcp",
            Self::Lost(_) => "lost",
        }
    }

    /// Returns whether this process and the adapter read the same clock, because they are on the same machine.
    pub fn shares_clock(&self) -> bool {
        matches!(self, Self::Attached(AnyHostLink::Shm(_)))
    }

    /// Returns whether the adapter is gone.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Returns the memory of all buffers that both sides share, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Attached(link) => link.geometry().pool_bytes(),
            Self::Lost(_) => 0,
        }
    }

    /// Returns the link's counters.
    pub fn counters(&self) -> &LinkCounters {
        match self {
            Self::Attached(link) => link.counters(),
            Self::Lost(counters) => counters,
        }
    }

    /// Returns the link itself, to wait for it.
    pub(crate) fn live(&mut self) -> Option<&mut AnyHostLink> {
        match self {
            Self::Attached(link) => Some(link),
            Self::Lost(_) => None,
        }
    }

    /// Returns the descriptor and the events that an epoll instance has to wait for.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, epoll::EventFlags)> {
        let Self::Attached(link) = self else {
            return None;
        };
        let (fd, wanted) = (link.as_fd(), link.interest());
        let mut interest = epoll::EventFlags::empty();
        interest.set(epoll::EventFlags::IN, wanted.contains(PollFlags::IN));
        interest.set(epoll::EventFlags::OUT, wanted.contains(PollFlags::OUT));
        Some((fd, interest))
    }
}

impl HostLink for HostEnd {
    type Data = Bytes;

    fn put(&mut self, now: Time, requests: &[Descriptor]) -> Result<usize, LinkError> {
        match self {
            Self::Attached(link) => link.put(now, requests),
            Self::Lost(_) => Err(LinkError::Gone),
        }
    }

    fn mask_lazy(&mut self, masked: bool) {
        if let Self::Attached(link) = self {
            link.mask_lazy(masked);
        }
    }

    fn get(&mut self, now: Time, responses: &mut Vec<Descriptor>) -> Result<(), LinkError> {
        match self {
            Self::Attached(link) => link.get(now, responses),
            Self::Lost(_) => Err(LinkError::Gone),
        }
    }

    fn buffer_bytes(&self) -> u32 {
        match self {
            Self::Attached(link) => link.buffer_bytes(),
            // There are no buffers.
            Self::Lost(_) => 1,
        }
    }

    fn free_buffers(&self) -> usize {
        match self {
            Self::Attached(link) => link.free_buffers(),
            Self::Lost(_) => 0,
        }
    }

    fn place(&mut self, data: Bytes) -> Result<u64, Bytes> {
        match self {
            Self::Attached(link) => link.place(data),
            Self::Lost(_) => Err(data),
        }
    }

    fn append(&mut self, address: u64, used: u32, data: &Bytes) -> bool {
        match self {
            Self::Attached(link) => link.append(address, used, data),
            Self::Lost(_) => false,
        }
    }

    fn reserve(&mut self) -> Option<u64> {
        match self {
            Self::Attached(link) => link.reserve(),
            Self::Lost(_) => None,
        }
    }

    fn take(&mut self, address: u64, len: u32) -> Result<Bytes, Violation> {
        match self {
            Self::Attached(link) => link.take(address, len),
            Self::Lost(_) => Err(Violation::Range { address, len }),
        }
    }

    fn free(&mut self, address: u64) {
        if let Self::Attached(link) = self {
            link.free(address);
        }
    }
}
