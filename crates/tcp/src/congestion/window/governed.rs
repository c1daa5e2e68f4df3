//! Calls to controllers that are not variants of Reno, and the window of controllers that set it themselves.

use super::{CongestionWindow, LARGEST_WINDOW};
use crate::clock::Moment;
use crate::congestion::algorithm::ask;
use crate::congestion::{Ack, Algorithm, Controller, Loss, Lost, Needs, Start};

impl CongestionWindow {
    pub(crate) fn needs(&self, needs: Needs) -> bool {
        self.needs.intersects(needs)
    }

    /// Reports whether the controller sets the window itself.
    pub(crate) fn is_governed(&self) -> bool {
        self.needs(Needs::WINDOW)
    }

    /// Introduces an established connection to the controller.
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

    /// Reports whether the controller holds data back, so that rate samples of data sent now say nothing about the path.
    pub(crate) fn holds_back(&mut self) -> bool {
        ask!(&mut self.algorithm, it => it.holds_back())
    }

    /// Pacing rate in bytes a second, and the bytes of a burst.
    pub(crate) fn pace(&mut self) -> (u64, u32) {
        ask!(&mut self.algorithm, it => (it.pacing_rate(), it.send_quantum()))
    }

    /// Adopts the window of a controller that sets it itself, but at least one segment.
    pub(super) fn follow(&mut self, smss: u32) {
        if self.is_governed() {
            let bytes = ask!(&mut self.algorithm, it => it.window());
            self.size.bytes = bytes.clamp(smss, LARGEST_WINDOW);
        }
    }

    /// Reports a retransmission timeout to such a controller once losses are known; `loss.flight` bytes are still in the network.
    pub(crate) fn time_out_governed(&mut self, loss: &Loss) {
        if self.is_governed() {
            let size = self.size;
            let threshold = ask!(&mut self.algorithm, it => it.on_timeout(size, loss));
            self.size.threshold = threshold.min(LARGEST_WINDOW);
            self.follow(loss.smss);
        }
    }
}
