//! Pending requests of one application.

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
    /// Time of arrival at the adapter.
    pub(super) since: Time,
}

/// A data transfer in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Stamp of the work that started the transfer.
    pub(super) stamp: Stamp,
    pub(super) owner: Transferred,
}

/// Requests of one application, in queues of its own, so that an application that does not read its answers delays only itself.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) session: SessionId,
    pub(super) host_send: Queue<HostRequest>,
    pub(super) commands: Queue<Descriptor>,
    /// Continuations of the queued commands, in the order of the commands.
    continuations: Fifo<Descriptor>,
    /// Arrivals of the queued commands that belong to the data cache.
    cache_commands: Fifo<Stamp>,
    /// Transfers in progress, in the order in which they will complete.
    pub(super) begun: Fifo<Begun>,
}

/// Arrivals of the oldest work of an application.
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

    /// Returns the number of entries of any kind that can be pushed.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.host_send.room().min(self.commands.room())
    }

    /// Queues a request.
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

    /// Moves the oldest request about packets into `entry`, along with requests for further parts of the same packet, up to `most` in
    /// total. Requests that came after a command of the data cache wait for that command. Returns the arrival time of the first request.
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

    /// Returns whether the next transfer belongs to the same packet as `finished`, a transfer that the current piece has finished, or
    /// whether there is none.
    #[inline]
    pub(super) fn goes_on_with(&self, finished: Option<Begun>) -> bool {
        finished.is_none_or(|finished| {
            let is_of_packet = matches!(finished.owner, Transferred::FromHost(_));
            let next = self.begun.front();
            is_of_packet && next.is_some_and(|next| next.stamp == finished.stamp)
        })
    }

    /// Moves the oldest command with all its descriptors into `entry`. Returns whether it is a command of the data cache.
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

    /// Returns whether there is work that can be done now.
    #[inline]
    pub(super) fn has_work(&self, ready: impl FnOnce(SessionId) -> Ready) -> bool {
        let has_requests = (self.host_send.head()).or(self.commands.head()).is_some();
        if !has_requests && self.begun.is_empty() {
            return false;
        }
        let ready = ready(self.session);
        has_requests && ready.requests > 0 || !self.begun.is_empty() && ready.is_over
    }

    /// Returns the arrivals of the oldest work that can be done now.
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

    /// Hides requests that must wait for others because of the data cache. `put` is the arrival of the first cache command: the contents of
    /// the cache depend on the order of requests, whatever the scheduler prefers.
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

    /// Asserts the invariants of the queues.
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

/// Returns whether a request is a command of the data cache.
fn is_of_cache(request: &Descriptor) -> bool {
    request.opcode().is_ok_and(Opcode::is_of_cache)
}
