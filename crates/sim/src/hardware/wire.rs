//! One direction of a link.

use baton_bus::Fifo;
use baton_wire::{Span, Time, line_len};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, check_range};
use super::pace::Pace;
use crate::EventQueue;

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
    /// How late such a frame is, microseconds.
    pub reorder_delay_us: u32,
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
        }
    }
}

impl WireConfig {
    /// Whether such a wire can be built.
    ///
    /// # Errors
    /// Says which field no such wire can have, and what was expected.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("rate_mbps", self.rate_mbps.into(), 1, 1_000_000)?;
        check_range("queue_frames", self.queue_frames.into(), 1, u32::MAX.into())?;
        for (field, value) in [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ConfigError::new(field, value, "a probability, 0 to 1"));
            }
        }
        Ok(())
    }

    fn is_faulty(&self) -> bool {
        self.loss > 0.0 || self.duplicate > 0.0 || self.reorder > 0.0
    }
}

/// What has become of the frames of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WireCounters {
    /// Frames that were given to it.
    pub frames_sent: u64,
    /// Their bytes, check sequence included, preamble and gap not.
    pub bytes_sent: u64,
    /// Frames that arrived.
    pub frames_received: u64,
    /// Frames dropped before they were sent: too many waited.
    pub dropped_queue_full: u64,
    /// Frames lost on the way.
    pub lost: u64,
    /// Copies added on the way.
    pub duplicated: u64,
    /// Frames made late on the way.
    pub reordered: u64,
}

/// One direction of a link: sends one frame after the other, and delivers each after a constant delay.
///
/// Frames arrive in order, so whoever drives it needs one pending event for a wire, at [`Wire::next_arrival`].
/// Faults are decided by a generator of its own: with the same seed and the same frames, the same are hit.
#[derive(Clone, Debug)]
pub struct Wire<F> {
    bits: Pace,
    delay: Span,
    queue_frames: usize,
    free_at: Time,
    /// When the first of the frames in flight arrives: most who ask want to know only that.
    next: Option<Time>,
    frames: Fifo<(Time, F)>,
    faults: Option<Box<Faults<F>>>,
    counters: WireCounters,
}

#[derive(Clone, Debug)]
struct Faults<F> {
    generator: Pcg64,
    loss: Chance,
    duplicate: Chance,
    reorder: Chance,
    reorder_delay: Span,
    late: EventQueue<F>,
}

/// A probability as an integer: an event happens if 32 random bits are less.
#[derive(Clone, Copy, Debug)]
struct Chance(u64);

impl Chance {
    fn new(probability: f64) -> Self {
        Self((probability * (1_u64 << 32) as f64) as u64)
    }

    fn happens(self, generator: &mut Pcg64) -> bool {
        u64::from(generator.next_u32()) < self.0
    }
}

impl<F: Clone> Wire<F> {
    /// An idle wire.
    ///
    /// # Errors
    /// Says which field no such wire can have, and what was expected.
    pub fn new(config: &WireConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let faults = config.is_faulty().then(|| {
            Box::new(Faults {
                generator: Pcg64::seed_from_u64(seed),
                loss: Chance::new(config.loss),
                duplicate: Chance::new(config.duplicate),
                reorder: Chance::new(config.reorder),
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

    /// Sends a frame of `frame_len` bytes (check sequence included) at `now`, or when those before it have been sent. False if it is lost.
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

    /// When the next frame arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<Time> {
        let late = (self.faults.as_ref()).and_then(|faults| faults.late.peek_time());
        match (self.next, late) {
            (Some(next), Some(late)) => Some(next.min(late)),
            (next, late) => next.or(late),
        }
    }

    /// Takes the next frame, if one has arrived by `now`.
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

    /// When the frames given so far will have been sent: a sender that waits for this never queues here.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// No frame of `frame_len` bytes (check sequence included) that is sent at `now` or later arrives before.
    pub fn earliest_arrival(&self, now: Time, frame_len: usize) -> Time {
        self.free_at.max(now) + self.bits.about(8 * line_len(frame_len) as u64) + self.delay
    }

    /// How long it takes to send frames that have so many bytes together, preambles and gaps included; no longer than this.
    pub fn time_to_send(&self, line_bytes: u64) -> Span {
        self.bits.about(8 * line_bytes) + Span::from_ps(1)
    }

    /// Frames on the wire or waiting for it.
    pub fn in_flight(&self) -> usize {
        self.frames.len() + self.faults.as_ref().map_or(0, |faults| faults.late.len())
    }

    /// Counters since the start.
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
        if faults.loss.happens(&mut faults.generator) {
            self.counters.lost += 1;
            return false;
        }
        let twice = faults.duplicate.happens(&mut faults.generator);
        let copy = twice.then(|| frame.clone());
        if faults.reorder.happens(&mut faults.generator) {
            self.counters.reordered += 1;
            faults.late.push(arrival + faults.reorder_delay, frame);
        } else {
            self.push(arrival, frame);
        }
        if let Some(copy) = copy {
            self.counters.duplicated += 1;
            self.push(arrival, copy);
        }
        true
    }
}
