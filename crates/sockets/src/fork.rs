//! What becomes of an adapter when the process is copied by fork(2).

use crate::Adapter;
use crate::adapter::Guard;
use crate::waiter::Parker;
use baton_bus::link::LinkError;

/// Holds still what all threads share while the process is copied: [`Adapter::before_fork`]. Dropped in the parent, which goes on.
pub struct Forking<'a>(Guard<'a>);

impl Adapter {
    /// To be called before fork(2). The child must not use the link of its parent, and its copy of the thread that looks after the link
    /// does not run: it ends its part by [`Forking::in_child`], and attaches by itself.
    pub fn before_fork(&self) -> Forking<'_> {
        Forking(self.handle().lock())
    }
}

impl Forking<'_> {
    /// In the child: lets go of the files and the memory of the link, of which the adapter sees nothing. The child has to keep its copies
    /// of this adapter and its sockets undropped (`std::mem::forget`): all they could do is wait for threads that are not there.
    pub fn in_child(mut self) {
        self.0.host.driver.lose(LinkError::Gone);
        self.0.host.close_copies();
        Parker::renew();
    }
}
