//! State with which a connection detects losses, repairs them, and recognises spurious ones.

use crate::config::Config;
use crate::congestion::{DUPLICATE_THRESHOLD, RateReduction, Saved};
use crate::delivery_rate::DeliveryRate;
use crate::flight::Flight;
use crate::rack::Rack;
use baton_wire::SeqNr;
use serde::{Deserialize, Serialize};

bitflags::bitflags! {
    /// The mechanisms that are on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct Switches: u8 {
        /// RACK-TLP, if SACK is in use.
        const RACK_TLP = 1;
        /// Proportional rate reduction, if SACK is in use.
        const RATE_REDUCTION = 1 << 1;
        const FORWARD_RTO = 1 << 2;
        const UNDO = 1 << 3;
        const LIMITED_TRANSMIT = 1 << 4;
        /// A tail loss probe is to be sent.
        const PROBE_TAIL = 1 << 5;
        /// The duplicate threshold follows the degree of reordering.
        const ADAPTIVE_THRESHOLD = 1 << 6;
    }
}

impl Switches {
    pub(crate) fn of(config: &Config) -> Self {
        let switches = [
            (Self::RACK_TLP, config.rack_tlp),
            (Self::RATE_REDUCTION, config.rate_reduction),
            (Self::FORWARD_RTO, config.forward_rto),
            (Self::UNDO, config.undo),
            (Self::LIMITED_TRANSMIT, config.limited_transmit),
            (Self::ADAPTIVE_THRESHOLD, config.linux.adaptive_threshold),
        ];
        switches
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(switch, _)| switch)
            .collect()
    }
}

/// Purpose for which the loss timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LossTimer {
    /// A segment may have been overtaken; it is lost when the timer fires (RFC 8985 6.2, step 5).
    Reordering,
    /// The tail may be lost; it is probed when the timer fires (RFC 8985 7.2).
    Probe,
}

/// A tail loss probe whose answer is awaited (RFC 8985 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TailProbe {
    /// TLP.end_seq.
    pub(crate) end: SeqNr,
    /// TLP.is_retrans.
    pub(crate) again: bool,
}

/// State of F-RTO (RFC 5682 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForwardRto {
    /// No timeout is in doubt.
    Off,
    /// Step 1: the first segment was sent again.
    FirstAgain,
    /// Step 2b: new data is sent, up to this number.
    NewData(SeqNr),
}

/// One loss: what followed from it, and the state to restore if it was spurious.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Episode {
    pub(crate) saved: Saved,
    pub(crate) reduction: Option<RateReduction>,
    /// SND.UNA when the loss was detected.
    pub(crate) start: SeqNr,
    /// TSval and end of the first segment that was sent again.
    pub(crate) first_again: Option<(u32, SeqNr)>,
    /// Bytes sent again, and how many of them the peer reported as duplicates.
    pub(crate) again: u32,
    pub(crate) duplicate: u32,
    /// Set when the recovery has ended: until this number is acknowledged, reports of duplicates may still show that the loss was
    /// spurious.
    pub(crate) until: Option<SeqNr>,
}

impl Episode {
    pub(crate) fn new(saved: Saved, start: SeqNr) -> Self {
        Self {
            saved,
            reduction: None,
            start,
            first_again: None,
            again: 0,
            duplicate: 0,
            until: None,
        }
    }

    /// Records that a segment was sent again.
    pub(crate) fn sent_again(&mut self, end: SeqNr, len: u32, timestamp: u32) {
        self.first_again.get_or_insert((timestamp, end));
        self.again = self.again.saturating_add(len);
    }
}

/// Loss detection and repair of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repair {
    pub(crate) switches: Switches,
    pub(crate) timer: LossTimer,
    pub(crate) forward: ForwardRto,
    pub(crate) tail: Option<TailProbe>,
    pub(crate) flight: Flight,
    pub(crate) rack: Rack,
    /// The last loss, as long as it may turn out to be spurious.
    pub(crate) episode: Option<Box<Episode>>,
    pub(crate) rate: DeliveryRate,
    /// Segments known to have arrived, and those whose acknowledgment echoed congestion.
    pub(crate) delivered: u32,
    pub(crate) delivered_marked: u32,
    /// Reports of duplicates.
    pub(crate) duplicates: u32,
}

impl Repair {
    pub(crate) fn new(iss: SeqNr, config: &Config) -> Self {
        Self {
            switches: Switches::of(config),
            timer: LossTimer::Probe,
            forward: ForwardRto::Off,
            tail: None,
            flight: Flight::default(),
            rack: Rack::new(iss),
            episode: None,
            rate: DeliveryRate::new(iss),
            delivered: 0,
            delivered_marked: 0,
            duplicates: 0,
        }
    }

    /// Stops keeping transmission times.
    pub(crate) fn stop_times(&mut self) {
        self.flight = Flight::default();
        self.tail = None;
        self.switches.remove(Switches::PROBE_TAIL);
    }

    /// Clears the state of a connection that ended.
    pub(crate) fn end(&mut self) {
        self.stop_times();
        self.episode = None;
    }

    /// Reports whether no loss is being repaired or in doubt, no tail is being probed, and nothing was sent again or reported.
    pub(crate) fn is_undisturbed(&self) -> bool {
        self.forward == ForwardRto::Off
            && self.tail.is_none()
            && self.episode.is_none()
            && self.flight.is_in_order()
    }

    pub(crate) fn is_on(&self, switch: Switches) -> bool {
        self.switches.contains(switch)
    }

    /// Duplicate acknowledgments, or segments reported beyond a hole, that mean a loss (RFC 5681 3.2, RFC 6675 2).
    #[inline]
    pub(crate) fn duplicate_threshold(&self) -> u32 {
        let usual = u32::from(DUPLICATE_THRESHOLD);
        match self.is_on(Switches::ADAPTIVE_THRESHOLD) {
            true => self.rack.reordering_degree().max(usual),
            false => usual,
        }
    }

    /// The state of PRR, during a recovery that uses it.
    pub(crate) fn reduction(&mut self) -> Option<&mut RateReduction> {
        self.episode.as_mut()?.reduction.as_mut()
    }
}
