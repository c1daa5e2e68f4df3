//! Applications that open and close one connection after the other.

use super::super::frame::Segment;
use super::tcp::Tcp;
use super::{Outgoing, Share};
use baton_tcp::{CloseReason, Event};
use baton_wire::Time;
use slab::Slab;

/// Opens connections at a rate, and closes each as soon as it is open.
#[derive(Debug)]
pub(in crate::simulated) struct Initiator {
    pub(super) tcp: Tcp,
    /// Numbers of this machine and of its partner.
    between: [u8; 2],
    /// Connections to open per second.
    rate: f64,
    opened: u64,
    closed: u64,
}

impl Initiator {
    pub(in crate::simulated) fn new([machine, partner]: [u8; 2], share: Share, rate: f64) -> Self {
        Self {
            tcp: Tcp::of_core(machine, share),
            between: [machine, partner],
            rate: rate / f64::from(share.cores),
            opened: 0,
            closed: 0,
        }
    }

    fn next_open(&self) -> Time {
        Time::from_ps((self.opened as f64 * (1e12 / self.rate)) as u64)
    }

    pub(super) fn next_due(&self) -> Time {
        self.next_open().min(self.tcp.next_due())
    }

    pub(super) fn poll_send(
        &mut self,
        now: Time,
        segments: &mut Slab<Segment>,
    ) -> Option<Outgoing> {
        // Pending segments go before new connections.
        if let Some(next) = self.tcp.poll_send(now, segments) {
            return Some(next);
        }
        if self.next_open() > now {
            return None;
        }
        self.opened += 1;
        self.tcp.connect(now, self.between);
        self.tcp.poll_send(now, segments)
    }

    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        self.tcp.answer(now);
        self.handle_events();
        self.tcp.answer(now);
    }

    /// Closes connections that are open and whose first acknowledgment has been sent.
    fn handle_events(&mut self) {
        let stack = &mut self.tcp.stack;
        while let Some((id, event)) = stack.poll_event() {
            match event {
                Event::Connected => stack.close(id),
                Event::Closed(CloseReason::Normal) => self.closed += 1,
                _ => {}
            }
        }
    }

    /// Returns the number of connections due by `now`.
    pub(in crate::simulated) fn offered(&self, now: Time) -> u64 {
        (now.as_ps() as f64 / (1e12 / self.rate)).ceil() as u64
    }

    /// Returns the number of connections that were opened and closed.
    pub(in crate::simulated) fn closed(&self) -> u64 {
        self.closed
    }
}

/// Accepts connections, and closes each after its partner has.
#[derive(Debug)]
pub(in crate::simulated) struct Acceptor {
    pub(super) tcp: Tcp,
}

impl Acceptor {
    pub(in crate::simulated) fn new(machine: u8) -> Self {
        let mut tcp = Tcp::new(machine);
        tcp.listen(machine);
        Self { tcp }
    }

    pub(super) fn receive(&mut self, now: Time, segment: Segment) {
        self.tcp.receive(now, segment);
        self.tcp.answer(now);
        let stack = &mut self.tcp.stack;
        while let Some((id, event)) = stack.poll_event() {
            match event {
                Event::Acceptable(listener) => {
                    stack.accept(listener);
                }
                Event::PeerClosed => stack.close(id),
                _ => {}
            }
        }
        self.tcp.answer(now);
    }
}
