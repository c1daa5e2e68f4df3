//! Packets that belong to no connection of the adapter: to hosts, and from them.

use baton_inet::{Host, Unclaimed};
use baton_nic::adapter::Adapter;
use baton_wire::Time;
use bytes::Bytes;

/// Passes unclaimed packets to the hosts that want them. The stack answers the others, unless `quiet`. Returns the number of packets.
pub(super) fn pass_packets(
    now: Time,
    host: &mut Host,
    adapter: &mut Adapter<Bytes>,
    quiet: bool,
) -> u32 {
    let mut passed = 0;
    while let Some(Unclaimed { flow, packet }) = host.poll_unclaimed() {
        passed += 1;
        match adapter.host_for(flow.local) {
            Some(socket) => adapter.pass(socket, packet),
            None if quiet => {
                host.handle_packet(now, packet);
            }
            None => {
                host.handle_stray(now, packet);
            }
        }
    }
    passed
}

/// Sends the packets that hosts want to send. Returns whether there were any.
pub(super) fn take_packets(now: Time, host: &mut Host, adapter: &mut Adapter<Bytes>) -> bool {
    let mut any = false;
    while let Some(packet) = adapter.poll_packet() {
        any = true;
        let to_wire = packet.to_wire;
        let Some(packet) = packet.joined() else {
            unreachable!("bytes can be joined");
        };
        if to_wire {
            host.send_packet(packet);
        } else {
            host.handle_packet(now, packet);
        }
    }
    any
}
