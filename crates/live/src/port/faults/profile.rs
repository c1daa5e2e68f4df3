//! The impairments of one direction of a link.

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

    /// Creates a share of `ppb` frames in 10^9; returns `None` if `ppb` is greater than 10^9.
    pub const fn from_ppb(ppb: u32) -> Option<Self> {
        if ppb <= Self::ALL.0 {
            Some(Self(ppb))
        } else {
            None
        }
    }

    /// Draws whether a frame belongs to this share.
    pub(super) fn draw(self, random: &mut impl Rng) -> bool {
        // Draw nothing for an empty share, so that it does not influence later draws.
        self.0 > 0 && random.random_range(0..Self::ALL.0) < self.0
    }
}

/// Burst loss (the model of Gilbert and Elliott): the link is good or bad, and may change its state with each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstLoss {
    /// Share of frames at which a good link turns bad.
    pub enter: Share,
    /// Share of frames at which a bad link turns good; its inverse is the mean length of a burst.
    pub leave: Share,
    /// Share of frames lost while the link is bad.
    pub loss: Share,
}

/// The impairments of one direction of a link. The default is a perfect link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultProfile {
    /// Share of frames lost, each independently.
    pub loss: Share,
    /// Losses in bursts.
    pub burst: Option<BurstLoss>,
    /// Share of frames delivered twice.
    pub duplicate: Share,
    /// Share of frames held back until later frames have passed.
    pub reorder: Share,
    /// Number of frames that pass a held frame, if they come in time.
    pub reorder_frames: u32,
    /// Share of frames in which a bit is flipped.
    pub corrupt: Share,
    /// Time in transit.
    pub delay: Span,
    /// Maximum additional delay, drawn for each frame; frames may overtake each other.
    pub jitter: Span,
    /// Rate limit, bits per second; further frames wait.
    pub rate_bps: Option<u64>,
    /// Maximum number of frames in transit; further frames are dropped.
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
