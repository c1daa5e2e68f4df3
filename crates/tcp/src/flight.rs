//! Segments that were sent and are not acknowledged, with the time of their last transmission (RFC 8985 5.2).

use crate::clock::Moment;
use crate::sack::Scoreboard;
use baton_wire::{SackBlock, SeqNr, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A ring of up to this many records stays allocated while nothing is in flight: an idle connection keeps little memory, and
/// one whose windows are acknowledged as a whole does not reallocate again and again.
const KEPT_CAPACITY: usize = 16;

bitflags::bitflags! {
    /// What is known of a segment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Known: u8 {
        /// The peer reported the segment (SACK).
        const REPORTED = 1;
        /// The segment counts as lost and is to be sent again.
        const LOST = 1 << 1;
        /// The segment was sent more than once.
        const AGAIN = 1 << 2;
    }
}

/// One segment. It starts where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) end: SeqNr,
    /// Number of segments sent before at the same moment, which tells the order even if the clock is coarse.
    order: u16,
    known: Known,
    /// When it was last sent.
    pub(crate) at: Moment,
}

impl Sent {
    /// Reports whether the segment was sent more than once.
    pub(crate) fn again(&self) -> bool {
        self.known.contains(Known::AGAIN)
    }

    /// Number of segments sent before at the same moment.
    pub(crate) fn order(&self) -> u16 {
        self.order
    }

    /// RACK_sent_after (RFC 8985 6.2, step 2).
    pub(crate) fn after(&self, other: &Self) -> bool {
        if self.at != other.at {
            return self.at.after(other.at);
        }
        self.order > other.order || (self.order == other.order && self.end.after(other.end))
    }
}

/// The most recently sent segment that arrived, and the longest time that a segment may take (RFC 8985 6.2, steps 2 and 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgment {
    pub(crate) now: Moment,
    /// RACK.xmit_ts and RACK.end_seq.
    pub(crate) latest: Sent,
    /// RACK.rtt + RACK.reo_wnd.
    pub(crate) lost_after: Span,
}

/// Result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// There is a new loss.
    pub(crate) lost: bool,
    /// Time after which more segments count as lost unless they are acknowledged; zero if none will.
    pub(crate) wait: Span,
}

/// Segments that arrived in the order in which they were sent, each sent once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) first: Sent,
    pub(crate) last: Sent,
    pub(crate) segments: u32,
}

/// All segments from SND.UNA on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Flight {
    segments: VecDeque<Sent>,
    /// Bytes that count as lost.
    lost: u32,
    /// Segments that the peer reported, and those sent again that are neither reported nor lost.
    reported_segments: u32,
    again_segments: u32,
    /// Nothing below this number counts as lost.
    lost_from: SeqNr,
    /// Time of the last transmission, and how many there were before it at the same moment.
    latest: Moment,
    order: u16,
}

impl Flight {
    /// Bytes that count as lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    pub(crate) fn reported_segments(&self) -> u32 {
        self.reported_segments
    }

    /// Segments that were sent again and may still arrive.
    pub(crate) fn again_segments(&self) -> u32 {
        self.again_segments
    }

    /// Number of segments sent before the last one at the same moment.
    pub(crate) fn order(&self) -> u16 {
        self.order
    }

    /// The first segment.
    pub(crate) fn first(&self) -> Option<Sent> {
        self.segments.front().copied()
    }

    /// The unreported segment whose last transmission is the longest ago.
    pub(crate) fn earliest(&self) -> Option<Sent> {
        let awaited = self.segments.iter();
        let awaited = awaited.filter(|sent| !sent.known.contains(Known::REPORTED));
        awaited
            .copied()
            .reduce(|first, sent| if first.after(&sent) { sent } else { first })
    }

    /// Reports whether segments may have arrived out of the order in which they were last sent.
    pub(crate) fn is_mixed(&self) -> bool {
        self.reported_segments > 0 || self.again_segments > 0
    }

    /// Reports whether every segment was sent once and none is reported or lost.
    pub(crate) fn is_in_order(&self) -> bool {
        self.lost | self.reported_segments | self.again_segments == 0
    }

    /// Starts tracking data that is outstanding already. Its transmission times are unknown, so it counts as sent now.
    pub(crate) fn start(
        &mut self,
        una: SeqNr,
        max: SeqNr,
        board: Option<&Scoreboard>,
        now: Moment,
    ) {
        *self = Self::default();
        self.sent(una, una, max, now);
        let mut from = una;
        while let Some(block) = board.and_then(|board| board.block_from(from)) {
            self.report(una, block.start, block.end, |_| ());
            from = block.end;
        }
    }

    // --- events ---

    /// Records that the numbers from `seq` to `end` were sent, for the first time or again.
    pub(crate) fn sent(&mut self, una: SeqNr, seq: SeqNr, end: SeqNr, at: Moment) {
        let max = self.max(una);
        self.order = match self.latest == at {
            true => self.order.saturating_add(1),
            false => 0,
        };
        self.latest = at;
        if seq.before(max) {
            self.sent_again(una, seq, end.earliest(max), at);
        }
        if end.after(max) {
            self.segments.push_back(Sent {
                end,
                order: self.order,
                known: Known::empty(),
                at,
            });
        }
    }

    fn sent_again(&mut self, una: SeqNr, seq: SeqNr, end: SeqNr, at: Moment) {
        self.split(una, seq);
        self.split(una, end);
        let order = self.order;
        let mut index = self.index_of(seq);
        while index < self.segments.len() && self.segments[index].end.at_or_before(end) {
            self.change(una, index, |sent| {
                sent.at = at;
                sent.order = order;
                sent.known.insert(Known::AGAIN);
                sent.known.remove(Known::LOST);
            });
            index += 1;
        }
    }

    /// Moves SND.UNA from `una` to `ack`. `visit` is called with each segment that was not known to have arrived.
    pub(crate) fn advance(&mut self, una: SeqNr, ack: SeqNr, mut visit: impl FnMut(&Sent)) {
        let mut start = una;
        while let Some(&first) = self.segments.front() {
            if first.end.after(ack) {
                break;
            }
            self.count_out(&first, first.end - start);
            self.segments.pop_front();
            if !first.known.contains(Known::REPORTED) {
                visit(&first);
            }
            start = first.end;
        }
        if let Some(first) = self.segments.front()
            && first.known.contains(Known::LOST)
        {
            // Part of this segment is acknowledged.
            self.lost -= ack - start;
        }
        self.shrink_if_empty();
    }

    /// Moves SND.UNA to `ack` while everything is in order. Returns the segments that arrived, if any arrived as a whole.
    #[inline]
    pub(crate) fn advance_in_order(&mut self, ack: SeqNr) -> Option<Arrived> {
        debug_assert!(self.is_in_order(), "nothing else is known of any segment");
        let first = *self
            .segments
            .front()
            .filter(|it| it.end.at_or_before(ack))?;
        let (mut last, mut segments) = (first, 0);
        while let Some(&next) = self.segments.front() {
            if next.end.after(ack) {
                break;
            }
            self.segments.pop_front();
            last = next;
            segments += 1;
        }
        self.shrink_if_empty();
        Some(Arrived {
            first,
            last,
            segments,
        })
    }

    fn shrink_if_empty(&mut self) {
        if self.segments.is_empty() && self.segments.capacity() > KEPT_CAPACITY {
            self.segments = VecDeque::new();
        }
    }

    /// Returns the part of a report that covers whole segments. The rest does not count (RFC 2018 5).
    pub(crate) fn whole_segments(&self, una: SeqNr, block: SackBlock) -> SackBlock {
        let first = self.index_of(block.start);
        let start = match self.segments.get(first) {
            Some(sent) if self.start_of(una, first).before(block.start) => sent.end,
            _ => block.start,
        };
        let last = self.index_of(block.end);
        let end = match self.segments.get(last) {
            Some(_) => self.start_of(una, last).latest(start),
            None => block.end,
        };
        SackBlock { start, end }
    }

    /// Records that the peer newly reports the numbers from `start` to `end`. `visit` is called with each segment among them.
    pub(crate) fn report(
        &mut self,
        una: SeqNr,
        start: SeqNr,
        end: SeqNr,
        mut visit: impl FnMut(&Sent),
    ) {
        self.split(una, start);
        self.split(una, end);
        let mut index = self.index_of(start);
        while index < self.segments.len() && self.segments[index].end.at_or_before(end) {
            if !self.segments[index].known.contains(Known::REPORTED) {
                visit(&self.segments[index]);
                self.change(una, index, |sent| {
                    sent.known.insert(Known::REPORTED);
                    sent.known.remove(Known::LOST);
                });
            }
            index += 1;
        }
    }

    // --- losses ---

    /// RACK_detect_loss (RFC 8985 6.2, step 5): segments sent well before one that arrived are lost. `visit` is called with each
    /// newly lost segment and its length.
    pub(crate) fn detect(
        &mut self,
        una: SeqNr,
        by: &Judgment,
        mut visit: impl FnMut(&Sent, u32),
    ) -> Found {
        let mut found = Found::default();
        for index in 0..self.segments.len() {
            let sent = self.segments[index];
            if !sent.again() && sent.at.after(by.latest.at) {
                // This segment and all that follow were sent later than the one that arrived.
                break;
            }
            if sent.known.intersects(Known::REPORTED | Known::LOST) || !by.latest.after(&sent) {
                continue;
            }
            let wait = (sent.at + by.lost_after).since(by.now);
            if wait == Span::ZERO {
                found.lost = true;
                self.lose(una, index);
                visit(&sent, sent.end - self.start_of(una, index));
            } else {
                found.wait = found.wait.max(wait);
            }
        }
        found
    }

    /// Handles a timeout: the first segment is lost, and so are all that had `lost_after` to arrive (RFC 8985 6.3). `visit` is
    /// called with each newly lost segment and its length.
    pub(crate) fn time_out(
        &mut self,
        una: SeqNr,
        now: Moment,
        lost_after: Span,
        mut visit: impl FnMut(&Sent, u32),
    ) {
        for index in 0..self.segments.len() {
            let sent = self.segments[index];
            let expired = (sent.at + lost_after).since(now) == Span::ZERO;
            let lost = index == 0 || expired;
            if lost && !sent.known.intersects(Known::REPORTED | Known::LOST) {
                self.lose(una, index);
                visit(&sent, sent.end - self.start_of(una, index));
            }
        }
    }

    /// Marks all segments as lost that the peer did not report.
    pub(crate) fn lose_all(&mut self, una: SeqNr) {
        for index in 0..self.segments.len() {
            let known = self.segments[index].known;
            if !known.intersects(Known::REPORTED | Known::LOST) {
                self.lose(una, index);
            }
        }
    }

    /// Marks the segment that holds `seq` as lost.
    pub(crate) fn lose_segment(&mut self, una: SeqNr, seq: SeqNr) {
        let index = self.index_of(seq);
        if let Some(sent) = self.segments.get(index)
            && !sent.known.intersects(Known::REPORTED | Known::LOST)
        {
            self.lose(una, index);
        }
    }

    fn lose(&mut self, una: SeqNr, index: usize) {
        let start = self.start_of(una, index);
        self.lost_from = match self.lost {
            0 => start,
            _ => self.lost_from.earliest(start),
        };
        self.change(una, index, |sent| sent.known.insert(Known::LOST));
    }

    /// Start and end of the first lost segment.
    pub(crate) fn first_lost(&mut self, una: SeqNr) -> Option<(SeqNr, SeqNr)> {
        if self.lost == 0 {
            return None;
        }
        let first = self.index_of(self.lost_from.latest(una));
        let index = (first..self.segments.len())
            .find(|&index| self.segments[index].known.contains(Known::LOST))?;
        self.lost_from = self.start_of(una, index);
        Some((self.lost_from, self.segments[index].end))
    }

    /// Marks all segments as not lost.
    pub(crate) fn forgive(&mut self, una: SeqNr) {
        if self.lost == 0 {
            return;
        }
        for index in 0..self.segments.len() {
            self.change(una, index, |sent| sent.known.remove(Known::LOST));
        }
    }

    /// Forgets all reports, since the peer may have dropped that data (RFC 2018 8).
    pub(crate) fn forget_reports(&mut self, una: SeqNr) {
        for index in 0..self.segments.len() {
            self.change(una, index, |sent| sent.known.remove(Known::REPORTED));
        }
    }

    /// Start and end of the last segment.
    pub(crate) fn last(&self, una: SeqNr) -> Option<(SeqNr, SeqNr)> {
        let index = self.segments.len().checked_sub(1)?;
        Some((self.start_of(una, index), self.segments[index].end))
    }

    // --- inside ---

    /// The number after the last one sent.
    fn max(&self, una: SeqNr) -> SeqNr {
        self.segments.back().map_or(una, |last| last.end)
    }

    /// Index of the segment that holds `seq`, or the number of segments if `seq` is beyond all.
    fn index_of(&self, seq: SeqNr) -> usize {
        self.segments
            .partition_point(|sent| sent.end.at_or_before(seq))
    }

    fn start_of(&self, una: SeqNr, index: usize) -> SeqNr {
        match index {
            0 => una,
            _ => self.segments[index - 1].end,
        }
    }

    /// Makes `seq` the start of a segment.
    fn split(&mut self, una: SeqNr, seq: SeqNr) {
        let index = self.index_of(seq);
        if index == self.segments.len() || self.start_of(una, index).at_or_after(seq) {
            return;
        }
        let first = Sent {
            end: seq,
            ..self.segments[index]
        };
        self.segments.insert(index, first);
        // Its bytes are counted already, the additional segment is not.
        self.count_in(&first, 0);
    }

    fn change(&mut self, una: SeqNr, index: usize, change: impl FnOnce(&mut Sent)) {
        let len = self.segments[index].end - self.start_of(una, index);
        let before = self.segments[index];
        self.count_out(&before, len);
        change(&mut self.segments[index]);
        let after = self.segments[index];
        self.count_in(&after, len);
    }

    fn count_in(&mut self, sent: &Sent, len: u32) {
        let [lost, reported, again] = counts(sent.known);
        self.lost += lost * len;
        self.reported_segments += reported;
        self.again_segments += again;
    }

    fn count_out(&mut self, sent: &Sent, len: u32) {
        let [lost, reported, again] = counts(sent.known);
        self.lost -= lost * len;
        self.reported_segments -= reported;
        self.again_segments -= again;
    }

    /// Returns the invariant that is violated where no times are kept, if any.
    pub(crate) fn verify_unused(&self) -> Result<(), &'static str> {
        let counts = [self.lost, self.reported_segments, self.again_segments];
        match self.segments.is_empty() && counts == [0; 3] {
            true => Ok(()),
            false => Err("segments are recorded only where losses are noticed by time"),
        }
    }

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self, una: SeqNr, max: SeqNr) -> Result<(), &'static str> {
        let mut counted = Self::default();
        let mut start = una;
        for sent in &self.segments {
            if sent.end.at_or_before(start) || sent.end.after(max) {
                return Err("segments in flight are in order within what is outstanding");
            }
            counted.count_in(sent, sent.end - start);
            start = sent.end;
        }
        if start != max {
            return Err("every number in flight belongs to a segment");
        }
        let same = counted.lost == self.lost
            && counted.reported_segments == self.reported_segments
            && counted.again_segments == self.again_segments;
        match same {
            true => Ok(()),
            false => Err("lost, reported and repeated segments are counted"),
        }
    }
}

/// How a segment counts: as lost, as reported, as sent again and perhaps in flight.
fn counts(known: Known) -> [u32; 3] {
    let lost = known.contains(Known::LOST);
    let reported = known.contains(Known::REPORTED);
    let again = known.contains(Known::AGAIN) && !lost && !reported;
    [lost.into(), reported.into(), again.into()]
}

#[cfg(test)]
mod tests;
