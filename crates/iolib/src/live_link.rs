//! The additional abilities of live links: they can be waited for.

use crate::counters::LinkCounters;
use baton_bus::link::LinkError;
use rustix::event::PollFlags;
use std::os::fd::{AsFd, BorrowedFd};

/// A link that can be waited for, alone ([`wait`](crate::wait)) or together with others.
///
/// To wait, call [`LiveLink::prepare_to_sleep`]. If it returns `true`, wait until [`AsFd::as_fd`] is ready for [`LiveLink::interest`], or
/// until [`LiveLink::other_fd`], if there is one by then, is readable. The next use of the link marks this side as awake. Callers that can
/// afford to spin poll [`LiveLink::has_news`] first.
pub trait LiveLink: AsFd {
    /// Returns whether there is something to get, or work that was blocked can continue. With shared memory, this is only a memory access.
    ///
    /// # Errors
    /// The other side violates the protocol.
    fn has_news(&mut self) -> Result<bool, LinkError>;

    /// Announces to the other side that this side sleeps and has to be woken up. Returns `false` if there is something to do already; then
    /// nothing will wake it.
    ///
    /// # Errors
    /// The other side violates the protocol.
    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError>;

    /// Prepares to sleep until there is space, for a side whose last put was incomplete and that gets nothing before the rest is put. Data
    /// that arrives does not wake it.
    ///
    /// # Errors
    /// The other side violates the protocol.
    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError>;

    /// Returns the events to wait for at the file descriptor.
    fn interest(&self) -> PollFlags;

    /// Returns another descriptor that becomes readable when there is something to do. Once there is one, it stays.
    fn other_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the counters of this side.
    fn counters(&self) -> &LinkCounters;
}
