//! A TCP segment between two named ends.

use crate::payload::{Payload, Pieces};
use baton_wire::{Ecn, Endpoint, Flags, Flow, Header, frame_len};
use std::net::IpAddr;

/// One segment: what a frame carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<P> {
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP header.
    pub header: Header,
    /// Data, in order.
    pub payload: Pieces<P>,
}

impl<P: Payload> Segment<P> {
    /// The connection as the receiver of this segment names it.
    pub fn flow_at_receiver(&self) -> Flow {
        Flow {
            local: self.dst,
            remote: self.src,
        }
    }

    /// Bytes of data.
    pub fn payload_len(&self) -> usize {
        self.payload.iter().map(Payload::len).sum()
    }

    /// Sequence space taken: data, SYN and FIN (RFC 9293 3.3).
    pub fn sequence_len(&self) -> u32 {
        let flags = self.header.flags;
        self.payload_len() as u32
            + u32::from(flags.contains(Flags::SYN))
            + u32::from(flags.contains(Flags::FIN))
    }

    /// Bytes of IP and TCP headers.
    pub fn header_len(&self) -> usize {
        let ip = match self.dst.addr {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        };
        ip + 20 + self.header.options.len()
    }

    /// Bytes of the Ethernet frame, check sequence included.
    pub fn frame_len(&self) -> usize {
        frame_len(self.header_len() + self.payload_len())
    }
}
