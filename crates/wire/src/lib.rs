//! What travels: addresses, TCP headers, and the integer time at which it does.
//!
//! Headers are plain values here; bytes appear only at the edges ([`encode_frame`], capture files),
//! where a header library does the work.

mod capture;
mod flow;
mod header;
mod packet;
mod seq;
mod time;

pub use capture::CaptureWriter;
pub use flow::{Endpoint, Flow};
pub use header::{
    ETHERNET_OVERHEAD, Ecn, Flags, Header, Options, SackBlock, Timestamps, frame_len, line_len,
};
pub use packet::{
    DecodeError, EncodeError, Link, Packet, decode_frame, decode_packet, encode_frame,
    encode_packet,
};
pub use seq::SeqNr;
pub use time::{Span, Time};
