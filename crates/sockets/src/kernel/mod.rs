//! The kernel's TCP below a socket layer: connections that start in the kernel and may move to an adapter.
//!
//! For one thread, [`KernelStack`] has the kernel's sockets, and [`KernelLayer`] the socket layer on top.

mod layer;
mod options;
mod places;
mod socket;
mod stack;

pub use layer::{Handoff, KernelLayer};
pub use places::{ApplicationAnswer, PlaceRow};
pub use socket::KernelSocket;
pub use stack::{KernelStack, KernelStats, LONGEST_CORK};
