//! Addresses, TCP headers, data, and integer time.
//!
//! Headers are plain values here; bytes appear only at the edges, where a header library does the work.
//!
//! | to find | look in |
//! |---|---|
//! | time; sequence numbers | [`Time`], [`Span`]; [`SeqNr`] |
//! | endpoints and connections | [`Endpoint`], [`Flow`] |
//! | TCP headers as values; packets without their data | [`Header`], [`Options`]; [`Head`] |
//! | frames and packets as bytes | [`encode_frame`], [`decode_frame`], [`LowerHeaders`], [`Checksum`] |
//! | data: reference-counted bytes, or ranges without bytes | [`Payload`], [`Symbolic`] |
//! | timestamps that sockets ask for | [`Timestamping`], [`ArrivalTimes`] |
//! | capture files | `src/capture.rs`, with the feature `capture` |

mod arrival_times;
mod buffer;
#[cfg(feature = "capture")]
mod capture;
mod checksum;
mod decode;
mod encode;
mod fast_open;
mod flow;
mod header;
#[cfg(feature = "impairment")]
pub mod impairment;
mod lower;
mod options;
mod packet;
mod payload;
mod sack_blocks;
mod seq;
mod time;
mod timestamping;

pub use arrival_times::ArrivalTimes;
pub use buffer::Buffer;
#[cfg(feature = "capture")]
pub use capture::{CaptureWriter, FrameNotes};
pub use checksum::Checksum;
pub use decode::{TcpPart, decode_frame, decode_frame_unverified, decode_packet, decode_tcp};
pub use encode::{Cut, encode_frame, encode_link, encode_packet, encode_pieces, encode_run};
pub use fast_open::{FastOpenCookie, FastOpenOption, NoCookie};
pub use flow::{Endpoint, Flow};
pub use header::{
    ETHERNET_OVERHEAD, Ecn, Flags, Header, Options, SackBlock, Timestamps, frame_len, line_len,
};
pub use lower::{HOP_LIMIT, LowerHeaders, pseudo_header};
pub use packet::{DecodeError, EncodeError, Head, Link, Packet};
pub use payload::{Payload, Pieces, Symbolic};
pub use sack_blocks::{SackBlocks, TooManyBlocks};
pub use seq::SeqNr;
pub use time::{Span, Time};
pub use timestamping::{Stage, Stages, Timestamping};
