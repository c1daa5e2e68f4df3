//! Connections that the broker puts back into the kernel.

use super::entry::{Entry, Flows, Taker};
use super::{Captured, LISTEN, NotRecovered};
use crate::broker::memory::{Owner, Stage};
use crate::broker::record::Said;
use crate::broker::seal::ticket_of;
use baton_tcp::Portable;
use baton_wire::Flow;
use bytes::Bytes;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Time within which an adapter finds a broker that has just started.
const LONGEST_ADOPTION: Duration = Duration::from_secs(1);

/// A connection that the broker owns while putting it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Returning {
    /// Whether its new socket must be an IPv6 socket.
    pub(in crate::broker) is_wide: bool,
}

impl Captured {
    /// Begins to put back a connection that `taker` returns in this state. With `waits`, first waits until the connection is back with the
    /// application or its adapter has disappeared. From then on the broker owns the connection, until it is [let go](Captured::let_go) or
    /// [lost](Captured::lose).
    ///
    /// # Errors
    /// The connection was not taken out for `taker`, the adapter has it, or the state is not the one that the application was last given.
    pub(in crate::broker) fn begin_return(
        &self,
        state: &Portable<Bytes>,
        taker: Taker,
        waits: bool,
    ) -> Result<Returning, NotRecovered> {
        let mut flows = self.lock_once_known(&state.flow);
        if waits && flows.entries.contains_key(&state.flow) {
            drop(flows);
            flows = self.lock_once_back(&state.flow, taker)?;
        }
        let Some(entry) = flows.entries.get_mut(&state.flow) else {
            self.rouse(&state.flow);
            return Err(NotRecovered::NotTaken);
        };
        if !entry.belongs_to(taker) {
            return Err(NotRecovered::NotTaken);
        }
        let stage = entry.place().stage();
        if ticket_of(&entry.session.memory, stage, state) != Some(entry.ticket()) {
            return Err(NotRecovered::OtherState);
        }
        let is_untouched = stage == Stage::Taken && entry.place().record.read() == Said::Untouched;
        match entry.place().owner().1 {
            Owner::Application if stage != Stage::Finished => entry.claim(Owner::Application),
            Owner::Adapter if entry.session.is_gone() && is_untouched => {
                entry.claim(Owner::Adapter)
            }
            _ => Err(NotRecovered::Alive),
        }
    }

    /// Begins to put back a connection that was on an adapter that has disappeared, and whose state the application does not have.
    pub(in crate::broker) fn begin_recovery(
        &self,
        flow: &Flow,
        taker: Taker,
    ) -> Result<(Returning, Said, Bytes), NotRecovered> {
        let known = self.lock_once_known(flow).entries.contains_key(flow);
        if !known {
            self.rouse(flow);
        }
        let is_gone = |entry: &Entry| entry.session.is_gone();
        let mut flows = self.lock_once(flow, taker, is_gone)?;
        let entry = flows.entries.get_mut(flow);
        let entry = entry.ok_or(NotRecovered::NotTaken)?;
        let (said, data) = entry.remains();
        match entry.place().owner().1 {
            owner @ (Owner::Application | Owner::Adapter) => Ok((entry.claim(owner)?, said, data)),
            _ => Err(NotRecovered::NotTaken),
        }
    }

    /// Locks the flows once they contain this one. If this broker has just started, waits until an adapter of a killed broker has found it.
    fn lock_once_known(&self, flow: &Flow) -> MutexGuard<'_, Flows> {
        let mut flows = self.lock();
        while !flows.entries.contains_key(flow) && flows.adapter.is_none() {
            let left = LONGEST_ADOPTION.saturating_sub(self.began.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(flows, left);
            flows = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        flows
    }

    /// Locks the flows once a connection is back with its application, or its adapter has disappeared.
    fn lock_once_back(
        &self,
        flow: &Flow,
        taker: Taker,
    ) -> Result<MutexGuard<'_, Flows>, NotRecovered> {
        self.lock_once(flow, taker, |entry| {
            entry.session.is_gone() || entry.place().owner().1 == Owner::Application
        })
    }

    /// Makes the peer of a connection that has no owner any more send something, which the kernel answers with a reset. The application that
    /// named the connection is not trusted: it cannot choose the content, and nothing is sent if the kernel has such a connection.
    fn rouse(&self, flow: &Flow) {
        let is_own = self.addresses.contains(&flow.local.addr);
        let is_there = || {
            let found = self.reader.read(flow).ok().flatten();
            found.is_some_and(|found| found.state != LISTEN)
        };
        if is_own && !is_there() {
            let _ = self.prober.rouse(flow);
        }
    }
}

impl Entry {
    /// Makes the broker the owner of a connection that is given up. Returns false if its owner has just changed.
    pub(super) fn is_given_up(&self) -> bool {
        let (place, owner) = (self.place(), self.place().owner().1);
        owner == Owner::Broker || place.pass(self.number, owner, Owner::Broker)
    }

    /// Makes the broker the owner, unless the owner is no longer `from`.
    fn claim(&self, from: Owner) -> Result<Returning, NotRecovered> {
        let place = self.place();
        let is_wide = place.is_wide();
        match place.pass(self.number, from, Owner::Broker) {
            true => Ok(Returning { is_wide }),
            false => Err(NotRecovered::Alive),
        }
    }
}
