//! What live links can do beside carrying descriptors and data: be waited for.

use crate::counters::LinkCounters;
use baton_bus::link::LinkError;
use rustix::event::PollFlags;
use std::os::fd::AsFd;

/// A link that can be waited for, alone ([`wait`](crate::wait)) or beside others.
///
/// To wait: [`LiveLink::prepare_to_sleep`], and only if it says so, wait until [`AsFd::as_fd`] is ready for
/// [`LiveLink::interest`]; then use the link again, which wakes it up. Whoever can, spins before, and looks at [`LiveLink::has_news`].
pub trait LiveLink: AsFd {
    /// Whether there is something to get, or something goes on that was held up: a look at memory where memory is shared.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn has_news(&mut self) -> Result<bool, LinkError>;

    /// Says to the other side that it has to wake this one. False when there is something to do already, and nothing will wake it.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn prepare_to_sleep(&mut self) -> Result<bool, LinkError>;

    /// The same for a side whose last put fell short and that can get nothing before there is room: whatever comes, it sleeps on.
    ///
    /// # Errors
    /// The other side breaks the rules.
    fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError>;

    /// What to wait for at the file descriptor.
    fn interest(&self) -> PollFlags;

    /// What it has counted.
    fn counters(&self) -> &LinkCounters;
}
