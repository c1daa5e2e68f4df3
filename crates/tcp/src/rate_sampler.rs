//! Delivery rate samples (draft-ietf-ccwg-bbr-06 4.1): for each transmission, a snapshot of the state at its time; for each
//! acknowledgment, how fast data left the network since the latest transmission that it acknowledges.

use crate::clock::Moment;
use crate::congestion::RateSample;
use crate::flight::{Flight, Sent};
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Unused records are dropped when there are more records than this, and more than twice as many as the last clean-up left.
const LEAST_CLEANED: usize = 64;

/// Per-packet state of the draft (4.1.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Snapshot {
    /// P.send_time, and the number of segments sent before at the same moment, which identify the transmission.
    at: Moment,
    order: u16,
    end: SeqNr,
    /// P.delivered, P.delivered_time, P.first_send_time and P.lost.
    delivered: u64,
    delivered_at: Moment,
    first_sent: Moment,
    lost: u64,
    tx_in_flight: u32,
    is_app_limited: bool,
}

impl Snapshot {
    fn before(&self, at: Moment, order: u16) -> bool {
        at.after(self.at) || (at == self.at && order > self.order)
    }
}

/// Per-connection state of the draft (4.1.2.1.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RateSampler {
    /// C.delivered, C.delivered_time, C.first_send_time and C.lost.
    delivered: u64,
    delivered_at: Moment,
    first_sent: Moment,
    lost: u64,
    /// C.app_limited: the connection is application-limited until this much is delivered; 0: it is not.
    app_limited: u64,
    /// Value of `delivered` up to which the window counts as used up within the last round trip.
    window_used: u64,
    /// Transmissions in order.
    sent: VecDeque<Snapshot>,
    clean_above: usize,
    /// The most recently sent segment that an acknowledgment delivers, while it is processed.
    #[serde(skip)]
    newest: Option<Sent>,
    #[serde(skip)]
    fallback: Option<Snapshot>,
}

/// A segment that was just sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) at: Moment,
    /// Number of segments sent before at the same moment.
    pub(crate) order: u16,
    pub(crate) end: SeqNr,
    /// The segment is a retransmission.
    pub(crate) again: bool,
    /// Bytes in the network before and after.
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// The congestion window does not allow another segment.
    pub(crate) fills_window: bool,
}

impl RateSampler {
    pub(crate) fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at: Moment::default(),
            first_sent: Moment::default(),
            lost: 0,
            app_limited: 0,
            window_used: 0,
            sent: VecDeque::new(),
            clean_above: LEAST_CLEANED,
            newest: None,
            fallback: None,
        }
    }

    /// C.delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Reports whether C.app_limited is set.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// MarkConnectionAppLimited (4.1.2.4).
    pub(crate) fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited = self.delivered.saturating_add(in_flight.into()).max(1);
    }

    /// C.is_cwnd_limited.
    pub(crate) fn used_window(&self) -> bool {
        self.delivered <= self.window_used
    }

    /// Drops all records, since outstanding data is tracked in another way from now on.
    pub(crate) fn forget(&mut self) {
        self.sent.clear();
    }

    /// OnPacketSent (4.1.2.2).
    pub(crate) fn sent(&mut self, sent: &Transmission, by_time: bool) {
        if sent.before == 0 {
            self.first_sent = sent.at;
            self.delivered_at = sent.at;
        }
        if sent.fills_window {
            self.window_used = self.delivered.saturating_add(sent.after.into());
        }
        if sent.again && !by_time {
            // It is unknown for which copy an acknowledgment will be: start anew with this transmission.
            self.sent.clear();
        }
        self.sent.push_back(Snapshot {
            at: sent.at,
            order: sent.order,
            end: sent.end,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            tx_in_flight: sent.after,
            is_app_limited: self.is_app_limited(),
        });
    }

    /// UpdateRateSample (4.1.2.3), for each segment that newly arrived.
    pub(crate) fn arrived(&mut self, sent: &Sent) {
        if self.newest.is_none_or(|newest| sent.after(&newest)) {
            self.newest = Some(*sent);
        }
    }

    /// UpdateRateSample where segments are not tracked: everything up to `una` arrived.
    pub(crate) fn acknowledged(&mut self, una: SeqNr) {
        while let Some(first) = self.sent.front()
            && first.end.at_or_before(una)
        {
            self.fallback = self.sent.pop_front();
        }
    }

    /// Counts a lost segment. Returns the state when it was sent, if recorded.
    pub(crate) fn lost(&mut self, sent: &Sent, len: u32) -> Option<RateSample> {
        self.lost = self.lost.saturating_add(len.into());
        let snapshot = *self.find(sent)?;
        Some(self.sample(&snapshot))
    }

    /// Counts a lost segment where segments are not tracked, of whose transmission nothing is known.
    pub(crate) fn lost_untimed(&mut self, len: u32, in_flight: u32) -> RateSample {
        self.lost = self.lost.saturating_add(len.into());
        RateSample {
            prior_delivered: self.delivered,
            total_delivered: self.delivered,
            tx_in_flight: in_flight,
            lost: len.into(),
            is_app_limited: self.is_app_limited(),
            ..RateSample::default()
        }
    }

    /// Counts `bytes` that arrived.
    pub(crate) fn count(&mut self, now: Moment, bytes: u32) {
        if bytes > 0 {
            self.delivered = self.delivered.saturating_add(bytes.into());
            self.delivered_at = now;
        }
    }

    /// Implements GenerateRateSample (4.1.2.3). To be called after arrivals are counted and losses are known.
    pub(crate) fn generate(&mut self, now: Moment, least_rtt: Option<Span>) -> Option<RateSample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = self.newest.take();
        let known = newest.and_then(|newest| self.find(&newest).copied());
        let snapshot = self.fallback.take().or(known)?;
        let mut sample = self.sample(&snapshot);
        self.first_sent = snapshot.at;
        let sending = snapshot.at.since(snapshot.first_sent);
        let arriving = now.since(snapshot.delivered_at);
        sample.interval = sending.max(arriving);
        if sample.interval >= least_rtt.unwrap_or(Span::ZERO) {
            sample.rate = per_second(sample.delivered, sample.interval);
        }
        Some(sample)
    }

    fn sample(&self, snapshot: &Snapshot) -> RateSample {
        RateSample {
            delivered: self.delivered.saturating_sub(snapshot.delivered),
            interval: Span::ZERO,
            rate: 0,
            prior_delivered: snapshot.delivered,
            total_delivered: self.delivered,
            tx_in_flight: snapshot.tx_in_flight,
            lost: self.lost.saturating_sub(snapshot.lost),
            is_app_limited: snapshot.is_app_limited,
        }
    }

    fn find(&self, sent: &Sent) -> Option<&Snapshot> {
        let (at, order) = (sent.at, sent.order());
        let index = self.sent.partition_point(|it| it.before(at, order));
        self.sent
            .get(index)
            .filter(|it| it.at == at && it.order == order)
    }

    /// Drops records of transmissions that cannot be acknowledged any more.
    pub(crate) fn clean(&mut self, flight: &Flight) {
        if flight.is_in_order() {
            match flight.first() {
                Some(first) => self.drop_before(first.at, first.order()),
                None => self.sent.clear(),
            }
            self.clean_above = LEAST_CLEANED;
        } else if self.sent.len() > self.clean_above {
            match flight.earliest() {
                Some(first) => self.drop_before(first.at, first.order()),
                None => self.sent.clear(),
            }
            self.clean_above = LEAST_CLEANED.max(2 * self.sent.len());
        }
    }

    fn drop_before(&mut self, at: Moment, order: u16) {
        while let Some(first) = self.sent.front()
            && first.before(at, order)
        {
            self.sent.pop_front();
        }
    }
}

/// Bytes a second.
fn per_second(bytes: u64, interval: Span) -> u64 {
    match interval {
        Span::ZERO => 0,
        _ => {
            let second = u128::from(Span::from_secs(1).as_ps());
            (u128::from(bytes) * second / u128::from(interval.as_ps())).min(u64::MAX.into()) as u64
        }
    }
}

#[cfg(test)]
mod tests;
