//! The impairments of one direction of a link, and how it queues frames.

use baton_wire::Span;
use baton_wire::impairment::Impairment;

/// One direction of a link. The default is a perfect link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultProfile {
    /// What happens to frames.
    pub impairment: Impairment,
    /// Number of frames that overtake a reordered frame, if they arrive in time.
    pub reorder_frames: u32,
    /// Time in transit.
    pub delay: Span,
    /// Rate limit, bits per second; further frames wait.
    pub rate_bps: Option<u64>,
    /// Maximum number of frames in transit; further frames are dropped.
    pub queue_frames: u32,
}

impl Default for FaultProfile {
    fn default() -> Self {
        Self {
            impairment: Impairment::default(),
            reorder_frames: 3,
            delay: Span::ZERO,
            rate_bps: None,
            queue_frames: 1000,
        }
    }
}
