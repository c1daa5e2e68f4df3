//! What was sent and is not acknowledged, segment by segment, with the time of its last transmission (RFC 8985 5.2).

use crate::clock::Moment;
use crate::sack::Scoreboard;
use baton_wire::{SackBlock, SeqNr, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A ring of up to this many records stays allocated while nothing is in flight: an idle connection keeps little, and one
/// whose windows are acknowledged as a whole does not ask for memory again and again.
const KEPT_CAPACITY: usize = 16;

bitflags::bitflags! {
    /// What is known of a segment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Known: u8 {
        /// The peer reported it (SACK).
        const REPORTED = 1;
        /// It counts as lost and is to be sent again.
        const LOST = 1 << 1;
        /// It was sent more than once.
        const AGAIN = 1 << 2;
    }
}

/// One segment. It starts where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) end: SeqNr,
    /// How many were sent before it at the same moment: it is to be known which came first even where clocks are coarse.
    order: u16,
    known: Known,
    /// When it was last sent.
    pub(crate) at: Moment,
}

impl Sent {
    /// It was sent more than once.
    pub(crate) fn again(&self) -> bool {
        self.known.contains(Known::AGAIN)
    }

    /// How many were sent before it at the same moment.
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

/// The most recently sent segment that arrived, and how long a segment takes at most (RFC 8985 6.2, steps 2 and 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judgment {
    pub(crate) now: Moment,
    /// RACK.xmit_ts and RACK.end_seq.
    pub(crate) latest: Sent,
    /// RACK.rtt + RACK.reo_wnd.
    pub(crate) lost_after: Span,
}

/// What came of looking for losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Something newly counts as lost.
    pub(crate) lost: bool,
    /// More may in so much time, unless it is heard of; zero if nothing may.
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
    /// Segments that the peer reported, and those sent again that it neither reported nor are lost.
    reported_segments: u32,
    again_segments: u32,
    /// Nothing below this number counts as lost.
    lost_from: SeqNr,
    /// The last transmission, and how many there were before it at the same moment.
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

    /// How many were sent before the last one at the same moment.
    pub(crate) fn order(&self) -> u16 {
        self.order
    }

    /// The first segment.
    pub(crate) fn first(&self) -> Option<Sent> {
        self.segments.front().copied()
    }

    /// The one of those that the peer did not report that was last sent the longest ago.
    pub(crate) fn earliest(&self) -> Option<Sent> {
        let awaited = self.segments.iter();
        let awaited = awaited.filter(|sent| !sent.known.contains(Known::REPORTED));
        awaited
            .copied()
            .reduce(|first, sent| if first.after(&sent) { sent } else { first })
    }

    /// True when segments may have arrived out of the order in which they were last sent.
    pub(crate) fn is_mixed(&self) -> bool {
        self.reported_segments > 0 || self.again_segments > 0
    }

    /// True when nothing is known of any segment but that it was sent, once.
    pub(crate) fn is_in_order(&self) -> bool {
        self.lost | self.reported_segments | self.again_segments == 0
    }

    /// Begins with what is outstanding already, as far as it is known: its times are not, so it counts as sent now.
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

    // --- what happens ---

    /// The numbers from `seq` to `end` were sent, for the first time or again.
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

    /// SND.UNA moves from `una` to `ack`. `visit` gets each segment that was not known to have arrived.
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
            // Part of it is acknowledged.
            self.lost -= ack - start;
        }
        self.shrink_if_empty();
    }

    /// The same where all is in order; gives what arrived, if that is a whole segment.
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

    /// What of a report covers whole segments: no other counts (RFC 2018 5).
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

    /// The peer newly reports the numbers from `start` to `end`. `visit` gets each segment among them.
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

    /// RACK_detect_loss (RFC 8985 6.2, step 5): what was sent well before something that arrived is lost. `visit` gets each
    /// segment that newly is, and its length.
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
                // This and all that follow were sent later than what arrived.
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

    /// A timeout: the first segment is lost, and all that had `lost_after` to arrive (RFC 8985 6.3). `visit` gets each
    /// segment that newly is, and its length.
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

    /// All is lost that the peer did not report.
    pub(crate) fn lose_all(&mut self, una: SeqNr) {
        for index in 0..self.segments.len() {
            let known = self.segments[index].known;
            if !known.intersects(Known::REPORTED | Known::LOST) {
                self.lose(una, index);
            }
        }
    }

    /// The segment that holds `seq` is lost.
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

    /// The first run of numbers that is lost.
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

    /// Nothing was lost after all.
    pub(crate) fn forgive(&mut self, una: SeqNr) {
        if self.lost == 0 {
            return;
        }
        for index in 0..self.segments.len() {
            self.change(una, index, |sent| sent.known.remove(Known::LOST));
        }
    }

    /// The peer may have dropped what it reported (RFC 2018 8).
    pub(crate) fn forget_reports(&mut self, una: SeqNr) {
        for index in 0..self.segments.len() {
            self.change(una, index, |sent| sent.known.remove(Known::REPORTED));
        }
    }

    /// The last segment.
    pub(crate) fn last(&self, una: SeqNr) -> Option<(SeqNr, SeqNr)> {
        let index = self.segments.len().checked_sub(1)?;
        Some((self.start_of(una, index), self.segments[index].end))
    }

    // --- inside ---

    /// The number after the last one sent.
    fn max(&self, una: SeqNr) -> SeqNr {
        self.segments.back().map_or(una, |last| last.end)
    }

    /// The segment that holds `seq`, or the number of segments if it is beyond all.
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

    /// The rule that is broken where no times are kept, if it is.
    pub(crate) fn verify_unused(&self) -> Result<(), &'static str> {
        let counts = [self.lost, self.reported_segments, self.again_segments];
        match self.segments.is_empty() && counts == [0; 3] {
            true => Ok(()),
            false => Err("segments are recorded only where losses are noticed by time"),
        }
    }

    /// The rule that is broken, if any.
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

/// As how many it counts: lost, reported, sent again and perhaps under way.
fn counts(known: Known) -> [u32; 3] {
    let lost = known.contains(Known::LOST);
    let reported = known.contains(Known::REPORTED);
    let again = known.contains(Known::AGAIN) && !lost && !reported;
    [lost.into(), reported.into(), again.into()]
}

#[cfg(test)]
mod tests;
