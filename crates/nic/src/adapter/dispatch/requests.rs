//! What one application has asked for and waits for its turn.

use super::{Ready, SessionId, Transferred};
use crate::config::Config;
use crate::queues::{Queue, Stamp};
use baton_bus::descriptor::Opcode;
use baton_bus::{Descriptor, Fifo};
use baton_wire::Time;

/// A request about packets of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostRequest {
    pub(super) descriptor: Descriptor,
    /// When it arrived at the adapter.
    pub(super) since: Time,
}

/// A transfer of data that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// That of the work that began it.
    pub(super) stamp: Stamp,
    pub(super) owner: Transferred,
}

/// Requests of one application, in queues of its own: one that takes no answers keeps up only itself.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) session: SessionId,
    pub(super) host_send: Queue<HostRequest>,
    pub(super) commands: Queue<Descriptor>,
    /// Of the commands that wait, in their order.
    continuations: Fifo<Descriptor>,
    /// When those of them arrived that are of the data cache.
    cache_commands: Fifo<Stamp>,
    /// Transfers under way, in the order in which they will be over.
    pub(super) begun: Fifo<Begun>,
}

/// When the oldest work of an application arrived.
#[derive(Clone, Copy)]
pub(super) struct Oldest {
    pub(super) packet: Option<Stamp>,
    pub(super) command: Option<Stamp>,
    pub(super) transfer: Option<Stamp>,
}

impl Requests {
    pub(super) fn new(config: &Config, session: SessionId) -> Self {
        Self {
            session,
            host_send: Queue::new(config.descriptor_queue_entries),
            commands: Queue::new(config.descriptor_queue_entries),
            continuations: Fifo::new(),
            cache_commands: Fifo::new(),
            begun: Fifo::new(),
        }
    }

    /// Entries that may be pushed, of whatever kind they are.
    pub(super) fn room(&self) -> usize {
        self.host_send.room().min(self.commands.room())
    }

    /// A request has arrived.
    #[inline]
    pub(super) fn push(&mut self, stamp: Stamp, since: Time, entry: &[Descriptor], of_host: bool) {
        let descriptor = entry[0];
        if of_host {
            let request = HostRequest { descriptor, since };
            self.host_send.push(stamp, request);
            return;
        }
        self.commands.push(stamp, descriptor);
        if is_of_cache(&descriptor) {
            self.cache_commands.push(stamp);
        }
        for &continuation in &entry[1..] {
            self.continuations.push(continuation);
        }
    }

    /// Takes the oldest request about packets, and at most as many as make `most` of those that follow it for other parts of the same
    /// packet, and puts them into `entry`; gives when the first arrived. What comes after a command of the data cache waits for that.
    pub(super) fn pop_packet(&mut self, most: usize, entry: &mut Vec<Descriptor>) -> Option<Time> {
        let HostRequest { descriptor, since } = self.host_send.pop()?;
        entry.clear();
        entry.push(descriptor);
        let put = self.cache_commands.front().copied();
        while entry.len() < most
            && entry.last().is_some_and(Descriptor::has_more)
            && let Some(next) = self.host_send.head()
            && put.is_none_or(|put| next < put)
        {
            entry.extend(self.host_send.pop().map(|next| next.descriptor));
        }
        Some(since)
    }

    /// Whether the next transfer is of the same packet as one that has been finished in the piece under way, if any has.
    pub(super) fn goes_on_with(&self, finished: Option<Begun>) -> bool {
        finished.is_none_or(|finished| {
            let is_of_packet = matches!(finished.owner, Transferred::FromHost(_));
            let next = self.begun.front();
            is_of_packet && next.is_some_and(|next| next.stamp == finished.stamp)
        })
    }

    /// Takes the oldest command, and puts all of it into `entry`; gives whether it is of the data cache.
    pub(super) fn pop_command(&mut self, entry: &mut Vec<Descriptor>) -> Option<bool> {
        let head = self.commands.pop()?;
        entry.clear();
        entry.push(head);
        entry.extend(self.continuations.take(head.continuations()));
        let is_of_cache = is_of_cache(&head);
        if is_of_cache {
            self.cache_commands.pop();
        }
        Some(is_of_cache)
    }

    /// Whether there is work that may be done now.
    #[inline]
    pub(super) fn has_work(&self, ready: impl FnOnce(SessionId) -> Ready) -> bool {
        let has_requests = (self.host_send.head()).or(self.commands.head()).is_some();
        if !has_requests && self.begun.is_empty() {
            return false;
        }
        let ready = ready(self.session);
        has_requests && ready.requests > 0 || !self.begun.is_empty() && ready.is_over
    }

    /// When the oldest work arrived that may be done now.
    #[inline]
    pub(super) fn oldest(&self, ready: Ready) -> Oldest {
        let transfer = self.begun.front().filter(|_| ready.is_over);
        let (packet, command) = match ready.requests {
            0 => (None, None),
            _ => (self.host_send.head(), self.commands.head()),
        };
        let oldest = Oldest {
            packet,
            command,
            transfer: transfer.map(|begun| begun.stamp),
        };
        match self.cache_commands.front() {
            Some(&put) => self.in_cache_order(oldest, put),
            None => oldest,
        }
    }

    /// Hides requests that are to be carried out after others because of the data cache, the first of whose commands arrived at `put`:
    /// what stands in a place of it depends on the order of requests, whatever the scheduler says.
    fn in_cache_order(&self, oldest: Oldest, put: Stamp) -> Oldest {
        let is_first_packet = oldest.packet.is_some_and(|packet| packet < put);
        let first = self.host_send.front();
        let is_cached =
            first.is_some_and(|request| request.descriptor.opcode() == Ok(Opcode::SendCached));
        if is_first_packet && oldest.command == Some(put) {
            Oldest {
                command: None,
                ..oldest
            }
        } else if is_cached && !is_first_packet {
            Oldest {
                packet: None,
                ..oldest
            }
        } else {
            oldest
        }
    }

    /// Asserts what always holds.
    pub(super) fn check(&self) {
        self.host_send.check();
        self.commands.check();
        let commands = self.commands.iter();
        let continuations: usize = commands.map(Descriptor::continuations).sum();
        assert_eq!(
            self.continuations.len(),
            continuations,
            "continuations belong to commands"
        );
    }
}

/// Whether a request is a command of the data cache.
fn is_of_cache(request: &Descriptor) -> bool {
    request.opcode().is_ok_and(Opcode::is_of_cache)
}
