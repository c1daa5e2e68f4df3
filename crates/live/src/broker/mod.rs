//! Connections of the kernel that an adapter beside it takes over, one by one, and gives back.
//!
//! The interface and its addresses stay the kernel's. An application hands the broker a socket; the broker has its packets come to the
//! adapter ([`Captured`]), takes the connection out of the kernel ([`crate::repair`]) and answers with its state, which the application
//! then hands to the adapter as any other ([`baton_host::layer`]). What comes back from there goes the same way in the other direction.
//! Repair mode needs CAP_NET_ADMIN: the broker has it, applications need not.

mod applications;
mod captured;
mod fin;
mod namespace;
mod predecessor;
mod server;

pub use captured::{CaptureError, Captured, CapturedStats};
pub use predecessor::end_predecessor;
pub use server::Broker;
