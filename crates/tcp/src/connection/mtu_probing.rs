//! Packetization layer path MTU discovery (RFC 4821), where it follows Linux if the RFC leaves room: when a probe is sent,
//! what its fate tells, and how a path is noticed that swallows packets of the size in use.

use super::output::Run;
use super::{Connection, Context, LEAST_MSS, Marks, TIMESTAMPS_LEN};
use crate::clock::Moment;
use crate::config::{Config, ProbePathMtu};
use crate::congestion::Phase;
use crate::mtu_search::{MtuSearch, Probe};
use crate::types::Stats;
use baton_wire::{Payload, SeqNr};

/// No probes with less of a window, segments: what one loss does to a small window is too much (Linux).
const LEAST_WINDOW_SEGMENTS: u32 = 11;

/// Timeouts without progress before one that hints at the path (tcp_retries1; RFC 4821 7.7 has no number).
const TIMEOUTS_OF_A_BLACK_HOLE: u8 = 3;

/// What to do about a probe.
pub(super) enum Probing {
    /// None is due.
    None,
    /// There will soon be room for one.
    Wait,
    Send(Run),
}

impl<P: Payload> Connection<P> {
    /// Options of a segment with data.
    fn data_options_len(&self) -> u16 {
        match self.options.timestamps {
            true => TIMESTAMPS_LEN,
            false => 0,
        }
    }

    /// Where a search begins.
    fn base_size(&self, config: &Config) -> u16 {
        let base = config.mtu_probing.base_mss;
        base.saturating_add(self.data_options_len()).max(LEAST_MSS)
    }

    /// The search begins, or begins again, with the size in use at most.
    fn start_mtu_search(&mut self, now: Moment, config: &Config) {
        let told = self.options.path_mss;
        let high = self.segment_room();
        let search = MtuSearch::new(self.base_size(config), high, told, now);
        self.options.path_mss = search.low();
        self.search = Some(Box::new(search));
    }

    /// The peer's SYN told its MSS, or the owner changed the rules.
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
                // Of a route that was told of, the size in use needs no probe.
                self.options.path_mss = known.unwrap_or(self.options.path_mss);
            }
            (_, Some(_)) => self.limit_search(self.options.mss),
            (ProbePathMtu::AfterBlackHole, None) => {}
        }
    }

    /// The route to the peer is another: what was known of the path does not hold. The size in use stays while larger ones are
    /// probed for.
    pub(super) fn change_route(&mut self, config: &Config) {
        let room = config.route_room();
        match &mut self.search {
            Some(search) => {
                search.told = room;
                search.reach(self.options.mss.min(room));
                self.limit_search(room);
            }
            None => self.options.path_mss = room,
        }
    }

    /// No segment larger than this gets through, where the path is searched.
    fn limit_search(&mut self, most: u16) {
        if let Some(search) = &mut self.search {
            search.limit(most);
            self.options.path_mss = self.options.path_mss.min(search.high());
        }
    }

    // --- sending ---

    /// Whether the next segment of new data, which may go up to `limit` bytes beyond SND.UNA, is to be a probe (RFC 4821
    /// 7.3): enough must follow it that its loss shows, and nothing else may be in doubt.
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

    /// Something is sent again. What becomes of a probe under way tells nothing any more (RFC 4821 7.6.4).
    #[inline]
    pub(super) fn doubt_mtu_probe(&mut self) {
        if let Some(search) = &mut self.search {
            search.probe = None;
        }
    }

    // --- what becomes of a probe ---

    /// SND.UNA moved. A probe that is acknowledged shows that others may be as large (RFC 4821 7.6.1).
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

    /// A loss is evident. True when just the probe was lost: that is no sign of congestion (RFC 4821 7.6.2), and it goes
    /// again in smaller segments.
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

    /// The probe is lost; it goes again in smaller segments, and smaller ones are tried.
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
            // More duplicates of the same loss tell nothing new.
            self.congestion.recover = self.tx.max;
        }
        self.marks.insert(Marks::SEND_FIRST_AGAIN);
    }

    /// The probe under way, if it starts at `seq`, and its size.
    pub(super) fn mtu_probe_at(&self, seq: SeqNr) -> Option<(Probe, u16)> {
        let probe = self.search.as_ref()?.probe?;
        let size = (probe.end - probe.start) as u16 + self.data_options_len();
        (probe.start == seq).then_some((probe, size))
    }

    /// The network told that segments larger than this do not get through.
    pub(super) fn limit_path(&mut self, room: u16) {
        match &mut self.search {
            Some(search) => {
                search.told = search.told.min(room);
                self.limit_search(room);
            }
            None => self.options.path_mss = room,
        }
    }

    /// Where no times are kept: the next part of a lost probe.
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

    /// The retransmission timer expired, not for the first time. If it did often the path may swallow packets of the size in
    /// use (RFC 4821 7.7, RFC 2923 2.1): smaller ones are tried.
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

    /// The rule of the search that is broken, if any.
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
