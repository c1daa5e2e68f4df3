//! The firmware of an adapter for handoff, which looks up each frame of a NIC: its cost for packets of connections on the host.

use super::event::{Context, Event, NicId};
use super::frame::Frame;
use baton_bus::link::MemoryAdapter;
use baton_nic::adapter::{Adapter, AdapterConfig, SessionId};
use baton_nic::{Drop, Links, Lower, Meter, Owner, Process, Task};
use baton_sim::NicMeter;
use baton_sim::config::NicConfig;
use baton_sim::hardware::nic::{Frame as _, Nic};
use baton_sim::hardware::{ConfigError, NicProcessor};
use baton_tcp::Stack;
use baton_wire::{Symbolic, Time};
use std::collections::VecDeque;

/// An adapter's process without connections, on its processor.
#[derive(Debug)]
pub(super) struct Firmware {
    id: NicId,
    process: Process<Frame>,
    adapter: Adapter<Symbolic>,
    lower: Passing,
    processor: NicProcessor,
    is_busy: bool,
    /// Frames of the host that wait, and the one that leaves when the piece of work is done.
    to_send: VecDeque<Frame>,
    sent: Option<Frame>,
    /// Whether the last piece of work sent a frame. With frames in both directions, they take turns.
    has_sent: bool,
    /// Frames for which a queue had no space.
    pub(super) dropped: u64,
}

/// The layer below the process: TCP without connections, which lets all frames pass.
#[derive(Debug)]
struct Passing {
    meter: NicMeter,
    stack: Stack<Symbolic>,
    /// Received frames that leave when the piece of work is done, and the lengths of those that were dropped.
    passed: Vec<Frame>,
    dropped: Vec<u32>,
}

/// The links of the applications, of which there are none.
struct NoLinks;

impl Links<Symbolic> for NoLinks {
    type Link = MemoryAdapter<Symbolic>;

    fn link(&mut self, _session: SessionId) -> Option<&mut Self::Link> {
        None
    }
}

impl Lower for Passing {
    type Data = Symbolic;
    type Packet = Frame;

    fn stack(&mut self) -> &mut Stack<Symbolic> {
        &mut self.stack
    }

    fn packet_bytes(frame: &Frame) -> u32 {
        frame.bytes()
    }

    fn look_up(&mut self, _now: Time, _adapter: &Adapter<Symbolic>, _frame: &Frame) -> Owner {
        self.meter.run(Task::Lookup);
        Owner::Host
    }

    fn take_in(&mut self, _now: Time, _adapter: &mut Adapter<Symbolic>, frame: Frame) {
        self.meter.run(Task::HostReceive);
        self.passed.push(frame);
    }

    fn dropped(&mut self, _now: Time, _reason: Drop, frame: &Frame) {
        self.dropped.push(frame.bytes());
    }

    fn take_packets(&mut self, _: Time, _: &mut Adapter<Symbolic>, _: Option<Time>) -> bool {
        false
    }

    fn transmit(&mut self, _now: Time, _most: usize) -> usize {
        0
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }

    fn handle_timeouts(&mut self, _now: Time) -> u32 {
        0
    }
}

impl Firmware {
    /// Creates the firmware of a NIC.
    ///
    /// # Errors
    /// The processor has an invalid rate.
    pub(super) fn new(id: NicId, costs: &NicConfig) -> Result<Self, ConfigError> {
        let adapter = Adapter::new(AdapterConfig::default());
        Ok(Self {
            id,
            process: Process::new(&costs.firmware),
            adapter: adapter.expect("the default can work"),
            lower: Passing {
                meter: NicMeter::new(costs, true),
                stack: Stack::new(baton_tcp::Config::default(), 0),
                passed: Vec::new(),
                dropped: Vec::new(),
            },
            processor: NicProcessor::new(&costs.processor())?,
            is_busy: false,
            to_send: VecDeque::new(),
            sent: None,
            has_sent: false,
            dropped: 0,
        })
    }

    /// Takes the frames for the firmware, and begins a piece of work if there is one.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>, nic: &mut Nic<Frame>) {
        while let Some(frame) = nic.poll_arrived() {
            let (process, bytes) = (&mut self.process, frame.bytes());
            if (process.receive(cx.now, &mut self.adapter, frame, bytes)).is_err() {
                self.lower.dropped.push(bytes);
            }
        }
        while let Some(frame) = nic.poll_fetched() {
            self.to_send.push_back(frame);
        }
        if !self.is_busy {
            self.begin_piece(cx);
        }
        for bytes in self.lower.dropped.drain(..) {
            nic.release(bytes);
            self.dropped += 1;
        }
    }

    /// Begins the next piece of work.
    fn begin_piece(&mut self, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.has_sent) || self.to_send.is_empty() {
            self.receive_one(cx.now);
        }
        if self.lower.passed.is_empty() {
            self.sent = self.to_send.pop_front();
        }
        if self.sent.is_some() {
            self.lower.meter.run(Task::HostSend);
        }
        if self.sent.is_some() || !self.lower.passed.is_empty() {
            let spent = self.lower.meter.take_spent();
            let until = self.processor.run(cx.now, spent);
            self.is_busy = true;
            cx.at(until, Event::Firmware(self.id));
        }
    }

    fn receive_one(&mut self, now: Time) {
        let (process, adapter) = (&mut self.process, &mut self.adapter);
        let done = process.do_piece(now, adapter, &mut self.lower, &mut NoLinks);
        debug_assert!(done.is_ok(), "there is no application that could fail");
    }

    /// Ends the piece of work, whose frames leave.
    pub(super) fn end_piece(&mut self, nic: &mut Nic<Frame>) {
        self.is_busy = false;
        for frame in self.lower.passed.drain(..) {
            nic.pass(frame);
        }
        if let Some(frame) = self.sent.take() {
            nic.send_fetched(frame);
            self.has_sent = true;
        }
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.processor.occupancy.start_measurement(now);
    }

    /// Returns the share of the time since the start of the measurement in which the processor worked, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        self.processor.occupancy.utilisation(now)
    }
}
