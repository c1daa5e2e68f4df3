//! The steps, and the states that they lead to.

mod adapter;
mod broker;

use crate::state::*;
use crate::{Bounds, Protocol, Rules};

macro_rules! steps {
    ($($(#[$about:meta])* $list:ident { $($step:ident,)* })*) => {
        /// A step of one process. A process can be killed after each of its steps.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "`State::step` says what each does")]
        pub enum Step {
            $($($step,)*)*
        }
        $($(#[$about])* pub(crate) const $list: &[Step] = &[$(Step::$step,)*];)*
    };
}

steps! {
    /// Steps that are neither faults nor timeouts.
    ORDINARY {
        // The peer and the kernel.
        PeerAsks, KernelReceives, KernelSends, KernelResets, KernelClosesOrphan,
        // The application.
        Reads, Writes, AsksTake, AsksImport, AsksExport, DoesNotImport, AsksBack, HearsAdapter,
        SeesAdapterGone, HearsBroker, SeesBrokerGone, SettlesDoubt, SeesSocketGone, Forges,
        // The broker.
        Capture, ReadState, KillSocket, AnswerTaken, Claim, Repair, FailRepair, RemoveEntry,
        RepairOff, Vacate, AnswerBack, ResetRemove, ResetAsk, ResetVacate, SeeApplicationGone,
        SweepOver, Bury, Adopt,
        // The adapter.
        ClaimImport, MakeConnection, RefuseImport, AnswerImport, Spoil, Record, AdapterReceives,
        Deliver, Fetch, Send, TakeOut, PassToApplication, GiveState, ResetForApplication,
    }
    /// Kills and restarts of processes.
    FAULTS {
        KillApplication, KillBroker, KillAdapter, Detach, NextBroker, NextAdapter,
    }
    /// Timeouts.
    LIMITS {
        Sweep, GiveUp, ResetAlone,
    }
}

use Step::*;

impl Protocol {
    /// Returns the state after a step, or `None` if the step is not possible.
    pub(crate) fn after(&self, state: &State, step: Step) -> Option<State> {
        let is_limit = LIMITS.contains(&step);
        if is_limit && self.bounds.patient {
            let waits = |step: &Step| self.after(state, *step).is_none();
            // Successors are started before timeouts expire.
            if !(ORDINARY.iter().chain(&FAULTS[4..])).all(waits) {
                return None;
            }
        }
        let mut next = state.clone();
        next.step(step, &self.rules, &self.bounds)?;
        Some(next)
    }
}

fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}

impl State {
    fn step(&mut self, step: Step, rules: &Rules, bounds: &Bounds) -> Option<()> {
        match step {
            PeerAsks | KernelReceives | KernelSends | KernelResets | KernelClosesOrphan => {
                self.wire(step, bounds)
            }
            Reads | Writes | AsksTake | AsksImport | AsksExport | DoesNotImport | AsksBack
            | HearsAdapter | SeesAdapterGone | HearsBroker | SeesBrokerGone | SettlesDoubt
            | SeesSocketGone | Forges | GiveUp => self.application(step, rules),
            Capture | ReadState | KillSocket | AnswerTaken => self.take(step),
            Claim | Repair | FailRepair | RemoveEntry | RepairOff | Vacate | AnswerBack => {
                self.give_back(step, rules)
            }
            ResetRemove | ResetAsk | ResetVacate | SeeApplicationGone | SweepOver | Bury
            | Adopt | Sweep => self.broker_alone(step, rules),
            ClaimImport | MakeConnection | RefuseImport | AnswerImport => self.import(step, rules),
            TakeOut | PassToApplication | GiveState => self.export(step, rules),
            Spoil | Record | AdapterReceives | Deliver | Fetch | Send | ResetForApplication
            | ResetAlone => self.adapter(step, rules),
            KillApplication | KillBroker | KillAdapter | Detach | NextBroker | NextAdapter => {
                self.fault(step, rules)
            }
        }
    }

    /// Returns the socket by which the kernel answers.
    fn socket(&mut self) -> Option<&mut Tcp> {
        holds(self.is_kernels())?;
        match (&mut self.s0, &mut self.s1) {
            (Some(tcp), _) | (None, Some((tcp, false))) => Some(tcp),
            _ => None,
        }
    }

    fn resets_peer(&mut self) {
        if self.peer.sees == Seen::Open {
            self.peer.sees = Seen::Reset;
        }
    }

    /// Probes the peer: the broker sends a packet that the peer answers, and a kernel without a socket responds to the answer with a reset.
    fn asks_peer(&mut self) {
        if self.is_kernels() && !self.has_socket() {
            self.resets_peer();
        }
    }

    fn wire(&mut self, step: Step, bounds: &Bounds) -> Option<()> {
        let is_open = self.peer.sees == Seen::Open;
        let Peer {
            asked,
            acknowledged,
            got,
            ..
        } = self.peer;
        match step {
            PeerAsks => {
                holds(is_open && asked < bounds.requests && got == asked)?;
                self.peer.asked += 1;
            }
            KernelReceives => {
                let tcp = self.socket().filter(|tcp| tcp.received < asked)?;
                tcp.received = asked;
                self.peer.acknowledged = asked;
            }
            KernelSends => {
                let written = self.socket().filter(|tcp| tcp.written > got)?.written;
                self.peer.got = written;
            }
            KernelResets => {
                holds(is_open && asked > acknowledged && self.is_kernels() && !self.has_socket())?;
                self.resets_peer();
            }
            _ => {
                let takes = matches!(
                    self.broker.as_ref().map(|broker| broker.job),
                    Some(Job::Captured | Job::Read(_))
                );
                holds(!self.app.alive && self.s0.is_some() && !takes && self.is_kernels())?;
                self.s0 = None;
                self.peer.sees = Seen::Closed;
            }
        }
        Some(())
    }

    fn application(&mut self, step: Step, rules: &Rules) -> Option<()> {
        holds(self.app.alive)?;
        let (at, broker) = (self.app.at, self.broker.is_some());
        match (step, at) {
            (Reads, At::Host) => {
                let tcp = self.s0.as_mut().filter(|tcp| tcp.read < tcp.received)?;
                tcp.read += 1;
                self.app.read += 1;
            }
            (Writes, At::Host | At::Adapter) => {
                holds(self.app.wrote < self.app.read)?;
                if at == At::Host {
                    self.s0.as_mut()?.written += 1;
                }
                self.app.wrote += 1;
            }
            (AsksTake, At::Host) => {
                holds(self.left.moves > 0 && broker && self.s0.is_some())?;
                self.left.moves -= 1;
                self.app.asks = Some(Ask::Take);
                self.app.at = At::Taking;
            }
            (AsksImport, At::Held(sealed)) => {
                holds(self.adapter.is_some() && !self.app.cut && self.request.is_none())?;
                self.request = Some(Request::Import(sealed));
                self.app.at = At::HandingOff(sealed);
            }
            (AsksExport, At::Adapter) => {
                holds(broker && self.adapter.is_some())?;
                holds(!self.app.cut && self.request.is_none())?;
                self.request = Some(Request::Export);
                self.app.at = At::Restoring;
            }
            (DoesNotImport, At::Held(sealed)) => {
                self.app.at = At::Back(Wanted::State(sealed));
                self.app.cut = false;
            }
            (AsksBack, At::Back(claim)) => {
                // While a living adapter is not attached to the broker yet, the broker knows no connections.
                let adapter = self.adapter.as_ref().is_none_or(|adapter| adapter.linked);
                holds(broker && adapter && self.app.asks.is_none() && self.app.answer.is_none())?;
                self.app.asks = Some(Ask::Back(claim));
                self.app.at = At::Returning(claim);
            }
            (HearsAdapter, _) => {
                let at = match self.response.take()? {
                    Response::Imported => At::Adapter,
                    Response::Refused => match at {
                        At::HandingOff(sealed) => At::Back(Wanted::State(sealed)),
                        at => at,
                    },
                    Response::Exported(sealed) => {
                        self.app.old = Some(sealed);
                        At::Back(Wanted::State(sealed))
                    }
                };
                self.app.at = at;
                if matches!(at, At::Back(_)) {
                    self.app.cut = false;
                }
            }
            (SeesAdapterGone, At::HandingOff(_) | At::Adapter | At::Restoring) => {
                holds(self.app.cut && self.response.is_none())?;
                self.app.cut = false;
                self.app.at = At::Back(match at {
                    At::HandingOff(sealed) => Wanted::State(sealed),
                    _ => Wanted::Numbers,
                });
            }
            (HearsBroker, _) => self.hears_broker()?,
            (SeesBrokerGone, At::Taking | At::Returning(_)) => {
                // An answer that was sent before is read first.
                holds(self.app.asks.is_none() && self.app.answer.is_none())?;
                holds(self.broker.as_ref().is_none_or(|broker| !broker.answers))?;
                self.app.at = match at {
                    At::Returning(claim) if rules.asks_again => At::Back(claim),
                    At::Returning(_) => At::Ended,
                    _ if rules.doubts => At::Doubt,
                    _ => At::Host,
                };
            }
            (SettlesDoubt, At::Doubt) => {
                // The adapter waits longer than the application.
                holds(!self.reset_alone)?;
                let adapter = self.adapter.as_ref().is_none_or(|adapter| adapter.linked);
                let knows = self.broker.as_ref().filter(|_| adapter)?.entry.is_some();
                match (self.s0.is_some(), knows) {
                    (true, false) => self.app.at = At::Host,
                    (true, true) => return None,
                    (false, false) => self.app.at = At::Back(Wanted::Numbers),
                    // The broker resets the connection.
                    (false, true) => self.app.at = At::Ended,
                }
            }
            (SeesSocketGone, At::Host) => {
                holds(self.s0.is_none())?;
                self.app.at = At::Ended;
            }
            (GiveUp, At::Back(_)) => {
                holds(self.app.asks.is_none())?;
                let is_there = self.broker.is_some()
                    && self.adapter.as_ref().is_none_or(|adapter| adapter.linked);
                holds(!is_there)?;
                self.forgotten |= self.lost;
                self.app.at = At::Ended;
            }
            (GiveUp, At::Doubt) => {
                self.s0 = None;
                if self.is_kernels() {
                    self.resets_peer();
                }
                self.forgotten |= self.lost;
                self.app.at = At::Ended;
            }
            (Forges, _) => {
                let sealed = self.app.old.filter(|_| self.left.forged > 0 && broker)?;
                holds(self.app.asks.is_none() && self.app.answer.is_none())?;
                self.left.forged -= 1;
                self.app.asks = Some(Ask::Back(Wanted::State(sealed)));
            }
            _ => return None,
        }
        Some(())
    }

    fn hears_broker(&mut self) -> Option<()> {
        let answer = self.app.answer.take()?;
        let at = self.app.at;
        self.app.at = match (answer, at) {
            (Answer::Taken(sealed), _) => {
                self.app.old = Some(sealed);
                At::Held(sealed)
            }
            (Answer::Refused, _) => At::Host,
            (Answer::Back, _) => {
                self.s0 = self.s1.take().map(|(tcp, _)| tcp);
                At::Host
            }
            (Answer::Lost, At::Returning(_)) => At::Ended,
            (Answer::Lost, at) => at,
        };
        Some(())
    }

    // --- faults ---

    fn fault(&mut self, step: Step, rules: &Rules) -> Option<()> {
        match step {
            KillApplication => {
                self.count_kill(Victim::Application)?;
                self.app.alive = false;
                (self.app.asks, self.response, self.app.at) = (None, None, At::Ended);
                if self.app.answer.take() == Some(Answer::Back) {
                    self.s1 = None;
                    self.resets_peer();
                }
            }
            KillBroker => {
                let job = self.broker.as_ref()?.job;
                self.count_kill(Victim::Broker)?;
                self.broker = None;
                self.app.asks = None;
                if let Some(adapter) = &mut self.adapter {
                    adapter.linked = false;
                }
                match job {
                    // A socket in repair mode closes without sending a packet.
                    Job::Repaired | Job::Removed => self.s1 = None,
                    Job::RepairOff | Job::Vacated => {
                        self.s1 = None;
                        match rules.lingers {
                            true => self.resets_peer(),
                            false if self.peer.sees == Seen::Open => self.peer.sees = Seen::Closed,
                            false => {}
                        }
                    }
                    _ => {}
                }
                self.lose_place();
            }
            KillAdapter => {
                holds(self.adapter.is_some())?;
                self.count_kill(Victim::Adapter)?;
                self.end_adapter();
                if (self.broker.as_ref()).is_some_and(|broker| !broker.has_adapter) {
                    // The eBPF programs of the former broker are detached with the adapter.
                    self.map = Map::Absent;
                }
                self.lose_place();
            }
            Detach => {
                let adapter = self
                    .adapter
                    .as_ref()
                    .filter(|adapter| adapter.linked && adapter.has_place)?;
                holds(
                    adapter.conn.is_none()
                        && adapter.claimed.is_none()
                        && adapter.leaving.is_none(),
                )?;
                holds(self.left.successors[1] > 0 && self.request != Some(Request::Export))?;
                holds(self.owner() == Some(Owner::Application))?;
                let broker = self.broker.as_mut()?;
                broker.has_adapter = false;
                broker.entry.as_mut()?.parted = true;
                self.map = Map::Hold;
                self.end_adapter();
            }
            NextBroker => {
                holds(self.broker.is_none() && self.left.successors[0] > 0)?;
                self.left.successors[0] -= 1;
                self.broker = Some(Broker::new(false));
                if self.adapter.is_none() {
                    self.map = Map::Absent;
                }
            }
            _ => {
                holds(self.adapter.is_none() && self.left.successors[1] > 0)?;
                let broker = self.broker.as_mut().filter(|broker| !broker.has_adapter)?;
                self.left.successors[1] -= 1;
                broker.has_adapter = true;
                self.adapter = Some(Adapter::new());
            }
        }
        Some(())
    }

    fn count_kill(&mut self, victim: Victim) -> Option<()> {
        holds(victim != Victim::Application || self.app.alive)?;
        let kills = &mut self.left.kills[victim as usize];
        holds(*kills > 0 && self.left.most_kills > 0)?;
        *kills -= 1;
        self.left.most_kills -= 1;
        if self.first.is_none() {
            self.first = Some((victim, self.stage()));
        }
        Some(())
    }

    fn end_adapter(&mut self) {
        self.adapter = None;
        self.request = None;
        self.app.cut |= matches!(self.app.at, At::HandingOff(_) | At::Adapter | At::Restoring);
    }

    /// Loses the place if neither broker nor adapter has its memory any more.
    fn lose_place(&mut self) {
        let is_kept = self
            .broker
            .as_ref()
            .is_some_and(|broker| broker.entry.is_some())
            || self
                .adapter
                .as_ref()
                .is_some_and(|adapter| adapter.has_place);
        if !is_kept && self.place.take().is_some() {
            self.lost = true;
            self.forgotten = self.app.at == At::Ended;
        }
    }

    /// Returns where the connection is.
    fn stage(&self) -> &'static str {
        let job = self.broker.as_ref().map_or(Job::Idle, |broker| broker.job);
        let adapter = self.adapter.as_ref();
        match (job, self.app.at) {
            (Job::Captured, _) => "TAKE: map entry inserted",
            (Job::Read(_), _) => "TAKE: state read",
            (Job::Killed(_), _) => "TAKE: socket closed",
            (Job::Claimed(_), _) => "GIVE_BACK: claimed",
            (Job::Repaired, _) => "GIVE_BACK: repaired",
            (Job::Removed, _) => "GIVE_BACK: map entry removed",
            (Job::RepairOff, _) => "GIVE_BACK: repair mode left",
            (Job::Vacated, _) => "GIVE_BACK: place free",
            (Job::ResetClaimed | Job::ResetRemoved | Job::ResetAsked, _) => "reset",
            (Job::Idle, _) if self.app.answer == Some(Answer::Back) => "GIVE_BACK: answered",
            (Job::Idle, At::Host | At::Ended | At::Doubt) => "in the kernel",
            (Job::Idle, At::Taking) => match self.app.answer {
                Some(Answer::Taken(_)) => "TAKE: answered",
                _ => "in the kernel",
            },
            (Job::Idle, At::Held(_)) => "TAKE: answered",
            (Job::Idle, At::HandingOff(_)) => match adapter {
                Some(it) if it.claimed.is_some() => "IMPORT: claimed",
                Some(it) if it.conn.is_some() && it.dirty != 0 => "IMPORT: connection made",
                Some(it) if it.conn.is_some() => "IMPORT: recorded",
                _ => "IMPORT: asked",
            },
            (Job::Idle, At::Adapter | At::Restoring) => match (adapter, self.place.as_ref()) {
                (Some(it), Some(place)) if it.leaving.is_some() => match place.owner {
                    Owner::Adapter => "EXPORT: taken out",
                    _ => "EXPORT: place passed",
                },
                (Some(it), _) if it.conn.is_none() => "EXPORT: state given",
                (
                    _,
                    Some(Place {
                        record: Written::Complete(_),
                        ..
                    }),
                ) if self.is_rest() => "on the adapter, at rest",
                _ => "on the adapter, data under way",
            },
            (Job::Idle, At::Back(_) | At::Returning(_)) => "GIVE_BACK: asked",
        }
    }

    fn is_rest(&self) -> bool {
        let conn = self.adapter.as_ref().and_then(|it| it.conn);
        conn.is_some_and(|conn| {
            let peer = &self.peer;
            (conn.received, conn.read, conn.written) == (peer.asked, self.app.read, self.app.wrote)
                && conn.written == peer.got
                && conn.received == peer.acknowledged
                && conn.read == conn.received
        })
    }
}
