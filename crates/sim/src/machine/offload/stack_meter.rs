//! What the host's own stack costs its processor, packet by packet: driver, IP, TCP.

use super::data::LinkData;
use baton_host::Meter;
use baton_host::footprint;
use baton_tcp::{ConnId, Event, Segment};

/// Buffers that take turns: as many as a driver keeps posted.
const BUFFERS: u32 = 512;
/// Buckets of the table of connections.
const BUCKETS: u32 = 1024;

/// Charges a stack's packets. The buffers of packets take turns, as those of a driver's ring do.
#[derive(Debug, Default)]
pub(super) struct StackMeter {
    received: u32,
    sent: u32,
}

impl StackMeter {
    /// A packet is taken off the ring, and its connection looked up.
    pub(super) fn packet_received(&mut self, segment: &Segment<LinkData>, m: &mut impl Meter) {
        let slot = self.received % BUFFERS;
        self.received = self.received.wrapping_add(1);
        let (buffer, fresh) = ((slot, slot), (slot + BUFFERS / 2) % BUFFERS);
        footprint::driver_receive(m, slot, buffer, fresh, segment.frame_len() as u32);
        footprint::ip_input(m, buffer);
        footprint::tcp_lookup(m, slot, bucket(segment));
    }

    /// TCP has taken it in.
    pub(super) fn segment_received(&self, conn: Option<ConnId>, is_syn: bool, m: &mut impl Meter) {
        match conn {
            Some(conn) if is_syn => footprint::tcp_open(m, conn.0, conn.0 % BUCKETS),
            conn => footprint::tcp_input(m, conn.map(|conn| conn.0)),
        }
    }

    /// TCP has made a segment, and the driver sends it.
    pub(super) fn segment_sent(
        &mut self,
        conn: Option<ConnId>,
        segment: &Segment<LinkData>,
        m: &mut impl Meter,
    ) {
        let conn = conn.map(|conn| conn.0);
        let first = BUFFERS + self.sent % BUFFERS;
        self.sent = self.sent.wrapping_add(1);
        let mbufs: [u32; 3] = std::array::from_fn(|piece| first + BUFFERS * piece as u32);
        let mbufs = &mbufs[..(1 + segment.payload.len()).min(3)];
        footprint::tcp_output(m, conn, mbufs);
        footprint::ip_output(m, conn, first);
        let slots = (0..mbufs.len() as u32).map(|piece| (self.sent + piece) % BUFFERS);
        footprint::driver_transmit(m, slots, first);
    }

    /// Something has happened to a connection.
    pub(super) fn event(&self, conn: ConnId, event: &Event, m: &mut impl Meter) {
        match event {
            Event::Closed(_) => footprint::tcp_close(m, conn.0, conn.0 % BUCKETS),
            Event::Acknowledged(_) => footprint::send_drop(m, conn.0),
            _ => {}
        }
    }
}

fn bucket(segment: &Segment<LinkData>) -> u32 {
    u32::from(segment.src.port ^ segment.dst.port) % BUCKETS
}
