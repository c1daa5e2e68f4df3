//! The adapter's process: a TCP stack, and sockets controlled by descriptors.

mod engine;

use super::super::capture::Taps;
use super::super::port::Port;
use super::carrier::Carrier;
use super::data::{self, Packet};
use super::hardware::Hardware;
use super::link::SimulatedLink;
use super::worker::Worker;
use crate::config::{Experiment, Invalid, OffloadAdapterConfig, Piece};
use baton_bus::BatchingRule;
use baton_bus::link::LinkError;
use baton_nic::adapter::SessionStats;
use baton_nic::{Drop, Drops, Governor, Process, Schedule};
use baton_tcp::Segment;
use baton_wire::{Symbolic, Time};
use engine::{Engine, Outgoing};

/// A frame with its arrival time.
type Received = (Time, Packet);

/// An adapter with its own state.
#[derive(Debug)]
pub(super) struct AdapterProcess {
    number: u8,
    engine: Engine,
    worker: Worker,
    process: Process<Received>,
    /// Time of the next call, or [`Time::NEVER`] if it is unknown.
    due: Time,
    /// What is between the wires and the process, if it takes time or has limits.
    pub(super) hardware: Option<Box<Hardware>>,
}

impl AdapterProcess {
    /// Creates the adapter with this number, with one application.
    pub(super) fn new(
        experiment: &Experiment,
        number: u8,
        config: &OffloadAdapterConfig,
        governor: Option<Box<dyn Governor>>,
        schedule: Option<Box<dyn Schedule>>,
    ) -> Result<Self, Invalid> {
        let engine = Engine::new(experiment, number, &config.interface, governor)?;
        let mut process = match config.piece {
            Piece::All => Process::all_at_once(),
            Piece::One => Process::new(&experiment.nic.firmware),
        };
        process.attach(engine.session);
        if let Some(schedule) = schedule.filter(|_| config.piece == Piece::One) {
            process.set_schedule(schedule);
        }
        Ok(Self {
            number,
            engine,
            worker: Worker::new(config.wake_up, experiment.run.nic_seed(number) ^ 0xada9),
            process,
            due: Time::NEVER,
            hardware: (experiment.nic.hardware.as_deref())
                .map(|config| Box::new(Hardware::new(config))),
        })
    }

    /// Handles a frame from the wire.
    #[inline]
    pub(super) fn handle_frame(
        &mut self,
        now: Time,
        segment: Segment<Symbolic>,
        port: &mut Port,
        taps: &mut Taps,
    ) {
        match &mut self.hardware {
            None => self.receive(now, (now, data::from_wire(&segment)), taps),
            Some(hardware) => hardware.receive(now, segment, &mut port.to_clients, taps),
        }
    }

    /// Handles the events of the hardware. Returns whether it interrupts the host.
    #[cold]
    pub(super) fn run_hardware(&mut self, now: Time, port: &mut Port, taps: &mut Taps) -> bool {
        let Some(mut hardware) = self.hardware.take() else {
            return false;
        };
        hardware.handle_timeout(now, &mut port.to_clients, taps);
        while let Some((since, segment)) = hardware.poll_received() {
            self.receive(now, (since, data::from_wire(&segment)), taps);
        }
        hardware.interrupt.handle_timer(now);
        let interrupts = hardware.interrupt.poll_message();
        self.hardware = Some(hardware);
        // The process may have waited until the hardware could take more frames to send.
        if self.due == Time::NEVER && !self.is_full() {
            self.expect(now);
        }
        interrupts
    }

    /// Returns whether the hardware can take no more frames to send now.
    #[inline]
    fn is_full(&self) -> bool {
        self.hardware
            .as_ref()
            .is_some_and(|hardware| hardware.is_full())
    }

    /// Handles a frame for the process that came from the wire at this time.
    fn receive(&mut self, now: Time, (since, packet): Received, taps: &mut Taps) {
        let (bytes, client) = (packet.frame_len() as u32, packet.src);
        let adapter = &mut self.engine.adapter;
        // A dropped frame is counted by reason. If the adapter asks the host for relief, the request is sent when the next packet gets
        // memory.
        let received = (self.process).receive(now, adapter, (since, packet), bytes);
        if let Err(reason) = received {
            taps.lost(now, client, reason.name());
            if reason == Drop::Memory {
                return;
            }
        }
        self.worker.wake(now);
        self.expect(now);
    }

    pub(super) fn set_batching(&mut self, rule: Box<dyn BatchingRule>) {
        let session = self.engine.session;
        self.engine.adapter.set_batching(session, rule);
    }

    /// Returns the time of the next call, or [`Time::NEVER`] if it is unknown.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Returns whether the process sleeps until an event wakes it up.
    pub(super) fn is_asleep(&self) -> bool {
        self.worker.is_asleep()
    }

    /// Recomputes the time of the next call after a change of state.
    fn expect(&mut self, now: Time) {
        let due = self.worker.poll_timeout(now, || self.timer());
        self.due = due.unwrap_or(Time::NEVER);
    }

    fn timer(&self) -> Option<Time> {
        // Timers that are already queued are pending work, whatever their times.
        match self.process.has_timers() {
            true => None,
            false => self.engine.poll_timeout(),
        }
    }

    /// Ends the piece of work that ends at `now`: its output goes onto the wire, past `taps`, and onto the link.
    ///
    /// # Errors
    /// The link is closed.
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

    /// Sends the output of the piece of work, and computes the time of the next call.
    fn leave(
        &mut self,
        now: Time,
        link: &mut SimulatedLink,
        carrier: &mut Carrier,
        port: &mut Port,
        taps: &mut Taps,
    ) -> Result<(), LinkError> {
        for Outgoing {
            segment,
            host_since,
        } in self.engine.tcp.outgoing.drain(..)
        {
            match host_since {
                Some(since) => port.nic.count_host_packet_sent(now - since),
                None => port.nic.nic_packets_sent += 1,
            }
            match &mut self.hardware {
                None => port.send(now, segment, taps),
                Some(hardware) => hardware.send(now, segment, &mut port.to_clients, taps),
            }
        }
        for since in self.engine.tcp.passed.drain(..) {
            port.nic.count_host_packet_received(now - since);
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

    /// Moves arrived requests to the queues, if the process has queues; otherwise they wait on the link.
    #[inline]
    fn take_requests(&mut self, now: Time, link: &mut SimulatedLink) -> Result<(), LinkError> {
        let (adapter, session) = (&self.engine.adapter, self.engine.session);
        match link.has_requests() {
            true => (self.process).take_requests(now, adapter, session, link),
            false => Ok(()),
        }
    }

    /// Reports whether there is work for the process.
    fn is_wanted(&self, link: &mut SimulatedLink) -> bool {
        self.engine.may_put(link) || self.engine.has_work(&self.process, link)
    }

    /// Checks for events on the link.
    ///
    /// # Errors
    /// The host broke a rule, or the link is closed.
    #[inline]
    pub(super) fn look_at(&mut self, now: Time, link: &mut SimulatedLink) -> Result<(), LinkError> {
        // In all other cases the process has already continued with its work.
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

    /// Begins a piece of work at `now`, if the process is awake and has work; after pieces that take no time, begins the next piece as
    /// well.
    ///
    /// # Errors
    /// The host broke a rule, or the link is closed.
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
            if self.is_full() {
                self.due = Time::NEVER;
                break;
            }
            let (engine, nic) = (&mut self.engine, &mut port.nic);
            if engine.do_piece(now, &mut self.process, link, nic, taps)? {
                engine.charge_moves(nic);
                self.due = nic.spend(now);
                if let Some(recorder) = taps.recorder() {
                    recorder.nic_works(
                        (now, self.due),
                        self.number,
                        &nic.meter,
                        &self.process.queue_lengths(),
                    );
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

    /// Returns the number of connections in the adapter's TCP.
    pub(super) fn connections(&self) -> u32 {
        self.engine.tcp.stack.len() as u32
    }

    /// Returns the number of waiting frames: only frames for TCP, if they are known.
    pub(super) fn qlen(&self) -> u32 {
        self.process.qlen()
    }

    /// Returns the free memory for connections and packets, bytes, or `None` if it has no limit.
    pub(super) fn free_memory(&self) -> Option<u64> {
        self.engine.adapter.free_memory()
    }

    /// Returns the number of received frames dropped because memory was exhausted.
    pub(super) fn packets_without_memory(&self) -> u64 {
        self.engine.adapter.packets_without_memory()
    }

    /// Returns the received frames dropped because a queue was full, or `None` if there are no queues.
    pub(super) fn drops(&self) -> Option<&Drops> {
        (!self.process.does_all()).then(|| self.process.drops())
    }

    /// Returns Soft_Limit: the maximum number of connections that may be imported now.
    pub(super) fn soft_limit(&self) -> u32 {
        self.engine.adapter.soft_limit()
    }

    /// Returns the queue of responses.
    pub(super) fn queue(&self) -> &baton_bus::DescriptorQueue {
        self.engine.adapter.queue(self.engine.session)
    }

    /// Returns the counters of the host's sockets.
    pub(super) fn stats(&self) -> &SessionStats {
        self.engine.adapter.stats_of(self.engine.session)
    }

    /// Returns the counters of the adapter's TCP.
    pub(super) fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.engine.tcp.stack.stats()
    }

    /// Asserts all invariants.
    pub(super) fn check(&self) {
        self.engine.tcp.stack.check();
        self.engine.adapter.check();
        self.process.check();
    }
}
