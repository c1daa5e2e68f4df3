//! Connections of the kernel that an adapter beside it takes over, one by one, and gives back.
//!
//! The interface and its addresses stay the kernel's. An application hands the broker a socket; the broker has its packets come to the
//! adapter, takes the connection out of the kernel ([`crate::repair`]) and answers with its state, sealed, which the application
//! then hands to the adapter as any other ([`baton_host::layer`]). On the way back the broker puts the connection into a new socket, and answers
//! with that. Repair mode needs CAP_NET_ADMIN: the broker has it, applications and adapter need not.
//!
//! The broker is a process of its own, which outlives the adapter ([`BrokerLink`] is the adapter's end): it owns the programs that find
//! connections' packets, and memory in which the adapter keeps each connection's state. When the adapter is killed the program drops what comes for
//! its connections until each is decided: those of which no data was under way go on in the kernel, as soon as their application asks for
//! them; the others are reset.

mod applications;
mod captured;
mod fin;
mod limits;
mod link;
mod memory;
mod namespace;
mod notice;
mod predecessor;
mod probe;
mod record;
mod seal;
mod server;
mod session;

pub use captured::CapturedStats;
pub use link::BrokerLink;
pub(crate) use memory::{Memory, Owner, Place, Stage, Table, now_ms};
pub use notice::{BrokerNotice, Loss};
pub use predecessor::end_predecessor;
pub(crate) use probe::question;
pub use record::{DATA_BYTES, WORDS, decode};
#[cfg(test)]
pub(crate) use record::{Said, data_len};
pub(crate) use record::{encode, without_data};
pub(crate) use seal::{Ticket, seal, ticket_of};
pub use server::Broker;
