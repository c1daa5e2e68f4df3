//! Lookup of a frame's owner before the frame is processed (handoff-policies 2).

use super::Host;
use crate::Medium;
use baton_wire::{Ecn, Endpoint, Flow, Time, decode_tcp};
use etherparse::{EtherType, Ethernet2HeaderSlice, IpNumber, LaxIpSlice};

/// Result of a lookup by a frame's headers alone: nothing is verified, counted or answered before the frame is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookedUp {
    /// A segment that belongs to the stack.
    Own,
    /// A segment of this connection, which does not belong to the stack.
    Unclaimed(Flow),
    /// Not a segment, or a malformed frame.
    Other,
}

impl Host {
    /// Looks up the owner of a frame.
    pub fn look_up(&mut self, now: Time, frame: &[u8]) -> LookedUp {
        if self.read_headers(frame).is_none() {
            return LookedUp::Other;
        }
        match self.owns_arrived(now) {
            true => LookedUp::Own,
            false => LookedUp::Unclaimed(self.arrived.flow_at_receiver()),
        }
    }

    /// Reads the headers of a segment. Returns `None` if the frame holds none.
    fn read_headers(&mut self, frame: &[u8]) -> Option<()> {
        let packet = match self.interface.config().medium {
            Medium::Ip => frame,
            Medium::Ethernet => {
                let ethernet = Ethernet2HeaderSlice::from_slice(frame).ok()?;
                let is_ip = matches!(ethernet.ether_type(), EtherType::IPV4 | EtherType::IPV6);
                is_ip.then(|| &frame[ethernet.slice().len()..])?
            }
        };
        let (ip, _) = LaxIpSlice::from_slice(packet).ok()?;
        let carried = ip.payload();
        if carried.ip_number != IpNumber::TCP || carried.fragmented {
            return None;
        }
        let segment = &mut self.arrived;
        let tcp = decode_tcp(None, carried.payload, &mut segment.header).ok()?;
        segment.src = Endpoint::new(ip.source_addr(), tcp.src_port);
        segment.dst = Endpoint::new(ip.destination_addr(), tcp.dst_port);
        segment.ecn = Ecn::NotCapable;
        Some(())
    }
}
