//! Applications that open and close one connection after the other.

use super::tcp::{Program, Tcp};
use super::{Counts, Share};
use baton_tcp::{CloseReason, ConnId, Event};
use baton_wire::Time;

/// Opens connections at a rate, and closes each as soon as it is open.
#[derive(Debug)]
pub(in crate::simulated) struct Initiator {
    /// The partner's number.
    partner: u8,
    /// Connections to open per second.
    rate: f64,
    opened: u64,
    closed: u64,
}

impl Initiator {
    pub(in crate::simulated) fn new(partner: u8, share: Share, rate: f64) -> Self {
        Self {
            partner,
            rate: rate / f64::from(share.cores),
            opened: 0,
            closed: 0,
        }
    }
}

impl Program for Initiator {
    /// Sends acknowledgments before it closes.
    fn answers_first(&self) -> bool {
        true
    }

    fn next_due(&self) -> Time {
        Time::from_ps((self.opened as f64 * (1e12 / self.rate)) as u64)
    }

    fn begin(&mut self, now: Time, tcp: &mut Tcp) {
        self.opened += 1;
        tcp.connect(now, self.partner);
    }

    fn handle_event(&mut self, _now: Time, tcp: &mut Tcp, id: ConnId, event: Event) {
        match event {
            Event::Connected => tcp.stack.close(id),
            Event::Closed(CloseReason::Normal) => self.closed += 1,
            _ => {}
        }
    }

    /// Returns the number of connections due by `now`, and of those that were opened and closed.
    fn counts(&self, now: Time) -> Counts {
        Counts {
            offered: (now.as_ps() as f64 / (1e12 / self.rate)).ceil() as u64,
            connections: self.closed,
            ..Counts::default()
        }
    }
}

/// Accepts connections, and closes each after its partner has.
#[derive(Debug)]
pub(in crate::simulated) struct Acceptor;

impl Program for Acceptor {
    fn answers_first(&self) -> bool {
        true
    }

    fn handle_event(&mut self, _now: Time, tcp: &mut Tcp, id: ConnId, event: Event) {
        match event {
            Event::Acceptable(listener) => {
                tcp.stack.accept(listener);
            }
            Event::PeerClosed => tcp.stack.close(id),
            _ => {}
        }
    }
}
