//! Repair of losses: when recovery starts and ends, and what is sent again (RFC 5681, RFC 6582, RFC 6675).

use super::output::Run;
use super::repair::{ForwardRto, Switches};
use super::{Connection, Context, Marks};
use crate::clock::Moment;
use crate::congestion::{Acked, Phase, Reduction};
use crate::rack::Delivery;
use crate::sack::{LossRule, NextSegment};
use crate::types::Stats;
use baton_wire::{Header, Payload, SackBlock, SeqNr, Time};

impl<P: Payload> Connection<P> {
    pub(super) fn in_sack_recovery(&self) -> bool {
        self.options.sack && self.congestion.phase == Phase::FastRecovery
    }

    /// The first SACK block, if it reports a duplicate: it is acknowledged already, or lies within the second (RFC 2883 5).
    pub(super) fn reported_duplicate(&self, header: &Header) -> Option<SackBlock> {
        let first = *header.options.sack.first().filter(|_| self.options.sack)?;
        let acknowledged = first.end.at_or_before(header.ack);
        let within = header.options.sack.get(1).is_some_and(|second| {
            first.start.at_or_after(second.start) && first.end.at_or_before(second.end)
        });
        let sane = first.start.before(first.end) && first.end.at_or_before(self.tx.max);
        (sane && (acknowledged || within)).then_some(first)
    }

    /// Processes the SACK blocks of an ACK in sequence order (RFC 8985 6.2, step 3). Returns true if they report anything new.
    pub(super) fn take_reports(&mut self, header: &Header, delivery: &mut Delivery) -> bool {
        if !self.options.sack || header.options.sack.is_empty() {
            return false;
        }
        let (una, max) = (self.tx.una, self.tx.max);
        let mut blocks = header.options.sack;
        blocks.sort_unstable_by_key(|block| block.start - una);
        let keeps_times = self.keeps_times();
        let once = self.was_sent_once();
        let smss = self.smss();
        let (repair, feedback) = (&mut self.repair, &mut self.feedback);
        let scoreboard = self.scoreboard.get_or_insert_default();
        let highest = scoreboard.highest();
        let mut new = 0;
        for &block in &blocks {
            let block = match keeps_times {
                true => repair.flight.whole_segments(una, block),
                false => block,
            };
            new += scoreboard.record(block, una, max, |start, end| {
                if keeps_times {
                    let rack = &mut repair.rack;
                    repair.flight.report(una, start, end, |sent| {
                        rack.arrived(sent, smss, delivery);
                        if let Some(feedback) = feedback {
                            feedback.rates.arrived(sent);
                        }
                    });
                } else if let (true, Some(highest)) = (once, highest) {
                    delivery.note_reordering(highest.saturating_since(end), smss);
                }
            });
        }
        delivery.reported += new;
        delivery.delivered += new;
        new > 0
    }

    /// Reports whether all outstanding data was sent only once. Valid where transmission times are not kept.
    fn was_sent_once(&self) -> bool {
        self.congestion.phase == Phase::Open && self.repair.episode.is_none()
    }

    /// Takes what an ACK shows about reordering.
    pub(super) fn take_reordering(&mut self, delivery: &Delivery) {
        let (una, smss) = (self.tx.una, self.smss());
        let mut segments = delivery.reordering.div_ceil(smss);
        if let Some(block) = delivery.duplicate
            && self.repair.is_on(Switches::ADAPTIVE_THRESHOLD)
            && block.start.at_or_after(una)
        {
            // Segments that were reported before overtook the original or the copy (RFC 2883 5).
            segments = segments.max(self.repair.rack.overtaken_by(block.end).div_ceil(smss));
        }
        if segments > 0 {
            self.repair.rack.saw_reordering(segments);
        }
    }

    /// Processes an ACK that acknowledges nothing new but shows that a segment arrived (RFC 5681 2, RFC 6675 2).
    pub(super) fn duplicate_ack(&mut self, stats: &mut Stats, delivery: &Delivery) {
        self.congestion.duplicates = self.congestion.duplicates.saturating_add(1);
        match self.congestion.phase {
            Phase::FastRecovery if self.reduces_without_reports() => {
                let smss = self.smss();
                self.reduce_without_reports(smss, false);
            }
            Phase::FastRecovery if !self.options.sack => {
                let smss = self.smss();
                self.congestion.inflate(smss);
            }
            Phase::FastRecovery => {}
            Phase::Open | Phase::Timeout => {
                if self.loss_is_evident() && !self.only_mtu_probe_was_lost(stats) {
                    self.enter_recovery(stats, delivery.now, delivery.delivered);
                }
            }
        }
    }

    /// Reports whether a loss is evident: RFC 5681 3.2, step 2; with SACK also IsLost(SND.UNA) (RFC 6675 5). A loss is not evident
    /// again for the same window (RFC 6582 3.2, step 1; RFC 6675 5.1).
    fn loss_is_evident(&self) -> bool {
        let una = self.tx.una;
        let threshold = self.repair.duplicate_threshold();
        let duplicates = u32::from(self.congestion.duplicates) >= threshold;
        if !self.options.sack {
            return duplicates && una.after(self.congestion.recover);
        }
        let lost = self
            .scoreboard
            .as_ref()
            .is_some_and(|board| board.lost_below(una, self.loss_rule()).after(una));
        (duplicates || lost) && una.at_or_after(self.congestion.recover)
    }

    fn loss_rule(&self) -> LossRule {
        LossRule {
            smss: self.smss(),
            threshold: self.repair.duplicate_threshold(),
        }
    }

    /// Enters recovery after an evident loss; the ACK that showed it reported `delivered` more bytes.
    pub(super) fn enter_recovery(&mut self, stats: &mut Stats, now: Moment, delivered: u32) {
        stats.fast_retransmits += 1;
        let reduction = match self.options.sack {
            true if self.repair.is_on(Switches::RATE_REDUCTION) => Reduction::Gradual,
            true => Reduction::AtOnce,
            false if self.counts_duplicates() => Reduction::Gradual,
            false => Reduction::Inflated,
        };
        self.start_episode();
        let (loss, max) = (self.loss(now), self.tx.max);
        self.congestion.enter_recovery(&loss, max, reduction, false);
        self.tell_lost_untimed(now);
        self.notification.reduced(max);
        if reduction == Reduction::Gradual {
            // RecoverFS (RFC 9937 6.1): what was in flight before this ACK and not reported.
            let flight = self.flight() - self.reported() + delivered;
            let reduction = self.congestion.rate_reduction(flight, loss.smss);
            if let Some(episode) = &mut self.repair.episode {
                episode.reduction = Some(reduction);
            }
        }
        // After a timeout SND.NXT may be less than SND.MAX, but recovery itself chooses what to send again.
        self.tx.next = self.tx.max;
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
        if self.options.sack {
            let una = self.tx.una;
            self.scoreboard.get_or_insert_default().start_recovery(una);
        } else if reduction == Reduction::Gradual {
            self.reduce_without_reports(loss.smss, false);
        }
    }

    /// Processes an acknowledgment of new data that has moved SND.UNA by `acked`. Returns true if the retransmission timer is to
    /// restart.
    pub(super) fn progress(
        &mut self,
        cx: &mut Context<'_>,
        acked: u32,
        delivery: &mut Delivery,
    ) -> bool {
        let smss = self.smss();
        let una = self.tx.una;
        let highest = self.scoreboard.as_ref().and_then(|board| board.highest());
        let reported = match &mut self.scoreboard {
            Some(scoreboard) => scoreboard.advance(una),
            None => 0,
        };
        delivery.acked = acked;
        delivery.delivered += acked - reported;
        self.notification.keep_near(una);
        if self.keeps_times() {
            // The remaining steps follow when the ACK's reports are processed.
            return true;
        }
        if let (true, Some(highest)) = (self.was_sent_once(), highest) {
            // A segment that had been overtaken filled the first hole.
            let first_end = una - acked + smss;
            delivery.note_reordering(highest.saturating_since(first_end), smss);
        }
        if !self.undo_if_spurious(delivery, cx.stats) {
            self.forward_rto(delivery, cx.stats);
        }
        if self.congestion.phase == Phase::FastRecovery {
            return self.recovery_progress(acked, smss);
        }
        let counts = self.congestion.counts_as_linux() && !self.options.sack;
        if counts && self.congestion.duplicates > 0 {
            // Duplicate ACKs stood for segments that arrived before.
            let new = acked.saturating_sub(self.counted_by_duplicates());
            delivery.delivered = new.max(acked.min(smss));
        }
        self.congestion.duplicates = 0;
        self.grow(cx.now, delivery);
        self.congestion.keep_mark_near(una);
        if self.congestion.phase == Phase::Timeout && una.at_or_after(self.congestion.recover) {
            self.leave_recovery(smss);
        }
        true
    }

    fn leave_recovery(&mut self, smss: u32) {
        let flight = self.flight();
        let to_threshold = self.options.sack || self.reduces_without_reports();
        self.congestion.leave_recovery(flight, smss, to_threshold);
        self.end_episode();
    }

    /// Grows the window after an acknowledgment of new data, unless the ACK echoes congestion (RFC 3168 6.1.2).
    pub(super) fn grow(&mut self, now: Time, delivery: &Delivery) {
        if delivery.echoes_congestion {
            return;
        }
        let acked = Acked {
            now: self.clock.moment(now),
            bytes: match self.congestion.counts_as_linux() {
                true => delivery.delivered,
                false => delivery.acked,
            },
            smss: self.smss(),
            rtt: delivery.last_rtt,
            srtt: self.rtt.srtt(),
        };
        self.congestion.grow(&acked, self.tx.una, self.tx.max);
    }

    /// RFC 6582 3.2, step 3; RFC 6675 5, A.
    fn recovery_progress(&mut self, acked: u32, smss: u32) -> bool {
        if self.tx.una.at_or_after(self.congestion.recover) {
            self.leave_recovery(smss);
            return true;
        }
        if self.options.sack {
            return true;
        }
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
        if self.reduces_without_reports() {
            self.partial_ack_without_reports(acked, smss);
            return true;
        }
        self.congestion.partial_ack(acked, smss)
    }

    // --- PRR without SACK: a duplicate ACK stands for a segment that arrived (RFC 9937 6, DeliveredData) ---

    /// Reports whether recoveries without SACK reduce the window by PRR, as in Linux.
    fn counts_duplicates(&self) -> bool {
        let reduces = self.repair.is_on(Switches::RATE_REDUCTION);
        !self.options.sack && reduces && self.congestion.counts_as_linux()
    }

    /// Reports whether a recovery without SACK that uses PRR is in progress.
    pub(super) fn reduces_without_reports(&self) -> bool {
        let episode = self.repair.episode.as_ref();
        self.counts_duplicates()
            && self.congestion.phase == Phase::FastRecovery
            && episode.is_some_and(|episode| episode.reduction.is_some())
    }

    /// Bytes that duplicate ACKs stand for. In a recovery with PRR and without SACK, the window is larger by this amount, because
    /// the bytes count as in flight until they are acknowledged.
    pub(super) fn counted_by_duplicates(&self) -> u32 {
        u32::from(self.congestion.duplicates) * self.smss()
    }

    /// Sets the window after an ACK that shows that `delivered` more bytes arrived.
    fn reduce_without_reports(&mut self, delivered: u32, safe: bool) {
        let (smss, arrived) = (self.smss(), self.counted_by_duplicates());
        let again = self.marks.contains(Marks::SEND_FIRST_AGAIN);
        let lost = if again { smss } else { 0 };
        let in_flight = self.flight().saturating_sub(arrived + lost);
        if let Some(reduction) = self.repair.reduction() {
            self.congestion
                .reduce(reduction, delivered, in_flight, smss, safe);
            self.congestion.inflate(arrived);
        }
    }

    /// Processes a partial ACK: one of the acknowledged segments filled the hole, and duplicate ACKs stood for the others.
    fn partial_ack_without_reports(&mut self, acked: u32, smss: u32) {
        let segments = acked.div_ceil(smss).max(1);
        let duplicates = u32::from(self.congestion.duplicates);
        let new = segments.saturating_sub(duplicates).max(1);
        let left = duplicates.saturating_sub(segments - 1);
        self.congestion.duplicates = left as u8;
        self.reduce_without_reports(new * smss, true);
    }

    /// Reports whether the congestion window allows another segment (RFC 6675 5, C).
    pub(super) fn pipe_has_room(&self) -> bool {
        self.congestion.window() >= self.pipe() + self.smss()
    }

    /// Bytes that count as lost and were not sent again.
    pub(super) fn lost(&self) -> u32 {
        if self.keeps_times() {
            return self.repair.flight.lost();
        }
        let (una, rule) = (self.tx.una, self.loss_rule());
        match &self.scoreboard {
            Some(board) if self.in_sack_recovery() => {
                let unreported = self.flight() - board.sacked();
                unreported.saturating_sub(board.pipe(una, self.tx.max, rule))
            }
            _ => 0,
        }
    }

    /// Estimate of the bytes in the network.
    pub(super) fn pipe(&self) -> u32 {
        if self.keeps_times() {
            return self.in_network();
        }
        match &self.scoreboard {
            Some(scoreboard) => scoreboard.pipe(self.tx.una, self.tx.max, self.loss_rule()),
            None => self.flight(),
        }
    }

    /// Returns what recovery wants to send again now, if anything.
    pub(super) fn recovery_run(&mut self) -> Option<Run> {
        if self.marks.contains(Marks::SEND_FIRST_AGAIN) {
            self.marks.remove(Marks::SEND_FIRST_AGAIN);
            if self.keeps_times() {
                return self.lost_run();
            }
            if let Some(run) = self.mtu_probe_again() {
                return Some(run);
            }
            let run = self.run_again(self.tx.una, self.tx.max)?;
            self.note_again(run, false);
            return Some(run);
        }
        if self.keeps_times() {
            let holds = matches!(self.repair.forward, ForwardRto::NewData(_));
            return match self.repair.flight.lost() > 0 && !holds && self.pipe_has_room() {
                true => self.lost_run(),
                false => None,
            };
        }
        if !self.in_sack_recovery() || !self.pipe_has_room() {
            return None;
        }
        let scoreboard = self.scoreboard.as_ref()?;
        let can_send_new = self.can_send_new();
        match scoreboard.next_segment(
            self.tx.una,
            self.loss_rule(),
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

    /// Reports whether there is unsent data that may be sent now within the peer's window (RFC 6675 4, rule 2).
    pub(super) fn can_send_new(&self) -> bool {
        let fin = u32::from(self.fin_pending());
        let end = self.data_end() + fin;
        !self.marks.contains(Marks::SETTLING)
            && self.tx.max.before(end)
            && self.tx.max.before(self.tx.una + self.tx.window)
    }

    /// Returns at most one segment of data that was sent before, from `seq` up to `end` and to the next reported block.
    pub(super) fn run_again(&self, seq: SeqNr, end: SeqNr) -> Option<Run> {
        let end = end.earliest(self.tx.max);
        let reported = self
            .scoreboard
            .as_ref()
            .and_then(|board| board.block_from(seq));
        let end = reported.map_or(end, |block| end.earliest(block.start.latest(seq)));
        let record = self.boundaries.record_end(seq);
        let end = record.map_or(end, |record| end.earliest(record));
        // The peer would drop data beyond a window that it took back.
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
