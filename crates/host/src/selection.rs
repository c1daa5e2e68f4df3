//! Which connections to hand off (handoff-policies 3.3).
//!
//! The kernel asks a [`Selection`] when a connection is established, whenever the application enqueues data to send, and when it has read some.
//! The kernel, not the policy, keeps the framework's rules: an attempt is made only while the NIC is known to have room,
//! and a connection whose attempt failed (refused by the NIC, or the NIC known to be full at the moment the policy chose
//! it), or that came back from the NIC, is not considered again, unless the policy [reconsiders](Selection::reconsiders).
//! A policy may also change its mind about a connection that is on the NIC ([`Selection::takes_back`]).

use baton_wire::{Endpoint, Span};
use std::fmt::Debug;

/// What an operating system can see of a connection and its NIC when it must decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// This end; its port tells the application.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Time since it was established.
    pub age: Span,
    /// Send requests made by the application, this one included.
    pub requests: u32,
    /// Enqueues to its send buffer before this request: one a `write`, one a page of `sendfile`.
    pub enqueues_before: u32,
    /// Enqueues to its send buffer, those of this request included.
    pub enqueues: u32,
    /// Bytes enqueued to its send buffer, those of this request included.
    pub bytes_sent: u64,
    /// Bytes enqueued and not yet acknowledged.
    pub bytes_in_send_buffer: u32,
    /// Times that the application has read data from it, this one included.
    pub receives: u32,
    /// Enqueues to its send buffer in all its life, about: only a simulator that replays a log can tell.
    pub foreseen_enqueues: Option<u32>,
    /// Attempts to hand it off that failed.
    pub failures: u32,
    /// It was on the NIC before and came back.
    pub was_offloaded: bool,
    /// Connections that are on the NIC or on their way to or from it.
    pub nic_connections: u32,
    /// Soft_Limit, as the NIC told it last.
    pub nic_soft_limit: u32,
}

impl View {
    /// Whether the NIC, as far as is known, would refuse another connection.
    pub fn nic_is_full(&self) -> bool {
        self.nic_connections >= self.nic_soft_limit
    }
}

/// What a connection has been, when its socket is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// Send requests made by the application.
    pub requests: u32,
    /// Enqueues to its send buffer.
    pub enqueues: u32,
    /// Bytes enqueued to its send buffer.
    pub bytes_sent: u64,
}

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Attempt to hand the connection off now.
    HandOff,
    /// Leave it on the host; ask again at the next send request, or when the application reads.
    Stay,
}

impl Decision {
    /// To hand off where this holds.
    pub fn hand_off_if(holds: bool) -> Self {
        match holds {
            true => Self::HandOff,
            false => Self::Stay,
        }
    }
}

/// When a policy is to be asked next about a connection: once so much has happened in all its life. `u32::MAX`: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextLook {
    /// Enqueues to its send buffer.
    pub enqueues: u32,
    /// Times that the application has read data from it.
    pub receives: u32,
}

impl NextLook {
    /// Whatever happens next.
    pub const AT_ONCE: Self = Self {
        enqueues: 0,
        receives: 0,
    };
    /// Not whatever happens.
    pub const NEVER: Self = Self {
        enqueues: u32::MAX,
        receives: u32::MAX,
    };

    /// When so much has been sent, if that is to come.
    fn at_enqueues(enqueues: u32, view: &View) -> Self {
        let enqueues = match enqueues > view.enqueues {
            true => enqueues,
            false => u32::MAX,
        };
        Self {
            enqueues,
            ..Self::NEVER
        }
    }
}

/// A connection selection policy.
pub trait Selection: Debug + Send {
    /// Asked once, when the connection has been established.
    fn on_established(&mut self, view: &View) -> Decision;

    /// Asked at each send request, after its data was enqueued.
    fn on_send(&mut self, view: &View) -> Decision;

    /// Asked when the application has read data that came. The published framework does not ask then, though it names the moment.
    fn on_receive(&mut self, view: &View) -> Decision {
        let _ = view;
        Decision::Stay
    }

    /// Told when a socket is gone, for policies that learn.
    fn on_closed(&mut self, life: &Life) {
        let _ = life;
    }

    /// Whether a connection that had its chance is considered again. The published framework does not.
    fn reconsiders(&self, view: &View) -> bool {
        let _ = view;
        false
    }

    /// When it is to be asked next about a connection that stays: not before so much has been sent or received on it that it may choose it.
    fn next_look(&self, view: &View) -> NextLook {
        NextLook {
            enqueues: view.enqueues + 1,
            receives: view.receives + 1,
        }
    }

    /// Asked at each send request of a connection that is on the NIC: whether the host is to take it back. The published framework
    /// leaves that to the NIC's load control.
    fn takes_back(&mut self, view: &View) -> bool {
        let _ = view;
        false
    }
}

/// First come, first served: every connection is attempted as soon as it is established, and only then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fcfs;

impl Selection for Fcfs {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::HandOff
    }

    fn on_send(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn next_look(&self, _view: &View) -> NextLook {
        NextLook::NEVER
    }
}

/// Tn: a connection is attempted at the n-th enqueue to its send buffer, and only then.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// n.
    pub enqueues: u32,
}

impl Selection for Threshold {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::hand_off_if(self.enqueues == 0)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        let reached_now = view.enqueues_before < self.enqueues && self.enqueues <= view.enqueues;
        Decision::hand_off_if(reached_now)
    }

    fn next_look(&self, view: &View) -> NextLook {
        NextLook::at_enqueues(self.enqueues, view)
    }
}

/// Every connection changes sides at each n-th enqueue to its send buffer. It is no good policy: it shows what moving costs, and that
/// nothing is lost by it.
#[derive(Clone, Copy, Debug)]
pub struct Alternate {
    /// n.
    pub enqueues: u32,
}

impl Alternate {
    fn is_due(&self, view: &View) -> bool {
        let reached = |enqueues: u32| enqueues / self.enqueues.max(1);
        reached(view.enqueues_before) < reached(view.enqueues)
    }
}

impl Selection for Alternate {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_send(&mut self, view: &View) -> Decision {
        Decision::hand_off_if(self.is_due(view))
    }

    fn next_look(&self, view: &View) -> NextLook {
        let n = self.enqueues.max(1);
        NextLook::at_enqueues(
            (view.enqueues / n).saturating_add(1).saturating_mul(n),
            view,
        )
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.is_due(view)
    }
}

/// No handoff.
#[derive(Clone, Copy, Debug, Default)]
pub struct Never;

impl Selection for Never {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_send(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn next_look(&self, _view: &View) -> NextLook {
        NextLook::NEVER
    }
}

/// A policy for each of several ports, and one for all others: applications are known by their ports.
#[derive(Debug)]
pub struct PerPort {
    ports: Vec<(u16, Box<dyn Selection>)>,
    default: Box<dyn Selection>,
}

impl PerPort {
    /// Policies by local port, and the one for ports that are not among them. Of two for one port the first counts.
    pub fn new(ports: Vec<(u16, Box<dyn Selection>)>, default: Box<dyn Selection>) -> Self {
        Self { ports, default }
    }

    fn place(&self, port: u16) -> Option<usize> {
        self.ports.iter().position(|(p, _)| *p == port)
    }

    fn policy(&self, port: u16) -> &dyn Selection {
        let place = self.place(port);
        place.map_or(&*self.default, |at| &*self.ports[at].1)
    }

    fn policy_mut(&mut self, port: u16) -> &mut dyn Selection {
        match self.place(port) {
            Some(at) => &mut *self.ports[at].1,
            None => &mut *self.default,
        }
    }
}

impl Selection for PerPort {
    fn on_established(&mut self, view: &View) -> Decision {
        self.policy_mut(view.local.port).on_established(view)
    }

    fn on_send(&mut self, view: &View) -> Decision {
        self.policy_mut(view.local.port).on_send(view)
    }

    fn on_receive(&mut self, view: &View) -> Decision {
        self.policy_mut(view.local.port).on_receive(view)
    }

    fn on_closed(&mut self, life: &Life) {
        self.policy_mut(life.local.port).on_closed(life);
    }

    fn reconsiders(&self, view: &View) -> bool {
        self.policy(view.local.port).reconsiders(view)
    }

    fn next_look(&self, view: &View) -> NextLook {
        self.policy(view.local.port).next_look(view)
    }

    fn takes_back(&mut self, view: &View) -> bool {
        self.policy_mut(view.local.port).takes_back(view)
    }
}

mod benefit;
mod config;
mod rate;
mod receiving;
mod retry;
mod survival;
mod text;

pub use benefit::{Benefit, Foreseen, Remaining};
pub use config::{PortSelection, SelectionConfig};
pub use rate::Rate;
pub use receiving::AtReceive;
pub use retry::Retry;
pub use survival::Survival;
pub use text::SelectionTextError;

#[cfg(test)]
mod tests;
