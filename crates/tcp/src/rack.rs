//! RACK's view of the network: which segment arrived last, and how far segments get out of order (RFC 8985 6.2).

use crate::clock::Moment;
use crate::congestion::DUPLICATE_THRESHOLD;
use crate::flight::{Arrived, Judgment, Sent};
use baton_wire::{SackBlock, SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Recoveries for which a widened reordering window lasts (RFC 8985 6.2, step 4).
const WIDE_FOR: u8 = 16;

/// The minimum round-trip time covers between one and two of these periods.
const LEAST_OF: Span = Span::from_secs(150);

/// Findings about one acknowledgment, collected while it is processed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Moment,
    /// TSecr, if timestamps are in use.
    pub(crate) echo: Option<u32>,
    /// Numbers up to this one were sent before the last loss was detected.
    pub(crate) recover: SeqNr,
    /// Bytes by which SND.UNA moved.
    pub(crate) acked: u32,
    /// Bytes that are newly known to have arrived, by SND.UNA or by report.
    pub(crate) delivered: u32,
    /// Bytes newly reported.
    pub(crate) reported: u32,
    /// Segments newly known to have arrived.
    pub(crate) segments: u32,
    /// Round-trip times of the first and the last of these segments that were sent only once.
    pub(crate) first_rtt: Option<Span>,
    pub(crate) last_rtt: Option<Span>,
    /// One of these segments was sent once, before the last loss was detected.
    pub(crate) original: bool,
    /// Most bytes by which earlier arrivals extend beyond the start of one of these segments that was sent once.
    pub(crate) reordering: u32,
    /// Data that the peer reported as a duplicate (RFC 2883).
    pub(crate) duplicate: Option<SackBlock>,
    /// The acknowledgment carries ECN-Echo.
    pub(crate) echoes_congestion: bool,
}

impl Delivery {
    /// Records that a segment of about `len` bytes, sent once, arrived after data that ends `by` bytes beyond it.
    pub(crate) fn note_reordering(&mut self, by: u32, len: u32) {
        if by > 0 {
            self.reordering = self.reordering.max(by.saturating_add(len));
        }
    }
}

/// Reordering of segments that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reordering {
    Unseen,
    Seen {
        /// Acknowledgments that showed reordering.
        times: u32,
        /// Largest number of segments by which a segment was late.
        degree: u8,
    },
}

/// State of RFC 8985 5.3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rack {
    /// RACK.xmit_ts, RACK.end_seq and RACK.rtt of the most recently sent segment that arrived, if any.
    latest: Option<Sent>,
    rtt: Span,
    /// RACK.fack: the highest number that arrived.
    forward: SeqNr,
    least: LeastRtt,
    /// RACK.reordering_seen.
    reordering: Reordering,
    /// RACK.reo_wnd_mult and RACK.reo_wnd_persist.
    quarters: u8,
    wide_for: u8,
    /// RACK.dsack_round.
    round: Option<SeqNr>,
}

impl Rack {
    pub(crate) fn new(iss: SeqNr) -> Self {
        Self {
            latest: None,
            rtt: Span::ZERO,
            forward: iss,
            least: LeastRtt::default(),
            reordering: Reordering::Unseen,
            quarters: 1,
            wide_for: 0,
            round: None,
        }
    }

    /// How often reordering was seen (RACK.reordering_seen).
    pub(crate) fn reordering_seen(&self) -> u32 {
        match self.reordering {
            Reordering::Unseen => 0,
            Reordering::Seen { times, .. } => times,
        }
    }

    /// Largest number of segments by which a segment was late.
    pub(crate) fn reordering_degree(&self) -> u32 {
        match self.reordering {
            Reordering::Unseen => 0,
            Reordering::Seen { degree, .. } => degree.into(),
        }
    }

    /// Records that an acknowledgment showed a segment that was late by `segments`.
    pub(crate) fn saw_reordering(&mut self, segments: u32) {
        self.reordering = Reordering::Seen {
            times: self.reordering_seen().saturating_add(1),
            degree: self.reordering_degree().max(segments).min(u8::MAX.into()) as u8,
        };
    }

    /// Bytes by which the highest number that arrived is beyond `end`.
    pub(crate) fn overtaken_by(&self, end: SeqNr) -> u32 {
        self.forward.saturating_since(end)
    }

    /// RACK.min_RTT.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.least.get()
    }

    /// Takes the round-trip time of the handshake.
    pub(crate) fn sample(&mut self, now: Moment, rtt: Span) {
        self.rtt = rtt;
        self.least.sample(now, rtt);
    }

    /// Steps 1 to 3, for one segment that is newly known to have arrived. Called in sequence order.
    pub(crate) fn arrived(&mut self, sent: &Sent, smss: u32, ack: &mut Delivery) {
        ack.segments += 1;
        let rtt = ack.now.since(sent.at);
        if sent.again() {
            // Which copy arrived? Not one that was sent after the echoed timestamp, or too recently.
            let earlier = |echo: u32| (echo.wrapping_sub(sent.at.timestamp()) as i32) < 0;
            let too_fast = self.least.get().is_some_and(|least| rtt < least);
            if ack.echo.is_some_and(earlier) || too_fast {
                return;
            }
        } else {
            ack.note_reordering(self.overtaken_by(sent.end), smss);
            self.least.sample(ack.now, rtt);
            ack.first_rtt.get_or_insert(rtt);
            ack.last_rtt = Some(rtt);
            ack.original |= sent.end.at_or_before(ack.recover);
        }
        self.forward = self.forward.latest(sent.end);
        self.rtt = rtt;
        if self.latest.is_none_or(|latest| sent.after(&latest)) {
            self.latest = Some(*sent);
        }
    }

    /// Steps 1 to 3 for segments that arrived in order and were sent once. Returns the round-trip times of the first and the last,
    /// which is the shortest because transmission times do not decrease.
    pub(crate) fn arrived_in_order(&mut self, arrived: &Arrived, now: Moment) -> (Span, Span) {
        let Arrived { first, last, .. } = arrived;
        debug_assert!(
            !first.end.before(self.forward),
            "nothing was reported before it"
        );
        let rtt = now.since(last.at);
        self.least.sample(now, rtt);
        self.forward = self.forward.latest(last.end);
        self.rtt = rtt;
        if self.latest.is_none_or(|latest| last.after(&latest)) {
            self.latest = Some(*last);
        }
        (now.since(first.at), rtt)
    }

    /// Widens the window once in a round trip if there was a duplicate, which shows that the window is too small (step 4). `una`
    /// is SND.UNA and `max` SND.MAX.
    pub(crate) fn note_duplicates(&mut self, duplicate: bool, una: SeqNr, max: SeqNr) {
        self.forward = self.forward.latest(una);
        if self.round.is_some_and(|round| una.at_or_after(round)) {
            self.round = None;
        }
        if duplicate && self.round.is_none() {
            self.round = Some(max);
            self.quarters = self.quarters.saturating_add(1);
            self.wide_for = WIDE_FOR;
        }
    }

    /// Narrows the window again after enough recoveries (step 4).
    pub(crate) fn recovered(&mut self) {
        self.wide_for = self.wide_for.saturating_sub(1);
        if self.wide_for == 0 {
            self.quarters = 1;
        }
    }

    /// RACK_update_reo_wnd (step 4). The window is zero while no reordering was seen and there are three reported segments, as in
    /// RFC 6675, or a loss is being repaired.
    fn reordering_window(&self, recovering: bool, reported_segments: u32, srtt: Span) -> Span {
        let counted = reported_segments >= u32::from(DUPLICATE_THRESHOLD);
        if self.reordering == Reordering::Unseen && (recovering || counted) {
            return Span::ZERO;
        }
        let least = self.least.get().unwrap_or(Span::ZERO);
        (least * u64::from(self.quarters) / 4).min(srtt)
    }

    /// The criteria by which segments are lost, or `None` if no segment has arrived.
    pub(crate) fn judgment(
        &self,
        now: Moment,
        recovering: bool,
        reported_segments: u32,
        srtt: Span,
    ) -> Option<Judgment> {
        let latest = self.latest?;
        let window = self.reordering_window(recovering, reported_segments, srtt);
        Some(Judgment {
            now,
            latest,
            lost_after: self.rtt + window,
        })
    }

    /// Time after which an unacknowledged segment is lost.
    pub(crate) fn lost_after(&self, reported_segments: u32, srtt: Span) -> Span {
        self.rtt + self.reordering_window(true, reported_segments, srtt)
    }
}

/// A minimum over a window that moves in two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LeastRtt {
    current: Option<Span>,
    previous: Option<Span>,
    since: Moment,
}

impl LeastRtt {
    fn get(&self) -> Option<Span> {
        match (self.current, self.previous) {
            (Some(current), Some(previous)) => Some(current.min(previous)),
            (current, previous) => current.or(previous),
        }
    }

    fn sample(&mut self, now: Moment, rtt: Span) {
        if self.get().is_none() {
            self.since = now;
        } else if now.since(self.since) > LEAST_OF {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |current| current.min(rtt)));
    }
}

#[cfg(test)]
mod tests;
