//! Delivers the end of a peer's stream again to a kernel that gets a connection back.

use baton_tcp::{Essentials, State};
use baton_wire::SeqNr;
use bytes::Bytes;
use etherparse::PacketBuilder;
use std::net::IpAddr;

const HOPS: u8 = 64;
const LARGEST_WINDOW: u16 = u16::MAX;

/// Returns a state that the kernel can restore, and the packet that takes the connection from there to its real state: a received FIN
/// cannot be restored, but the kernel can receive it once more.
pub(super) fn without_fin(essentials: Essentials<Bytes>) -> (Essentials<Bytes>, Option<Vec<u8>>) {
    if essentials.state != State::CloseWait {
        return (essentials, None);
    }
    let fin = essentials.receive_next - 1;
    let packet = packet(&essentials, fin);
    let before = Essentials {
        state: State::Established,
        receive_next: fin,
        ..essentials
    };
    (before, packet)
}

/// Builds a FIN of the peer. It acknowledges nothing new and leaves the peer's window as it was.
fn packet(essentials: &Essentials<Bytes>, seq: SeqNr) -> Option<Vec<u8>> {
    let flow = &essentials.flow;
    let ip = match (flow.remote.addr, flow.local.addr) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), HOPS),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), HOPS),
        _ => return None,
    };
    let shift = essentials.window_scaling.map_or(0, |scaling| scaling.send);
    let window = u16::try_from(essentials.send_window >> shift).unwrap_or(LARGEST_WINDOW);
    let tcp = ip
        .tcp(flow.remote.port, flow.local.port, seq.0, window)
        .ack(essentials.send_una.0)
        .fin();
    let mut bytes = Vec::with_capacity(tcp.size(0));
    tcp.write(&mut bytes, &[]).ok()?;
    Some(bytes)
}
