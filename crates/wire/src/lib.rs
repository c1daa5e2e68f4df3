//! What travels: addresses, TCP headers, and the integer time at which it does.
//!
//! Headers are plain values here; bytes appear only at the edges (`encode`, capture files),
//! where a header library does the work.

mod flow;
mod header;
mod seq;
mod time;

pub use flow::{Endpoint, Flow};
pub use header::{ETHERNET_OVERHEAD, Ecn, Flags, Header, Options, SackBlock, Timestamps, frame_len, line_len};
pub use seq::SeqNr;
pub use time::{Span, Time};
