//! Adapters that come, and end in order.

use super::entry::{Entry, Taker};
use super::{Captured, CapturedStats, LISTEN};
use crate::broker::memory::Owner;
use crate::broker::notice::BrokerNotice;
use crate::broker::session::{FreePlaces, Session};
use crate::xdp::{Mode, XdpError};
use baton_wire::Flow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Captured {
    /// The adapter, if there is one.
    pub(in crate::broker) fn adapter(&self) -> Option<Arc<Session>> {
        self.lock().adapter.clone()
    }

    /// An adapter has come. Gives it back if there is one.
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

    /// An adapter has come whose broker is gone: what stands in its memory is its own, as far as it can be. Gives the process of another one if
    /// there is one. Frames go by this broker's flows from [`Captured::take_over`] on.
    pub(in crate::broker) fn adopt(&self, session: &Arc<Session>) -> Result<(), u32> {
        let mut flows = self.lock();
        if let Some(other) = &flows.adapter {
            return Err(other.pid);
        }
        let memory = &session.memory;
        let (mut adopted, mut lost) = (0, 0);
        for (place, at) in (0..).zip(&memory.places) {
            let ((number, owner), flow) = (at.owner(), at.flow());
            let is_own = self.addresses.contains(&flow.local.addr);
            if owner == Owner::Nobody || !is_own || flows.entries.contains_key(&flow) {
                continue;
            }
            if owner == Owner::Broker {
                // The broker before this one was about to put it back, and its socket is gone with that.
                self.ask(&flow, &at.record.last());
                at.vacate(number);
                lost += 1;
                continue;
            }
            let found = self.reader().read(&flow).ok().flatten();
            if owner == Owner::Application && found.is_some_and(|found| found.state != LISTEN) {
                // The broker before this one was about to take it out, and the kernel has it still.
                at.vacate(number);
                continue;
            }
            if self.lookup.insert(&flow).is_err() {
                // There are no more flows in the memory than the map has room for.
                continue;
            }
            let entry = Entry {
                session: Arc::clone(session),
                place,
                number,
                taker: Taker::unknown(at.user()),
                // Whoever has it has this long to say so.
                orphan: (owner == Owner::Application).then(Instant::now),
            };
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

    /// Puts the programs that find packets in the place of those that its adapter has kept there.
    ///
    /// # Errors
    /// These are none of the interface's.
    pub(in crate::broker) fn take_over(
        &self,
        links: impl IntoIterator<Item = OwnedFd>,
        mode: Mode,
    ) -> Result<(), XdpError> {
        self.lookup.take_over(links, mode)
    }

    /// An adapter has ended in order: what it still had it has reset, and what applications have of it they bring back.
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

    /// All connections are to go back to the kernel, and none is to leave it.
    pub(in crate::broker) fn close(&self) {
        if let Some(adapter) = &self.lock().adapter {
            adapter.memory.closed.store(1, Ordering::Relaxed);
        }
    }

    /// Connections that are not the kernel's again after that: on the adapter, or with an application that has still to bring them back.
    /// More than there can be as long as the adapter has not heard.
    pub(in crate::broker) fn left(&self) -> u64 {
        let flows = self.lock();
        let Some(adapter) = &flows.adapter else {
            return flows.entries.len() as u64;
        };
        // In this order: what leaves the adapter in between is counted twice rather than not at all.
        let on_adapter = adapter.memory.on_adapter.load(Ordering::Acquire);
        let entries = flows.entries.values();
        let away = entries.filter(|entry| entry.place().owner().1 == Owner::Application);
        on_adapter.saturating_add(away.count() as u64)
    }
}
