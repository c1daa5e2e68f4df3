//! The congestion window and the phases of recovery (RFC 5681, RFC 6582, RFC 6675).

use super::algorithm::ask;
use super::hystart::{EarlyExit, LARGEST_STEP_SEGMENTS};
use super::hystart_linux::TrainHyStart;
use super::{
    Ack, Acked, Algorithm, Controller, Custom, Loss, Lost, Needs, RateReduction, Start, Window,
};
use crate::clock::Moment;
use crate::config::{Config, Congestion, WindowCounting};
use baton_wire::{SeqNr, Span};
use serde::{Deserialize, Serialize};

/// Duplicate acknowledgments that mean a loss (RFC 5681 3.2).
pub(crate) const DUPLICATE_THRESHOLD: u8 = 3;

/// No window grows beyond this: more cannot be in flight (RFC 7323 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

/// Whether a loss is being repaired, and how it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Nothing is known to be missing.
    Open,
    /// Duplicate ACKs or time told of a loss; it lasts until `recover` is acknowledged.
    FastRecovery,
    /// The timer told of a loss; it lasts until `recover` is acknowledged.
    Timeout,
}

/// How the window comes down in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// By PRR, acknowledgment by acknowledgment (RFC 9937).
    Gradual,
    /// To ssthresh at once (RFC 6675 5, 4.2).
    AtOnce,
    /// The same, and inflated by the segments that left the network (RFC 5681 3.2, step 3).
    Inflated,
}

/// What a reduction that was not due is undone to. A controller with the window to itself sees to that by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    size: Window,
    algorithm: Option<Algorithm>,
}

/// Window and recovery state of one connection. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CongestionWindow {
    size: Window,
    algorithm: Algorithm,
    /// What the algorithm wants.
    needs: Needs,
    counting: WindowCounting,
    early_exit: EarlyExit,
    /// When new data was last acknowledged.
    last_ack: Moment,
    /// SND.MAX when the last loss was noticed (RFC 6582 3.1).
    pub(crate) recover: SeqNr,
    pub(crate) duplicates: u8,
    pub(crate) phase: Phase,
    /// A partial ACK has restarted the timer in this recovery (RFC 6582 3.2, step 4).
    partial_seen: bool,
    /// Most that was in flight lately: since what was sent last when it was measured is acknowledged.
    peak: u32,
    peak_until: SeqNr,
}

impl CongestionWindow {
    /// The initial sequence number is all the randomness that the algorithm gets: it comes from the stack's secret.
    pub(crate) fn new(iss: SeqNr, config: &Config) -> Self {
        let mut algorithm = Algorithm::new(config, iss.0.into());
        Self {
            size: Window {
                bytes: 0,
                threshold: LARGEST_WINDOW,
            },
            needs: ask!(&mut algorithm, it => it.needs()),
            algorithm,
            counting: config.window_counting,
            early_exit: EarlyExit::Off,
            last_ack: Moment::default(),
            recover: iss,
            duplicates: 0,
            phase: Phase::Open,
            partial_seen: false,
            peak: 0,
            peak_until: iss,
        }
    }

    /// The connection is established; `initial` is IW and `next` SND.NXT.
    pub(crate) fn start(&mut self, initial: u32, next: SeqNr, config: &Config) {
        self.size.bytes = initial;
        self.early_exit = EarlyExit::new(next, config);
    }

    /// Another algorithm from now on, with cwnd and ssthresh as they are. True when it is another; it is to be told of the
    /// connection.
    pub(crate) fn set_algorithm(&mut self, config: &Config, seed: SeqNr) -> bool {
        let other = self.algorithm.kind() != config.congestion;
        if other {
            self.algorithm = Algorithm::new(config, seed.0.into());
            self.needs = ask!(&mut self.algorithm, it => it.needs());
        }
        other
    }

    /// Makes a controller from outside that came as bytes. True when it begins anew and is to be told of the connection.
    pub(crate) fn revive(&mut self, custom: Custom) -> bool {
        let anew = self.algorithm.revive(custom);
        self.needs = ask!(&mut self.algorithm, it => it.needs());
        anew
    }

    // --- what controllers beyond Reno's relatives are told and asked ---

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
    fn follow(&mut self, smss: u32) {
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

    // --- the window ---

    /// cwnd.
    pub(crate) fn window(&self) -> u32 {
        self.size.bytes
    }

    /// ssthresh; `u32::MAX` before the first reduction.
    pub(crate) fn threshold(&self) -> u32 {
        match self.size.threshold {
            LARGEST_WINDOW => u32::MAX,
            threshold => threshold,
        }
    }

    /// Extra room while the first duplicate ACKs come in (limited transmit, RFC 3042).
    pub(crate) fn limited_transmit(&self, smss: u32, threshold: u32) -> u32 {
        match self.phase {
            Phase::Open => smss * u32::from(self.duplicates).min(threshold - 1),
            _ => 0,
        }
    }

    /// Something was sent; `flight` is outstanding, up to `max`.
    pub(crate) fn sent(&mut self, flight: u32, una: SeqNr, max: SeqNr) {
        if flight > self.peak || una.at_or_after(self.peak_until) {
            self.peak = flight;
            self.peak_until = max;
        }
    }

    /// New data was acknowledged outside of fast recovery, up to `una` of what was sent up to `max`. A window that is
    /// not used does not grow: nothing was learnt about it (RFC 7661 1, RFC 9002 7.8).
    pub(crate) fn grow(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) {
        let gap = acked.now.since(self.last_ack);
        self.last_ack = acked.now;
        if self.is_governed() {
            return;
        }
        self.end_with_train(acked, una, max);
        let Window { bytes, threshold } = self.size;
        let over = bytes < threshold && self.rounds_are_over(acked, una, max);
        if self.counting == WindowCounting::Linux {
            self.grow_as_linux(acked, gap);
        } else if bytes < threshold {
            let used = bytes <= self.peak.saturating_mul(2);
            self.slow_start(acked, used);
        } else if bytes <= self.peak.saturating_add(acked.smss) {
            self.size.bytes += self.growth(acked);
        } else {
            ask!(&mut self.algorithm, it => it.after_idle(gap));
        }
        self.size.bytes = self.size.bytes.min(LARGEST_WINDOW);
        if over {
            self.size.threshold = self.size.bytes;
        }
    }

    /// Slow start ends before this acknowledgment counts, if Linux's HyStart says so: it is a part of CUBIC.
    fn end_with_train(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) {
        let Window { bytes, threshold } = self.size;
        if let EarlyExit::Trains(trains) = &mut self.early_exit
            && self.algorithm.kind() == Congestion::Cubic
            && bytes < threshold
            && trains.on_ack(acked, una, max, bytes)
        {
            self.size.threshold = bytes;
        }
    }

    /// Slow start ends with this acknowledgment, if HyStart++ says so.
    fn rounds_are_over(&mut self, acked: &Acked, una: SeqNr, max: SeqNr) -> bool {
        let initial = self.is_in_first_slow_start();
        match &mut self.early_exit {
            EarlyExit::Rounds(hystart) if initial => hystart.on_ack(una, max, acked.rtt),
            _ => false,
        }
    }

    fn growth(&mut self, acked: &Acked) -> u32 {
        let size = self.size;
        ask!(&mut self.algorithm, it => it.on_growth(size, acked))
    }

    /// RFC 5681 3.1. The most that one acknowledgment counts for is L of RFC 3465 2.2 and 2.3: 2 segments, 1 after a
    /// timeout; or that of RFC 9406 4.2.
    fn slow_start(&mut self, acked: &Acked, used: bool) {
        let segments = match &self.early_exit {
            EarlyExit::Rounds(_) if self.is_in_first_slow_start() => LARGEST_STEP_SEGMENTS,
            _ if self.phase == Phase::Timeout => 1,
            _ => 2,
        };
        if used {
            self.size.bytes += self.careful(acked.bytes.min(segments * acked.smss));
        }
    }

    /// RFC 9406 4.3: HyStart++ is for this one only.
    fn is_in_first_slow_start(&self) -> bool {
        self.size.threshold == LARGEST_WINDOW
    }

    /// What HyStart++ leaves of the growth of slow start.
    fn careful(&self, growth: u32) -> u32 {
        match &self.early_exit {
            EarlyExit::Rounds(hystart) if self.is_in_first_slow_start() => hystart.growth(growth),
            _ => growth,
        }
    }

    /// Slow start up to ssthresh, the rest of the acknowledgment in congestion avoidance.
    fn grow_as_linux(&mut self, acked: &Acked, gap: Span) {
        let Window { bytes, threshold } = self.size;
        let limited = bytes <= self.peak.saturating_add(acked.smss);
        if bytes < threshold && (limited || bytes < self.peak.saturating_mul(2)) {
            let growth = self.careful(acked.bytes).min(threshold - bytes);
            self.size.bytes += growth;
            let rest = acked.bytes - growth;
            if self.size.bytes == threshold && rest > 0 {
                let rest = Acked {
                    bytes: rest,
                    ..*acked
                };
                self.size.bytes += self.growth(&rest);
            }
        } else if bytes >= threshold && limited {
            self.size.bytes += self.growth(acked);
        } else {
            ask!(&mut self.algorithm, it => it.after_idle(gap));
        }
    }

    /// What a reduction starts from.
    fn reduced_from(&self, loss: &Loss) -> Loss {
        match self.counting {
            WindowCounting::Rfc => *loss,
            WindowCounting::Linux => Loss {
                flight: self.size.bytes,
                ..*loss
            },
        }
    }

    /// A new ssthresh.
    fn counted(&self, threshold: u32, smss: u32) -> u32 {
        match self.counting {
            WindowCounting::Rfc => threshold,
            WindowCounting::Linux => threshold / smss * smss,
        }
    }

    /// Bytes that are newly known to have arrived count, and the window comes down by PRR also when the network marked what
    /// was sent.
    pub(crate) fn counts_as_linux(&self) -> bool {
        self.counting == WindowCounting::Linux
    }

    /// The books of PRR for a recovery that begins with `flight` in flight (RecoverFS of RFC 9937 6.1).
    pub(crate) fn rate_reduction(&self, flight: u32, smss: u32) -> RateReduction {
        match self.counting {
            WindowCounting::Rfc => RateReduction::new(flight),
            WindowCounting::Linux => RateReduction::in_units(self.size.bytes, smss),
        }
    }

    /// Keeps a mark that is behind SND.UNA just behind it: further than 2^31 behind would be ahead.
    pub(crate) fn keep_mark_near(&mut self, una: SeqNr) {
        if self.recover.before(una) {
            self.recover = una - 1;
        }
    }

    /// What a reduction now could be undone to.
    pub(crate) fn save(&self) -> Saved {
        Saved {
            size: self.size,
            algorithm: (!self.is_governed()).then(|| self.algorithm.clone()),
        }
    }

    /// The last reduction was not due (RFC 4015 3.2, RFC 9438 4.9). What grew since then stays.
    pub(crate) fn undo(&mut self, saved: Saved, smss: u32) {
        self.size.threshold = self.size.threshold.max(saved.size.threshold);
        self.phase = Phase::Open;
        self.duplicates = 0;
        if self.is_governed() {
            ask!(&mut self.algorithm, it => it.on_spurious());
            self.follow(smss);
            return;
        }
        self.size.bytes = self.size.bytes.max(saved.size.bytes);
        if let Some(algorithm) = saved.algorithm
            && algorithm.kind() == self.algorithm.kind()
        {
            self.algorithm = algorithm;
        }
    }

    /// The new ssthresh after a sign of congestion; a controller that has the window to itself changes that too.
    fn reduce_threshold(&mut self, loss: &Loss, marked: bool) {
        let (size, from) = (self.size, self.reduced_from(loss));
        let threshold = match marked {
            true => ask!(&mut self.algorithm, it => it.on_ecn_echo(size, &from)),
            false => ask!(&mut self.algorithm, it => it.on_loss(size, &from)),
        };
        self.size.threshold = self.counted(threshold, loss.smss).min(LARGEST_WINDOW);
        self.follow(loss.smss);
    }

    /// Enters fast recovery, because of a loss or because the network marked what was sent.
    pub(crate) fn enter_recovery(
        &mut self,
        loss: &Loss,
        max: SeqNr,
        reduction: Reduction,
        marked: bool,
    ) {
        self.reduce_threshold(loss, marked);
        match reduction {
            _ if self.is_governed() => {}
            Reduction::Gradual => {}
            Reduction::AtOnce => self.size.bytes = self.size.threshold,
            Reduction::Inflated => {
                self.size.bytes = self.size.threshold
                    + u32::from(self.duplicates.max(DUPLICATE_THRESHOLD)) * loss.smss;
            }
        }
        self.recover = max;
        self.phase = Phase::FastRecovery;
        self.partial_seen = false;
    }

    /// An ACK in a recovery with PRR.
    pub(crate) fn reduce(
        &mut self,
        reduction: &mut RateReduction,
        delivered: u32,
        in_flight: u32,
        smss: u32,
        safe: bool,
    ) {
        if self.is_governed() {
            return;
        }
        let threshold = self.size.threshold;
        self.size.bytes = reduction
            .on_ack(delivered, in_flight, threshold, smss, safe)
            .clamp(smss, LARGEST_WINDOW);
    }

    /// One more duplicate in fast recovery without SACK: one more segment left the network (RFC 5681 3.2, step 4).
    pub(crate) fn inflate(&mut self, smss: u32) {
        if self.is_governed() {
            return;
        }
        self.size.bytes = (self.size.bytes + smss).min(LARGEST_WINDOW);
    }

    /// An ACK that ends less than the whole recovery, without SACK (RFC 6582 3.2, step 3). True when it is the first.
    pub(crate) fn partial_ack(&mut self, acked: u32, smss: u32) -> bool {
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.saturating_sub(acked).max(smss);
            if acked >= smss {
                self.size.bytes += smss;
            }
        }
        let first = !self.partial_seen;
        self.partial_seen = true;
        first
    }

    /// `recover` is acknowledged; `flight` is what is outstanding now.
    pub(crate) fn leave_recovery(&mut self, flight: u32, smss: u32, sack: bool) {
        if self.is_governed() {
            ask!(&mut self.algorithm, it => it.on_recovered());
            self.follow(smss);
        } else if self.phase == Phase::FastRecovery {
            self.size.bytes = match sack {
                true => self.size.threshold,
                // RFC 6582 3.2, step 3, first alternative: no burst.
                false => self.size.threshold.min(flight.max(smss) + smss),
            };
        }
        self.phase = Phase::Open;
        self.duplicates = 0;
    }

    /// The retransmission timer expired, for the first time for this data or again (RFC 5681 3.1).
    pub(crate) fn time_out(&mut self, first: bool, loss: &Loss, max: SeqNr) {
        if !self.is_governed() {
            if first {
                let (size, from) = (self.size, self.reduced_from(loss));
                let threshold = ask!(&mut self.algorithm, it => it.on_timeout(size, &from));
                self.size.threshold = self.counted(threshold, loss.smss).min(LARGEST_WINDOW);
            }
            self.size.bytes = loss.smss;
        }
        self.recover = max;
        self.phase = Phase::Timeout;
        self.duplicates = 0;
        if let EarlyExit::Trains(trains) = &mut self.early_exit {
            **trains = TrainHyStart::new(max);
        }
    }

    /// F-RTO found that the timeout was not spurious: go on with at most so much (RFC 5682 2.1, step 3a).
    pub(crate) fn limit(&mut self, most: u32) {
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(most);
        }
    }

    /// Segments are larger from now on: one always fits.
    pub(crate) fn make_room(&mut self, smss: u32) {
        self.size.bytes = self.size.bytes.max(smss);
    }

    /// A lost tail was repaired by a probe, or the network marked what was sent: the window is reduced without a
    /// recovery (RFC 8985 7.4.2; RFC 3168 6.1.2).
    pub(crate) fn reduce_once(&mut self, loss: &Loss, marked: bool) {
        self.reduce_threshold(loss, marked);
        if !self.is_governed() {
            self.size.bytes = self.size.bytes.min(self.size.threshold);
        }
    }

    /// Nothing was sent for `idle`, at least a timeout. Start anew (RFC 5681 4.1) with `initial`, if so much is given.
    pub(crate) fn restart(&mut self, idle: Span, initial: Option<u32>) {
        if let Some(initial) = initial {
            self.size.bytes = self.size.bytes.min(initial);
        }
        ask!(&mut self.algorithm, it => it.after_idle(idle));
    }

    /// The rule that is broken, if any.
    pub(crate) fn verify(&self, una: SeqNr, smss: u32) -> Result<(), &'static str> {
        if self.size.bytes < smss {
            return Err("the congestion window has room for a segment");
        }
        if self.phase != Phase::Open && self.recover.before(una) {
            return Err("recovery ends when its mark is acknowledged");
        }
        Ok(())
    }
}
