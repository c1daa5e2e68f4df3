//! What controllers beyond Reno's relatives are told and asked, and the window of those that have it to themselves.

use super::{CongestionWindow, LARGEST_WINDOW};
use crate::clock::Moment;
use crate::congestion::algorithm::ask;
use crate::congestion::{Ack, Algorithm, Controller, Loss, Lost, Needs, Start};

impl CongestionWindow {
    pub(crate) fn needs(&self, needs: Needs) -> bool {
        self.needs.intersects(needs)
    }

    /// The controller has the window to itself.
    pub(crate) fn is_governed(&self) -> bool {
        self.needs(Needs::WINDOW)
    }

    /// The connection is established, or was when the controller took over.
    pub(crate) fn established(&mut self, start: &Start) {
        ask!(&mut self.algorithm, it => it.on_established(start));
        self.follow(start.smss);
    }

    pub(crate) fn acknowledged(&mut self, ack: &Ack) {
        ask!(&mut self.algorithm, it => it.on_ack(ack));
        self.follow(ack.smss);
    }

    pub(crate) fn lost(&mut self, lost: &Lost) {
        ask!(&mut self.algorithm, it => it.on_lost(lost));
        self.follow(lost.smss);
    }

    pub(crate) fn restarted(&mut self, now: Moment, smss: u32) {
        ask!(&mut self.algorithm, it => it.on_restart(now));
        self.follow(smss);
    }

    /// Rate samples of what is sent now say nothing about the path.
    pub(crate) fn holds_back(&mut self) -> bool {
        ask!(&mut self.algorithm, it => it.holds_back())
    }

    /// Bytes a second, and how many may leave at once.
    pub(crate) fn pace(&mut self) -> (u64, u32) {
        ask!(&mut self.algorithm, it => (it.pacing_rate(), it.send_quantum()))
    }

    /// Takes the window of a controller that has it to itself; a segment always fits.
    pub(super) fn follow(&mut self, smss: u32) {
        if self.is_governed() {
            let bytes = ask!(&mut self.algorithm, it => it.window());
            self.size.bytes = bytes.clamp(smss, LARGEST_WINDOW);
        }
    }

    /// The retransmission timer expired: what counts as lost is known now, and `loss.flight` is still in the network.
    pub(crate) fn time_out_governed(&mut self, loss: &Loss) {
        if self.is_governed() {
            let size = self.size;
            let threshold = ask!(&mut self.algorithm, it => it.on_timeout(size, loss));
            self.size.threshold = threshold.min(LARGEST_WINDOW);
            self.follow(loss.smss);
        }
    }
}
