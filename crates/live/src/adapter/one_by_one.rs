//! Small pieces of work, in the order of the firmware in the handoff papers: one frame, one request, a few segments.

use super::passing::{pass_packets, take_packets};
use baton_bus::link::{AdapterLink, LinkError};
use baton_inet::{Host, LookedUp};
use baton_nic::adapter::{Adapter, Dispatch, Piece, Ready, SessionId};
use baton_nic::{Config, Drops, QueueLengths, Schedule};
use baton_wire::Time;
use bytes::Bytes;

/// Access to the links of the applications that an adapter serves.
pub trait Links {
    /// Type of the links.
    type Link: AdapterLink<Data = Bytes>;

    /// Returns the link of an application for immediate use.
    fn link(&mut self, session: SessionId) -> Option<&mut Self::Link>;
}

/// What [`OneByOne::work`] works on.
pub struct Parts<'a, L> {
    /// The host, with TCP and the interface.
    pub host: &'a mut Host,
    /// The adapter, with the sockets.
    pub adapter: &'a mut Adapter<Bytes>,
    /// Links of the applications.
    pub links: &'a mut L,
    /// Whether unclaimed packets are dropped instead of answered.
    pub quiet: bool,
}

/// The live version of the firmware's queues and scheduler ([`Dispatch`]) around an adapter and its host, in real time.
///
/// Order of calls: [`OneByOne::receive`] when frames have arrived, [`OneByOne::look`], [`OneByOne::look_at`] for each link on which
/// something may have happened, then [`OneByOne::work`], again and again.
#[derive(Debug)]
pub struct OneByOne {
    dispatch: Dispatch<Bytes>,
    attached: Vec<SessionId>,
    /// Maximum number of segments that TCP sends in one piece of work.
    burst: usize,
    /// Cnum when load control last ran.
    imported: u32,
    /// Number of exported connections when the waiting frames were last sorted.
    exported: u64,
    /// Applications for which no transfer had finished at the last check. Their links must be looked at before the next check.
    moving: Vec<SessionId>,
}

impl OneByOne {
    /// Creates an instance without applications. Of `config` it uses the scheduler, the queue lengths and the segment burst.
    pub fn new(config: &Config) -> Self {
        Self {
            dispatch: Dispatch::new(config),
            attached: Vec::new(),
            burst: config.transmit_burst_segments.max(1) as usize,
            imported: 0,
            exported: 0,
            moving: Vec::new(),
        }
    }

    // --- getters ---

    /// Returns the counts of dropped frames.
    pub fn drops(&self) -> &Drops {
        self.dispatch.drops()
    }

    /// Returns the lengths of the queues.
    pub fn queue_lengths(&self) -> QueueLengths {
        self.dispatch.queue_lengths()
    }

    /// Asserts the invariants.
    pub fn check(&self) {
        self.dispatch.check();
    }

    // --- mutators ---

    /// Sets the caller's own scheduler. Call it before there is any work.
    pub fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        self.dispatch.set_schedule(schedule);
    }

    /// Starts serving another application of the adapter.
    pub fn attach(&mut self, session: SessionId) {
        self.dispatch.attach(session);
        self.attached.push(session);
    }

    /// Stops serving an application that has left.
    pub fn detach(&mut self, session: SessionId) {
        self.dispatch.detach(session);
        self.attached.retain(|&attached| attached != session);
        self.has_moved(session);
    }

    // --- events in ---

    /// Queues frames that have arrived. Drops and counts frames for which there is no space.
    pub fn receive(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Bytes>,
        frames: impl IntoIterator<Item = Bytes>,
    ) {
        for frame in frames {
            let bytes = frame.len() as u32;
            let may_wait = self.dispatch.has_room_for_frame();
            if !may_wait || adapter.take_packet(now, bytes) {
                // On an error the frame was dropped, and `dispatch` has counted it by reason.
                self.dispatch.handle_frame(frame).ok();
            }
        }
    }

    /// Checks for timers that are due, and for events and output of TCP since the last piece of work.
    pub fn look(&mut self, now: Time, host: &mut Host, adapter: &mut Adapter<Bytes>) {
        handle_events(now, host, adapter);
        let timers = [host.poll_timeout(), adapter.poll_timeout()];
        if timers.into_iter().flatten().any(|due| due <= now) {
            self.dispatch.handle_timers();
        }
        if host.stack().may_transmit() {
            self.dispatch.handle_output();
        }
    }

    /// Takes the requests from an application's link, and puts responses there that waited for space. Returns whether it did the latter.
    ///
    /// # Errors
    /// The application has left or has broken the rules.
    pub fn look_at<L: AdapterLink<Data = Bytes>>(
        &mut self,
        now: Time,
        adapter: &mut Adapter<Bytes>,
        session: SessionId,
        link: &mut L,
    ) -> Result<bool, LinkError> {
        self.has_moved(session);
        self.dispatch.take_requests(now, adapter, session, link)?;
        self.dispatch.end_piece(now, adapter, session, link)
    }

    /// Notes that transfers of an application may have finished.
    fn has_moved(&mut self, session: SessionId) {
        self.moving.retain(|&moving| moving != session);
    }

    // --- work ---

    /// Does pieces of work in the scheduler's order until none is left, `most` are done, or they have produced `most` frames. Appends the
    /// frames to `frames` and calls `end` after each. Returns whether it did anything.
    ///
    /// # Errors
    /// An application, which is returned too, has left or broken the rules. There may be more to do.
    pub fn work<L: Links>(
        &mut self,
        now: Time,
        parts: &mut Parts<'_, L>,
        most: usize,
        frames: &mut Vec<u8>,
        end: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<bool, (SessionId, LinkError)> {
        let mut sent = parts.host.poll_packets(now, most, frames, &mut *end);
        let mut did = sent > 0;
        for _ in 0..most {
            let room = most - sent;
            let Some(piece) = (room > 0).then(|| self.next_piece(parts)).flatten() else {
                break;
            };
            if piece == Piece::Transmit {
                let burst = self.burst.min(room);
                let count = parts.host.poll_frames(now, burst, frames, &mut *end);
                if count < burst {
                    self.dispatch.handle_quiet();
                }
                sent += count;
                did |= count > 0;
            } else {
                did |= self.do_piece(now, piece, parts)?;
            }
            self.end_piece(now, parts)?;
            sent += (parts.host).poll_packets(now, most - sent, frames, &mut *end);
        }
        Ok(did)
    }

    fn next_piece<L>(&mut self, parts: &Parts<'_, L>) -> Option<Piece<Bytes>> {
        let (adapter, moving) = (&*parts.adapter, &self.moving);
        let ready = |session| Ready {
            requests: adapter.room_for_requests(session),
            is_over: !moving.contains(&session),
        };
        let may_send = parts.host.stack().may_transmit();
        self.dispatch.next_piece(ready, may_send)
    }

    /// Does a piece of work other than transmitting. Returns false if there turned out to be nothing to do.
    fn do_piece<L: Links>(
        &mut self,
        now: Time,
        piece: Piece<Bytes>,
        parts: &mut Parts<'_, L>,
    ) -> Result<bool, (SessionId, LinkError)> {
        let session = self.dispatch.session();
        let failed = |error| (session, error);
        match piece {
            Piece::Lookup(frame) => {
                let looked_up = parts.host.look_up(now, &frame);
                if looked_up != LookedUp::Other {
                    self.sort(now, frame, looked_up, parts);
                    return Ok(true);
                }
                take_in(now, frame, parts);
            }
            // The frame is looked up again: its connection may have come or gone since.
            Piece::HostReceive(frame) | Piece::Receive(frame) => take_in(now, frame, parts),
            Piece::HostRequest | Piece::CacheCommand | Piece::Request(_) => {
                let stack = parts.host.stack_mut();
                let carried_out = self.dispatch.carry_out(now, parts.adapter, stack);
                carried_out.map_err(failed)?;
            }
            Piece::Transfer => {
                if let Some(link) = parts.links.link(session) {
                    let (adapter, stack) = (&mut *parts.adapter, parts.host.stack_mut());
                    let finished = self.dispatch.finish_transfer(now, adapter, stack, link);
                    if finished.map_err(failed)?.is_none() {
                        self.moving.push(session);
                        return Ok(false);
                    }
                }
                take_packets(now, parts.host, parts.adapter);
            }
            Piece::Timers => {
                parts.host.handle_timeouts(now);
                (parts.adapter).handle_timeouts(now, parts.host.stack_mut());
                // What follows from the timers is another piece of work.
                self.dispatch.handle_output();
                return Ok(false);
            }
            Piece::Transmit => return Ok(false),
        }
        self.dispatch.handle_output();
        Ok(true)
    }

    /// If a connection has been exported, moves its waiting frames to the queue for its host.
    fn sort_again<L>(&mut self, now: Time, parts: &mut Parts<'_, L>) {
        let exported = parts.adapter.exported();
        if std::mem::replace(&mut self.exported, exported) != exported {
            let (host, adapter) = (&mut *parts.host, &*parts.adapter);
            self.dispatch
                .sort_again(|frame| is_of_host(adapter, host.look_up(now, frame)));
        }
    }

    /// Sorts a frame by the result of its lookup. Load control runs when a packet has arrived (handoff-policies 3.2).
    fn sort<L>(&mut self, now: Time, frame: Bytes, looked_up: LookedUp, parts: &mut Parts<'_, L>) {
        let adapter = &mut *parts.adapter;
        let of_host = is_of_host(adapter, looked_up);
        let bytes = frame.len() as u32;
        if self.dispatch.sort(frame, !of_host).is_err() {
            adapter.free_packet(bytes);
            adapter.settle_memory(now, parts.host.stack_mut());
        }
        if adapter.passes_packets() {
            adapter.control_load(now, self.dispatch.qlen(), None);
        }
    }

    /// Passes TCP's events to the adapter, and its responses to the applications. Load control also runs after an import or export.
    fn end_piece<L: Links>(
        &mut self,
        now: Time,
        parts: &mut Parts<'_, L>,
    ) -> Result<(), (SessionId, LinkError)> {
        let adapter = &mut *parts.adapter;
        handle_events(now, parts.host, adapter);
        self.sort_again(now, parts);
        let adapter = &mut *parts.adapter;
        let imported = adapter.imported();
        if std::mem::replace(&mut self.imported, imported) != imported {
            adapter.control_load(now, self.dispatch.qlen(), None);
        }
        for index in 0..self.attached.len() {
            let session = self.attached[index];
            if adapter.has_work(session)
                && let Some(link) = parts.links.link(session)
            {
                self.has_moved(session);
                let ended = self.dispatch.end_piece(now, adapter, session, link);
                ended.map_err(|error| (session, error))?;
            }
        }
        Ok(())
    }
}

/// Returns whether a frame is for a host that wants unclaimed packets.
fn is_of_host(adapter: &Adapter<Bytes>, looked_up: LookedUp) -> bool {
    matches!(looked_up, LookedUp::Unclaimed(flow) if adapter.host_for(flow.local).is_some())
}

/// Passes TCP's events to the adapter.
fn handle_events(now: Time, host: &mut Host, adapter: &mut Adapter<Bytes>) {
    let stack = host.stack_mut();
    while let Some((conn, event)) = stack.poll_event() {
        adapter.handle_event(now, stack, conn, &event);
    }
}

/// Passes a frame to TCP, or to its host if no connection here claims it.
fn take_in<L>(now: Time, frame: Bytes, parts: &mut Parts<'_, L>) {
    let (adapter, host) = (&mut *parts.adapter, &mut *parts.host);
    adapter.free_packet(frame.len() as u32);
    adapter.settle_memory(now, host.stack_mut());
    host.pass_unclaimed(parts.quiet || adapter.passes_packets());
    host.handle_frame(now, frame);
    pass_packets(now, host, adapter, parts.quiet);
}

#[cfg(test)]
mod tests;
