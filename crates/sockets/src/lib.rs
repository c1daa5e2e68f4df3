//! Sockets whose TCP is on an adapter.
mod config;
mod driver;
mod error;
mod link;
mod target;

pub use config::DriverConfig;
pub use driver::{Driver, Trouble};
pub use error::{OpenError, kind_of};
pub use link::HostEnd;
pub use target::Target;
