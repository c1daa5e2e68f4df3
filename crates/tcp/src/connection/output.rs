//! Decides what a connection sends now (RFC 9293 3.8.6, 3.7.4), anew for each segment.

use super::mtu_probing::Probing;
use super::repair::{ForwardRto, Switches};
use super::{Connection, Context, Marks};
use crate::clock::Past;
use crate::config::{Config, NagleRule, WindowCounting, WindowProbe};
use crate::congestion::Phase;
use crate::rtt::Timed;
use crate::sack::Scoreboard;
use crate::send_buffer::Lent;
use crate::types::State;
use baton_wire::{Ecn, Flags, Header, Options, Payload, SeqNr, Span, Time, Timestamps};

/// SACK blocks that fit with timestamps, and without them (RFC 2018 3).
const SACK_BLOCKS_WITH_TIMESTAMPS: usize = 3;
const SACK_BLOCKS: usize = 4;

/// A run of sequence numbers to send: `len` bytes of data and then perhaps a FIN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) seq: SeqNr,
    pub(super) len: u32,
    pub(super) fin: bool,
}

impl Run {
    pub(super) fn end(self) -> SeqNr {
        self.seq + self.len + u32::from(self.fin)
    }
}

/// A segment that is to be sent; its data is in the send buffer. The stack passes the same value for each segment, because it is
/// large: each field is written once, where the code that builds the frame reads it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departure {
    pub(crate) ecn: Ecn,
    pub(crate) header: Header,
    /// Start of its data, as distance from the first unacknowledged byte, and its length.
    pub(super) offset: u32,
    pub(super) len: u32,
    /// Nothing else waits to be sent.
    pub(crate) is_last: bool,
    /// Segments like this one, with as much data each, that follow it in a run; the last of them is pushed.
    pub(crate) more: u32,
    pub(crate) pushes: bool,
}

impl<P: Payload> Connection<P> {
    /// The data of a segment, or of a run of segments, to be sent.
    pub(crate) fn lend(&mut self, departure: &Departure) -> Lent<'_, P> {
        self.send
            .lend(departure.offset, departure.len * (departure.more + 1))
    }

    /// Fills in the next segment to send. Returns false if none may be sent now.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_>, out: &mut Departure) -> bool {
        if self.ended.is_some() {
            return false;
        }
        out.is_last = false;
        if self.sends_only_new() {
            let sends = self.new_data(cx, out) || self.due_ack(cx, out);
            out.is_last = self.has_sent_it_all();
            return sends;
        }
        self.limit_fin_wait(cx);
        match self.state {
            State::SynSent | State::SynReceived if self.owes_syn() => {
                self.syn(cx, out);
                return true;
            }
            State::SynSent => return false,
            State::SynReceived if !self.is_opened_fast() => {}
            _ => {
                if self.synchronized_output(cx, out) {
                    return true;
                }
            }
        }
        let asks = self.marks.contains(Marks::KEEPALIVE_PROBE) && self.is_synchronized();
        self.marks.remove(Marks::KEEPALIVE_PROBE);
        if asks {
            cx.stats.keepalive_probes += 1;
            self.old_number(cx, out);
            return true;
        }
        self.due_ack(cx, out)
    }

    /// Fills in an ACK without data, if one is due.
    #[inline]
    fn due_ack(&mut self, cx: &Context<'_>, out: &mut Departure) -> bool {
        let due = self.rx.acks_owed > 0 || self.owes_window_update(cx.config);
        if due {
            self.pure_ack(cx, out);
        }
        due
    }

    /// Fills in a segment of new data, while no loss is known.
    fn new_data(&mut self, cx: &mut Context<'_>, out: &mut Departure) -> bool {
        if self.tx.next == self.data_end() {
            return false;
        }
        match self.feedback {
            None => self.new_data_as(cx, false, out),
            Some(_) => self.new_data_with_feedback(cx, out),
        }
    }

    /// Does the same as `new_data`, with feedback for the controller and pacing. Not inlined, so that other connections do not pay for it.
    #[inline(never)]
    fn new_data_with_feedback(&mut self, cx: &mut Context<'_>, out: &mut Departure) -> bool {
        !self.is_paced_out(cx) && self.new_data_as(cx, true, out)
    }

    #[inline(always)]
    fn new_data_as(&mut self, cx: &mut Context<'_>, feedback: bool, out: &mut Departure) -> bool {
        let limit = self.tx.window.min(self.congestion.window());
        let Some(run) = self.next_run(cx, limit) else {
            return false;
        };
        self.send_run_as(cx, run, false, feedback, out);
        true
    }

    fn synchronized_output(&mut self, cx: &mut Context<'_>, out: &mut Departure) -> bool {
        if self.marks.contains(Marks::PROBE) {
            self.marks.remove(Marks::PROBE);
            if self.probe(cx, out) {
                return true;
            }
        }
        if self.has_sent_all() || self.is_paced_out(cx) {
            return false;
        }
        let run = self.recovery_run().or_else(|| self.tail_probe_run());
        let Some(run) = run.or_else(|| self.run_of_new(cx)) else {
            return false;
        };
        self.send_run(cx, run, out);
        true
    }

    fn run_of_new(&mut self, cx: &Context<'_>) -> Option<Run> {
        if self.marks.contains(Marks::SETTLING) {
            return self.run_of_sent(cx);
        }
        if self.marks.contains(Marks::DEFERRED) {
            return None;
        }
        self.skip_reported();
        let limit = self.send_limit()?;
        self.next_run(cx, limit)
    }

    /// Returns the next run of a settling connection: data that is sent again because a timeout took SND.NXT back. Probes a window
    /// of zero.
    #[cold]
    #[inline(never)]
    fn run_of_sent(&mut self, cx: &Context<'_>) -> Option<Run> {
        if self.tx.next == self.tx.max {
            let waits = self.not_sent() > 0 || self.fin_pending();
            let idle = self.flight() == 0 && self.timers.persist == Time::NEVER;
            if self.tx.window == 0 && waits && idle {
                self.start_waiting(cx.now);
                self.start_persist(cx);
            }
            return None;
        }
        self.skip_reported();
        let limit = self.send_limit()?;
        let run = self.next_run(cx, limit)?;
        let sent = self.tx.max - run.seq;
        let again = Run {
            len: run.len.min(sent),
            fin: run.fin && run.len < sent,
            ..run
        };
        (again.end() != again.seq).then_some(again)
    }

    /// Reports whether everything written was sent and nothing is to be sent again. This is the usual case after a segment was sent
    /// or data arrived, and one check is faster than checking each reason to send.
    fn has_sent_all(&self) -> bool {
        self.state == State::Established
            && self.congestion.phase == Phase::Open
            && self.tx.next == self.data_end()
            && self.repair.flight.lost() == 0
            && !self.repair.is_on(Switches::PROBE_TAIL)
            && !self.marks.contains(Marks::SEND_FIRST_AGAIN)
    }

    /// Returns how far beyond SND.UNA data may be sent, or `None` if recovery holds everything back.
    fn send_limit(&self) -> Option<u32> {
        let window = self.tx.window;
        if let ForwardRto::NewData(until) = self.repair.forward {
            return Some(window.min(until.saturating_since(self.tx.una)));
        }
        if self.in_sack_recovery() {
            return self.pipe_has_room().then_some(window);
        }
        let limited = self.repair.is_on(Switches::LIMITED_TRANSMIT);
        if self.keeps_times() {
            // Segments that left the network allow more to be sent (RFC 6675 5, step 3.3).
            let reported = if limited { self.reported() } else { 0 };
            let left = self.repair.flight.lost() + reported;
            return Some(window.min(self.congestion.window() + left));
        }
        let more = match self.reports_after_timeout() {
            Some(scoreboard) => scoreboard.sacked_below(self.tx.next),
            None if limited && self.options.sack && self.congestion.counts_as_linux() => {
                self.reported()
            }
            None if limited => {
                let threshold = self.repair.duplicate_threshold();
                self.congestion.limited_transmit(self.smss(), threshold)
            }
            None => 0,
        };
        Some(window.min(self.congestion.window() + more))
    }

    /// The scoreboard, while data that was outstanding at a timeout is sent again: what the peer reported since then has left
    /// the network and need not be sent.
    fn reports_after_timeout(&self) -> Option<&Scoreboard> {
        match self.congestion.phase {
            Phase::Timeout if self.tx.next != self.tx.max => self.scoreboard.as_deref(),
            _ => None,
        }
    }

    /// Returns what to send from SND.NXT on, within `limit` bytes of SND.UNA.
    #[inline(always)]
    fn next_run(&mut self, cx: &Context<'_>, limit: u32) -> Option<Run> {
        if self.search.is_some() {
            match self.mtu_probe(cx, limit) {
                Probing::None => {}
                Probing::Wait => return None,
                Probing::Send(run) => return Some(run),
            }
        }
        let seq = self.tx.next;
        let data_end = self.data_end();
        if seq.after(data_end) {
            return None;
        }
        let available = data_end - seq;
        let fin_pending = self.fin_pending();
        if available == 0 && !fin_pending {
            return None;
        }
        let limit = self
            .restart_window(cx)
            .map_or(limit, |restart| limit.min(restart));
        let room = limit.saturating_sub(seq - self.tx.una);
        let most = self.data_room();
        let record = self
            .boundaries
            .record_end(seq)
            .map_or(u32::MAX, |end| end - seq);
        let most = most.min(record);
        let len = available.min(room).min(most).min(self.unreported_len(seq));
        let last = len == available;
        // A FIN also takes a sequence number of the window.
        let fin = fin_pending && last && self.tx.window > (seq - self.tx.una) + len;
        if (len == 0 && !fin) || !self.worth_sending(cx.config, Run { seq, len, fin }, most, last) {
            let held_by_owner = last && self.is_corked() && !fin_pending;
            let idle = self.timers.retransmit == Time::NEVER && self.timers.persist == Time::NEVER;
            match (idle, held_by_owner) {
                (false, _) => {}
                (true, true) => self.limit_cork(cx),
                (true, false) => {
                    self.start_waiting(cx.now);
                    self.start_persist(cx);
                }
            }
            return None;
        }
        Some(Run { seq, len, fin })
    }

    /// Sender's silly window avoidance (RFC 9293 3.8.6.2.1) and Nagle's algorithm (3.7.4), the latter as
    /// Minshall modified it: only an unacknowledged *partial* segment holds back another one.
    #[inline(always)]
    fn worth_sending(&self, config: &Config, run: Run, full: u32, last: bool) -> bool {
        let Run { seq, len, fin } = run;
        // The end of a record is "full" only when more follows it.
        let whole_record = len >= full && (!last || full >= self.data_room());
        if whole_record || fin || seq.before(self.tx.max) {
            return true;
        }
        if last {
            let held_back = match config.nagle_rule {
                NagleRule::Minshall => self.tx.partial_end.after(self.tx.una),
                NagleRule::Classic => self.flight() > 0,
            };
            let nagle = !self.marks.intersects(Marks::NODELAY | Marks::URGENT) && held_back;
            return !nagle && !self.is_corked();
        }
        len > 0 && len >= self.tx.largest_window / 2
    }

    /// Reports whether the owner holds back partial segments (TCP_CORK, MSG_MORE).
    fn is_corked(&self) -> bool {
        self.marks.intersects(Marks::CORK | Marks::MORE)
            && !self.marks.intersects(Marks::PUSHED | Marks::URGENT)
    }

    /// Moves SND.NXT past a block that was reported.
    fn skip_reported(&mut self) {
        let next = self.tx.next;
        let reported = self
            .reports_after_timeout()
            .and_then(|board| board.block_from(next));
        if let Some(block) = reported
            && block.start.at_or_before(next)
        {
            self.tx.next = block.end;
        }
    }

    /// Bytes from `seq` on that were not reported.
    fn unreported_len(&self, seq: SeqNr) -> u32 {
        let reported = self
            .reports_after_timeout()
            .and_then(|board| board.block_from(seq));
        reported.map_or(u32::MAX, |block| block.start - seq)
    }

    /// The window with which to resume after an idle time (RFC 5681 4.1), if there was one.
    fn restart_window(&self, cx: &Context<'_>) -> Option<u32> {
        let starts = cx.config.slow_start_after_idle
            && self.idle_time(cx).is_some()
            && !self.congestion.is_governed();
        starts.then(|| self.initial_window(cx.config))
    }

    /// Returns how long nothing was sent, if that is more than a timeout and everything is acknowledged.
    fn idle_time(&self, cx: &Context<'_>) -> Option<Span> {
        let idle = self.last_sent.elapsed(cx.now);
        (self.flight() == 0 && idle > self.rtt.rto(cx.config)).then_some(idle)
    }

    /// IW, or one segment when the SYN was lost (RFC 5681 3.1, RFC 6928 2).
    pub(super) fn initial_window(&self, config: &Config) -> u32 {
        let least_lost = match config.window_counting {
            WindowCounting::Rfc => 1,
            WindowCounting::Linux => 2,
        };
        let syn_lost = self.marks.contains(Marks::SYN_LOST);
        let segments = if syn_lost && self.counts.total_retransmissions >= least_lost {
            1
        } else {
            config.initial_window_segments.max(1)
        };
        self.smss() * segments
    }

    /// Bytes of data that a segment may hold now, which SACK blocks reduce (RFC 6691 3).
    #[inline]
    pub(super) fn data_room(&self) -> u32 {
        match self.options.sack && (self.receive.has_holes() || self.rx.duplicate.is_some()) {
            true => self.room_beside_reports(),
            false => self.smss(),
        }
    }

    fn room_beside_reports(&self) -> u32 {
        let mut options = Options::default();
        self.options_of_ack(Time::ZERO, &mut options);
        u32::from(self.segment_room()) - options.len() as u32
    }

    /// Fills in a window probe: the data that fits, or a byte or FIN even if none does (RFC 9293 3.8.6.1).
    fn probe(&mut self, cx: &mut Context<'_>, out: &mut Departure) -> bool {
        let una = self.tx.una;
        let waits = self.data_end() != una || self.fin_pending();
        let settles = self.marks.contains(Marks::SETTLING);
        let (available, fin_pending) = match settles {
            true => (self.tx.max.earliest(self.data_end()) - una, self.fin_sent()),
            false => (self.data_end() - una, self.fin_pending()),
        };
        if self.tx.window > 0 {
            // Sender's silly window avoidance held the data back long enough (RFC 9293 3.8.6.2.1, 4).
            let len = available.min(self.tx.window).min(self.data_room());
            let fin = fin_pending && len == available && self.tx.window > len;
            let run = Run { seq: una, len, fin };
            if run.end() != una {
                self.send_run(cx, run, out);
            }
            return run.end() != una;
        }
        cx.stats.window_probes += 1;
        let sends_nothing = settles && self.flight() == 0;
        if cx.config.window_probe == WindowProbe::OldNumber || sends_nothing {
            if waits {
                self.old_number(cx, out);
            }
            return waits;
        }
        let run = Run {
            seq: una,
            len: available.min(1),
            fin: fin_pending && available == 0,
        };
        if run.end() == una {
            return false;
        }
        // SND.NXT stays: the probe does not count as sent, so its data is sent again once the window opens.
        if run.end().after(self.tx.max) {
            self.note_sent(cx, run, false);
            self.tx.max = run.end();
        }
        self.segment_of(cx, run, false, out);
        true
    }

    /// Fills in a segment without data just before the window, which the peer must answer by an ACK (RFC 9293 3.8.4, 3.10.7.4).
    fn old_number(&mut self, cx: &Context<'_>, out: &mut Departure) {
        self.without_data(Ecn::NotCapable, out);
        self.header(cx, self.tx.una - 1, Flags::ACK, &mut out.header);
    }

    /// Sends a run and updates all state that depends on it.
    fn send_run(&mut self, cx: &mut Context<'_>, run: Run, out: &mut Departure) {
        let (again, feedback) = (run.seq.before(self.tx.max), self.feedback.is_some());
        self.send_run_as(cx, run, again, feedback, out);
    }

    /// Does the same as `send_run`, given whether the run is sent again and whether the controller wants feedback.
    #[inline(always)]
    fn send_run_as(
        &mut self,
        cx: &mut Context<'_>,
        run: Run,
        again: bool,
        feedback: bool,
        out: &mut Departure,
    ) {
        if let Some(idle) = self.idle_time(cx) {
            let now = self.clock.moment(cx.now);
            self.congestion.restart(now, idle, self.restart_window(cx));
        }
        if feedback {
            self.restart_if_idle(self.clock.moment(cx.now));
        }
        let end = run.end();
        if again {
            cx.stats.retransmissions += 1;
            self.counts.total_retransmissions = self.counts.total_retransmissions.wrapping_add(1);
            self.counts.bytes_retransmitted += u64::from(run.len);
            self.doubt_mtu_probe();
            // Karn's algorithm: an ACK of it could be for either copy (RFC 6298 3).
            self.timed = None;
        } else if self.timed.is_none() {
            self.timed = Some(Timed::new(end, Past::at(cx.now)));
        }
        if run.len > 0 {
            self.counts.bytes_sent += u64::from(run.len);
            self.counts.data_segments_out = self.counts.data_segments_out.wrapping_add(1);
            self.note_answer(cx);
        }
        if self.flight() == 0 {
            self.start_waiting(cx.now);
        }
        let in_network = if feedback { self.pipe_to_tell() } else { 0 };
        self.note_sent(cx, run, again);
        if run.len > 0 && run.len < self.data_room() && !(again && self.syn_data_was_refused()) {
            self.tx.partial_end = self.tx.partial_end.latest(end);
        }
        if run.seq == self.tx.next {
            self.tx.next = end;
        }
        self.tx.next = self.tx.next.latest(self.tx.una);
        self.tx.max = self.tx.max.latest(self.tx.next);
        self.congestion
            .sent(self.tx.max - self.tx.una, self.tx.una, self.tx.max);
        if feedback {
            self.tell_sent(cx, run, again, in_network);
        }
        self.last_sent = Past::at(cx.now);
        self.start_retransmit(cx);
        if !again {
            self.restart_probe(cx);
        }
        self.segment_of(cx, run, !again && run.len > 0, out);
    }

    /// Records what recovery needs to know about a segment, before SND.MAX moves.
    pub(super) fn note_sent(&mut self, cx: &Context<'_>, run: Run, again: bool) {
        let now = self.clock.moment(cx.now);
        let (una, end) = (self.tx.una, run.end());
        let keeps_times = self.keeps_times();
        let repair = &mut self.repair;
        if keeps_times {
            repair.flight.sent(una, run.seq, end, now);
        }
        if self.congestion.phase == Phase::Open {
            return;
        }
        if let Some(episode) = &mut repair.episode {
            if again {
                episode.sent_again(end, end - run.seq, now.timestamp());
            }
            if let Some(reduction) = &mut episode.reduction {
                reduction.sent(run.len);
            }
        }
    }

    #[inline(always)]
    fn segment_of(&mut self, cx: &Context<'_>, run: Run, new_data: bool, out: &mut Departure) {
        let (ecn, ecn_flags) = self.notification.of_segment(new_data, run.len > 0);
        let mut flags = Flags::ACK | ecn_flags;
        if run.fin {
            flags |= Flags::FIN;
        }
        if run.len > 0 && self.pushes(run) {
            flags |= Flags::PSH;
        }
        out.ecn = ecn;
        (out.offset, out.len) = (run.seq - self.tx.una, run.len);
        self.header(cx, run.seq, flags, &mut out.header);
        self.count_segment();
    }

    /// Reports whether a run carries PSH: it holds the end of a write, or it is the last data to be sent although the owner
    /// announced more (RFC 9293 3.9.1.2, MUST-61).
    #[inline(always)]
    fn pushes(&self, run: Run) -> bool {
        let end = run.seq + run.len;
        self.boundaries.push_within(run.seq, end)
            || (end == self.data_end() && run.len < self.data_room())
    }

    /// The sequence number of a segment without data: not SND.NXT, which a timeout takes back, and not beyond the peer's window,
    /// where a probe may be, since the peer would refuse both.
    fn acceptable_seq(&self) -> SeqNr {
        let tx = &self.tx;
        tx.una.latest(tx.max.earliest(tx.una + tx.window))
    }

    fn pure_ack(&mut self, cx: &Context<'_>, out: &mut Departure) {
        let (ecn, flags) = self.notification.of_segment(false, false);
        self.without_data(ecn, out);
        let seq = self.acceptable_seq();
        self.header(cx, seq, Flags::ACK | flags, &mut out.header);
    }

    fn without_data(&mut self, ecn: Ecn, out: &mut Departure) {
        self.count_segment();
        out.ecn = ecn;
        (out.offset, out.len) = (0, 0);
    }

    fn count_segment(&mut self) {
        self.counts.segments_out = self.counts.segments_out.wrapping_add(1);
    }

    /// Fills in the header of a segment with ACK, which settles an ACK that is due.
    #[inline]
    fn header(&mut self, cx: &Context<'_>, seq: SeqNr, flags: Flags, out: &mut Header) {
        self.options_of_ack(cx.now, &mut out.options);
        self.rx.duplicate = None;
        out.seq = seq;
        out.ack = self.rx.next;
        out.flags = flags;
        out.window = self.advertise(cx.config);
        out.options.urgent = 0;
        if self.marks.contains(Marks::URGENT) {
            self.point_to_urgent(out);
        }
        self.note_ack_sent();
        self.rx.last_ack = self.rx.next;
        self.rx.acks_owed = self.rx.acks_owed.saturating_sub(1);
        self.timers.delayed_ack = Time::NEVER;
    }

    #[inline(always)]
    fn options_of_ack(&self, now: Time, out: &mut Options) {
        (out.mss, out.window_scale, out.sack_permitted) = (None, None, false);
        out.fast_open = None;
        out.timestamps = self.timestamps_option(now);
        out.sack.truncate(0);
        if self.options.sack && (self.receive.has_holes() || self.rx.duplicate.is_some()) {
            self.report_arrived(out);
        }
    }

    /// Fills in SACK blocks of data that arrived beyond holes, or twice.
    fn report_arrived(&self, out: &mut Options) {
        let most = if out.timestamps.is_some() {
            SACK_BLOCKS_WITH_TIMESTAMPS
        } else {
            SACK_BLOCKS
        };
        out.sack = self.receive.sack_blocks(most);
        if let Some(duplicate) = self.rx.duplicate {
            // The duplicate comes first, and the block that contains it second (RFC 2883 4).
            out.sack.truncate(most - 1);
            out.sack.push_front(duplicate);
        }
    }

    fn timestamps_option(&self, now: Time) -> Option<Timestamps> {
        self.options.timestamps.then(|| Timestamps {
            value: self.clock.value(now),
            echo: self.options.recent,
        })
    }

    /// Reports whether a SYN is to be sent, for the first time or again.
    fn owes_syn(&self) -> bool {
        match self.is_opened_fast() {
            true => self.marks.contains(Marks::SYN_ACK_DUE),
            false => self.tx.next == self.tx.iss,
        }
    }

    /// Fills in a SYN or a SYN with ACK (RFC 9293 3.5).
    fn syn(&mut self, cx: &mut Context<'_>, out: &mut Departure) {
        let iss = self.tx.iss;
        let answers = self.state == State::SynReceived;
        let fast = self.is_opened_fast();
        let again = match fast {
            true => self.timers.retransmit != Time::NEVER,
            false => self.tx.max != iss,
        };
        let ecn_flags = self.notification.syn_flags(self.state, again, cx.config);
        if !again {
            self.start_waiting(cx.now);
        } else {
            cx.stats.retransmissions += 1;
            self.counts.total_retransmissions = self.counts.total_retransmissions.wrapping_add(1);
        }
        if again {
            self.timed = None;
        } else if self.timed.is_none() {
            self.timed = Some(Timed::new(iss + 1, Past::at(cx.now)));
        }
        self.marks.remove(Marks::SYN_ACK_DUE);
        self.last_sent = Past::at(cx.now);
        self.start_retransmit(cx);
        let window = self.syn_window(cx.config);
        let (len, fast_open) = match again {
            true => (0, None),
            false => self.first_syn(cx),
        };
        let options = Options {
            mss: Some(self.advertised_mss(cx.config)),
            window_scale: self
                .options
                .window_scaling
                .then_some(self.options.receive_shift),
            sack_permitted: self.options.sack,
            timestamps: self.timestamps_option(cx.now),
            fast_open: fast_open.or_else(|| self.cookie_due(cx, again)),
            ..Options::default()
        };
        self.without_data(Ecn::NotCapable, out);
        out.len = len;
        if !fast {
            self.tx.next = iss + 1 + len;
            self.tx.max = self.tx.max.latest(self.tx.next);
        }
        out.header = Header {
            seq: iss,
            ack: SeqNr(0),
            flags: Flags::SYN | ecn_flags,
            window,
            options,
        };
        if answers {
            out.header.flags |= Flags::ACK;
            out.header.ack = self.rx.next;
            self.rx.edge = self.rx.edge.latest(self.rx.next + u32::from(window));
            self.rx.last_ack = self.rx.next;
            self.rx.acks_owed = 0;
        }
    }

    /// The MSS option of a SYN. A repeated SYN with Fast Open respects the path's MTU, which may have been too small for the first one.
    fn advertised_mss(&self, config: &Config) -> u16 {
        match self.asks_fast_open() && self.tx.max != self.tx.iss {
            true => config.mss.min(self.options.path_mss),
            false => config.advertised_mss(),
        }
    }

    /// A reset that the peer accepts if it has received everything (RFC 9293 3.10.5). Its timestamp is filled in when it is
    /// sent (RFC 7323 3.2: a reset should have one).
    pub(super) fn reset_header(&self) -> Header {
        let timestamps = self.options.timestamps.then_some(Timestamps {
            value: 0,
            echo: self.options.recent,
        });
        Header {
            seq: self.acceptable_seq(),
            ack: self.rx.next,
            flags: Flags::RST | Flags::ACK,
            options: Options {
                timestamps,
                ..Options::default()
            },
            ..Header::default()
        }
    }
}
