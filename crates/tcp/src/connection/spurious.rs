//! Detection of spurious losses: by timestamps (Eifel, RFC 3522), by reports of duplicates (RFC 2883), and by the ACKs after
//! a timeout (F-RTO, RFC 5682). The window is then restored (RFC 4015).

use super::Connection;
use super::repair::{Episode, ForwardRto, Switches};
use crate::congestion::{DUPLICATE_THRESHOLD, Phase};
use crate::rack::Delivery;
use crate::types::Stats;
use baton_wire::Payload;

impl<P: Payload> Connection<P> {
    /// Saves the state before a loss, since its reduction of the window may have to be undone.
    pub(super) fn start_episode(&mut self) {
        let start = self.tx.una;
        let saved = match (&self.repair.episode, self.congestion.phase) {
            // Another sign of the same loss: keep the state from before it.
            (Some(episode), Phase::FastRecovery | Phase::Timeout) => episode.saved.clone(),
            _ => self.congestion.save(),
        };
        self.repair.episode = Some(Box::new(Episode::new(saved, start)));
    }

    /// Ends the recovery. The loss may still turn out to be spurious until the data in flight is acknowledged.
    pub(super) fn end_episode(&mut self) {
        let max = self.tx.max;
        if let Some(episode) = &mut self.repair.episode {
            episode.reduction = None;
            episode.until = Some(max);
        }
        self.repair.forward = ForwardRto::Off;
    }

    /// Checks, after an ACK of new data or with a report, whether the last loss was spurious. If so, undoes it and returns true.
    pub(super) fn undo_if_spurious(&mut self, delivery: &Delivery, stats: &mut Stats) -> bool {
        let Some(episode) = &mut self.repair.episode else {
            return false;
        };
        if let Some(until) = episode.until
            && self.tx.una.after(until)
        {
            self.repair.episode = None;
            return false;
        }
        if let Some(block) = delivery.duplicate
            && block.start.at_or_after(episode.start)
        {
            let len = block.end - block.start;
            episode.duplicate = episode.duplicate.saturating_add(len);
        }
        let spurious = self.repair.is_on(Switches::UNDO) && self.loss_was_none(delivery);
        if spurious {
            self.undo(stats);
        }
        spurious
    }

    fn loss_was_none(&self, delivery: &Delivery) -> bool {
        let Some(episode) = &self.repair.episode else {
            return false;
        };
        // Every retransmission was unnecessary.
        if episode.again > 0 && episode.duplicate >= episode.again {
            return true;
        }
        // RFC 3522 3.2, step 5: the ACK is for the original, because the copy was sent later.
        let (Some((timestamp, end)), Some(echo)) = (episode.first_again, delivery.echo) else {
            return false;
        };
        self.congestion.phase != Phase::Open
            && delivery.acked > 0
            && self.tx.una.at_or_after(end)
            && (echo.wrapping_sub(timestamp) as i32) < 0
    }

    /// Restores the state as if nothing had been lost.
    pub(super) fn undo(&mut self, stats: &mut Stats) {
        let Some(episode) = self.repair.episode.take() else {
            return;
        };
        stats.spurious_recoveries += 1;
        let smss = self.smss();
        self.congestion.undo(episode.saved, smss);
        self.repair.forward = ForwardRto::Off;
        self.repair.flight.forgive(self.tx.una);
        self.tx.next = self.tx.max;
        let una = self.tx.una;
        self.congestion.keep_mark_near(una);
    }

    // --- F-RTO ---

    /// Starts F-RTO, if the retransmission timer expired while nothing was known to be missing (RFC 5682 2.1, step 1).
    pub(super) fn start_forward_rto(&mut self, first: bool, before: Phase) {
        let doubtful = first && before == Phase::Open && self.repair.is_on(Switches::FORWARD_RTO);
        self.repair.forward = match doubtful {
            true => ForwardRto::FirstAgain,
            false => ForwardRto::Off,
        };
    }

    /// Processes an ACK after a timeout that may be spurious (RFC 5682 2.1 and 3.1, steps 2 and 3). Returns true if it was.
    pub(super) fn forward_rto(&mut self, delivery: &Delivery, stats: &mut Stats) -> bool {
        let state = self.repair.forward;
        if state == ForwardRto::Off || self.congestion.phase != Phase::Timeout {
            return false;
        }
        let advanced = delivery.acked > 0;
        let unsent_again_arrived = match self.keeps_times() {
            // Data arrived that was sent only once, before the timeout.
            true => delivery.original,
            // Only new data went out since SND.UNA last moved.
            false => advanced && matches!(state, ForwardRto::NewData(_)),
        };
        if unsent_again_arrived {
            self.undo(stats);
            return true;
        }
        let smss = self.smss();
        let past = self.tx.una.at_or_after(self.congestion.recover);
        match state {
            ForwardRto::FirstAgain if advanced && !past && self.can_send_new() => {
                // Step 2b: two segments of new data instead of what was outstanding.
                self.tx.next = self.tx.max;
                self.repair.forward = ForwardRto::NewData(self.tx.max + 2 * smss);
            }
            // Step 3a: a duplicate ACK; the data is missing.
            ForwardRto::NewData(_) if !advanced => {
                self.repair.forward = ForwardRto::Off;
                self.congestion.limit(u32::from(DUPLICATE_THRESHOLD) * smss);
                self.resume_retransmission();
            }
            ForwardRto::NewData(_) => {}
            _ => self.repair.forward = ForwardRto::Off,
        }
        false
    }

    /// No new data is sent from now on. Sends outstanding data again instead (RFC 5682 2.1, step 2b).
    pub(super) fn try_no_new_data(&mut self) {
        if let ForwardRto::NewData(until) = self.repair.forward
            && self.tx.max.before(until)
        {
            self.repair.forward = ForwardRto::Off;
            self.resume_retransmission();
        }
    }

    /// Returns from new data to the data that was outstanding at the timeout.
    fn resume_retransmission(&mut self) {
        if !self.keeps_times() {
            self.tx.next = self.tx.una;
        }
    }
}
