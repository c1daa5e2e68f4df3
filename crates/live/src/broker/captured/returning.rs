//! Connections that the broker puts back into the kernel.

use super::entry::{Entry, Taker};
use super::{Captured, NotRecovered};
use crate::broker::memory::{Owner, Stage};
use crate::broker::record::Said;
use crate::broker::seal::ticket_of;
use baton_tcp::Portable;
use baton_wire::Flow;
use bytes::Bytes;

/// A connection that is the broker's while it is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Returning {
    /// Its socket is to be one of IPv6.
    pub(in crate::broker) is_wide: bool,
}

impl Captured {
    /// `taker` brings a connection back in this state. Nobody else can have it from here on: it is [let go](Captured::let_go) or
    /// [lost](Captured::lose).
    ///
    /// # Errors
    /// It was not taken out for `taker`, the adapter has it, or the state is not that in which it was given to the application last.
    pub(in crate::broker) fn begin_return(
        &self,
        state: &Portable<Bytes>,
        taker: Taker,
    ) -> Result<Returning, NotRecovered> {
        let mut flows = self.lock();
        let entry = flows.entries.get_mut(&state.flow);
        let entry = entry.ok_or(NotRecovered::NotTaken)?;
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

    /// The same where an adapter is gone that had the connection, of which the application has no state.
    pub(in crate::broker) fn begin_recovery(
        &self,
        flow: &Flow,
        taker: Taker,
    ) -> Result<(Returning, Said, Bytes), NotRecovered> {
        let mut flows = self.lock_once_gone(flow, taker)?;
        let entry = flows.entries.get_mut(flow);
        let entry = entry.ok_or(NotRecovered::NotTaken)?;
        let (said, data) = entry.remains();
        match entry.place().owner().1 {
            owner @ (Owner::Application | Owner::Adapter) => Ok((entry.claim(owner)?, said, data)),
            _ => Err(NotRecovered::NotTaken),
        }
    }
}

impl Entry {
    /// The broker has it now, unless its owner is another by now.
    fn claim(&self, from: Owner) -> Result<Returning, NotRecovered> {
        let place = self.place();
        let is_wide = place.is_wide();
        match place.pass(self.number, from, Owner::Broker) {
            true => Ok(Returning { is_wide }),
            false => Err(NotRecovered::Alive),
        }
    }
}
