//! Congestion control: how much may be in the network, and how fast it gets there.
//!
//! [`CongestionWindow`] holds cwnd and ssthresh, knows whether a loss is being repaired (RFC 5681, RFC 6582, RFC 6675,
//! RFC 9937), and sees to what Reno's relatives share: slow start, its end by delay (RFC 9406), and that a window that is
//! not used does not grow. The rest, or all of it, is up to a [`Controller`].
//!
//! To add one here: write a small type with its state that implements [`Controller`], in a file of its own; add a variant
//! for it to `Algorithm` and to [`Congestion`](crate::Congestion). Moments are given on the connection's own clock, so its
//! state moves with the connection as it is. From outside: [`Custom`].

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
