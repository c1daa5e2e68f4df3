//! Steps of the adapter.

use super::Step::{self, *};
use super::holds;
use crate::Rules;
use crate::state::*;

impl State {
    pub(super) fn import(&mut self, step: Step, rules: &Rules) -> Option<()> {
        let adapter = self.adapter.as_mut()?;
        match step {
            ClaimImport => {
                let Some(Request::Import(sealed)) = self.request else {
                    return None;
                };
                holds(adapter.claimed.is_none())?;
                self.request = None;
                let place = self
                    .place
                    .as_mut()
                    .filter(|place| adapter.has_place && place.number == sealed.number);
                let place = place
                    .filter(|place| !rules.kinds || place.legs == 0 && sealed.kind == Kind::Taken);
                let place =
                    place.filter(|place| place.owner == Owner::Application || !rules.claims);
                match place {
                    Some(place) => {
                        place.owner = Owner::Adapter;
                        adapter.claimed = Some(sealed.tcp);
                    }
                    None => self.response = Some(Response::Refused),
                }
            }
            MakeConnection => {
                adapter.conn = Some(adapter.claimed.take()?);
                adapter.dirty = 1;
            }
            RefuseImport => {
                holds(self.left.failures > 0)?;
                adapter.claimed.take()?;
                self.left.failures -= 1;
                self.set_owner(Owner::Application);
                self.response = Some(Response::Refused);
            }
            _ => {
                holds(adapter.conn.is_some() && !adapter.answered && self.app.alive)?;
                adapter.answered = true;
                self.response = Some(Response::Imported);
            }
        }
        Some(())
    }

    pub(super) fn export(&mut self, step: Step, rules: &Rules) -> Option<()> {
        let number = self.number;
        let adapter = self.adapter.as_mut()?;
        // If the state is given before the owner is set, it is given immediately.
        let (gives, passes) = match rules.passes_first {
            true => (GiveState, PassToApplication),
            false => (PassToApplication, GiveState),
        };
        let is_passed = self
            .place
            .as_ref()
            .is_none_or(|place| place.owner != Owner::Adapter);
        let is_given = self.response.is_some() || self.request.is_none();
        if step == TakeOut {
            holds(self.request == Some(Request::Export) && adapter.answered)?;
            let conn = adapter.conn.filter(|conn| conn.written == self.app.wrote)?;
            adapter.conn = None;
            adapter.leaving = Some(conn);
        } else if step == passes || step == gives {
            let tcp = adapter.leaving?;
            let pass = step == PassToApplication;
            let is_first = pass == rules.passes_first;
            holds(is_first != (is_passed || (!rules.passes_first && is_given)))?;
            if !is_first {
                adapter.leaving = None;
            }
            if pass {
                let place = self.place.as_mut()?;
                (place.legs, place.owner) = (1, Owner::Application);
            } else if self.app.alive {
                self.request = None;
                self.response = Some(Response::Exported(Sealed {
                    tcp,
                    kind: Kind::Exported,
                    number,
                }));
            }
        }
        Some(())
    }

    pub(super) fn adapter(&mut self, step: Step, rules: &Rules) -> Option<()> {
        let (is_here, owner) = (self.map == Map::Adapter, self.owner());
        let adapter = self.adapter.as_mut()?;
        match step {
            Spoil => {
                holds(adapter.conn.is_some() && adapter.dirty == 1)?;
                adapter.dirty = 2;
                let place = self.place.as_mut().filter(|_| adapter.has_place)?;
                place.legs = 1;
                place.record = Written::Incomplete;
            }
            Record => {
                let conn = adapter.conn.filter(|_| adapter.dirty == 2)?;
                adapter.dirty = 0;
                // A first response is short; a second one is too long to be recorded.
                let is_short = conn.written == self.peer.got || conn.written < 2;
                let place = self.place.as_mut()?;
                if conn.received == conn.read && is_short {
                    place.record = Written::Complete(conn);
                }
            }
            AdapterReceives => {
                let conn = adapter
                    .conn
                    .as_mut()
                    .filter(|conn| is_here && conn.received < self.peer.asked)?;
                conn.received = self.peer.asked;
                adapter.dirty = 1;
            }
            Deliver => {
                holds(adapter.answered && self.app.alive)?;
                let conn = adapter
                    .conn
                    .as_mut()
                    .filter(|conn| conn.read < conn.received)?;
                conn.read += 1;
                self.app.read += 1;
                adapter.dirty = 1;
            }
            Fetch => {
                holds(adapter.answered)?;
                let conn = adapter
                    .conn
                    .as_mut()
                    .filter(|conn| conn.written < self.app.wrote)?;
                conn.written += 1;
                adapter.dirty = 1;
            }
            Send => {
                let conn = adapter
                    .conn
                    .filter(|_| adapter.dirty == 0 || !rules.records_first)?;
                let peer = &mut self.peer;
                holds(conn.received > peer.acknowledged || conn.written > peer.got)?;
                peer.acknowledged = peer.acknowledged.max(conn.received);
                peer.got = peer.got.max(conn.written);
                // Sent data will be acknowledged, which changes the record.
                adapter.dirty = 1;
            }
            ResetForApplication => {
                holds(!self.app.alive)?;
                self.request = None;
                if adapter
                    .claimed
                    .take()
                    .or_else(|| adapter.leaving.take())
                    .is_some()
                {
                    if owner == Some(Owner::Adapter) {
                        self.set_owner(Owner::Application);
                    }
                } else {
                    adapter.conn.take()?;
                    self.resets_peer();
                    self.set_owner(Owner::Over);
                }
            }
            _ => {
                holds(
                    rules.resets_alone
                        && self.broker.is_none()
                        && !adapter.linked
                        && adapter.has_place,
                )?;
                holds(matches!(owner, Some(Owner::Application | Owner::Broker)))?;
                // The adapter receives the packets, and answers them.
                self.reset_alone = true;
                self.set_owner(Owner::Over);
                self.resets_peer();
            }
        }
        Some(())
    }
}
