//! One direction of a link.

use baton_bus::Fifo;
use baton_wire::impairment::{BurstLoss, Impairer, Impairment, Share};
use baton_wire::{Span, Time, line_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, check_range};
use super::pace::Pace;
use crate::EventQueue;

/// Bytes of a frame's check sequence, which exists on the wire only.
pub const CHECK_SEQUENCE: u16 = 4;

/// Speed and faults of one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WireConfig {
    /// Rate, Mb/s.
    #[schemars(range(min = 1, max = 1000000))]
    pub rate_mbps: u32,
    /// Propagation delay, nanoseconds.
    pub delay_ns: u32,
    /// Frames that may be on the wire or wait for it; one more is dropped and counted.
    #[schemars(range(min = 1))]
    pub queue_frames: u32,
    /// Probability that a frame is lost.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub loss: f64,
    /// Probability that a frame arrives twice.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub duplicate: f64,
    /// Probability that a frame is late by `reorder_delay_us`, so that others overtake it.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub reorder: f64,
    /// Delay of frames that are overtaken, microseconds.
    pub reorder_delay_us: u32,
    /// Probability that a frame arrives corrupted; its receiver drops it.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub corrupt: f64,
    /// Maximum additional delay, drawn for each frame, microseconds; frames may overtake each other.
    pub jitter_us: u32,
    /// Losses in bursts.
    pub burst: BurstConfig,
}

/// Losses in bursts (the model of Gilbert and Elliott): the wire is good or bad, and may change with each frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BurstConfig {
    /// Probability that a good wire turns bad at a frame; 0: there are no bursts.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub enter: f64,
    /// Probability that a bad wire turns good at a frame; its inverse is the mean length of a burst.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub leave: f64,
    /// Probability that a frame is lost while the wire is bad.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub loss: f64,
}

/// No bursts.
impl Default for BurstConfig {
    fn default() -> Self {
        Self {
            enter: 0.0,
            leave: 0.25,
            loss: 1.0,
        }
    }
}

/// A perfect 10 Gb/s wire between neighbours.
impl Default for WireConfig {
    fn default() -> Self {
        Self {
            rate_mbps: 10_000,
            delay_ns: 1_000,
            queue_frames: 1 << 20,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_delay_us: 100,
            corrupt: 0.0,
            jitter_us: 0,
            burst: BurstConfig::default(),
        }
    }
}

impl WireConfig {
    /// Checks that such a wire is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("rate_mbps", self.rate_mbps.into(), 1, 1_000_000)?;
        check_range("queue_frames", self.queue_frames.into(), 1, u32::MAX.into())?;
        for (field, value) in [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("burst.enter", self.burst.enter),
            ("burst.leave", self.burst.leave),
            ("burst.loss", self.burst.loss),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ConfigError::new(field, value, "a probability, 0 to 1"));
            }
        }
        Ok(())
    }

    fn impairment(&self) -> Impairment {
        let share = Share::from_probability;
        let BurstConfig { enter, leave, loss } = self.burst;
        Impairment {
            loss: share(self.loss),
            burst: (enter > 0.0).then(|| BurstLoss {
                enter: share(enter),
                leave: share(leave),
                loss: share(loss),
            }),
            duplicate: share(self.duplicate),
            reorder: share(self.reorder),
            corrupt: share(self.corrupt),
            jitter: Span::from_us(self.jitter_us.into()),
        }
    }
}

/// Counters of the frames of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WireCounters {
    /// Frames given to the wire.
    pub frames_sent: u64,
    /// Bytes of these frames, including the check sequence but not preamble and gap.
    pub bytes_sent: u64,
    /// Frames that arrived.
    pub frames_received: u64,
    /// Frames dropped before they were sent because the queue was full.
    pub dropped_queue_full: u64,
    /// Frames lost on the way.
    pub lost: u64,
    /// Frames that arrived corrupted, and were dropped.
    pub corrupted: u64,
    /// Copies added on the way.
    pub duplicated: u64,
    /// Frames delayed on the way.
    pub reordered: u64,
}

/// One direction of a link: sends one frame at a time, and delivers each frame after a constant delay.
///
/// Frames arrive in order, so the caller needs only one pending event per wire, at [`Wire::next_arrival`]. The wire has its own random
/// generator for faults: the same seed and the same frames give the same faults.
#[derive(Clone, Debug)]
pub struct Wire<F> {
    bits: Pace,
    delay: Span,
    queue_frames: usize,
    free_at: Time,
    /// Arrival of the first frame in flight, kept separately because most callers need only that.
    next: Option<Time>,
    frames: Fifo<(Time, F)>,
    faults: Option<Box<Faults<F>>>,
    counters: WireCounters,
}

#[derive(Clone, Debug)]
struct Faults<F> {
    impairer: Impairer,
    reorder_delay: Span,
    late: EventQueue<F>,
}

impl<F: Clone> Wire<F> {
    /// Creates an idle wire.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &WireConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let impairment = config.impairment();
        let faults = (impairment != Impairment::default()).then(|| {
            Box::new(Faults {
                impairer: Impairer::new(impairment, seed),
                reorder_delay: Span::from_us(config.reorder_delay_us.into()),
                late: EventQueue::new(),
            })
        });
        Ok(Self {
            bits: Pace::new(config.rate_mbps.into()),
            delay: Span::from_ns(config.delay_ns.into()),
            queue_frames: config.queue_frames as usize,
            free_at: Time::ZERO,
            next: None,
            frames: Fifo::new(),
            faults,
            counters: WireCounters::default(),
        })
    }

    /// Sends a frame of `frame_len` bytes (including the check sequence) at `now`, or when the frames before it have been sent. Returns
    /// false if the frame is lost.
    pub fn send(&mut self, now: Time, frame_len: usize, frame: F) -> bool {
        if self.in_flight() >= self.queue_frames {
            self.counters.dropped_queue_full += 1;
            return false;
        }
        self.free_at = self.free_at.max(now) + self.bits.span(8 * line_len(frame_len) as u64);
        self.counters.frames_sent += 1;
        self.counters.bytes_sent += frame_len as u64;
        let arrival = self.free_at + self.delay;
        if self.faults.is_some() {
            return self.send_faulty(arrival, frame);
        }
        self.push(arrival, frame);
        true
    }

    #[inline]
    fn push(&mut self, arrival: Time, frame: F) {
        self.next.get_or_insert(arrival);
        self.frames.push((arrival, frame));
    }

    /// Returns when the next frame arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        let late = (self.faults.as_ref()).and_then(|faults| faults.late.peek_time());
        match (self.next, late) {
            (Some(next), Some(late)) => Some(next.min(late)),
            (next, late) => next.or(late),
        }
    }

    /// Returns the next frame if it has arrived by `now`.
    pub fn receive(&mut self, now: Time) -> Option<F> {
        let arrival = self.next_arrival().filter(|&arrival| arrival <= now)?;
        self.counters.frames_received += 1;
        if self.next != Some(arrival) {
            return self.receive_late();
        }
        let (_, frame) = self.frames.pop()?;
        self.next = self.frames.front().map(|&(arrival, _)| arrival);
        Some(frame)
    }

    /// Returns when all frames given so far will have been sent. A sender that waits until then never queues here.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns the number of frames that are on the wire or wait for it.
    pub fn in_flight(&self) -> usize {
        self.frames.len() + self.faults.as_ref().map_or(0, |faults| faults.late.len())
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> WireCounters {
        self.counters
    }

    #[cold]
    fn receive_late(&mut self) -> Option<F> {
        self.faults.as_mut()?.late.pop().map(|(_, frame)| frame)
    }

    #[cold]
    fn send_faulty(&mut self, arrival: Time, frame: F) -> bool {
        let Some(faults) = &mut self.faults else {
            return true;
        };
        if faults.impairer.loses().is_some() {
            self.counters.lost += 1;
            return false;
        }
        if faults.impairer.corrupts(1).is_some() {
            self.counters.corrupted += 1;
            return false;
        }
        let copy = faults.impairer.duplicates().then(|| frame.clone());
        self.counters.duplicated += u64::from(copy.is_some());
        for frame in [Some(frame), copy].into_iter().flatten() {
            let mut delay = faults.impairer.jitter();
            if faults.impairer.reorders() {
                self.counters.reordered += 1;
                delay += faults.reorder_delay;
            }
            match delay {
                Span::ZERO => {
                    self.next.get_or_insert(arrival);
                    self.frames.push((arrival, frame));
                }
                delay => faults.late.push(arrival + delay, frame),
            }
        }
        true
    }
}
