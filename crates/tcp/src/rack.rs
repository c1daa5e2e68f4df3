//! RACK's view of the network: what arrived last, and how far segments get out of order (RFC 8985 6.2).

use crate::clock::Moment;
use crate::congestion::DUPLICATE_THRESHOLD;
use crate::flight::{Arrived, Judgment, Sent};
use baton_wire::{SackBlock, SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Recoveries for which a widened reordering window lasts (RFC 8985 6.2, step 4).
const WIDE_FOR: u8 = 16;

/// The least round-trip time is that of the last one to two of these.
const LEAST_OF: Span = Span::from_secs(150);

/// What one acknowledgment tells, gathered while it is taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Moment,
    /// TSecr, if timestamps are in use.
    pub(crate) echo: Option<u32>,
    /// Numbers up to this one were sent before the last loss was noticed.
    pub(crate) recover: SeqNr,
    /// Bytes by which SND.UNA moved.
    pub(crate) acked: u32,
    /// Bytes that are newly known to have arrived, by SND.UNA or by report.
    pub(crate) delivered: u32,
    /// Bytes newly reported.
    pub(crate) reported: u32,
    /// Segments newly known to have arrived.
    pub(crate) segments: u32,
    /// Round-trip times of the first and the last of them that was sent only once.
    pub(crate) first_rtt: Option<Span>,
    pub(crate) last_rtt: Option<Span>,
    /// One of them was sent once, before the last loss was noticed.
    pub(crate) original: bool,
    /// How far beyond the start of one of them, which was sent once, something had arrived before, bytes.
    pub(crate) reordering: u32,
    /// What arrived more than once (RFC 2883).
    pub(crate) duplicate: Option<SackBlock>,
    /// It carries ECN-Echo.
    pub(crate) echoes_congestion: bool,
}

impl Delivery {
    /// A segment arrived, of about `len` bytes, sent once; something had arrived before that ends `by` bytes behind it.
    pub(crate) fn note_reordering(&mut self, by: u32, len: u32) {
        if by > 0 {
            self.reordering = self.reordering.max(by.saturating_add(len));
        }
    }
}

/// Whether segments get out of order, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Reordering {
    Unseen,
    Seen {
        /// Acknowledgments that told of it.
        times: u32,
        /// Most segments by which one was late.
        degree: u8,
    },
}

/// State of RFC 8985 5.3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rack {
    /// RACK.xmit_ts, RACK.end_seq and RACK.rtt of the most recently sent segment that arrived, if one did.
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

    /// How often RACK.reordering_seen was found so.
    pub(crate) fn reordering_seen(&self) -> u32 {
        match self.reordering {
            Reordering::Unseen => 0,
            Reordering::Seen { times, .. } => times,
        }
    }

    /// Most segments by which one was late.
    pub(crate) fn reordering_degree(&self) -> u32 {
        match self.reordering {
            Reordering::Unseen => 0,
            Reordering::Seen { degree, .. } => degree.into(),
        }
    }

    /// An acknowledgment told of a segment that was late by so many.
    pub(crate) fn saw_reordering(&mut self, segments: u32) {
        self.reordering = Reordering::Seen {
            times: self.reordering_seen().saturating_add(1),
            degree: self.reordering_degree().max(segments).min(u8::MAX.into()) as u8,
        };
    }

    /// Bytes by which something arrived beyond `end`.
    pub(crate) fn overtaken_by(&self, end: SeqNr) -> u32 {
        self.forward.saturating_since(end)
    }

    /// RACK.min_RTT.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        self.least.get()
    }

    /// A round-trip time was measured by other means: the handshake's.
    pub(crate) fn sample(&mut self, now: Moment, rtt: Span) {
        self.rtt = rtt;
        self.least.sample(now, rtt);
    }

    /// Steps 1 to 3, for one segment that is newly known to have arrived. They come in sequence order.
    pub(crate) fn arrived(&mut self, sent: &Sent, smss: u32, ack: &mut Delivery) {
        ack.segments += 1;
        let rtt = ack.now.since(sent.at);
        if sent.again() {
            // Which copy arrived? One sent later than the echoed timestamp, or just now, is not it.
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

    /// The same for segments that arrived in order, each of which was sent once; gives the round-trip times of the first and
    /// the last. Times of sending do not run back, so the last one's is the shortest.
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

    /// SND.UNA is `una` now, and more was sent up to `max`. A duplicate shows that the window is too small (step 4).
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

    /// A recovery ended (step 4).
    pub(crate) fn recovered(&mut self) {
        self.wide_for = self.wide_for.saturating_sub(1);
        if self.wide_for == 0 {
            self.quarters = 1;
        }
    }

    /// RACK_update_reo_wnd (step 4). While nothing was seen out of order, a third reported segment is enough, as in
    /// RFC 6675, and so is a loss noticed before.
    fn reordering_window(&self, recovering: bool, reported_segments: u32, srtt: Span) -> Span {
        let counted = reported_segments >= u32::from(DUPLICATE_THRESHOLD);
        if self.reordering == Reordering::Unseen && (recovering || counted) {
            return Span::ZERO;
        }
        let least = self.least.get().unwrap_or(Span::ZERO);
        (least * u64::from(self.quarters) / 4).min(srtt)
    }

    /// What to judge segments by; nothing while nothing arrived.
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

    /// After how much time a segment that was not heard of is lost.
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
