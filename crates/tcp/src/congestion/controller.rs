//! What a congestion controller is: the questions that the engine asks, and what it tells.

use crate::clock::Moment;
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

bitflags::bitflags! {
    /// What a controller wants of the engine beside being asked how the window grows and shrinks. What is not wanted is
    /// neither measured nor paid for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Needs: u8 {
        /// [`Controller::on_ack`] for each acknowledgment.
        const ACKS = 1;
        /// Delivery rate samples with them, and [`Controller::on_lost`] for each segment that counts as lost.
        const RATE_SAMPLES = 1 << 1;
        /// Data is sent no faster than [`Controller::pacing_rate`].
        const PACING = 1 << 2;
        /// The window is [`Controller::window`]: no slow start, no rate reduction, no restart after an idle time.
        const WINDOW = 1 << 3;
        /// Each mark of the network counts, not only that there was one in a window (RFC 8257): all data is sent as
        /// ECN-capable, and this end's receiver says of each mark that it arrived.
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

/// The connection is established, or the controller takes over one that is.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// The window to begin with, bytes (RFC 6928).
    pub window: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Round-trip time of the handshake, or smoothed; zero when none was measured.
    pub srtt: Span,
    /// The peer reports what arrives beyond holes (RFC 2018).
    pub sack: bool,
}

/// New data was acknowledged, in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// Bytes by which SND.UNA moved.
    pub bytes: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// What this acknowledgment measured, if anything.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Span,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// FlightSize (RFC 5681 2), bytes; what is in the network still for a controller that has the window to itself.
    pub flight: u32,
    /// Data that a full segment holds.
    pub smss: u32,
}

/// An acknowledgment, whatever it says; what follows from it (losses, the end of a recovery) was told before.
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
    /// Time since the latest sent of the segments that newly arrived was sent, if it was sent once.
    pub rtt: Option<Span>,
    /// It carries ECN-Echo (RFC 3168).
    pub echoes_congestion: bool,
    /// A loss is being repaired.
    pub recovering: bool,
    /// The window was used up within the last round trip; known with [`Needs::RATE_SAMPLES`].
    pub used_window: bool,
    /// Of the latest sent of the segments that newly arrived; with [`Needs::RATE_SAMPLES`].
    pub sample: Option<RateSample>,
}

/// How fast data left the network while one segment was under way (draft-ietf-ccwg-bbr-06 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered from the segment's transmission until now.
    pub delivered: u64,
    /// Over how much time they count: that of sending or that of acknowledging, whichever is longer.
    pub interval: Span,
    /// Bytes a second; 0 when the interval is too short to say.
    pub rate: u64,
    /// Bytes delivered since the connection's start: when the segment was sent, and now.
    pub prior_delivered: u64,
    /// The same, now.
    pub total_delivered: u64,
    /// Bytes in the network just after the segment was sent.
    pub tx_in_flight: u32,
    /// Bytes that came to count as lost since it was sent.
    pub lost: u64,
    /// When it was sent the application had written less than the window allows.
    pub is_app_limited: bool,
}

/// A segment newly counts as lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Now, on the connection's clock.
    pub now: Moment,
    /// Its first number.
    pub seq: SeqNr,
    /// Its length.
    pub bytes: u32,
    /// Data that a full segment holds.
    pub smss: u32,
    /// Bytes delivered since the connection's start.
    pub total_delivered: u64,
    /// What was so when it was sent; `delivered`, `interval` and `rate` say nothing. None when it was not recorded.
    pub sample: Option<RateSample>,
}

/// A congestion controller of one connection.
///
/// One that wants nothing of [`Needs`] is a relative of Reno: the engine keeps the window, with slow start (RFC 5681, RFC
/// 9406), proportional rate reduction (RFC 9937) and the rule that a window that is not used does not grow (RFC 7661), and
/// asks by how much it grows after slow start and how far it is reduced. When a loss turns out to have been none, the copy
/// of the controller from before the loss is put back (RFC 4015). With [`Needs::WINDOW`] all of that is up to the controller.
///
/// Nothing may be assumed of time but what is given: moments are on the connection's own clock and move with it.
pub trait Controller: CloneController + Debug + Send + Sync {
    /// Asked once, when it is made.
    fn needs(&self) -> Needs {
        Needs::empty()
    }

    /// The connection is established, or was when the controller took over.
    fn on_established(&mut self, _start: &Start) {}

    /// New data was acknowledged, the window was in use and slow start is over: how many bytes the window grows.
    fn on_growth(&mut self, window: Window, acked: &Acked) -> u32;

    /// A loss was noticed by duplicate acknowledgments or by time: the new ssthresh. `window` is from before.
    fn on_loss(&mut self, window: Window, loss: &Loss) -> u32;

    /// The retransmission timer told of a loss: the new ssthresh. With [`Needs::WINDOW`] each time it does, otherwise
    /// the first time for the same data.
    fn on_timeout(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// The network marked what was sent, for the first time in a window of data (RFC 3168 6.1.2): the new ssthresh.
    fn on_ecn_echo(&mut self, window: Window, loss: &Loss) -> u32 {
        self.on_loss(window, loss)
    }

    /// The window was not used for so long, so that nothing was learnt about it.
    fn after_idle(&mut self, _idle: Span) {}

    /// An acknowledgment was taken in. With [`Needs::ACKS`].
    fn on_ack(&mut self, _ack: &Ack) {}

    /// A segment counts as lost. With [`Needs::RATE_SAMPLES`].
    fn on_lost(&mut self, _lost: &Lost) {}

    /// What was lost is repaired. With [`Needs::WINDOW`].
    fn on_recovered(&mut self) {}

    /// The last loss was none (RFC 4015). With [`Needs::WINDOW`], in place of putting a copy back.
    fn on_spurious(&mut self) {}

    /// Something is about to be sent while nothing is in flight, and the application was what was short of data before.
    /// With [`Needs::RATE_SAMPLES`].
    fn on_restart(&mut self, _now: Moment) {}

    /// cwnd, bytes. With [`Needs::WINDOW`].
    fn window(&self) -> u32 {
        0
    }

    /// Bytes a second. With [`Needs::PACING`]; 0 does not pace.
    fn pacing_rate(&self) -> u64 {
        0
    }

    /// Bytes that may leave at once where data is paced: a burst (C.send_quantum of draft-ietf-ccwg-bbr-06 5.6.3). At
    /// least a segment goes.
    fn send_quantum(&self) -> u32 {
        0
    }

    /// The controller itself holds data back: rate samples of what is sent now say nothing about the path. With
    /// [`Needs::RATE_SAMPLES`].
    fn holds_back(&self) -> bool {
        false
    }

    /// Its state, for a connection that is moved as bytes; its [`Factory`](super::Factory) gets it where the connection
    /// arrives, and `on_established` is not called again. Nothing by default: the controller then starts anew with the
    /// window as it is. A connection that moves within a program takes the controller along.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Copies a controller; every `Clone` one can.
pub trait CloneController {
    /// The copy.
    fn clone_boxed(&self) -> Box<dyn Controller>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
