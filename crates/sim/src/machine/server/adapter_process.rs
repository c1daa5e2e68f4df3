//! The adapter's process: a TCP stack, and sockets by descriptors.

mod engine;
mod one_by_one;

use super::super::capture::{LOST_ON_WIRE, Taps};
use super::super::port::Port;
use super::carrier::Carrier;
use super::data::Packet;
use super::link::SimulatedLink;
use super::worker::Worker;
use crate::config::{Experiment, Invalid, OffloadAdapterConfig, Piece};
use baton_bus::BatchingRule;
use baton_bus::link::LinkError;
use baton_nic::adapter::{Dispatch, SessionStats};
use baton_nic::{Drop, Drops, Governor, QueueLengths, Schedule};
use baton_timeline::Way;
use baton_wire::Time;
use engine::{Engine, Outgoing};
use std::collections::VecDeque;

/// Received frames that are handled in one piece of work that takes all, at most.
const MOST_FRAMES: usize = 64;

/// A frame, with the time of its arrival.
type Received = (Time, Packet);

/// The adapter with all that is its own.
#[derive(Debug)]
pub(super) struct AdapterProcess {
    number: u8,
    engine: Engine,
    worker: Worker,
    waiting: Waiting,
    /// When it is to be looked at; [`Time::NEVER`] if nobody knows.
    due: Time,
}

/// What waits for it, and how much of that it does in one piece of work.
#[derive(Debug)]
enum Waiting {
    /// All; what is not here waits on the link.
    All(VecDeque<Received>),
    /// One thing at a time, as the scheduler says.
    One(Box<Dispatch<Received>>),
}

impl AdapterProcess {
    /// The adapter of this number, with one application.
    pub(super) fn new(
        experiment: &Experiment,
        number: u8,
        config: &OffloadAdapterConfig,
        governor: Option<Box<dyn Governor>>,
        schedule: Option<Box<dyn Schedule>>,
    ) -> Result<Self, Invalid> {
        let engine = Engine::new(experiment, number, &config.interface, governor)?;
        let waiting = match config.piece {
            Piece::All => Waiting::All(VecDeque::new()),
            Piece::One => {
                let mut dispatch = Dispatch::new(&experiment.nic.firmware);
                dispatch.attach(engine.session);
                if let Some(schedule) = schedule {
                    dispatch.set_schedule(schedule);
                }
                Waiting::One(Box::new(dispatch))
            }
        };
        Ok(Self {
            number,
            engine,
            worker: Worker::new(config.wake_up, experiment.run.nic_seed(number) ^ 0xada9),
            waiting,
            due: Time::NEVER,
        })
    }

    /// A frame has come off the wire, the last that went past `taps`.
    pub(super) fn receive(&mut self, now: Time, packet: Packet, taps: &mut Taps) {
        let bytes = packet.frame_len() as u32;
        let may_wait = match &self.waiting {
            Waiting::All(_) => true,
            Waiting::One(dispatch) => dispatch.has_room_for_frame(),
        };
        if may_wait && !self.engine.adapter.take_packet(now, bytes) {
            // The adapter has counted it. What it may ask of the host goes with the next of those packets that have the memory.
            return taps.lost_last(now, Drop::Memory.name());
        }
        match &mut self.waiting {
            Waiting::All(received) => received.push_back((now, packet)),
            // A drop is counted with its reason.
            Waiting::One(dispatch) => {
                if let Err(reason) = dispatch.handle_frame((now, packet)) {
                    taps.lost_last(now, reason.name());
                }
            }
        }
        self.worker.wake(now);
        self.expect(now);
    }

    pub(super) fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        let session = self.engine.session;
        self.engine.adapter.set_batching(session, rule);
    }

    /// When it is to be looked at; [`Time::NEVER`] if nobody knows.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Whether it waits for something to wake it.
    pub(super) fn is_asleep(&self) -> bool {
        self.worker.is_asleep()
    }

    /// Looks forward, after something has changed.
    fn expect(&mut self, now: Time) {
        let due = self.worker.poll_timeout(now, || self.timer());
        self.due = due.unwrap_or(Time::NEVER);
    }

    fn timer(&self) -> Option<Time> {
        match &self.waiting {
            // Timers already pending are work, not a date.
            Waiting::One(dispatch) if dispatch.has_timers() => None,
            Waiting::One(_) | Waiting::All(_) => self.engine.poll_timeout(),
        }
    }

    /// Ends the piece of work that ends at `now`: what it sends goes onto the wire, past `taps`, and onto the link.
    ///
    /// # Errors
    /// The link is gone.
    #[inline]
    pub(super) fn end_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        carrier: &mut Carrier,
        port: &mut Port,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        match self.worker.ends(now) {
            true => self.leave(now, link, carrier, port, taps),
            false => Ok(()),
        }
    }

    /// What the piece of work has sent leaves, and the next is looked forward to.
    fn leave(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        carrier: &mut Carrier,
        port: &mut Port,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        let Port {
            nic, to_clients, ..
        } = port;
        for Outgoing {
            segment,
            host_since,
        } in self.engine.outgoing.drain(..)
        {
            match host_since {
                Some(since) => nic.count_host_packet_sent(now - since),
                None => nic.nic_packets_sent += 1,
            }
            taps.frame(now, Way::Out, &segment);
            if !to_clients.send(now, segment.frame_len(), segment) {
                taps.lost_last(now, LOST_ON_WIRE);
            }
        }
        for since in self.engine.passed.drain(..) {
            nic.count_host_packet_received(now - since);
        }
        link.release_adapter(now, carrier);
        self.take_requests(now, link)?;
        if self.is_wanted(link) {
            self.worker.go_on(now);
            self.due = now;
        } else {
            self.expect(now);
        }
        Ok(())
    }

    /// Takes requests that are there into the queues, if it has some; otherwise they wait on the link.
    #[inline]
    fn take_requests(&mut self, now: Time, link: &mut SimulatedLink) -> Result<(), LinkError> {
        match &mut self.waiting {
            Waiting::One(dispatch) if link.has_requests() => {
                let (adapter, session) = (&self.engine.adapter, self.engine.session);
                dispatch.take_requests(now, adapter, session, link)
            }
            Waiting::One(_) | Waiting::All(_) => Ok(()),
        }
    }

    /// Whether something is there for it.
    fn is_wanted(&self, link: &SimulatedLink) -> bool {
        self.engine.may_put(link)
            || match &self.waiting {
                Waiting::All(received) => {
                    let may_answer = || self.engine.may_answer();
                    !received.is_empty()
                        || link.has_moved_data()
                        || link.has_requests() && may_answer()
                }
                Waiting::One(dispatch) => dispatch.has_work(|_| self.engine.readiness(link)),
            }
    }

    /// Something may have happened on the link.
    ///
    /// # Errors
    /// The host broke a rule, or the link is gone.
    #[inline]
    pub(super) fn look_at(&mut self, now: Time, link: &mut SimulatedLink) -> Result<(), LinkError> {
        // If there was anything else to do, it has gone on with that.
        let has_happened = link.is_waiting_for_adapter() || self.engine.may_put(link);
        if has_happened {
            self.take_requests(now, link)?;
            if self.worker.is_asleep() && self.is_wanted(link) {
                self.worker.wake(now);
                self.expect(now);
            }
        }
        Ok(())
    }

    /// Begins a piece of work at `now`, if it is awake and has something to do; after pieces that take no time, the next.
    ///
    /// # Errors
    /// The host broke a rule, or the link is gone.
    #[inline]
    pub(super) fn begin_work(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        carrier: &mut Carrier,
        port: &mut Port,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        while self.due <= now {
            let (engine, nic) = (&mut self.engine, &mut port.nic);
            let did = match &mut self.waiting {
                Waiting::All(received) => {
                    engine.do_all(now, received, link, nic)?;
                    true
                }
                Waiting::One(dispatch) => engine.do_one(now, dispatch, link, nic, taps)?,
            };
            if did {
                engine.charge_moves(nic);
                self.due = nic.spend(now);
                if let Some(recorder) = taps.recorder() {
                    recorder.nic_works((now, self.due), self.number, &nic.meter, &self.lengths());
                }
                self.worker.work(self.due);
                self.end_work(now, link, carrier, port, taps)?;
            } else {
                self.worker.rest();
                self.expect(now);
            }
        }
        Ok(())
    }

    /// Connections that TCP has.
    pub(super) fn connections(&self) -> u32 {
        self.engine.stack.len() as u32
    }

    /// Frames that wait: for TCP, where that is known.
    pub(super) fn qlen(&self) -> u32 {
        match &self.waiting {
            Waiting::All(received) => received.len() as u32,
            Waiting::One(dispatch) => dispatch.qlen(),
        }
    }

    /// How much waits for it, in each of its queues.
    fn lengths(&self) -> QueueLengths {
        match &self.waiting {
            Waiting::All(received) => QueueLengths {
                arrivals: received.len(),
                ..QueueLengths::default()
            },
            Waiting::One(dispatch) => dispatch.queue_lengths(),
        }
    }

    /// Memory that is free for connections and packets, bytes; none where it has no limit.
    pub(super) fn free_memory(&self) -> Option<u64> {
        self.engine.adapter.free_memory()
    }

    /// Received frames that found no memory.
    pub(super) fn packets_without_memory(&self) -> u64 {
        self.engine.adapter.packets_without_memory()
    }

    /// Received frames that found a queue full; none where there are no queues.
    pub(super) fn drops(&self) -> Option<&Drops> {
        match &self.waiting {
            Waiting::All(_) => None,
            Waiting::One(dispatch) => Some(dispatch.drops()),
        }
    }

    /// Soft_Limit: the most connections that may be imported now.
    pub(super) fn soft_limit(&self) -> u32 {
        self.engine.adapter.soft_limit()
    }

    /// Its queue of responses.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.engine.adapter.queue(self.engine.session)
    }

    /// Totals of the host's sockets.
    pub(super) fn stats(&self) -> &SessionStats {
        self.engine.adapter.stats_of(self.engine.session)
    }

    /// Totals of its TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.engine.stack.stats()
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.engine.stack.check();
        self.engine.adapter.check();
        if let Waiting::One(dispatch) = &self.waiting {
            dispatch.check();
        }
    }
}
