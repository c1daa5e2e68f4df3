//! One connection: its state, and the calls of the application. Arriving segments are in `input`, transmission in
//! `output`, timeouts in `timers`.

mod acknowledgment;
mod boundaries;
mod delayed_ack;
mod ecn;
mod fast_open;
mod feedback;
mod info;
mod input;
mod keepalive;
mod moving;
mod mtu_probing;
mod output;
mod path;
mod prediction;
mod recovery;
mod refused;
mod repair;
mod resumed;
mod runs;
mod settings;
mod spurious;
mod time_recovery;
mod timers;
mod urgent;
mod user_timeout;
mod window;

pub(crate) use moving::PortableInner;
pub(crate) use output::Departure;

use crate::challenge::ChallengeLimit;
use crate::clock::{Past, TimestampClock};
use crate::config::Config;
use crate::congestion::{CongestionWindow, Needs};
use crate::fast_open::FastOpenState;
use crate::info::Counts;
use crate::memory::{Charge, PIECE};
use crate::mtu_search::MtuSearch;
use crate::path_error::PathError;
use crate::profiles::ProfileId;
use crate::receive_buffer::ReceiveBuffer;
use crate::rtt::{RttEstimator, Timed};
use crate::sack::Scoreboard;
use crate::segment::Segment;
use crate::send_buffer::SendBuffer;
use crate::time_wait::Remains;
use crate::types::{CloseReason, ListenerId, Refusal, State, Stats, WriteFlags};
use baton_wire::{Flow, Header, Payload, SackBlock, SeqNr, Span, Time};
use boundaries::Boundaries;
use ecn::Notification;
use feedback::Feedback;
use repair::Repair;
use serde::{Deserialize, Serialize};
use timers::Timers;

/// MSS of a peer that does not send the option (RFC 9293 3.7.1).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

/// Least MSS accepted from a peer or a path: a smaller one could make us send headers only.
const LEAST_MSS: u16 = 64;

/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_LEN: u16 = 12;

/// Largest window scale shift (RFC 7323 2.3).
pub(crate) const LARGEST_SHIFT: u8 = 14;

bitflags::bitflags! {
    /// Yes-or-no state of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub(crate) struct Marks: u32 {
        /// Nagle's algorithm is off.
        const NODELAY = 1;
        /// Partial segments are held back.
        const CORK = 1 << 1;
        /// The owner closed the sending direction: a FIN follows what was written.
        const SEND_CLOSED = 1 << 2;
        /// The owner closed both directions: arriving data is answered by a reset.
        const RECEIVE_CLOSED = 1 << 3;
        /// A listener created the connection.
        const PASSIVE = 1 << 4;
        /// The SYN was sent more than once.
        const SYN_LOST = 1 << 5;
        /// The first unacknowledged segment is to be sent again, whatever the congestion window says.
        const SEND_FIRST_AGAIN = 1 << 6;
        /// A window probe is due.
        const PROBE = 1 << 7;
        /// `Readable` was reported, and nothing was read since.
        const READABLE_TOLD = 1 << 8;
        /// The last write announced that more data follows soon.
        const MORE = 1 << 9;
        /// The owner will read no more, but did not close.
        const READ_SHUT = 1 << 10;
        /// A buffer was made smaller and may hold more than its limit.
        const BUFFERS_SHRANK = 1 << 11;
        /// Data goes both ways in turn: ACKs travel with answers and are delayed.
        const INTERACTIVE = 1 << 12;
        /// A keepalive probe is due.
        const KEEPALIVE_PROBE = 1 << 13;
        /// Written data is sent, whatever would hold it back.
        const PUSHED = 1 << 14;
        /// Data was sent with a SYN, in either direction, and all of it was acknowledged with that SYN (RFC 7413).
        const SYN_DATA = 1 << 15;
        /// The peer's SYN had a valid cookie of Fast Open; the handshake is not complete.
        const FAST_OPENED = 1 << 16;
        /// The SYN-ACK of a connection with `FAST_OPENED` is to be sent.
        const SYN_ACK_DUE = 1 << 17;
        /// The SYN-ACK is to hold a cookie.
        const COOKIE_DUE = 1 << 18;
        /// The SYN is to ask for Fast Open, or did.
        const FAST_OPEN = 1 << 19;
        /// With `FAST_OPEN`: the SYN carries data without a cookie.
        const WITHOUT_COOKIE = 1 << 20;
        /// The Fast Open option uses the experimental kind: in the cookie that is due, or in our request.
        const EXPERIMENTAL = 1 << 21;
        /// Data came with the peer's SYN.
        const PEER_SYN_DATA = 1 << 22;
        /// Data was sent with the SYN and was not acknowledged with it.
        const SYN_DATA_REFUSED = 1 << 23;
        /// Urgent data was written and is not acknowledged.
        const URGENT = 1 << 24;
        /// The persist timer runs because the interface accepts no segments.
        const HELD = 1 << 25;
        /// The peer announced an urgent byte that has not been read yet.
        const URGENT_TOLD = 1 << 26;
        /// The owner holds new data back, because more of it can be sent soon.
        const DEFERRED = 1 << 27;
        /// The owner asked when bytes are sent and acknowledged. The stack keeps the details, and they do not move with the connection.
        const TRANSMIT_TIMES = 1 << 28;
        /// The owner asked when bytes arrive.
        const ARRIVAL_TIMES = 1 << 29;
        /// The owner asked for times of transmission or arrival.
        const TIMES = Self::TRANSMIT_TIMES.bits() | Self::ARRIVAL_TIMES.bits();
        /// The connection settles for a move: no data and no FIN is sent that was not sent before. The destination clears this.
        const SETTLING = 1 << 30;
        /// An ICMP message reported the path's MTU. The stack that the connection moves to learns the MTU from it, once.
        const PATH_TOLD = 1 << 31;
    }
}

/// Send sequence space (RFC 9293 3.3.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SendSequence {
    pub(crate) iss: SeqNr,
    /// SND.UNA.
    pub(crate) una: SeqNr,
    /// SND.NXT; goes back to SND.UNA at a timeout.
    pub(crate) next: SeqNr,
    /// The number after the highest ever sent.
    pub(crate) max: SeqNr,
    /// SND.WND, from SND.UNA on, scaled.
    pub(crate) window: u32,
    /// SND.WL1 and SND.WL2.
    pub(crate) window_seq: SeqNr,
    pub(crate) window_ack: SeqNr,
    /// Largest window ever offered (RFC 9293 3.8.6.2.1).
    pub(crate) largest_window: u32,
    /// End of the last partial segment sent, for Nagle's algorithm.
    pub(crate) partial_end: SeqNr,
}

/// Receive sequence space (RFC 9293 3.3.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReceiveSequence {
    pub(crate) irs: SeqNr,
    /// RCV.NXT.
    pub(crate) next: SeqNr,
    /// RCV.NXT + RCV.WND: the right edge that was advertised. Never moves left.
    pub(crate) edge: SeqNr,
    /// Last.ACK.sent (RFC 7323 4.3).
    pub(crate) last_ack: SeqNr,
    /// Largest segment seen, which is what "full" means for delayed ACKs (RFC 5681 4.2, RMSS).
    pub(crate) largest_segment: u16,
    /// ACKs to be sent without delay. More than one, when several segments arrive before output, are owed
    /// because duplicate ACKs count (RFC 5681 3.2).
    pub(crate) acks_owed: u8,
    /// Bytes of buffer space that the application freed and that were not advertised to the peer.
    pub(crate) given_back: u32,
    /// Number of segments that are still to be acknowledged immediately.
    pub(crate) quick_acks: u8,
    /// Duplicate data that was not reported yet (RFC 2883).
    pub(crate) duplicate: Option<SackBlock>,
}

/// Results of the handshake's negotiation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Negotiated {
    /// Data and options a segment may hold at most (RFC 9293 3.7.1, RFC 6691).
    pub(crate) mss: u16,
    /// Data and options that the path allows, as ICMP reported (RFC 1191) or a search found (RFC 4821).
    pub(crate) path_mss: u16,
    pub(crate) send_shift: u8,
    pub(crate) receive_shift: u8,
    pub(crate) window_scaling: bool,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// TS.Recent (RFC 7323 4.3).
    pub(crate) recent: u32,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection<P> {
    pub(crate) flow: Flow,
    pub(crate) state: State,
    pub(crate) marks: Marks,
    /// The stack's number for the connection's parameters.
    pub(crate) profile: ProfileId,
    /// The connection's use of the stack's memory.
    pub(crate) charge: Charge,
    /// The connection is in the stack's output queue.
    pub(crate) queued: bool,
    /// Set when the protocol has finished with the connection, which then only waits for its owner.
    pub(crate) ended: Option<CloseReason>,
    /// The listener that owns the connection until it is accepted.
    pub(crate) listener: Option<ListenerId>,
    /// The last ICMP error since the peer was last heard.
    pub(crate) soft_error: Option<PathError>,
    tx: SendSequence,
    rx: ReceiveSequence,
    options: Negotiated,
    counts: Counts,
    boundaries: Boundaries,
    rtt: RttEstimator,
    congestion: CongestionWindow,
    /// State for controllers that need more than the window; most do not.
    feedback: Option<Box<Feedback>>,
    repair: Repair,
    /// The search for the path's MTU, if one is in progress.
    search: Option<Box<MtuSearch>>,
    notification: Notification,
    timers: Timers,
    clock: TimestampClock,
    /// When TS.Recent was taken (RFC 7323 5.5).
    recent_at: Past,
    /// When data was last sent.
    last_sent: Past,
    /// When data last arrived.
    last_data_at: Past,
    /// When the peer was last heard.
    last_received_at: Past,
    /// When an ACK was last sent in answer to an unacceptable segment.
    last_refusal_at: Past,
    /// Since when the first byte in the send buffer waits to be acknowledged or sent.
    waiting_since: Past,
    /// The number whose acknowledgment ends a round-trip measurement, and when it was sent.
    timed: Option<Timed>,
    scoreboard: Option<Box<Scoreboard>>,
    send: SendBuffer<P>,
    receive: ReceiveBuffer<P>,
}

/// Parts of the stack that an operation on a connection uses.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: Time,
    /// The connection's own parameters.
    pub(crate) config: &'a Config,
    pub(crate) stats: &'a mut Stats,
    pub(crate) challenges: &'a mut ChallengeLimit,
    pub(crate) fast_open: &'a mut FastOpenState,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection enters TIME-WAIT, with an acknowledgment of the peer's FIN if that was not acknowledged yet.
    TimeWait,
    /// The connection ends immediately.
    Closed(CloseReason),
}

/// What the stack has to do after an operation on a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    /// The handshake is complete.
    pub(crate) established: bool,
    /// In-order data arrived that was not reported to the owner.
    pub(crate) readable: bool,
    /// The peer announced urgent data, or more of it.
    pub(crate) urgent: bool,
    /// Bytes of data that left the send buffer.
    pub(crate) acknowledged: u32,
    /// The peer's FIN arrived in order.
    pub(crate) peer_closed: bool,
    pub(crate) end: Option<End>,
    /// A reset to be sent. Boxed because resets are rare and every segment produces this struct.
    pub(crate) reset: Option<Box<Header>>,
    pub(crate) refused: Option<Refusal>,
    /// The segment acknowledged something new.
    pub(crate) new_ack: bool,
}

impl<P: Payload> Connection<P> {
    /// An active open (RFC 9293 3.10.1).
    pub(crate) fn connecting(
        now: Time,
        flow: Flow,
        config: &Config,
        iss: SeqNr,
        clock: TimestampClock,
    ) -> Self {
        let needed = shift_for(config.receive_buffer);
        let shift = match config.window_scaling {
            true => config
                .window_scale
                .map_or(needed, |scale| scale.min(LARGEST_SHIFT)),
            false => 0,
        };
        let mut marks = Marks::empty();
        marks.set(Marks::NODELAY, !config.nagle);
        let congestion = CongestionWindow::new(iss, config);
        let mut notification = Notification::new(iss);
        notification.choose(congestion.needs(Needs::EACH_MARK), config);
        Self {
            flow,
            state: State::SynSent,
            marks,
            profile: 0,
            charge: Charge::NONE,
            queued: false,
            ended: None,
            listener: None,
            soft_error: None,
            tx: SendSequence {
                iss,
                una: iss,
                next: iss,
                max: iss,
                window: 0,
                window_seq: SeqNr(0),
                window_ack: SeqNr(0),
                largest_window: 0,
                partial_end: iss,
            },
            rx: ReceiveSequence {
                irs: SeqNr(0),
                next: SeqNr(0),
                edge: SeqNr(0),
                last_ack: SeqNr(0),
                largest_segment: 1,
                acks_owed: 0,
                given_back: 0,
                quick_acks: 0,
                duplicate: None,
            },
            options: Negotiated {
                mss: config.mss,
                path_mss: config.route_room(),
                send_shift: 0,
                receive_shift: shift,
                window_scaling: config.window_scaling,
                sack: config.sack,
                timestamps: config.timestamps,
                recent: 0,
            },
            counts: Counts::default(),
            boundaries: Boundaries::default(),
            rtt: RttEstimator::new(config),
            feedback: Feedback::wanted(&congestion, config),
            congestion,
            repair: Repair::new(iss, config),
            search: None,
            notification,
            timers: Timers::new(),
            clock,
            recent_at: Past::at(now),
            last_sent: Past::at(now),
            last_data_at: Past::at(now),
            last_received_at: Past::at(now),
            last_refusal_at: Past::long_ago(now),
            waiting_since: Past::at(now),
            timed: None,
            scoreboard: None,
            send: SendBuffer::new(),
            receive: ReceiveBuffer::new(),
        }
    }

    /// A passive open: `syn` reached a listener (RFC 9293 3.10.7.2).
    pub(crate) fn answering(
        now: Time,
        syn: &Segment<P>,
        config: &Config,
        iss: SeqNr,
        clock: TimestampClock,
        listener: ListenerId,
    ) -> Self {
        let mut conn = Self::connecting(now, syn.flow_at_receiver(), config, iss, clock);
        conn.state = State::SynReceived;
        conn.marks.insert(Marks::PASSIVE);
        conn.listener = Some(listener);
        conn.take_syn(now, &syn.header, config);
        conn
    }

    /// Records that a SYN cookie answered the SYN before this connection was created.
    pub(crate) fn answered_by_cookie(&mut self, now: Time, config: &Config) {
        self.tx.next = self.tx.iss + 1;
        self.tx.max = self.tx.next;
        self.rx.edge = self.rx.next + u32::from(self.syn_window(config));
        self.timers.retransmit = now + self.rtt.rto(config);
    }

    // --- getters ---

    /// Bytes that the application may still write while the connection may hold as much memory as `charge` says.
    pub(crate) fn send_space(&self, config: &Config, charge: Charge) -> usize {
        // As in Linux, no data is accepted while TCP_NOTSENT_LOWAT bytes or more wait to be sent.
        match self.may_write() && self.not_sent() < config.not_sent_low_water {
            true => {
                let overhead = self.send.piece_count() as u32 * config.linux.piece_overhead;
                let held = self.send.len().saturating_add(overhead);
                let of_buffer = config.send_buffer.saturating_sub(held);
                let share = charge.share().unwrap_or(u32::MAX);
                of_buffer.min(share.saturating_sub(self.written())) as usize
            }
            false => 0,
        }
    }

    /// Bytes that may be written while the send buffer is empty.
    pub(crate) fn write_limit(&self, config: &Config, charge: Charge) -> usize {
        config.send_buffer.min(charge.share().unwrap_or(u32::MAX)) as usize
    }

    /// Memory that the send buffer takes.
    fn written(&self) -> u32 {
        self.send.len() + self.send.piece_count() as u32 * PIECE
    }

    /// Memory that the send buffer and the receive buffer take.
    #[inline]
    pub(crate) fn memory(&self) -> (u32, u32) {
        (self.written(), self.receive.memory())
    }

    fn may_write(&self) -> bool {
        self.ended.is_none() && !self.marks.contains(Marks::SEND_CLOSED)
    }

    /// Bytes written and not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.send.len() as usize
    }

    /// The number after the highest ever sent, and the first that is not acknowledged.
    pub(crate) fn sent_and_acknowledged(&self) -> (SeqNr, SeqNr) {
        (self.tx.max, self.tx.una)
    }

    /// The sequence number after the last byte that was written.
    pub(crate) fn send_end(&self) -> SeqNr {
        self.tx.una + self.send.len()
    }

    /// Reports whether everything before `seq` has been acknowledged.
    pub(crate) fn has_acknowledged(&self, seq: SeqNr) -> bool {
        self.tx.una.at_or_after(seq)
    }

    /// Distance of the byte with sequence number `seq` from the first unacknowledged byte.
    pub(crate) fn send_offset(&self, seq: SeqNr) -> u32 {
        seq - self.tx.una
    }

    /// Bytes that wait to be read.
    pub(crate) fn readable_len(&self) -> usize {
        self.receive.ready_len() as usize
    }

    /// Most data a segment without SACK blocks holds: SMSS of RFC 5681.
    fn smss(&self) -> u32 {
        let options = if self.options.timestamps {
            TIMESTAMPS_LEN
        } else {
            0
        };
        u32::from(self.segment_room() - options)
    }

    /// Data and options that a segment may hold: as the peer and the path allow (RFC 9293 3.7.1, RFC 1191).
    fn segment_room(&self) -> u16 {
        self.options.mss.min(self.options.path_mss)
    }

    /// The number after the last written byte: that of the FIN while one is not acknowledged.
    fn data_end(&self) -> SeqNr {
        let syn = u32::from(!self.is_synchronized());
        self.tx.una + syn + self.send.len()
    }

    /// Reports whether a FIN is to be sent after the data, or was sent and is not acknowledged.
    fn fin_pending(&self) -> bool {
        matches!(
            self.state,
            State::FinWait1 | State::Closing | State::LastAck
        )
    }

    /// Reports whether the FIN was sent at least once and is not acknowledged.
    fn fin_sent(&self) -> bool {
        self.fin_pending() && self.tx.max.after(self.data_end())
    }

    /// Sequence numbers in flight (FlightSize of RFC 5681).
    fn flight(&self) -> u32 {
        self.tx.max - self.tx.una
    }

    /// Reports whether everything sent is acknowledged and nothing was received beyond a hole.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.flight() == 0 && !self.receive.has_holes()
    }

    /// Reports whether both ends have agreed on sequence numbers, or the connection was opened by Fast Open.
    pub(crate) fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived) || self.is_opened_fast()
    }

    /// Reports whether the peer may still send data.
    fn receives(&self) -> bool {
        matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        )
    }

    // --- for the application ---

    /// Appends as much of `data` as fits. `None` when the direction is closed.
    pub(crate) fn write(&mut self, data: P, flags: WriteFlags, config: &Config) -> Option<usize> {
        if !self.may_write() {
            return None;
        }
        let len = data.len().min(self.send_space(config, self.charge));
        if len == 0 {
            return Some(0);
        }
        self.note_app_limit();
        let whole = len == data.len();
        let fits = if whole { data } else { data.slice(0, len) };
        self.send.push(fits);
        let more = flags.more && whole;
        self.marks.set(Marks::MORE, more);
        self.marks.remove(Marks::PUSHED);
        let (sent, end) = (self.tx.max, self.data_end());
        self.boundaries
            .written(sent, end, !more, flags.end_of_record && whole);
        if flags.urgent && whole {
            self.write_urgent(end);
        }
        Some(len)
    }

    /// Takes up to `max` bytes of received data.
    pub(crate) fn read(&mut self, max: usize) -> Option<P> {
        if self.marks.contains(Marks::URGENT_TOLD) {
            return self.read_to_urgent(max);
        }
        self.marks.remove(Marks::READABLE_TOLD);
        self.receive.read(max)
    }

    /// Reports the next data that arrives, even if what was reported is not read yet.
    pub(crate) fn report_more(&mut self) {
        self.marks.remove(Marks::READABLE_TOLD);
    }

    /// Returns received data without taking it.
    pub(crate) fn peek(&self, skip: usize, max: usize) -> Option<P> {
        self.receive.peek(skip, max)
    }

    /// Frees `len` bytes of the receive buffer.
    pub(crate) fn consume(&mut self, len: u32) {
        if self.ended.is_none() {
            self.receive.consume(len);
            self.rx.given_back = self.rx.given_back.saturating_add(len);
        }
    }

    /// Closes the sending direction (RFC 9293 3.10.4).
    pub(crate) fn shutdown(&mut self) {
        if !self.may_write() {
            return;
        }
        self.marks.insert(Marks::SEND_CLOSED);
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            // The FIN waits for the handshake.
            state => state,
        };
    }

    /// Closes both directions (RFC 9293 3.10.4).
    pub(crate) fn close(&mut self) {
        self.shutdown();
        self.discard_received();
        self.marks.insert(Marks::RECEIVE_CLOSED);
    }

    /// The connection's timestamp clock.
    pub(crate) fn clock(&self) -> TimestampClock {
        self.clock
    }

    /// The reset that aborts the connection, if the peer knows of the connection (RFC 9293 3.10.5).
    pub(crate) fn abort_header(&mut self, config: &Config) -> Option<Header> {
        (self.state != State::SynSent).then(|| Header {
            window: self.advertise(config),
            ..self.reset_header()
        })
    }

    /// Drops received data that the owner did not read.
    pub(crate) fn discard_received(&mut self) {
        let len = self.receive.discard_ready();
        self.rx.given_back = self.rx.given_back.saturating_add(len);
    }

    /// Ends the protocol's work on the connection, which then only waits for its owner. `keeps` says whether received data stays readable
    /// although the connection has failed.
    pub(crate) fn finish(&mut self, reason: CloseReason, keeps: bool) {
        self.ended = Some(reason);
        self.state = State::TimeWait;
        self.end_fast_open();
        self.timers = Timers::new();
        self.send.clear();
        self.boundaries.clear();
        self.scoreboard = None;
        self.feedback = None;
        self.repair.end();
        self.marks.remove(Marks::URGENT);
        self.doubt_mtu_probe();
        let is_kept = match reason {
            CloseReason::Normal => true,
            CloseReason::Aborted => false,
            _ => keeps,
        };
        if !is_kept || self.marks.contains(Marks::RECEIVE_CLOSED) {
            self.receive.clear();
        }
    }

    /// Reports whether something that arrived is not acknowledged yet.
    pub(crate) fn owes_ack(&self) -> bool {
        self.rx.acks_owed > 0 || self.rx.next != self.rx.last_ack
    }

    /// Returns the state that TIME-WAIT keeps.
    pub(crate) fn remains(&mut self, config: &Config) -> Remains {
        Remains {
            flow: self.flow,
            next: self.tx.max,
            receive_next: self.rx.next,
            window: self.advertise(config),
            timestamps: self
                .options
                .timestamps
                .then_some((self.options.recent, self.clock)),
            duration: Span::from_ms(config.msl_ms.into()) * 2,
        }
    }

    // --- invariants ---

    /// Returns the invariant that is violated, if any.
    pub(crate) fn verify(&self, config: &Config) -> Result<(), &'static str> {
        self.verify_settled()?;
        self.send.verify()?;
        self.receive.verify(self.rx.next, self.rx.edge)?;
        if self.ended.is_some() {
            return self.verify_ended();
        }
        self.rtt.verify()?;
        self.boundaries.verify(self.tx.una, self.data_end())?;
        self.verify_sequence(config)?;
        self.verify_timers()?;
        self.verify_mtu_search()?;
        if self.is_synchronized() {
            self.congestion.verify(self.tx.una, self.smss())?;
        }
        if self.keeps_times() {
            self.repair.flight.verify(self.tx.una, self.tx.max)?;
            self.verify_prediction()?;
        } else {
            self.repair.flight.verify_unused()?;
        }
        match &self.scoreboard {
            Some(scoreboard) => scoreboard.verify(self.tx.una, self.tx.max),
            None => Ok(()),
        }
    }

    fn verify_settled(&self) -> Result<(), &'static str> {
        let options = &self.options;
        if options.mss.min(options.path_mss) < LEAST_MSS {
            return Err("a segment has room for data");
        }
        if options.send_shift.max(options.receive_shift) > LARGEST_SHIFT {
            return Err("windows are scaled by at most 14 bits");
        }
        Ok(())
    }

    fn verify_ended(&self) -> Result<(), &'static str> {
        match self.next_deadline() == Time::NEVER && self.send.is_empty() {
            true => Ok(()),
            false => Err("a connection that ended has neither timers nor data to send"),
        }
    }

    fn verify_sequence(&self, config: &Config) -> Result<(), &'static str> {
        let tx = &self.tx;
        if !(tx.una.at_or_before(tx.next) && tx.next.at_or_before(tx.max)) {
            return Err("SND.UNA <= SND.NXT <= the highest number sent");
        }
        self.verify_opening()?;
        let fin = u32::from(self.fin_pending());
        if tx.max.after(self.data_end() + fin) {
            return Err("only what was written was sent");
        }
        let shrank = self.marks.contains(Marks::BUFFERS_SHRANK);
        if self.send.len() > config.send_buffer && !shrank {
            return Err("the send buffer keeps its limit");
        }
        self.verify_receive_window(config)?;
        let closing = matches!(
            self.state,
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck
        );
        let opened = !matches!(self.state, State::SynSent | State::SynReceived);
        if opened && closing != self.marks.contains(Marks::SEND_CLOSED) {
            return Err("the state tells whether the sending direction is closed");
        }
        Ok(())
    }

    fn verify_receive_window(&self, config: &Config) -> Result<(), &'static str> {
        if self.rx.next.after(self.rx.edge + 1) {
            return Err("RCV.NXT lies within the advertised window");
        }
        if !self.is_synchronized() && !self.holds_syn_text() && !self.receive.is_unused() {
            return Err("before the handshake is complete data was received with a SYN only");
        }
        if self.marks.contains(Marks::BUFFERS_SHRANK) {
            return Ok(());
        }
        let used = self.receive.unconsumed();
        if used > config.receive_buffer {
            return Err("the receive buffer keeps its limit");
        }
        let offered = self.rx.edge.saturating_since(self.rx.next);
        if u64::from(offered) + u64::from(used) > config.receive_buffer.into() {
            return Err("no more is offered than the receive buffer has room for");
        }
        Ok(())
    }
}

/// The shift with which a 16-bit window covers `buffer` (RFC 7323 2.3).
pub(crate) fn shift_for(buffer: u32) -> u8 {
    let needed = (u32::BITS - (buffer >> 16).leading_zeros()) as u8;
    needed.min(LARGEST_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Symbolic;
    use bytes::Bytes;

    /// A hundred thousand connections must fit into the caches of a small host or the memory of a NIC.
    #[test]
    fn a_connection_without_data_takes_little_memory() {
        assert!(
            size_of::<Connection<Symbolic>>() <= 904,
            "{}",
            size_of::<Connection<Symbolic>>()
        );
        assert!(
            size_of::<Connection<Bytes>>() <= 904,
            "{}",
            size_of::<Connection<Bytes>>()
        );
    }

    #[test]
    fn a_window_is_scaled_as_much_as_its_buffer_needs() {
        let shifts = [
            (1, 0),
            (65_535, 0),
            (65_536, 1),
            (131_071, 1),
            (131_072, 2),
            (1 << 20, 5),
            (u32::MAX, 14),
        ];
        for (buffer, shift) in shifts {
            assert_eq!(shift_for(buffer), shift, "{buffer}");
        }
    }
}
