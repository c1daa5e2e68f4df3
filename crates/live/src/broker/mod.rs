//! Moves single connections from the kernel to an adapter beside it, and back.
//!
//! The kernel keeps the interface and its addresses. An application hands a socket to the broker. The broker redirects the connection's
//! packets to the adapter, takes the connection out of the kernel ([`crate::repair`]) and answers with the connection's sealed state, which
//! the application hands to the adapter like any other ([`baton_host::layer`]). On the way back the broker puts the connection into a new
//! socket and answers with that socket. Repair mode needs CAP_NET_ADMIN: the broker has it, applications and the adapter do not need it.
//!
//! The broker is a separate process that outlives the adapter ([`BrokerLink`] is the adapter's end). It owns the programs that find the
//! connections' packets, and the memory in which the adapter records each connection's state. When the adapter is killed, the program drops
//! packets of its connections until the fate of each is decided: those that had no data in flight continue in the kernel as soon as their
//! application asks for them; the others are reset.

mod applications;
mod captured;
mod fin;
mod history;
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
