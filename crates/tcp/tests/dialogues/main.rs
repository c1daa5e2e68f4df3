//! Conversations with one stack, segment by segment, in the manner of packetdrill: what is injected and what is
//! expected are written as in `"P. 1:1001 ack 1 win 5000"`, with sequence numbers relative to each side's SYN.

mod closing;
mod data;
mod handshake;
mod moving;
mod recovery;
mod script;
mod time_wait;
mod windows;
