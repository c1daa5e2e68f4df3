//! Packetization layer path MTU discovery (RFC 4821), which follows Linux where the RFC leaves a choice: when to send a probe,
//! what its arrival or loss means, and how to detect a path that drops packets of the current size.

use super::output::Run;
use super::{Connection, Context, LEAST_MSS, Marks, TIMESTAMPS_LEN};
use crate::clock::Moment;
use crate::config::{Config, ProbePathMtu};
use crate::congestion::Phase;
use crate::mtu_search::{MtuSearch, Probe};
use crate::types::Stats;
use baton_wire::{Payload, SeqNr};

/// Least window, in segments, for a probe: a loss would harm a smaller window too much (Linux).
const LEAST_WINDOW_SEGMENTS: u32 = 11;

/// Timeouts without progress after which a further one suggests a black hole (tcp_retries1; RFC 4821 7.7 has no number).
const TIMEOUTS_OF_A_BLACK_HOLE: u8 = 3;

/// Decision about sending a probe.
pub(super) enum Probing {
    /// No probe is due.
    None,
    /// A probe is due, but has to wait until the window allows it.
    Wait,
    Send(Run),
}

impl<P: Payload> Connection<P> {
    /// Length of the options of a segment with data.
    fn data_options_len(&self) -> u16 {
        match self.options.timestamps {
            true => TIMESTAMPS_LEN,
            false => 0,
        }
    }

    /// Size with which a search begins.
    fn base_size(&self, config: &Config) -> u16 {
        let base = config.mtu_probing.base_mss;
        base.saturating_add(self.data_options_len()).max(LEAST_MSS)
    }

    /// Starts a search, with the current size as its maximum.
    fn start_mtu_search(&mut self, now: Moment, config: &Config) {
        let told = self.options.path_mss;
        let high = self.segment_room();
        let search = MtuSearch::new(self.base_size(config), high, told, now);
        self.options.path_mss = search.low();
        self.search = Some(Box::new(search));
    }

    /// Starts, limits or ends the search, once the peer's MSS is known or after the owner changed the configuration.
    pub(super) fn choose_mtu_probing(&mut self, now: Moment, config: &Config) {
        match (config.mtu_probing.when, &mut self.search) {
            (ProbePathMtu::Off, search) => {
                if let Some(search) = search.take() {
                    self.options.path_mss = search.told.min(config.route_room());
                }
            }
            (ProbePathMtu::Always, None) => {
                let known = config.route_mss.map(|_| self.segment_room());
                self.start_mtu_search(now, config);
                // On a route with a known MSS, the current size needs no probe.
                self.options.path_mss = known.unwrap_or(self.options.path_mss);
            }
            (_, Some(_)) => self.limit_search(self.options.mss),
            (ProbePathMtu::AfterBlackHole, None) => {}
        }
    }

    /// Adapts to another route to the peer, which invalidates what was known of the path. The current size stays while larger ones
    /// are probed.
    pub(super) fn change_route(&mut self, config: &Config) {
        let room = config.route_room();
        self.marks.remove(Marks::PATH_TOLD);
        match &mut self.search {
            Some(search) => {
                search.told = room;
                search.reach(self.options.mss.min(room));
                self.limit_search(room);
            }
            None => self.options.path_mss = room,
        }
    }

    /// Limits the search, if there is one, to sizes up to `most`.
    fn limit_search(&mut self, most: u16) {
        if let Some(search) = &mut self.search {
            search.limit(most);
            self.options.path_mss = self.options.path_mss.min(search.high());
        }
    }

    // --- sending ---

    /// Decides whether the next segment of new data, which may reach up to `limit` bytes beyond SND.UNA, is a probe (RFC 4821
    /// 7.3): enough data must follow it to reveal its loss, and nothing else may be in doubt.
    #[cold]
    #[inline(never)]
    pub(super) fn mtu_probe(&mut self, cx: &Context<'_>, limit: u32) -> Probing {
        let (seq, smss) = (self.tx.next, self.smss());
        let window = self.congestion.window();
        let most = self.options.mss.min(cx.config.route_room());
        let calm = self.congestion.phase == Phase::Open
            && self.congestion.duplicates == 0
            && seq == self.tx.max
            && self.reported() == 0
            && self.lost() == 0
            && self.data_room() == smss
            && window >= LEAST_WINDOW_SEGMENTS * smss;
        let options = self.data_options_len();
        let threshold = self.repair.duplicate_threshold();
        let not_sent = self.not_sent();
        let Some(search) = self.search.as_mut().filter(|it| calm && it.probe.is_none()) else {
            return Probing::None;
        };
        let Some(size) = search.next_size(&cx.config.mtu_probing) else {
            let now = self.clock.moment(cx.now);
            search.restart_if_old(most, now, &cx.config.mtu_probing);
            return Probing::None;
        };
        let len = u32::from(size - options);
        let needed = len + (threshold + 1) * smss;
        let end = seq + len;
        let record = self.boundaries.record_end(seq);
        if not_sent < needed
            || self.tx.window < needed
            || window < needed
            || record.is_some_and(|record| record.before(end))
        {
            return Probing::None;
        }
        let before = seq - self.tx.una;
        if before + needed > self.tx.window || before + len.max(2 * smss) > limit {
            return match before {
                0 => Probing::None,
                _ => Probing::Wait,
            };
        }
        search.probe = Some(Probe { start: seq, end });
        let fin = false;
        Probing::Send(Run { seq, len, fin })
    }

    /// Forgets the probe in flight because of a retransmission: its outcome is no longer conclusive (RFC 4821 7.6.4).
    #[inline]
    pub(super) fn doubt_mtu_probe(&mut self) {
        if let Some(search) = &mut self.search {
            search.probe = None;
        }
    }

    // --- outcome of a probe ---

    /// Checks, after SND.UNA moved, whether the probe is acknowledged: segments may then be as large (RFC 4821 7.6.1).
    #[cold]
    #[inline(never)]
    pub(super) fn judge_mtu_probe(&mut self, stats: &mut Stats) {
        let (una, options) = (self.tx.una, self.data_options_len());
        let Some(search) = &mut self.search else {
            return;
        };
        search.again = search.again.filter(|again| again.end.after(una));
        if let Some(probe) = search.probe
            && una.at_or_after(probe.end)
        {
            search.arrived((probe.end - probe.start) as u16 + options);
            self.options.path_mss = self.options.path_mss.max(search.low()).min(search.told);
            stats.mtu_probes_arrived += 1;
            let smss = self.smss();
            self.congestion.make_room(smss);
        }
    }

    /// Reports whether an evident loss is that of the probe only. This is no sign of congestion (RFC 4821 7.6.2), and the data
    /// of the probe is sent again in smaller segments.
    pub(super) fn only_mtu_probe_was_lost(&mut self, stats: &mut Stats) -> bool {
        let Some((probe, _)) = self.mtu_probe_at(self.tx.una) else {
            return false;
        };
        let len = probe.end - probe.start;
        let only = match (self.keeps_times(), &self.scoreboard) {
            (true, _) => self.repair.flight.lost() == len,
            (false, Some(board)) if self.options.sack => {
                board.sacked() + len == board.highest().map_or(0, |end| end - probe.start)
            }
            (false, _) => true,
        };
        if only {
            stats.mtu_probes_lost += 1;
            self.repeat_mtu_probe(probe);
        }
        only
    }

    /// Sends the data of a lost probe again in smaller segments, and makes the search try smaller sizes.
    pub(super) fn repeat_mtu_probe(&mut self, probe: Probe) {
        let (options, keeps_times) = (self.data_options_len(), self.keeps_times());
        if let Some(search) = &mut self.search {
            search.failed((probe.end - probe.start) as u16 + options);
            self.options.path_mss = self.options.path_mss.min(search.high());
            search.again = (!keeps_times).then_some(probe);
        }
        if keeps_times {
            self.repair.flight.lose_segment(self.tx.una, probe.start);
        } else {
            // Further duplicate ACKs for the same loss do not count.
            self.congestion.recover = self.tx.max;
        }
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
    }

    /// The probe in flight, if it starts at `seq`, and its size.
    pub(super) fn mtu_probe_at(&self, seq: SeqNr) -> Option<(Probe, u16)> {
        let probe = self.search.as_ref()?.probe?;
        let size = (probe.end - probe.start) as u16 + self.data_options_len();
        (probe.start == seq).then_some((probe, size))
    }

    /// Limits segments to a size that the network reported.
    pub(super) fn limit_path(&mut self, room: u16) {
        match &mut self.search {
            Some(search) => {
                search.told = search.told.min(room);
                self.limit_search(room);
            }
            None => self.options.path_mss = room,
        }
    }

    /// Returns the next part of a lost probe, where no times are kept.
    pub(super) fn mtu_probe_again(&mut self) -> Option<Run> {
        let Probe { start, end } = self.search.as_ref()?.again?;
        let run = self.run_again(start.latest(self.tx.una), end)?;
        let rest = run.end().before(end);
        if let Some(search) = &mut self.search {
            let start = run.end();
            search.again = rest.then_some(Probe { start, end });
        }
        self.marks.set(Marks::SEND_FIRST_AGAIN, rest);
        Some(run)
    }

    // --- black holes ---

    /// Tries smaller segments after repeated retransmission timeouts: the path may drop packets of the current size (RFC 4821
    /// 7.7, RFC 2923 2.1).
    pub(super) fn suspect_black_hole(&mut self, cx: &mut Context<'_>) {
        if let Some(search) = &mut self.search {
            search.probe = None;
            search.again = None;
        }
        let often = self.timers.retries > TIMEOUTS_OF_A_BLACK_HOLE && self.tx.window > 0;
        if !often || cx.config.mtu_probing.when == ProbePathMtu::Off {
            return;
        }
        let before = self.smss();
        let config = cx.config;
        let (base, options) = (self.base_size(config), self.data_options_len());
        let floor = config.mtu_probing.floor_mss.saturating_add(options);
        match &mut self.search {
            Some(search) => {
                let half = (search.low() - options) / 2 + options;
                search.lower(base, half.max(floor).max(LEAST_MSS));
                self.options.path_mss = search.low();
            }
            None => self.start_mtu_search(self.clock.moment(cx.now), config),
        }
        cx.stats.black_holes += u64::from(self.smss() < before);
    }

    /// Returns the invariant of the search that is violated, if any.
    pub(super) fn verify_mtu_search(&self) -> Result<(), &'static str> {
        let Some(search) = &self.search else {
            return Ok(());
        };
        let least = search.low().min(search.told);
        if !(least..=search.high()).contains(&self.options.path_mss) || search.told < LEAST_MSS {
            return Err("the size in use is what the search found, or more");
        }
        search.verify(self.tx.una, self.tx.max, self.options.mss)
    }
}
