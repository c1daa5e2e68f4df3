//! Behaviour of a connection while the interface accepts no segments (a full queue below TCP). A segment dropped in this host is no
//! loss in the network, and is tried again at constant intervals.

use super::{Connection, Context, Effects, End, Marks};
use crate::types::State;
use baton_wire::{Payload, Span, Time};

/// Time after a refusal until the next try (TCP_RESOURCE_PROBE_INTERVAL of Linux).
const RETRY: Span = Span::from_ms(500);

impl<P: Payload> Connection<P> {
    /// The interface accepts nothing now. If data waits and nothing is in flight, starts the persist timer, for the first time with
    /// the retransmission timeout.
    pub(crate) fn hold(&mut self, cx: &Context<'_>) {
        let waits = self.is_synchronized() && self.tx.next != self.data_end();
        let timed = self.timers.retransmit != Time::NEVER || self.timers.persist != Time::NEVER;
        if self.ended.is_some() || timed || !waits || self.state == State::SynSent {
            return;
        }
        self.marks.insert(Marks::HELD);
        self.start_waiting(cx.now);
        self.start_persist(cx);
    }

    /// Handles the persist timer while the interface accepts nothing. The peer is not the cause, so intervals do not grow; the user
    /// timeout counts from the first expiry.
    pub(super) fn held_timeout(&mut self, cx: &Context<'_>, effects: &mut Effects) {
        if self.timers.unanswered == 0 {
            self.start_waiting(cx.now);
        }
        if self.probed_in_vain(cx) {
            effects.end = Some(End::Closed(self.timed_out()));
            return;
        }
        self.timers.unanswered = self.timers.unanswered.saturating_add(1);
        self.timers.persist = self.due(cx, RETRY);
    }

    /// The interface accepts segments again.
    pub(crate) fn let_go(&mut self) {
        if self.marks.contains(Marks::HELD) {
            self.marks.remove(Marks::HELD);
            self.timers.persist = Time::NEVER;
        }
    }
}
