//! Steps of the broker.

use super::Step::{self, *};
use super::holds;
use crate::Rules;
use crate::state::*;

impl State {
    pub(super) fn owner(&self) -> Option<Owner> {
        self.place.as_ref().map(|place| place.owner)
    }

    pub(super) fn set_owner(&mut self, owner: Owner) {
        if let Some(place) = &mut self.place {
            place.owner = owner;
        }
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(broker) = &mut self.broker
            && std::mem::take(&mut broker.answers)
        {
            if self.app.alive {
                self.app.answer = Some(answer);
            } else if answer == Answer::Back {
                // Nobody takes the socket, so it is reset.
                self.s1 = None;
                self.resets_peer();
            }
        }
    }

    pub(super) fn vacate(&mut self) {
        self.place = None;
        if let Some(adapter) = &mut self.adapter {
            adapter.has_place = false;
        }
    }

    /// TAKE.
    pub(super) fn take(&mut self, step: Step) -> Option<()> {
        let broker = self.broker.as_mut()?;
        match (step, broker.job) {
            (Capture, Job::Idle) => {
                holds(self.app.asks == Some(Ask::Take))?;
                self.app.asks = None;
                broker.answers = true;
                let free = broker.has_adapter && broker.entry.is_none() && self.place.is_none();
                let Some(adapter) = self.adapter.as_mut().filter(|it| free && it.linked) else {
                    self.answer(Answer::Refused);
                    return Some(());
                };
                adapter.has_place = true;
                adapter.answered = false;
                broker.entry = Some(Entry {
                    known: true,
                    gone: false,
                    parted: false,
                    orphan: !self.app.alive,
                });
                broker.job = Job::Captured;
                self.number += 1;
                self.place = Some(Place {
                    number: self.number,
                    owner: Owner::Application,
                    legs: 0,
                    record: Written::Untouched,
                });
                self.map = Map::Adapter;
            }
            (ReadState, Job::Captured) => {
                let is_acknowledged = |tcp: &Tcp| tcp.written == self.peer.got;
                match self.s0.filter(is_acknowledged) {
                    Some(tcp) => broker.job = Job::Read(tcp),
                    None => {
                        broker.job = Job::Idle;
                        broker.entry = None;
                        self.map = Map::Absent;
                        self.vacate();
                        self.answer(Answer::Refused);
                    }
                }
            }
            (KillSocket, Job::Read(tcp)) => {
                broker.job = Job::Killed(tcp);
                self.s0 = None;
                if self.is_kernels() {
                    self.resets_peer();
                }
            }
            (AnswerTaken, Job::Killed(tcp)) => {
                broker.job = Job::Idle;
                let number = self.number;
                self.answer(Answer::Taken(Sealed {
                    tcp,
                    kind: Kind::Taken,
                    number,
                }));
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the state that the broker restores for a claim, or `None` if the claim is not valid.
    pub(super) fn valid(&self, claim: Wanted, rules: &Rules) -> Option<Tcp> {
        let broker = self.broker.as_ref()?;
        let (entry, place) = (broker.entry.as_ref()?, self.place.as_ref()?);
        match claim {
            Wanted::State(sealed) => {
                holds(sealed.number == place.number)?;
                holds(!rules.kinds || (sealed.kind == Kind::Exported) == (place.legs > 0))?;
                holds(
                    rules.gives_back_after_end || !entry.parted || sealed.kind == Kind::Exported,
                )?;
                let is_begun = place.record != Written::Untouched;
                let is_left =
                    entry.gone && rules.tells_claimed && place.owner == Owner::Adapter && !is_begun;
                holds(place.owner == Owner::Application || is_left || !rules.claims)?;
                Some(sealed.tcp)
            }
            Wanted::Numbers => {
                holds(entry.gone && matches!(place.owner, Owner::Adapter | Owner::Application))?;
                let Written::Complete(tcp) = place.record else {
                    return None;
                };
                ((tcp.written, tcp.received, tcp.read)
                    == (self.app.wrote, self.app.read, self.app.read))
                    .then_some(tcp)
            }
        }
    }

    /// GIVE_BACK, RECLAIM and RECOVER.
    pub(super) fn give_back(&mut self, step: Step, rules: &Rules) -> Option<()> {
        let job = self.broker.as_ref()?.job;
        match (step, job) {
            (Claim, Job::Idle) => {
                let Some(Ask::Back(claim)) = self.app.asks else {
                    return None;
                };
                let entry = self.broker.as_ref()?.entry.clone();
                // The application may notice the adapter's end before the broker does.
                let waits = entry
                    .as_ref()
                    .is_some_and(|entry| !entry.gone && !entry.parted)
                    && self.adapter.as_ref().is_none_or(|it| !it.has_place);
                let is_adapters = self.owner() == Some(Owner::Adapter);
                holds(!waits || claim != Wanted::Numbers && !is_adapters)?;
                self.app.asks = None;
                self.broker.as_mut()?.answers = true;
                match self.valid(claim, rules) {
                    Some(tcp) => {
                        self.set_owner(Owner::Broker);
                        let broker = self.broker.as_mut()?;
                        broker.job = Job::Claimed(tcp);
                        broker.entry.as_mut()?.known = true;
                    }
                    None => {
                        let may_be_lost =
                            self.owner() == Some(Owner::Adapter) || claim == Wanted::Numbers;
                        let is_lost = entry.as_ref().is_some_and(|entry| entry.gone) && may_be_lost;
                        if is_lost && rules.answers_last {
                            self.begin_reset();
                            return Some(());
                        }
                        if is_lost {
                            self.begin_reset();
                        } else if entry.is_none() && rules.asks_for_unknown {
                            self.asks_peer();
                        }
                        self.answer(Answer::Lost);
                    }
                }
            }
            (Repair, Job::Claimed(tcp)) => {
                self.s1 = Some((tcp, true));
                self.broker.as_mut()?.job = Job::Repaired;
            }
            (FailRepair, Job::Claimed(_)) => {
                holds(self.left.failures > 0)?;
                self.left.failures -= 1;
                if !rules.answers_last {
                    self.answer(Answer::Lost);
                }
                self.begin_reset();
            }
            (RemoveEntry, Job::Repaired) => {
                self.map = Map::Absent;
                self.broker.as_mut()?.job = Job::Removed;
            }
            (RepairOff, Job::Removed) => {
                self.s1.as_mut()?.1 = false;
                self.broker.as_mut()?.job = Job::RepairOff;
            }
            (Vacate, Job::RepairOff) => {
                let broker = self.broker.as_mut()?;
                broker.job = Job::Vacated;
                broker.entry = None;
                self.vacate();
            }
            (AnswerBack, Job::Vacated) => {
                self.broker.as_mut()?.job = Job::Idle;
                self.answer(Answer::Back);
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn begin_reset(&mut self) {
        self.set_owner(Owner::Broker);
        if let Some(broker) = &mut self.broker {
            broker.job = Job::ResetClaimed;
        }
    }

    pub(super) fn forget(&mut self) {
        self.map = Map::Absent;
        if let Some(broker) = &mut self.broker {
            broker.entry = None;
        }
        self.vacate();
    }

    /// Steps of the broker without a request.
    pub(super) fn broker_alone(&mut self, step: Step, rules: &Rules) -> Option<()> {
        let owner = self.owner();
        let broker = self.broker.as_mut()?;
        match (step, broker.job) {
            (ResetRemove, Job::ResetClaimed) => {
                self.map = Map::Absent;
                broker.job = Job::ResetRemoved;
                if !rules.asks_first {
                    self.forget();
                }
            }
            (ResetAsk, Job::ResetRemoved) => {
                broker.job = Job::ResetAsked;
                self.asks_peer();
            }
            (ResetVacate, Job::ResetAsked) => {
                broker.job = Job::Idle;
                self.forget();
                self.answer(Answer::Lost);
            }
            (SeeApplicationGone, _) => {
                let entry = broker
                    .entry
                    .as_mut()
                    .filter(|entry| entry.known && !entry.orphan)?;
                holds(!self.app.alive)?;
                entry.orphan = true;
            }
            (SweepOver, Job::Idle) => {
                holds(owner == Some(Owner::Over) && broker.entry.is_some())?;
                self.forget();
            }
            (Bury, job) => {
                holds(broker.has_adapter && self.adapter.is_none())?;
                broker.has_adapter = false;
                let Some(entry) = &mut broker.entry else {
                    return Some(());
                };
                entry.gone = true;
                if owner != Some(Owner::Broker) {
                    self.map = Map::Hold;
                }
                let record = self.place.as_ref()?.record;
                let is_idle = job == Job::Idle;
                match (owner?, record) {
                    (Owner::Over, _) if is_idle => self.forget(),
                    (Owner::Adapter, Written::Untouched) if !rules.tells_claimed && is_idle => {
                        self.forget()
                    }
                    (Owner::Adapter | Owner::Application, _) if entry.orphan && is_idle => {
                        self.begin_reset()
                    }
                    (Owner::Adapter, Written::Incomplete) if is_idle => self.begin_reset(),
                    _ => {}
                }
            }
            (Adopt, Job::Idle) => self.adopt(rules)?,
            (Sweep, Job::Idle) => self.sweep(rules)?,
            _ => return None,
        }
        Some(())
    }

    /// The adapter attaches to a successor of its broker.
    pub(super) fn adopt(&mut self, rules: &Rules) -> Option<()> {
        // The kernel has a socket, so TAKE did not get further.
        let is_known = self.has_socket();
        let (owner, alive) = (self.owner(), self.app.alive);
        let adapter = self.adapter.as_mut().filter(|adapter| !adapter.linked)?;
        let broker = self.broker.as_mut().filter(|broker| !broker.has_adapter)?;
        adapter.linked = true;
        broker.has_adapter = true;
        let Some(owner) = owner.filter(|_| adapter.has_place) else {
            self.map = Map::Absent;
            return Some(());
        };
        broker.entry = Some(Entry {
            known: false,
            gone: false,
            parted: false,
            orphan: !alive && !rules.asks_late,
        });
        self.map = Map::Adapter;
        match owner {
            Owner::Application if is_known => self.forget(),
            Owner::Broker if rules.resets_claimed => self.begin_reset(),
            // Without the rule, a broker ignores that its predecessor had claimed the place.
            Owner::Broker => self.set_owner(Owner::Application),
            Owner::Over => self.forget(),
            Owner::Application | Owner::Adapter => {}
        }
        Some(())
    }

    /// Resets or forgets a connection that nobody has given back for too long.
    pub(super) fn sweep(&mut self, rules: &Rules) -> Option<()> {
        let broker = self.broker.as_ref()?;
        let entry = broker.entry.as_ref()?;
        let owner = self.owner()?;
        let is_late = match owner {
            Owner::Application => true,
            Owner::Adapter => entry.gone || !rules.claims,
            Owner::Broker | Owner::Over => false,
        };
        holds(is_late && self.app.asks.is_none())?;
        match rules.asks_late {
            true => self.begin_reset(),
            false => self.forget(),
        }
        Some(())
    }
}
