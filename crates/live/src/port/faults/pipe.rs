//! One direction of a bad link.

use super::profile::{FaultProfile, Share};
use baton_wire::{Span, Time};
use bytes::{Bytes, BytesMut};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A frame that is held back so that others pass it goes on after this, if none come.
const LONGEST_HOLD: Span = Span::from_ms(5);
const PS_PER_S: u64 = 1_000_000_000_000;

/// What can happen to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FaultKind {
    /// It passed, perhaps late.
    Passed,
    /// Lost by itself.
    Lost,
    /// Lost in a burst.
    BurstLost,
    /// Delivered twice.
    Duplicated,
    /// Held back so that others pass it.
    Reordered,
    /// A bit was turned over.
    Corrupted,
    /// Delayed by delay, jitter or rate.
    Delayed,
    /// Dropped because too many were on the way.
    QueueFull,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Passed,
        Self::Lost,
        Self::BurstLost,
        Self::Duplicated,
        Self::Reordered,
        Self::Corrupted,
        Self::Delayed,
        Self::QueueFull,
    ];

    /// Its name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Lost => "lost",
            Self::BurstLost => "burst_lost",
            Self::Duplicated => "duplicated",
            Self::Reordered => "reordered",
            Self::Corrupted => "corrupted",
            Self::Delayed => "delayed",
            Self::QueueFull => "queue_full",
        }
    }
}

/// Frames by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Frames to which this happened.
    pub fn get(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    fn count(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }
}

/// A frame on its way.
#[derive(Debug, PartialEq, Eq)]
struct OnTheWay {
    due: Time,
    /// Order of arrival, for those due at the same time.
    number: u64,
    frame: Bytes,
}

impl Ord for OnTheWay {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for OnTheWay {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A frame that lets others pass.
#[derive(Debug)]
struct Held {
    frame: Bytes,
    /// Frames that have yet to pass it.
    passing: u32,
    until: Time,
}

/// One direction of a link and what is on it.
#[derive(Debug)]
pub(super) struct Pipe {
    profile: FaultProfile,
    random: Pcg64Mcg,
    counts: FaultCounts,
    /// The link is in its bad state (burst loss).
    bad: bool,
    /// When the rate limit lets the next frame start.
    free_at: Time,
    on_the_way: BinaryHeap<Reverse<OnTheWay>>,
    held: VecDeque<Held>,
    next_number: u64,
}

impl Pipe {
    pub(super) fn new(profile: FaultProfile, seed: u64) -> Self {
        Self {
            profile,
            random: Pcg64Mcg::seed_from_u64(seed),
            counts: FaultCounts::default(),
            bad: false,
            free_at: Time::ZERO,
            on_the_way: BinaryHeap::new(),
            held: VecDeque::new(),
            next_number: 0,
        }
    }

    pub(super) fn counts(&self) -> &FaultCounts {
        &self.counts
    }

    /// Whether frames may come out that are not as they were.
    pub(super) fn corrupts(&self) -> bool {
        self.profile.corrupt != Share::NONE
    }

    /// A frame enters.
    pub(super) fn push(&mut self, now: Time, frame: Bytes) {
        if self.loses() {
            return;
        }
        let frame = self.corrupted(frame);
        if self.profile.duplicate.draw(&mut self.random) {
            self.counts.count(FaultKind::Duplicated);
            self.transport(now, frame.clone());
        }
        self.transport(now, frame);
    }

    /// The next frame that comes out by `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Bytes> {
        self.release_held(now);
        let next = self.on_the_way.peek()?;
        if next.0.due > now {
            return None;
        }
        let Reverse(OnTheWay { frame, .. }) = self.on_the_way.pop()?;
        self.counts.count(FaultKind::Passed);
        Some(frame)
    }

    /// When the next frame comes out, if any is on the way.
    pub(super) fn next_due(&self) -> Option<Time> {
        let moving = self.on_the_way.peek().map(|next| next.0.due);
        let held = self.held.iter().map(|held| held.until).min();
        moving.into_iter().chain(held).min()
    }

    fn loses(&mut self) -> bool {
        if let Some(burst) = self.profile.burst {
            let change = if self.bad { burst.leave } else { burst.enter };
            self.bad ^= change.draw(&mut self.random);
            if self.bad && burst.loss.draw(&mut self.random) {
                self.counts.count(FaultKind::BurstLost);
                return true;
            }
        }
        let lost = self.profile.loss.draw(&mut self.random);
        if lost {
            self.counts.count(FaultKind::Lost);
        }
        lost
    }

    fn corrupted(&mut self, frame: Bytes) -> Bytes {
        if frame.is_empty() || !self.profile.corrupt.draw(&mut self.random) {
            return frame;
        }
        self.counts.count(FaultKind::Corrupted);
        let mut changed = BytesMut::from(&frame[..]);
        let bit = self.random.random_range(0..8 * changed.len());
        changed[bit / 8] ^= 1 << (bit % 8);
        changed.freeze()
    }

    /// Holds the frame back, or sends it on its way and lets it pass those that are held.
    fn transport(&mut self, now: Time, frame: Bytes) {
        if self.on_the_way.len() + self.held.len() >= self.profile.queue_frames as usize {
            self.counts.count(FaultKind::QueueFull);
            return;
        }
        if self.profile.reorder.draw(&mut self.random) {
            self.counts.count(FaultKind::Reordered);
            self.held.push_back(Held {
                frame,
                passing: self.profile.reorder_frames,
                until: now + LONGEST_HOLD,
            });
            return;
        }
        self.depart(now, frame);
        for held in &mut self.held {
            held.passing = held.passing.saturating_sub(1);
        }
        self.release_held(now);
    }

    /// Held frames that enough others have passed, or that waited long enough, go on.
    fn release_held(&mut self, now: Time) {
        while let Some(index) = self
            .held
            .iter()
            .position(|held| held.passing == 0 || held.until <= now)
        {
            if let Some(held) = self.held.remove(index) {
                self.depart(now, held.frame);
            }
        }
    }

    fn depart(&mut self, now: Time, frame: Bytes) {
        let mut due = now;
        if let Some(rate_bps) = self.profile.rate_bps {
            let bits = 8 * frame.len() as u64;
            let takes = Span::from_ps(bits.saturating_mul(PS_PER_S) / rate_bps.max(1));
            self.free_at = self.free_at.max(now) + takes;
            due = self.free_at;
        }
        due += self.profile.delay;
        if self.profile.jitter > Span::ZERO {
            let jitter = self.random.random_range(0..=self.profile.jitter.as_ps());
            due += Span::from_ps(jitter);
        }
        if due > now {
            self.counts.count(FaultKind::Delayed);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.on_the_way
            .push(Reverse(OnTheWay { due, number, frame }));
    }
}
