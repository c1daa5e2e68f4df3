//! One direction of an impaired link.

use super::profile::FaultProfile;
use baton_wire::impairment::{Impairer, Loss, Share};
use baton_wire::{Span, Time};
use bytes::{Bytes, BytesMut};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Maximum time that a frame is held back for reordering if too few frames pass it.
const LONGEST_HOLD: Span = Span::from_ms(5);
const PS_PER_S: u64 = 1_000_000_000_000;

baton_named::named! {
    /// The possible fates of a frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum FaultKind {
        /// Passed, perhaps late.
        Passed => "passed",
        /// Lost independently of other frames.
        Lost => "lost",
        /// Lost in a burst.
        BurstLost => "burst_lost",
        /// Delivered twice.
        Duplicated => "duplicated",
        /// Held back so that others overtake it.
        Reordered => "reordered",
        /// Corrupted: a bit was flipped.
        Corrupted => "corrupted",
        /// Delayed by delay, jitter or rate.
        Delayed => "delayed",
        /// Dropped because too many frames were in transit.
        QueueFull => "queue_full",
    }
}

/// Number of frames by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts([u64; FaultKind::ALL.len()]);

impl FaultCounts {
    /// Returns the number of frames with this fate.
    pub fn get(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }

    fn count(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }
}

/// A frame in transit.
#[derive(Debug, PartialEq, Eq)]
struct OnTheWay {
    due: Time,
    /// Order of arrival, for frames that are due at the same time.
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

/// A frame that is held back so that others overtake it.
#[derive(Debug)]
struct Held {
    frame: Bytes,
    /// Number of frames that have yet to overtake this frame.
    passing: u32,
    until: Time,
}

/// One direction of a link with the frames in transit.
#[derive(Debug)]
pub(super) struct Pipe {
    profile: FaultProfile,
    impairer: Impairer,
    counts: FaultCounts,
    /// Time at which the rate limit admits the next frame.
    free_at: Time,
    on_the_way: BinaryHeap<Reverse<OnTheWay>>,
    held: VecDeque<Held>,
    next_number: u64,
}

impl Pipe {
    pub(super) fn new(profile: FaultProfile, seed: u64) -> Self {
        Self {
            impairer: Impairer::new(profile.impairment, seed),
            profile,
            counts: FaultCounts::default(),
            free_at: Time::ZERO,
            on_the_way: BinaryHeap::new(),
            held: VecDeque::new(),
            next_number: 0,
        }
    }

    pub(super) fn counts(&self) -> &FaultCounts {
        &self.counts
    }

    /// Returns whether the pipe may corrupt frames.
    pub(super) fn corrupts(&self) -> bool {
        self.profile.impairment.corrupt != Share::NONE
    }

    /// Puts a frame into the pipe.
    pub(super) fn push(&mut self, now: Time, frame: Bytes) {
        if let Some(loss) = self.impairer.loses() {
            return self.counts.count(match loss {
                Loss::Single => FaultKind::Lost,
                Loss::Burst => FaultKind::BurstLost,
            });
        }
        let frame = self.corrupted(frame);
        if self.impairer.duplicates() {
            self.counts.count(FaultKind::Duplicated);
            self.transport(now, frame.clone());
        }
        self.transport(now, frame);
    }

    /// Returns the next frame that leaves the pipe by `now`.
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

    /// Returns when the next frame leaves the pipe, or `None` if the pipe is empty.
    pub(super) fn next_due(&self) -> Option<Time> {
        let moving = self.on_the_way.peek().map(|next| next.0.due);
        let held = self.held.iter().map(|held| held.until).min();
        moving.into_iter().chain(held).min()
    }

    fn corrupted(&mut self, frame: Bytes) -> Bytes {
        let Some(bit) = self.impairer.corrupts(frame.len()) else {
            return frame;
        };
        self.counts.count(FaultKind::Corrupted);
        let mut changed = BytesMut::from(&frame[..]);
        changed[bit / 8] ^= 1 << (bit % 8);
        changed.freeze()
    }

    /// Holds the frame back, or sends it, which overtakes the frames that are held back.
    fn transport(&mut self, now: Time, frame: Bytes) {
        if self.on_the_way.len() + self.held.len() >= self.profile.queue_frames as usize {
            self.counts.count(FaultKind::QueueFull);
            return;
        }
        if self.impairer.reorders() {
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

    /// Sends held frames that enough others have overtaken, or that have waited long enough.
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
        due += self.profile.delay + self.impairer.jitter();
        if due > now {
            self.counts.count(FaultKind::Delayed);
        }
        let number = self.next_number;
        self.next_number += 1;
        self.on_the_way
            .push(Reverse(OnTheWay { due, number, frame }));
    }
}
