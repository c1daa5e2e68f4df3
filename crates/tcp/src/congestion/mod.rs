//! Congestion control: how much data may be in the network, and how fast it is sent.
//!
//! [`CongestionWindow`] holds cwnd and ssthresh, tracks whether a loss is being repaired (RFC 5681, RFC 6582, RFC 6675,
//! RFC 9937), and implements what variants of Reno share: slow start, its end by delay (RFC 9406), and the rule that an
//! unused window does not grow. A [`Controller`] decides the rest, or everything.
//!
//! To add a controller to this crate, implement [`Controller`] for a small type that holds its state, in a file of its own, and
//! add a variant to `Algorithm` and to [`Congestion`](crate::Congestion). Moments are on the connection's own clock, so the
//! state moves with the connection unchanged. Users of this crate add controllers with [`Custom`].

mod algorithm;
mod bbr;
mod controller;
mod cubic;
mod cubic_linux;
mod custom;
mod dctcp;
mod hystart;
mod hystart_linux;
mod new_reno;
mod pacing;
mod rate_reduction;
mod window;

pub use controller::{
    Ack, Acked, CloneController, Controller, Loss, Lost, Needs, RateSample, Start, Window,
};
pub use custom::{Custom, Factory};

pub(crate) use algorithm::Algorithm;
pub(crate) use pacing::Pacing;
pub(crate) use rate_reduction::RateReduction;
pub(crate) use window::{CongestionWindow, DUPLICATE_THRESHOLD, Phase, Reduction, Saved};
