//! The interface of a congestion controller: what the engine asks of it, and what it reports to it.

use crate::clock::Moment;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

bitflags::bitflags! {
    /// Services that a controller needs from the engine, besides being asked how the window grows and shrinks. The engine
    /// spends no time on services that a controller does not need.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Needs: u8 {
        /// [`Controller::on_ack`] is called for each acknowledgment.
        const ACKS = 1;
        /// Acknowledgments carry delivery rate samples, and [`Controller::on_lost`] is called for each segment that counts as lost.
        const RATE_SAMPLES = 1 << 1;
        /// Data is sent no faster than [`Controller::pacing_rate`].
        const PACING = 1 << 2;
        /// The window is [`Controller::window`]: no slow start, no rate reduction, no restart after an idle time.
        const WINDOW = 1 << 3;
        /// Every ECN mark counts, not only the first in a window (RFC 8257): all data is sent as ECN-capable, and this
        /// end's receiver reports every mark.
        const EACH_MARK = 1 << 4;
    }
}

/// cwnd and ssthresh, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// cwnd.
    pub bytes: u32,
    /// ssthresh; 2^30, which is more than any window, before the first reduction.
    pub threshold: u32,
}

/// State of a connection that was just established, or that the controller takes over.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// The window to begin with, bytes (RFC 6928).
    pub window: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Round-trip time, smoothed or of the handshake; zero if none was measured.
    pub srtt: Span,
    /// The peer reports data that arrives beyond holes (RFC 2018).
    pub sack: bool,
}

/// An acknowledgment of new data in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// Bytes by which SND.UNA moved.
    pub bytes: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Round-trip time that this acknowledgment measured, if any.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Span,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// FlightSize (RFC 5681 2), bytes; for a controller with [`Needs::WINDOW`], bytes that are still in the network.
    pub flight: u32,
    /// Data that a full segment holds.
    pub smss: u32,
}

/// An acknowledgment of any kind. Its consequences (losses, the end of a recovery) are reported before it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Bytes by which SND.UNA moved.
    pub acked: u32,
    /// Bytes newly known to have arrived, by SND.UNA or by report.
    pub delivered: u32,
    /// Bytes sent and not acknowledged: SND.MAX - SND.UNA.
    pub flight: u32,
    /// Estimate of the bytes in the network: neither reported nor lost.
    pub in_flight: u32,
    /// Round-trip time of the most recently sent of the newly delivered segments, if that was sent only once.
    pub rtt: Option<Span>,
    /// The acknowledgment carries ECN-Echo (RFC 3168).
    pub echoes_congestion: bool,
    /// A loss is being repaired.
    pub recovering: bool,
    /// The window was used up within the last round trip; only with [`Needs::RATE_SAMPLES`].
    pub used_window: bool,
    /// Rate sample of the most recently sent of the newly delivered segments; only with [`Needs::RATE_SAMPLES`].
    pub sample: Option<RateSample>,
}

/// How fast data left the network while one segment was in flight (draft-ietf-ccwg-bbr-06 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered from the segment's transmission until now.
    pub delivered: u64,
    /// Time in which they were delivered: the longer of the times that sending and acknowledging took.
    pub interval: Span,
    /// Bytes a second; 0 if the interval is too short to compute a rate.
    pub rate: u64,
    /// Bytes delivered from the connection's start until the segment was sent.
    pub prior_delivered: u64,
    /// Bytes delivered from the connection's start until now.
    pub total_delivered: u64,
    /// Bytes in the network just after the segment was sent.
    pub tx_in_flight: u32,
    /// Bytes that were declared lost since the segment was sent.
    pub lost: u64,
    /// The segment was sent while the application had written less than the window allows.
    pub is_app_limited: bool,
}

/// A segment that was just declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// First sequence number of the segment.
    pub seq: SeqNr,
    /// Length of the segment, bytes.
    pub bytes: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Bytes delivered since the connection's start.
    pub total_delivered: u64,
    /// State when the segment was sent (`delivered`, `interval` and `rate` are unset), or `None` if it was not recorded.
    pub sample: Option<RateSample>,
}

/// A congestion controller of one connection.
///
/// A controller without any [`Needs`] is a variant of Reno: the engine keeps the window, with slow start (RFC 5681, RFC 9406),
/// proportional rate reduction (RFC 9937) and the rule that an unused window does not grow (RFC 7661), and asks the controller how
/// much the window grows after slow start and how far it is reduced. If a loss turns out to be spurious, the engine restores a copy
/// of the controller from before the loss (RFC 4015). With [`Needs::WINDOW`] the controller itself does all of this.
///
/// A controller must take the time from the moments it is given: they are on the connection's own clock and move with it.
pub trait Controller: CloneController + Debug + Send + Sync {
    /// The services that the controller needs. Called once, when the controller is created.
    fn needs(&self) -> Needs {
        Needs::empty()
    }

    /// Called when the connection is established, or when the controller takes over an established one.
    fn on_established(&mut self, _start: &Start) {}

    /// Returns by how many bytes the window grows. Called after slow start when new data was acknowledged and the window was in use.
    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32;

    /// Returns the new ssthresh after a loss detected by duplicate acknowledgments or by time. `window` is from before the loss.
    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32;

    /// Returns the new ssthresh after a retransmission timeout. Called at each timeout with [`Needs::WINDOW`], otherwise only
    /// at the first timeout of the same data.
    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// Returns the new ssthresh after the first ECN mark in a window of data (RFC 3168 6.1.2).
    fn on_ecn_echo(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// Called after a time in which the window was not used and nothing was learnt about it.
    fn after_idle(&mut self, _idle: Span) {}

    /// Called after each acknowledgment, with [`Needs::ACKS`].
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Called for each segment that is declared lost, with [`Needs::RATE_SAMPLES`].
    fn on_lost(&mut self, _lost: &Lost) {}

    /// Called when the lost data is repaired, with [`Needs::WINDOW`].
    fn on_recovered(&mut self) {}

    /// Called when the last loss was spurious (RFC 4015), with [`Needs::WINDOW`]; otherwise the engine restores a copy.
    fn on_spurious(&mut self) {}

    /// Called before data is sent while nothing is in flight because the application had nothing to send, with
    /// [`Needs::RATE_SAMPLES`].
    fn on_restart(&mut self, _now: Moment) {}

    /// cwnd in bytes, with [`Needs::WINDOW`].
    fn window(&self) -> u32 {
        0
    }

    /// Pacing rate in bytes a second, with [`Needs::PACING`]; 0 disables pacing.
    fn pacing_rate(&self) -> u64 {
        0
    }

    /// Bytes that may leave in one burst where data is paced (C.send_quantum of draft-ietf-ccwg-bbr-06 5.6.3). A burst is
    /// at least one segment.
    fn send_quantum(&self) -> u32 {
        0
    }

    /// Reports whether the controller itself holds data back, so that rate samples of data sent now say nothing about the
    /// path. With [`Needs::RATE_SAMPLES`].
    fn holds_back(&self) -> bool {
        false
    }

    /// The controller's state, for a connection that moves as bytes. The destination passes it to the controller's
    /// [`Factory`](super::Factory) and does not call `on_established` again. Empty by default: the controller then starts anew with
    /// the current window. A connection that moves within a program takes the controller along.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Copies a controller; implemented for every controller that is `Clone`.
pub trait CloneController {
    /// Returns a copy.
    fn clone_boxed(&self) -> Box<dyn Controller>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
