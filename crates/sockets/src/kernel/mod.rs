//! The kernel's TCP below a socket layer: connections that begin there and may move to an adapter.
//!
//! [`KernelStack`] has the kernel's sockets, [`KernelLayer`] the socket layer on it, for one thread.

mod layer;
mod options;
mod places;
mod socket;
mod stack;

pub use layer::{Handoff, KernelLayer};
pub use places::PlaceRow;
pub use socket::KernelSocket;
pub use stack::{KernelStack, KernelStats};
