//! What is below an adapter's sockets: a host with TCP and an interface, and packets that belong to no connection of the adapter.

use super::beside::Beside;
use super::siblings::Siblings;
use baton_bus::link::LinkError;
use baton_inet::{Host, LookedUp, Passing, Unclaimed};
use baton_nic::adapter::{Adapter, SessionId};
use baton_nic::{Links, Lower, Owner, Process, Work};
use baton_tcp::Stack;
use baton_wire::Time;
use bytes::Bytes;

/// The host below an adapter's sockets, and the frames that it sends.
pub struct Below<'a> {
    /// The host, with TCP and the interface.
    pub host: &'a mut Host,
    /// Present if a kernel owns the interface.
    pub beside: Option<&'a mut Beside>,
    /// Present if the adapter has several engines.
    pub siblings: Option<&'a mut Siblings>,
    /// Number of engines that the packets have visited before this one.
    pub visits: u32,
    /// Whether unclaimed packets are dropped instead of answered.
    pub quiet: bool,
    /// Number of segments that the host has received since the process last looked, if all work is done at once.
    pub arrived: u32,
    /// Number of packets so far that no connection on the adapter claimed.
    pub unclaimed: u32,
    /// Number of frames that may still be sent.
    pub room: usize,
    /// Buffer to which frames are appended.
    pub frames: &'a mut Vec<u8>,
    /// Called after each frame.
    pub end: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// Does at most `below.room` pieces of work, in the scheduler's order, until none is left or no further frame may be sent. Returns whether it
/// did anything.
///
/// # Errors
/// An application has left or violated the protocol. Its session is returned too, and there may be more to do.
pub fn work(
    now: Time,
    process: &mut Process<Bytes>,
    adapter: &mut Adapter<Bytes>,
    below: &mut Below<'_>,
    links: &mut impl Links<Bytes>,
) -> Result<bool, (SessionId, LinkError)> {
    let most = below.room;
    let mut did = below.send_packets(now) > 0;
    for _ in 0..most {
        match process.do_piece(now, adapter, below, links)? {
            None => break,
            // Running timers does not count: any work that they cause is a piece of its own.
            Some(work) => did |= work != Work::Timers,
        }
    }
    Ok(did)
}

impl Below<'_> {
    /// Makes the host keep the packets that no connection claims, unless its stack may answer them immediately.
    fn keep_unclaimed(&mut self, adapter: &Adapter<Bytes>) {
        let keeps = self.quiet || self.beside.is_some() || adapter.passes_packets();
        self.host.pass_unclaimed(match (&self.siblings, keeps) {
            (Some(_), _) => Passing::Listeners,
            (None, true) => Passing::Unclaimed,
            (None, false) => Passing::Nothing,
        });
    }

    /// Passes unclaimed packets to the hosts that want them or to the next engine, and counts them. The stack answers the others, unless
    /// `quiet`.
    pub(super) fn pass_unclaimed(&mut self, now: Time, adapter: &mut Adapter<Bytes>) {
        if let Some(beside) = &mut self.beside {
            self.unclaimed += beside.hold(now, self.host);
            return;
        }
        while let Some(Unclaimed { flow, kind, packet }) = self.host.poll_unclaimed() {
            self.unclaimed += 1;
            let is_accepting = || adapter.is_accepting(self.host.stack(), flow.local);
            match (adapter.host_for(flow.local), &mut self.siblings) {
                (Some(socket), _) => adapter.pass(socket, packet),
                (None, Some(siblings))
                    if siblings.must_forward(self.visits, kind, is_accepting()) =>
                {
                    siblings.forward(packet, self.visits);
                }
                _ if self.quiet => {
                    self.host.handle_packet(now, packet);
                }
                _ => {
                    self.host.handle_stray(now, packet);
                }
            }
        }
    }

    /// Sends the packets of the IP layer and of hosts. Returns how many there were.
    fn send_packets(&mut self, now: Time) -> usize {
        let sent = (self.host).poll_packets(now, self.room, self.frames, &mut *self.end);
        self.room -= sent;
        sent
    }
}

impl Lower for Below<'_> {
    type Data = Bytes;
    type Packet = Bytes;

    fn stack(&mut self) -> &mut Stack<Bytes> {
        self.host.stack_mut()
    }

    fn packet_bytes(frame: &Bytes) -> u32 {
        frame.len() as u32
    }

    fn look_up(&mut self, now: Time, adapter: &Adapter<Bytes>, frame: &Bytes) -> Owner {
        match self.host.look_up(now, frame) {
            LookedUp::Other => Owner::Nobody,
            LookedUp::Unclaimed(flow) if adapter.host_for(flow.local).is_some() => Owner::Host,
            _ => Owner::Adapter,
        }
    }

    /// The host has received the frames already. Segments received in this iteration of the loop waited in the interface during the previous
    /// one, so those of the adapter's connections count as Qlen.
    fn arrived(&mut self, now: Time, adapter: &mut Adapter<Bytes>, waiting: u32) -> Option<u32> {
        self.keep_unclaimed(adapter);
        self.pass_unclaimed(now, adapter);
        (self.arrived > 0).then(|| waiting + self.arrived.saturating_sub(self.unclaimed))
    }

    /// Looks the frame up again, because its connection may have arrived or left since the first lookup.
    fn take_in(&mut self, now: Time, adapter: &mut Adapter<Bytes>, frame: Bytes) {
        self.keep_unclaimed(adapter);
        self.host.handle_frame(now, frame);
        self.pass_unclaimed(now, adapter);
    }

    fn take_packets(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Bytes>,
        _since: Option<Time>,
    ) -> bool {
        let mut any = false;
        while let Some(packet) = adapter.poll_packet() {
            any = true;
            let to_wire = packet.to_wire;
            let Some(packet) = packet.joined() else {
                unreachable!("bytes can be joined");
            };
            if to_wire {
                self.host.send_packet(packet);
            } else {
                self.host.handle_packet(now, packet);
            }
        }
        any
    }

    fn room(&self) -> usize {
        self.room
    }

    fn transmit(&mut self, now: Time, most: usize) -> usize {
        let sent = (self.host).poll_frames(now, most, self.frames, &mut *self.end);
        self.room -= sent;
        sent
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.host.poll_timeout()
    }

    fn handle_timeouts(&mut self, now: Time) -> u32 {
        self.host.handle_timeouts(now);
        0
    }

    fn end_piece(&mut self, now: Time) {
        self.send_packets(now);
    }
}

#[cfg(test)]
mod tests;
