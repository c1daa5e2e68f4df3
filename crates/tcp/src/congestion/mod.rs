//! Congestion control: how much may be in the network.
//!
//! [`CongestionWindow`] holds cwnd and ssthresh, knows whether a loss is being repaired (RFC 5681, RFC 6582, RFC 6675,
//! RFC 9937), and sees to what all algorithms share: slow start, its end by delay (RFC 9406), and that a window that is
//! not used does not grow. How the window grows after slow start and how much it shrinks is up to a
//! [`CongestionControl`].
//!
//! To add an algorithm: write a small `Copy` type with its state that implements [`CongestionControl`], in a file of
//! its own; add a variant for it to [`Algorithm`] and to [`Congestion`]. Moments are given on the connection's own
//! clock, so its state moves with the connection as it is. Nothing else has to know of it.

mod cubic;
mod hystart;
mod new_reno;
mod rate_reduction;
mod window;

pub(crate) use rate_reduction::RateReduction;
pub(crate) use window::{CongestionWindow, DUPLICATE_THRESHOLD, Phase, Reduction, Saved};

use crate::clock::Moment;
use crate::config::Congestion;
use baton_wire::Span;
use cubic::Cubic;
use new_reno::NewReno;
use serde::{Deserialize, Serialize};

/// cwnd and ssthresh, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Window {
    pub(crate) bytes: u32,
    pub(crate) threshold: u32,
}

/// An acknowledgment of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Moment,
    /// Bytes by which SND.UNA moved.
    pub(crate) bytes: u32,
    pub(crate) smss: u32,
    /// What this acknowledgment measured, if anything.
    pub(crate) rtt: Option<Span>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub(crate) srtt: Span,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// FlightSize (RFC 5681 2), bytes.
    pub(crate) flight: u32,
    pub(crate) smss: u32,
}

/// What makes an algorithm. It is asked only in congestion avoidance, and about the size of reductions. When a loss
/// turns out to have been none, the copy of it from before the loss is put back (RFC 4015, RFC 9438 4.9).
pub(crate) trait CongestionControl {
    /// New data was acknowledged, the window was in use and slow start is over: how many bytes the window grows.
    fn on_ack(&mut self, window: Window, acked: &Acked) -> u32;

    /// A loss was noticed by duplicate acknowledgments or by time: the new ssthresh. `window` is from before.
    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32;

    /// The retransmission timer told of a loss: the new ssthresh.
    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// The network marked what was sent (RFC 3168 6.1.2): the new ssthresh.
    fn on_ecn_echo(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// The window was not used for so long, so that nothing was learnt about it.
    fn after_idle(&mut self, _idle: Span) {}
}

/// The algorithms there are, each with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    NewReno(NewReno),
    Cubic(Cubic),
}

impl Algorithm {
    pub(crate) fn new(kind: Congestion) -> Self {
        match kind {
            Congestion::NewReno => Self::NewReno(NewReno::default()),
            Congestion::Cubic => Self::Cubic(Cubic::default()),
        }
    }

    pub(crate) fn kind(&self) -> Congestion {
        match self {
            Self::NewReno(_) => Congestion::NewReno,
            Self::Cubic(_) => Congestion::Cubic,
        }
    }
}

impl CongestionControl for Algorithm {
    fn on_ack(&mut self, window: Window, acked: &Acked) -> u32 {
        match self {
            Self::NewReno(it) => it.on_ack(window, acked),
            Self::Cubic(it) => it.on_ack(window, acked),
        }
    }

    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32 {
        match self {
            Self::NewReno(it) => it.on_loss(window, loss),
            Self::Cubic(it) => it.on_loss(window, loss),
        }
    }

    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        match self {
            Self::NewReno(it) => it.on_timeout(window, loss),
            Self::Cubic(it) => it.on_timeout(window, loss),
        }
    }

    fn on_ecn_echo(&mut self, window: Window, loss: &Loss) -> u32 {
        match self {
            Self::NewReno(it) => it.on_ecn_echo(window, loss),
            Self::Cubic(it) => it.on_ecn_echo(window, loss),
        }
    }

    fn after_idle(&mut self, idle: Span) {
        match self {
            Self::NewReno(it) => it.after_idle(idle),
            Self::Cubic(it) => it.after_idle(idle),
        }
    }
}
