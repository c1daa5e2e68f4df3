//! How bad one direction of a link is.

use baton_wire::Span;
use rand::{Rng, RngExt};

/// A share of frames, in parts of 10^9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// All frames.
    pub const ALL: Self = Self(1_000_000_000);
    /// No frame.
    pub const NONE: Self = Self(0);

    /// So many frames in 10^9; `None` when those are more than all.
    pub const fn from_ppb(ppb: u32) -> Option<Self> {
        if ppb <= Self::ALL.0 {
            Some(Self(ppb))
        } else {
            None
        }
    }

    /// Whether this frame is one of them.
    pub(super) fn draw(self, random: &mut impl Rng) -> bool {
        // Nothing is drawn for what never happens, so that it does not shift the rest.
        self.0 > 0 && random.random_range(0..Self::ALL.0) < self.0
    }
}

/// Losses that come together (the model of Gilbert and Elliott): the link is good or bad, and changes with each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLoss {
    /// Share of frames at which a good link turns bad.
    pub enter: Share,
    /// Share of frames at which a bad link turns good; its inverse is the mean length of a burst.
    pub leave: Share,
    /// Share of frames lost while the link is bad.
    pub loss: Share,
}

/// How bad one direction of a link is. The default is a perfect link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultProfile {
    /// Lost, each frame for itself.
    pub loss: Share,
    /// Lost in bursts.
    pub burst: Option<BurstLoss>,
    /// Delivered twice.
    pub duplicate: Share,
    /// Held back until some that follow have passed.
    pub reorder: Share,
    /// How many pass, or how long it is held at most.
    pub reorder_frames: u32,
    /// A bit is turned over somewhere.
    pub corrupt: Share,
    /// Time on the way.
    pub delay: Span,
    /// Up to so much more, each frame for itself; frames may pass each other.
    pub jitter: Span,
    /// Bits per second that pass; the rest waits.
    pub rate_bps: Option<u64>,
    /// Frames on the way at most; more are dropped.
    pub queue_frames: u32,
}

impl Default for FaultProfile {
    fn default() -> Self {
        Self {
            loss: Share::NONE,
            burst: None,
            duplicate: Share::NONE,
            reorder: Share::NONE,
            reorder_frames: 3,
            corrupt: Share::NONE,
            delay: Span::ZERO,
            jitter: Span::ZERO,
            rate_bps: None,
            queue_frames: 1000,
        }
    }
}
