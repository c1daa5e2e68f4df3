//! TCP segments with the endpoints of their connection.

use crate::send_buffer::Lent;
use crate::types::ConnId;
use baton_wire::{Ecn, Endpoint, Flags, Flow, Head, Header, Payload, Pieces, frame_len};
use std::net::IpAddr;

/// A segment: its endpoints, header and data.
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

    /// Reports whether the segment belongs to the connection that its receiver names `flow`.
    #[inline]
    pub(crate) fn is_of(&self, flow: &Flow) -> bool {
        flow.remote == self.src && flow.local == self.dst
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
        header_len(self.dst, &self.header)
    }

    /// Bytes of the Ethernet frame, check sequence included.
    pub fn frame_len(&self) -> usize {
        frame_len(self.header_len() + self.payload_len())
    }
}

/// A segment to send, borrowed while it is written into a frame: its data stays in the send buffer.
#[derive(Clone, Debug)]
pub struct Outgoing<'a, P> {
    /// The segment's connection; `None` if the segment belongs to no connection, or no longer.
    pub conn: Option<ConnId>,
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// TCP header.
    pub header: &'a Header,
    /// Data, in order.
    pub payload: Lent<'a, P>,
}

impl<P: Payload> Outgoing<'_, P> {
    /// The segment without its data.
    pub fn head(&self) -> Head<'_> {
        Head {
            src: self.src,
            dst: self.dst,
            ecn: self.ecn,
            header: self.header,
        }
    }

    /// Bytes of IP and TCP headers and data.
    #[inline]
    pub fn packet_len(&self) -> usize {
        header_len(self.dst, self.header) + self.payload.len()
    }

    /// Converts to an owned segment, which shares the data.
    #[inline]
    pub fn to_segment(&self) -> Segment<P> {
        Segment {
            src: self.src,
            dst: self.dst,
            ecn: self.ecn,
            header: *self.header,
            payload: self.payload.to_pieces(),
        }
    }
}

/// How long a run of segments may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Segments, at least one.
    pub segments: u32,
    /// Bytes of IP and TCP headers and data of each, if there is more than one.
    pub packet_len: usize,
}

impl RunLimit {
    /// One segment, however long it is.
    pub const ONE: Self = Self {
        segments: 1,
        packet_len: usize::MAX,
    };
}

/// Consecutive segments to send that differ only in their numbers, as segmentation offload takes them.
#[derive(Clone, Debug)]
pub struct OutgoingRun<'a, P> {
    /// The first segment, with the data of all.
    pub first: Outgoing<'a, P>,
    /// Number of segments.
    pub segments: u32,
    /// The last segment carries PSH, if there is more than one.
    pub pushes: bool,
}

impl<'a, P: Payload> OutgoingRun<'a, P> {
    /// Bytes of data of each segment.
    #[inline]
    pub fn segment_len(&self) -> usize {
        self.first.payload.len() / self.segments as usize
    }

    /// Bytes of IP and TCP headers and data of each segment.
    #[inline]
    pub fn packet_len(&self) -> usize {
        header_len(self.first.dst, self.first.header) + self.segment_len()
    }

    /// Calls `give` with each segment, in order.
    pub fn for_each(&self, mut give: impl FnMut(&Outgoing<'_, P>)) {
        let mut header = *self.first.header;
        let mut rest = self.first.payload.clone();
        let len = self.segment_len();
        for number in 1..=self.segments {
            if self.pushes && number == self.segments {
                header.flags |= Flags::PSH;
            }
            give(&Outgoing {
                header: &header,
                payload: rest.split_front(len),
                ..self.first
            });
            header.seq += len as u32;
        }
    }
}

/// Bytes of the IP and TCP headers of a segment to `dst`.
#[inline]
pub(crate) fn header_len(dst: Endpoint, header: &Header) -> usize {
    let ip = match dst.addr {
        IpAddr::V4(_) => 20,
        IpAddr::V6(_) => 40,
    };
    ip + 20 + header.options.len()
}
