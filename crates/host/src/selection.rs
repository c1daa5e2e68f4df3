//! Policies that select the connections to hand off (handoff-policies 3.3).
//!
//! The kernel asks a [`Selection`] when a connection is established, whenever the application enqueues data to send, and when the
//! application has read data. The kernel, not the policy, enforces the rules of the framework: the kernel attempts a handoff only while the
//! NIC is known to have capacity. It does not consider a connection again if an attempt failed (the NIC refused the connection, or was
//! known to be full when the policy chose it) or if the connection came back from the NIC, unless the policy
//! [reconsiders](Selection::reconsiders). A policy may also change its mind about a connection that is on the NIC
//! ([`Selection::takes_back`]).

use baton_wire::{Endpoint, Span, Time};
use std::fmt::Debug;

/// What an operating system knows about a connection and its NIC at the time of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Local endpoint; its port identifies the application.
    pub local: Endpoint,
    /// Remote endpoint.
    pub remote: Endpoint,
    /// Time since the connection was established.
    pub age: Span,
    /// Send requests made by the application, including this one.
    pub requests: u32,
    /// Enqueues to the send buffer before this request: one per `write`, one per page of `sendfile`.
    pub enqueues_before: u32,
    /// Enqueues to the send buffer, including those of this request.
    pub enqueues: u32,
    /// Bytes enqueued to the send buffer, including those of this request.
    pub bytes_sent: u64,
    /// Bytes enqueued and not yet acknowledged.
    pub bytes_in_send_buffer: u32,
    /// Bytes of the current response: those sent since the application last read data, including this request and what the application has
    /// announced that it will send.
    pub response_bytes: u64,
    /// Number of times the application has read data from the connection, including this one.
    pub receives: u32,
    /// Approximate number of enqueues to the send buffer during the connection's whole life. Only a simulator that replays a log knows this
    /// number.
    pub foreseen_enqueues: Option<u32>,
    /// Number of failed attempts to hand the connection off.
    pub failures: u32,
    /// Whether the connection was on the NIC before and came back.
    pub was_offloaded: bool,
    /// Number of connections that are on the NIC, or moving to it or from it.
    pub nic_connections: u32,
    /// Soft_Limit, as the NIC last reported it.
    pub nic_soft_limit: u32,
}

impl View {
    /// Reports whether the NIC would refuse another connection, as far as the host knows.
    pub fn nic_is_full(&self) -> bool {
        self.nic_connections >= self.nic_soft_limit
    }
}

/// Summary of a connection, available when its socket is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Local endpoint.
    pub local: Endpoint,
    /// Remote endpoint.
    pub remote: Endpoint,
    /// Send requests made by the application.
    pub requests: u32,
    /// Enqueues to the send buffer.
    pub enqueues: u32,
    /// Bytes enqueued to the send buffer.
    pub bytes_sent: u64,
}

/// Totals of what an application has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Time of the report.
    pub now: Time,
    /// Processor time that the application has spent, its system calls included.
    pub busy: Span,
    /// Number of times that the application has read data from a connection. In a request-response protocol, these are the requests.
    pub requests: u64,
    /// The part of `requests` that came from connections on a NIC.
    pub on_nic: u64,
    /// Number of open connections.
    pub connections: u64,
}

/// Decision of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Attempt to hand the connection off now.
    HandOff,
    /// Leave it on the host; ask again at the next send request, or when the application reads.
    Stay,
}

impl Decision {
    /// Returns [`Decision::HandOff`] if the condition holds.
    pub fn hand_off_if(holds: bool) -> Self {
        match holds {
            true => Self::HandOff,
            false => Self::Stay,
        }
    }
}

/// Totals of a connection at which the kernel asks the policy again; reaching either suffices. `u32::MAX` means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextLook {
    /// Enqueues to the send buffer.
    pub enqueues: u32,
    /// Number of times the application has read data.
    pub receives: u32,
}

impl NextLook {
    /// Ask at the next event.
    pub const AT_ONCE: Self = Self {
        enqueues: 0,
        receives: 0,
    };
    /// Never ask again.
    pub const NEVER: Self = Self {
        enqueues: u32::MAX,
        receives: u32::MAX,
    };

    /// Returns when `enqueues` enqueues are reached, or never if they were reached already.
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
    /// Decides once, when the connection has been established.
    fn on_established(&mut self, view: &View) -> Decision;

    /// Decides at each send request, after its data was enqueued.
    fn on_send(&mut self, view: &View) -> Decision;

    /// Decides when the application has read received data. The published framework does not ask then, though it mentions the possibility.
    fn on_receive(&mut self, view: &View) -> Decision {
        let _ = view;
        Decision::Stay
    }

    /// Informs the policy, which may learn from it, about a connection whose socket is freed.
    fn on_closed(&mut self, life: &Life) {
        let _ = life;
    }

    /// Reports whether a connection whose handoff failed, or which came back, is considered again. The published framework never does.
    fn reconsiders(&self, view: &View) -> bool {
        let _ = view;
        false
    }

    /// Returns when to ask next about a connection that stays: the earliest totals at which the policy may choose it.
    fn next_look(&self, view: &View) -> NextLook {
        NextLook {
            enqueues: view.enqueues + 1,
            receives: view.receives + 1,
        }
    }

    /// Decides at each send request of a connection that is on the NIC whether the host takes the connection back. The published framework
    /// leaves this to the NIC's load control.
    fn takes_back(&mut self, view: &View) -> bool {
        let _ = view;
        false
    }

    /// Returns the minimum time between two moves of a connection with this local endpoint, where `usual` is the host's own.
    fn least_stay(&self, local: Endpoint, usual: Span) -> Span {
        let _ = local;
        usual
    }

    /// Returns whether the policy wants reports of the application's work.
    fn wants_work(&self) -> bool {
        false
    }

    /// Reports the application's work so far, at irregular intervals of some milliseconds, if the policy wants such reports.
    fn on_work(&mut self, work: &Work) {
        let _ = work;
    }
}

/// First come, first served: attempts to hand off every connection once, as soon as it is established.
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

/// Tn: attempts to hand off a connection once, at the n-th enqueue to its send buffer.
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

/// Moves every connection to the NIC, or back, at each n-th enqueue to its send buffer. This is not a good policy: it shows what moving
/// costs, and that no data is lost.
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

/// Never hands off a connection.
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

/// Uses a separate policy for each of several ports, and one policy for all other ports. Ports identify applications.
#[derive(Debug)]
pub struct PerPort {
    ports: Vec<(u16, Box<dyn Selection>)>,
    default: Box<dyn Selection>,
}

impl PerPort {
    /// Takes policies by local port, and a default for all other ports. If a port is listed twice, the first policy applies.
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

    fn least_stay(&self, local: Endpoint, usual: Span) -> Span {
        self.policy(local.port).least_stay(local, usual)
    }

    fn wants_work(&self) -> bool {
        let mut policies = self.ports.iter().map(|(_, policy)| policy);
        policies.any(|policy| policy.wants_work()) || self.default.wants_work()
    }

    fn on_work(&mut self, work: &Work) {
        let policies = self.ports.iter_mut().map(|(_, policy)| policy);
        let policies = policies.chain([&mut self.default]);
        policies.for_each(|policy| policy.on_work(work));
    }
}

mod benefit;
mod bulk;
mod config;
mod learned;
mod rate;
mod receiving;
mod retry;
mod survival;
mod text;

pub use benefit::{Benefit, Foreseen, Remaining};
pub use bulk::Bulk;
pub use config::{PortSelection, SelectionConfig};
pub use learned::Learned;
pub use rate::Rate;
pub use receiving::AtReceive;
pub use retry::Retry;
pub use survival::Survival;
pub use text::SelectionTextError;

#[cfg(test)]
mod tests;
