//! What happened when, in the trace format of Perfetto: its UI opens it, and its `trace_processor` answers SQL about it.
//!
//! A [`Writer`] is told of spans, moments and values of counters, in any order over all tracks, and writes each at once: a file that is cut off
//! is readable up to there. It keeps to a limit of bytes, and counts what it leaves out for that.

mod connections;
mod counters;
pub mod proto;
mod sampling;
mod summary;
mod window;
mod writer;

pub use connections::{ConnectionTracks, Way, Within};
pub use counters::Counters;
pub use sampling::{Connections, Sampling};
pub use summary::Summary;
pub use window::Window;
pub use writer::{About, Grain, LEAST_BYTES, LeftOut, Track, Value, Writer};
