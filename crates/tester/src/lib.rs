//! The ten tests of a NIC on real interfaces.
//!
//! A [`Tester`] is a [`Port`](baton_microbench::Port) of `baton-microbench`: it gives each [`Peer`] its [`Task`], lets all peers work at
//! the same time, and combines their outcomes into a trial. Frames are built once, and stamped with a stream and a sequence number when they
//! are sent. Changes to an interface are recorded first, so that the next start can undo them if necessary.
//!
//! | to find | look in |
//! |---|---|
//! | which interface does what in a trial | [`Tester`], [`Task`], `src/plan.rs` |
//! | an interface of this machine, and the kind of its port | [`Station`], [`PortKind`] |
//! | a partner on another machine | [`remote`] |
//! | senders and receivers; the stamps of frames | `src/source.rs`, `src/sink.rs`, [`stamp`] |
//! | hosts with TCP | `src/tcp.rs`, `src/tcp/` |
//! | where missing frames were lost | [`losses`], [`Counts`] |
//! | undoing changes to interfaces | [`mend`] |
//! | what is needed to repeat a measurement | [`environment`] |

mod counts;
pub mod environment;
mod error;
pub mod losses;
pub mod mend;
mod open;
mod peer;
mod plan;
pub mod remote;
mod sequences;
mod signal;
mod sink;
mod source;
pub mod stamp;
mod station;
mod task;
mod tcp;
mod tester;

pub use counts::Counts;
pub use error::TesterError;
pub use open::{PortKind, Spec};
pub use peer::Peer;
pub use signal::Signal;
pub use station::Station;
pub use task::{
    Arrivals, Departures, Outcome, Quantiles, Sending, StreamEnds, Task, TcpCounts, TcpRole,
    TcpTask, Work,
};
pub use tester::{Detail, Tester, Told};
