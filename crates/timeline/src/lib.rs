//! Timelines of events in the trace format of Perfetto: its UI displays them, and its `trace_processor` answers SQL queries about them.
//!
//! A [`Writer`] receives spans, moments and counter values, in any order across tracks, and writes each immediately, so that a truncated
//! file is readable up to its end. It obeys a limit on the file size, and counts the events that it omits because of the limit.
//!
//! | to find | look in |
//! |---|---|
//! | tracks and events, written as they happen | [`Writer`], [`Track`] |
//! | a track for each chosen connection | [`ConnectionTracks`] |
//! | which part of a run, and which connections | [`Sampling`], [`Window`], [`Connections`] |
//! | counters that are written when they change | [`Counters`] |
//! | what a timeline contains, and what was omitted | [`Summary`], [`LeftOut`] |
//! | the messages of the format | [`proto`] |

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
