//! Adapters that attach, and that detach in order.

use super::entry::{Entry, Taker};
use super::{Captured, CapturedStats, LISTEN, LONGEST_MOVE};
use crate::broker::memory::Owner;
use crate::broker::notice::BrokerNotice;
use crate::broker::session::{FreePlaces, Session};
use crate::xdp::{Mode, XdpError};
use baton_wire::Flow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Minimum time that an application has to ask the next broker for a connection whose state it has.
const LEAST_GRACE: Duration = Duration::from_millis(250);

impl Captured {
    /// Returns the adapter, if there is one.
    pub(in crate::broker) fn adapter(&self) -> Option<Arc<Session>> {
        self.lock().adapter.clone()
    }

    /// Attaches an adapter. Fails with the process ID of the current adapter if there is one.
    pub(in crate::broker) fn attach(&self, session: Arc<Session>) -> Result<(), u32> {
        let mut flows = self.lock();
        if let Some(other) = &flows.adapter {
            return Err(other.pid);
        }
        flows.tell(BrokerNotice::Attached(session.pid));
        flows.free = FreePlaces::default();
        flows.adapter = Some(session);
        Ok(())
    }

    /// Attaches an adapter whose broker has disappeared, and accepts the content of its memory as far as it is plausible. Fails with the
    /// process ID of the current adapter if there is one. This broker's flows apply to frames once [`Captured::take_over`] is called.
    pub(in crate::broker) fn adopt(&self, session: &Arc<Session>) -> Result<(), u32> {
        let mut flows = self.lock();
        if let Some(other) = &flows.adapter {
            return Err(other.pid);
        }
        let (memory, now) = (&session.memory, Instant::now());
        let (mut adopted, mut lost) = (0, 0);
        for (place, at) in (0..).zip(&memory.places) {
            let ((number, owner), flow) = (at.owner(), at.flow());
            let is_own = self.addresses.contains(&flow.local.addr);
            if owner == Owner::Nobody || !is_own || flows.entries.contains_key(&flow) {
                continue;
            }
            if owner == Owner::Broker {
                // The previous broker was putting the connection back, and the new socket has disappeared with that broker.
                self.ask(&flow, &at.record.last());
                at.vacate(number);
                lost += 1;
                continue;
            }
            let found = self.reader().read(&flow).ok().flatten();
            if owner == Owner::Application && found.is_some_and(|found| found.state != LISTEN) {
                // The previous broker was taking the connection out of the kernel, which still has it.
                at.vacate(number);
                continue;
            }
            if self.lookup.insert(&flow).is_err() {
                // Unlikely, because the map has space for as many flows as the memory.
                continue;
            }
            let entry = Entry {
                session: Arc::clone(session),
                place,
                number,
                taker: Taker::unknown(at.user()),
                _port: None,
                orphan: (owner == Owner::Application)
                    .then(|| now.checked_sub(waited(at.age_ms())).unwrap_or(now)),
            };
            self.history().found(&flow, entry.taker);
            flows.insert(flow, entry);
            adopted += 1;
        }
        flows.free = FreePlaces::of(memory);
        flows.stats = CapturedStats::from_words(
            (memory.counters.each_ref()).map(|counter| counter.load(Ordering::Relaxed)),
        );
        flows.tell(BrokerNotice::Adopted {
            pid: session.pid,
            connections: adopted,
        });
        flows.adapter = Some(Arc::clone(session));
        flows.stats.reset += lost;
        drop(flows);
        self.changed.notify_all();
        Ok(())
    }

    /// Replaces the programs that the adapter has kept attached to the interface with this broker's programs.
    ///
    /// # Errors
    /// The programs are not attached to this interface.
    pub(in crate::broker) fn take_over(
        &self,
        links: impl IntoIterator<Item = OwnedFd>,
        mode: Mode,
    ) -> Result<(), XdpError> {
        self.lookup.take_over(links, mode)
    }

    /// Handles an adapter that has ended in order: it has reset its connections, and applications bring back those whose state they have.
    pub(in crate::broker) fn part(&self, session: &Arc<Session>) {
        let mut flows = self.lock();
        if !flows.is_current(session) {
            return;
        }
        flows.adapter = None;
        flows.tell(BrokerNotice::Left(session.pid));
        let of_session = |(_, entry): &(&Flow, &Entry)| Arc::ptr_eq(&entry.session, session);
        let is_back =
            |entry: &Entry| matches!(entry.place().owner().1, Owner::Application | Owner::Broker);
        let (back, over): (Vec<_>, Vec<_>) = (flows.entries.iter().filter(of_session))
            .map(|(flow, entry)| (*flow, is_back(entry)))
            .partition(|(_, is_back)| *is_back);
        for (flow, _) in back {
            let _ = self.lookup.hold(&flow);
        }
        for (flow, _) in over {
            self.end(&mut flows, &flow);
        }
    }

    /// Asks for all connections to go back to the kernel. No more connections leave it.
    pub(in crate::broker) fn close(&self) {
        if let Some(adapter) = &self.lock().adapter {
            adapter.memory.closed.store(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of connections that are still out of the kernel after `close` was called: on the adapter, or with an application
    /// that has yet to bring them back. Larger than any possible number until the adapter has noticed the call.
    pub(in crate::broker) fn left(&self) -> u64 {
        let flows = self.lock();
        let Some(adapter) = &flows.adapter else {
            return flows.entries.len() as u64;
        };
        // Read in this order, so that a connection that leaves the adapter in between is counted twice rather than not at all.
        let on_adapter = adapter.memory.on_adapter.load(Ordering::Acquire);
        let entries = flows.entries.values();
        let away = entries.filter(|entry| entry.place().owner().1 == Owner::Application);
        on_adapter.saturating_add(away.count() as u64)
    }
}

/// Returns how long a connection that an application has had for `age_ms` counts as orphaned when its broker is replaced. The time under
/// previous brokers counts: otherwise the peer would wait as long as brokers kept being killed in quick succession.
fn waited(age_ms: u32) -> Duration {
    Duration::from_millis(age_ms.into()).min(LONGEST_MOVE - LEAST_GRACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_under_previous_brokers_counts() {
        assert_eq!(waited(0), Duration::ZERO);
        assert_eq!(waited(1_000), Duration::from_secs(1));
        assert_eq!(waited(60_000) + LEAST_GRACE, LONGEST_MOVE);
    }
}
