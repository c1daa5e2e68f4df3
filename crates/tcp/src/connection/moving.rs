//! Conversion of a connection to and from its portable state.

use super::boundaries::Boundaries;
use super::ecn::Notification;
use super::feedback::Feedback;
use super::repair::Repair;
use super::{Connection, Marks, Negotiated, ReceiveSequence, SendSequence};
use crate::clock::{Past, TimestampClock};
use crate::config::{Config, apart};
use crate::congestion::CongestionWindow;
use crate::info::Counts;
use crate::memory::Charge;
use crate::mtu_search::MtuSearch;
use crate::path_error::PathError;
use crate::portable::{Portable, Signals, version_for};
use crate::receive_buffer::{PortableReceive, ReceiveBuffer};
use crate::rtt::{RttEstimator, Timed};
use crate::sack::Scoreboard;
use crate::send_buffer::SendBuffer;
use crate::types::CloseReason;
use baton_wire::{Payload, SeqNr, Span, Time};
use serde::{Deserialize, Serialize};

use super::timers::{PortableTimers, Timers};

/// The private part of a portable state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PortableInner<P> {
    marks: Marks,
    soft_error: Option<PathError>,
    pub(super) ended: Option<CloseReason>,
    pub(crate) tx: SendSequence,
    pub(crate) rx: ReceiveSequence,
    pub(super) options: Negotiated,
    counts: Counts,
    boundaries: Boundaries,
    pub(super) rtt: RttEstimator,
    pub(super) congestion: CongestionWindow,
    feedback: Option<Box<Feedback>>,
    repair: Repair,
    #[serde(with = "apart")]
    search: Option<Box<MtuSearch>>,
    notification: Notification,
    timers: PortableTimers,
    pub(super) timestamp_clock: Span,
    recent_age: Span,
    since_sent: Span,
    since_data: Span,
    since_received: Span,
    since_refusal: Span,
    waiting: Span,
    timed: Option<(SeqNr, Span)>,
    scoreboard: Option<Box<Scoreboard>>,
    pub(super) receive: PortableReceive<P>,
}

impl<P> PortableInner<P> {
    /// The search for the path's MTU.
    pub(crate) fn mtu_search(&self) -> Option<&MtuSearch> {
        self.search.as_deref()
    }

    pub(crate) fn set_mtu_search(&mut self, search: Option<MtuSearch>) {
        self.search = search.map(Box::new);
    }

    /// Reports whether urgent data was written, or announced by the peer.
    pub(crate) fn has_urgent(&self) -> bool {
        self.marks.intersects(Marks::URGENT | Marks::URGENT_TOLD)
    }

    /// The end of written urgent data, and the number of the peer's urgent byte, if it announced one.
    pub(crate) fn urgent(&self) -> (SeqNr, Option<SeqNr>) {
        (self.boundaries.urgent_end, self.receive.urgent)
    }

    pub(crate) fn set_urgent(&mut self, urgent: (SeqNr, Option<SeqNr>)) {
        (self.boundaries.urgent_end, self.receive.urgent) = urgent;
    }
}

impl<P: Payload> Connection<P> {
    /// Converts the connection to its portable state, with times relative to `now`.
    pub(crate) fn into_portable(self, now: Time, config: Config, signals: Signals) -> Portable<P> {
        let (receive_buffer, mut receive) = self.receive.into_portable();
        let urgent = self.marks.intersects(Marks::URGENT | Marks::URGENT_TOLD);
        // Without urgent data the number means nothing, and is not written.
        receive.urgent = receive.urgent.filter(|_| urgent);
        Portable {
            version: version_for(&config, urgent),
            flow: self.flow,
            state: self.state,
            send_buffer: self.send.into_pieces(),
            receive_buffer,
            unaccepted: self.listener.is_some(),
            config,
            signals,
            inner: PortableInner {
                marks: self.marks - Marks::TIMES - Marks::SETTLING,
                soft_error: self.soft_error,
                ended: self.ended,
                tx: self.tx,
                rx: self.rx,
                options: self.options,
                counts: self.counts,
                boundaries: self.boundaries,
                rtt: self.rtt,
                congestion: self.congestion,
                feedback: self.feedback,
                repair: self.repair,
                search: self.search,
                notification: self.notification,
                timers: self.timers.to_portable(now),
                timestamp_clock: self.clock.reading(now),
                recent_age: self.recent_at.elapsed(now),
                since_sent: self.last_sent.elapsed(now),
                since_data: self.last_data_at.elapsed(now),
                since_received: self.last_received_at.elapsed(now),
                since_refusal: self.last_refusal_at.elapsed(now),
                waiting: self.waiting_since.elapsed(now),
                timed: self.timed.map(|it| (it.end, it.sent.elapsed(now))),
                scoreboard: self.scoreboard,
                receive,
            },
            seal: None,
        }
    }

    /// Recreates the connection on a clock that shows `now`. The stack sets its owner, profile and listener.
    pub(crate) fn from_portable(now: Time, moved: Portable<P>) -> Self {
        let inner = moved.inner;
        Self {
            flow: moved.flow,
            state: moved.state,
            marks: inner.marks - Marks::SETTLING,
            soft_error: inner.soft_error,
            profile: 0,
            charge: Charge::NONE,
            queued: false,
            ended: inner.ended,
            listener: None,
            tx: inner.tx,
            rx: inner.rx,
            options: inner.options,
            counts: inner.counts,
            boundaries: inner.boundaries,
            rtt: inner.rtt,
            congestion: inner.congestion,
            feedback: inner.feedback,
            repair: inner.repair,
            search: inner.search,
            notification: inner.notification,
            timers: Timers::from_portable(now, &inner.timers),
            clock: TimestampClock::showing(now, inner.timestamp_clock),
            recent_at: Past::ago(now, inner.recent_age),
            last_sent: Past::ago(now, inner.since_sent),
            last_data_at: Past::ago(now, inner.since_data),
            last_received_at: Past::ago(now, inner.since_received),
            last_refusal_at: Past::ago(now, inner.since_refusal),
            waiting_since: Past::ago(now, inner.waiting),
            timed: inner
                .timed
                .map(|(end, elapsed)| Timed::new(end, Past::ago(now, elapsed))),
            scoreboard: inner.scoreboard,
            send: SendBuffer::from_pieces(moved.send_buffer),
            receive: ReceiveBuffer::from_portable(moved.receive_buffer, inner.receive),
        }
    }
}
