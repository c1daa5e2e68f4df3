//! Support for fork(2).

use crate::Adapter;
use crate::adapter::Guard;
use crate::waiter::Parker;
use baton_bus::link::LinkError;

/// Holds the lock on the shared state while the process forks: see [`Adapter::before_fork`]. The parent drops it and continues.
pub struct Forking<'a>(Guard<'a>);

impl Adapter {
    /// Prepares for fork(2). The child must not use its parent's link, and it has no running copy of the thread that looks after the link.
    /// So the child releases its copy with [`Forking::in_child`] and attaches on its own.
    pub fn before_fork(&self) -> Forking<'_> {
        Forking(self.handle().lock())
    }
}

impl Forking<'_> {
    /// In the child: closes the files and unmaps the memory of the link, which the adapter does not notice. The child must not drop its
    /// copies of this adapter and its sockets (use `std::mem::forget`): they would only wait for threads that do not exist.
    pub fn in_child(mut self) {
        self.0.host.driver.lose(LinkError::Gone);
        self.0.host.close_copies();
        Parker::renew();
    }
}
