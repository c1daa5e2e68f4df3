//! Repairing losses: when recovery starts and ends, and what is sent again (RFC 5681, RFC 6582, RFC 6675).

use super::output::Run;
use super::{Connection, Marks};
use crate::congestion::{DUPLICATE_THRESHOLD, Phase};
use crate::payload::Payload;
use crate::sack::NextSegment;
use crate::types::Stats;
use baton_wire::{Header, SeqNr};

impl<P: Payload> Connection<P> {
    pub(super) fn in_sack_recovery(&self) -> bool {
        self.options.sack && self.congestion.phase == Phase::FastRecovery
    }

    /// Takes in the SACK blocks of an ACK. True when they report anything new.
    pub(super) fn take_reports(&mut self, header: &Header) -> bool {
        if !self.options.sack || header.options.sack.is_empty() {
            return false;
        }
        let (una, max) = (self.tx.una, self.tx.max);
        let scoreboard = self.scoreboard.get_or_insert_default();
        let mut new = 0;
        for &block in &header.options.sack {
            new += scoreboard.record(block, una, max);
        }
        new > 0
    }

    /// An ACK that acknowledges nothing new but tells of a segment that arrived (RFC 5681 2, RFC 6675 2).
    pub(super) fn duplicate_ack(&mut self, stats: &mut Stats) {
        let congestion = &mut self.congestion;
        congestion.duplicates = congestion.duplicates.saturating_add(1);
        match congestion.phase {
            Phase::FastRecovery if !self.options.sack => {
                let smss = self.smss();
                self.congestion.inflate(smss);
            }
            Phase::FastRecovery => {}
            Phase::Open | Phase::Timeout => {
                if self.loss_is_evident() {
                    self.enter_recovery(stats);
                }
            }
        }
    }

    /// RFC 5681 3.2, step 2; with SACK also IsLost(SND.UNA) (RFC 6675 5). Not again for the same window (RFC 6582 3.2,
    /// step 1; RFC 6675 5.1).
    fn loss_is_evident(&self) -> bool {
        let una = self.tx.una;
        let duplicates = self.congestion.duplicates >= DUPLICATE_THRESHOLD;
        if !self.options.sack {
            return duplicates && una.after(self.congestion.recover);
        }
        let lost = self
            .scoreboard
            .as_ref()
            .is_some_and(|board| board.lost_below(una, self.smss()).after(una));
        (duplicates || lost) && una.at_or_after(self.congestion.recover)
    }

    fn enter_recovery(&mut self, stats: &mut Stats) {
        stats.fast_retransmits += 1;
        let (flight, smss) = (self.flight(), self.smss());
        self.congestion
            .enter_recovery(flight, self.tx.max, smss, self.options.sack);
        // After a timeout SND.NXT may lie behind: recovery repairs by itself.
        self.tx.next = self.tx.max;
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
        if self.options.sack {
            let una = self.tx.una;
            self.scoreboard.get_or_insert_default().start_recovery(una);
        }
    }

    /// New data was acknowledged: SND.UNA has moved by `acked`.
    /// True when the retransmission timer is to start anew.
    pub(super) fn progress(&mut self, acked: u32) -> bool {
        let smss = self.smss();
        let una = self.tx.una;
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.advance(una);
        }
        if self.congestion.phase == Phase::FastRecovery {
            return self.recovery_progress(acked, smss);
        }
        self.congestion.duplicates = 0;
        self.congestion.grow(acked, smss);
        self.congestion.keep_mark_near(una);
        if self.congestion.phase == Phase::Timeout && una.at_or_after(self.congestion.recover) {
            let flight = self.flight();
            self.congestion
                .leave_recovery(flight, smss, self.options.sack);
        }
        true
    }

    /// RFC 6582 3.2, step 3; RFC 6675 5, A.
    fn recovery_progress(&mut self, acked: u32, smss: u32) -> bool {
        if self.tx.una.at_or_after(self.congestion.recover) {
            let flight = self.flight();
            self.congestion
                .leave_recovery(flight, smss, self.options.sack);
            return true;
        }
        if self.options.sack {
            return true;
        }
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
        self.congestion.partial_ack(acked, smss)
    }

    /// There is room in the network for a segment (RFC 6675 5, C).
    pub(super) fn pipe_has_room(&self) -> bool {
        let smss = self.smss();
        let pipe = match &self.scoreboard {
            Some(scoreboard) => scoreboard.pipe(self.tx.una, self.tx.max, smss),
            None => self.flight(),
        };
        self.congestion.window() >= pipe + smss
    }

    /// What recovery wants sent again, if anything may be.
    pub(super) fn recovery_run(&mut self) -> Option<Run> {
        if self.marks.contains(Marks::SEND_FIRST_AGAIN) {
            self.marks.remove(Marks::SEND_FIRST_AGAIN);
            let run = self.run_again(self.tx.una, self.tx.max)?;
            self.note_again(run, false);
            return Some(run);
        }
        if !self.in_sack_recovery() || !self.pipe_has_room() {
            return None;
        }
        let scoreboard = self.scoreboard.as_ref()?;
        let can_send_new = self.can_send_new();
        match scoreboard.next_segment(
            self.tx.una,
            self.smss(),
            self.congestion.recover,
            can_send_new,
        ) {
            NextSegment::Again { seq, end, rescue } => {
                let run = self.run_again(seq, end)?;
                self.note_again(run, rescue);
                Some(run)
            }
            NextSegment::New | NextSegment::Nothing => None,
        }
    }

    fn note_again(&mut self, run: Run, rescue: bool) {
        let recover = self.congestion.recover;
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.retransmitted(run.end(), rescue, recover);
        }
    }

    /// Unsent data exists and the peer's window allows it (RFC 6675 4, rule 2).
    fn can_send_new(&self) -> bool {
        let fin = u32::from(self.fin_pending());
        let end = self.data_end() + fin;
        self.tx.max.before(end) && self.tx.max.before(self.tx.una + self.tx.window)
    }

    /// At most one segment of what was sent before, from `seq` on, up to `end` and to the next reported block.
    fn run_again(&self, seq: SeqNr, end: SeqNr) -> Option<Run> {
        let end = end.earliest(self.tx.max);
        let reported = self
            .scoreboard
            .as_ref()
            .and_then(|board| board.block_from(seq));
        let end = reported.map_or(end, |block| end.earliest(block.start.latest(seq)));
        let record = self.boundaries.record_end(seq);
        let end = record.map_or(end, |record| end.earliest(record));
        // What lies beyond a window that was taken back would only be dropped.
        let end = end.earliest(self.tx.una + self.tx.window);
        if end.at_or_before(seq) {
            return None;
        }
        let data_end = self.data_end();
        let len = (end.earliest(data_end) - seq).min(self.data_room());
        let fin = self.fin_pending() && end.after(data_end) && seq + len == data_end;
        Some(Run { seq, len, fin })
    }
}
