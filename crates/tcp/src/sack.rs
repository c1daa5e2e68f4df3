//! Data beyond holes that the peer reported, and what to send again (RFC 2018, RFC 6675).

use baton_wire::{SackBlock, SeqNr};
use serde::{Deserialize, Serialize};

/// Maximum number of blocks that are remembered. A report that would need more is ignored, and its data is sent again.
const MOST_BLOCKS: usize = 4096;

/// Parameters of the rule by which a number is lost (RFC 6675 4, IsLost).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossRule {
    pub(crate) smss: u32,
    /// DupThresh.
    pub(crate) threshold: u32,
}

/// The scoreboard of RFC 6675 3.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scoreboard {
    /// Blocks beyond SND.UNA in sequence order, neither overlapping nor adjacent.
    blocks: Vec<SackBlock>,
    /// Bytes in all blocks.
    sacked: u32,
    /// HighRxt: everything below was sent again in this recovery or need not be.
    high_retransmitted: SeqNr,
    /// RescueRxt (RFC 6675 4, rule 4).
    rescued: Option<SeqNr>,
}

/// What to send next in recovery (NextSeg of RFC 6675 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextSegment {
    /// Send again from `seq` on, at most up to `end`.
    Again {
        seq: SeqNr,
        end: SeqNr,
        rescue: bool,
    },
    /// Send new data.
    New,
    /// Nothing.
    Nothing,
}

impl Scoreboard {
    /// Reports whether a block begins at SND.UNA: the peer would have acknowledged that data if it still had it.
    pub(crate) fn starts_at(&self, una: SeqNr) -> bool {
        self.blocks.first().is_some_and(|first| first.start == una)
    }

    /// Records a report. Returns how many bytes it newly covers; `visit` is called with their runs, in order.
    pub(crate) fn record(
        &mut self,
        block: SackBlock,
        una: SeqNr,
        max: SeqNr,
        mut visit: impl FnMut(SeqNr, SeqNr),
    ) -> u32 {
        let sane =
            block.start.after(una) && block.end.after(block.start) && block.end.at_or_before(max);
        if !sane {
            return 0;
        }
        let first = self
            .blocks
            .partition_point(|known| known.end.before(block.start));
        let touched = self.blocks[first..]
            .iter()
            .take_while(|known| known.start.at_or_before(block.end))
            .count();
        let mut merged = block;
        if touched == 0 && self.blocks.len() >= MOST_BLOCKS {
            return 0;
        }
        let mut known_bytes = 0;
        let mut seq = block.start;
        for known in &self.blocks[first..first + touched] {
            if seq.before(known.start) {
                visit(seq, known.start);
            }
            seq = known.end;
            merged.start = merged.start.earliest(known.start);
            merged.end = merged.end.latest(known.end);
            known_bytes += known.end - known.start;
        }
        if seq.before(block.end) {
            visit(seq, block.end);
        }
        match touched {
            0 => self.blocks.insert(first, merged),
            _ => {
                self.blocks[first] = merged;
                self.blocks.drain(first + 1..first + touched);
            }
        }
        let new = merged.end - merged.start - known_bytes;
        self.sacked += new;
        new
    }

    /// Moves SND.UNA. Returns how many of the bytes before it had been reported.
    pub(crate) fn advance(&mut self, una: SeqNr) -> u32 {
        let before = self.sacked;
        let gone = self
            .blocks
            .partition_point(|block| block.end.at_or_before(una));
        for block in self.blocks.drain(..gone) {
            self.sacked -= block.end - block.start;
        }
        if let Some(first) = self.blocks.first_mut()
            && first.start.before(una)
        {
            // The peer acknowledges part of what it reported.
            self.sacked -= una - first.start;
            first.start = una;
        }
        self.high_retransmitted = self.high_retransmitted.latest(una);
        before - self.sacked
    }

    /// Forgets all reports, since after a timeout the peer may have dropped the data (RFC 2018 8).
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.sacked = 0;
    }

    /// Recovery starts.
    pub(crate) fn start_recovery(&mut self, una: SeqNr) {
        self.high_retransmitted = una;
        self.rescued = None;
    }

    /// Records that data up to `end` was sent again.
    pub(crate) fn retransmitted(&mut self, end: SeqNr, rescue: bool, recover: SeqNr) {
        if rescue {
            self.rescued = Some(recover);
        } else {
            self.high_retransmitted = self.high_retransmitted.latest(end);
        }
    }

    /// The number below which everything unreported is lost: IsLost of RFC 6675 4, which is true of a number if at least
    /// DupThresh blocks or more than (DupThresh - 1) segments of bytes are reported above it.
    pub(crate) fn lost_below(&self, una: SeqNr, rule: LossRule) -> SeqNr {
        let LossRule { smss, threshold } = rule;
        let mut bytes = 0;
        for (count, block) in self.blocks.iter().rev().enumerate() {
            bytes += block.end - block.start;
            if count + 1 >= threshold as usize || bytes > (threshold - 1) * smss {
                return block.start;
            }
        }
        una
    }

    /// The number after the highest that was reported.
    pub(crate) fn highest(&self) -> Option<SeqNr> {
        self.blocks.last().map(|last| last.end)
    }

    /// Reported bytes.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Reported bytes below `seq`.
    pub(crate) fn sacked_below(&self, seq: SeqNr) -> u32 {
        self.blocks
            .iter()
            .take_while(|block| block.start.before(seq))
            .map(|block| block.end.earliest(seq) - block.start)
            .sum()
    }

    /// Estimate of the bytes in the network (SetPipe of RFC 6675 4).
    pub(crate) fn pipe(&self, una: SeqNr, max: SeqNr, rule: LossRule) -> u32 {
        let lost_below = self.lost_below(una, rule);
        let not_lost = (max - lost_below) - (self.sacked - self.sacked_below(lost_below));
        let again = self.high_retransmitted.earliest(max);
        let sent_again = (again - una) - self.sacked_below(again);
        not_lost + sent_again
    }

    /// NextSeg of RFC 6675 4. `recover` is RecoveryPoint; `can_send_new` says whether rule 2 applies.
    pub(crate) fn next_segment(
        &self,
        una: SeqNr,
        rule: LossRule,
        recover: SeqNr,
        can_send_new: bool,
    ) -> NextSegment {
        let hole = self.first_hole_from(self.high_retransmitted.latest(una));
        let lost_below = self.lost_below(una, rule);
        if let Some((seq, end)) = hole
            && seq.before(lost_below)
        {
            return NextSegment::Again {
                seq,
                end,
                rescue: false,
            };
        }
        if can_send_new {
            return NextSegment::New;
        }
        if let Some((seq, end)) = hole {
            return NextSegment::Again {
                seq,
                end,
                rescue: false,
            };
        }
        self.rescue(una, rule.smss, recover)
    }

    /// Rule 4: once in a recovery, the end of the outstanding data may be sent again to keep the ACK clock running.
    fn rescue(&self, una: SeqNr, smss: u32, recover: SeqNr) -> NextSegment {
        let open = self.rescued.is_none_or(|rescued| una.after(rescued));
        let tail = self.blocks.last().map_or(una, |last| last.end);
        if !open || tail.at_or_after(recover) {
            return NextSegment::Nothing;
        }
        let seq = (recover - smss).latest(tail);
        NextSegment::Again {
            seq,
            end: recover,
            rescue: true,
        }
    }

    /// The first run of unreported numbers at or after `from` that has a report above it.
    fn first_hole_from(&self, from: SeqNr) -> Option<(SeqNr, SeqNr)> {
        let mut seq = from;
        let next = self
            .blocks
            .partition_point(|block| block.end.at_or_before(from));
        for block in &self.blocks[next..] {
            if seq.before(block.start) {
                return Some((seq, block.start));
            }
            seq = block.end;
        }
        None
    }

    /// The reported block that covers `seq`, or else the first one after it.
    pub(crate) fn block_from(&self, seq: SeqNr) -> Option<SackBlock> {
        let next = self
            .blocks
            .partition_point(|block| block.end.at_or_before(seq));
        self.blocks.get(next).copied()
    }

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self, una: SeqNr, max: SeqNr) -> Result<(), &'static str> {
        let mut previous = una;
        let mut bytes = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            let separate = if index == 0 {
                block.start.at_or_after(una)
            } else {
                block.start.after(previous)
            };
            if !separate || block.end.at_or_before(block.start) || block.end.after(max) {
                return Err("SACK blocks are sorted and disjoint within what is outstanding");
            }
            bytes += block.end - block.start;
            previous = block.end;
        }
        if bytes != self.sacked {
            return Err("the scoreboard counts its bytes");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
