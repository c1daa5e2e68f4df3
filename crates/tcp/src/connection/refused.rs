//! What a connection does while the interface takes nothing (a full queue below TCP): what is lost in this host never was on the
//! network, so it is no loss there, and is tried again at an even pace.

use super::{Connection, Context, Effects, End, Marks};
use crate::types::State;
use baton_wire::{Payload, Span, Time};

/// How long after a refusal it is tried again (TCP_RESOURCE_PROBE_INTERVAL of Linux).
const RETRY: Span = Span::from_ms(500);

impl<P: Payload> Connection<P> {
    /// It may not send now. What waits with nothing in flight waits for a timer, as for the peer's window, and the first time for
    /// as long as for a retransmission.
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

    /// A probe was due while the interface takes nothing. The peer has no part in it, so intervals do not grow; the user timeout
    /// counts from the first one.
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

    /// The interface takes segments again.
    pub(crate) fn let_go(&mut self) {
        if self.marks.contains(Marks::HELD) {
            self.marks.remove(Marks::HELD);
            self.timers.persist = Time::NEVER;
        }
    }
}
