//! Small pieces of work, in the order of the firmware in the handoff papers: one frame, one request, a few segments.

use super::beside::Beside;
use super::passing::{pass_packets, take_packets};
use baton_bus::link::LinkError;
use baton_inet::{Host, LookedUp};
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
    /// Whether unclaimed packets are dropped instead of answered.
    pub quiet: bool,
    /// Maximum number of further frames.
    pub room: usize,
    /// Buffer to which frames are appended.
    pub frames: &'a mut Vec<u8>,
    /// Called after each frame.
    pub end: &'a mut dyn FnMut(&mut Vec<u8>),
}

/// Checks for timers that are due, and for events and output of TCP since the last piece of work.
pub fn look(
    now: Time,
    process: &mut Process<Bytes>,
    adapter: &mut Adapter<Bytes>,
    host: &mut Host,
) {
    process.handle_events(now, adapter, host.stack_mut());
    let timers = [host.poll_timeout(), adapter.poll_timeout()];
    if timers.into_iter().flatten().any(|due| due <= now) {
        process.handle_timers();
    }
}

/// Does pieces of work in the scheduler's order until none is left or no further frame may be sent, at most as many as frames may be sent.
/// Returns whether it did anything.
///
/// # Errors
/// An application, which is returned too, has left or violated the protocol. There may be more to do.
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
            // What follows from the timers is another piece of work.
            Some(work) => did |= work != Work::Timers,
        }
    }
    Ok(did)
}

impl Below<'_> {
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

    /// Looks the frame up again: its connection may have come or gone since.
    fn take_in(&mut self, now: Time, adapter: &mut Adapter<Bytes>, frame: Bytes) {
        let passes = self.quiet || self.beside.is_some() || adapter.passes_packets();
        self.host.pass_unclaimed(passes);
        self.host.handle_frame(now, frame);
        match &mut self.beside {
            Some(beside) => beside.hold(now, self.host),
            None => pass_packets(now, self.host, adapter, self.quiet),
        };
    }

    fn take_packets(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Bytes>,
        _since: Option<Time>,
    ) -> bool {
        take_packets(now, self.host, adapter)
    }

    fn room(&self) -> usize {
        self.room
    }

    fn transmit(&mut self, now: Time, most: usize) -> usize {
        let sent = (self.host).poll_frames(now, most, self.frames, &mut *self.end);
        self.room -= sent;
        sent
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
