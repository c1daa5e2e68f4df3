//! Neighbours and the reachability states of RFC 4861 7.3.2, for IPv6 and, as in Linux, for ARP too (RFC 826 says nothing about
//! time; RFC 1122 2.3.2 requires it).

use crate::stats::Stats;
use baton_wire::{Span, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Maximum number of neighbours. When there are more, the least useful one is dropped.
const MOST_NEIGHBOURS: usize = 1024;

/// Maximum number of packets that wait for one neighbour. The oldest is dropped first (RFC 1122 2.3.2.2, RFC 4861 7.2.2).
const MOST_WAITING: usize = 16;

/// Time between requests: RETRANS_TIMER (RFC 4861 10), and no more than one per second (RFC 1122 2.3.2.1).
const RETRANSMIT: Span = Span::from_secs(1);

/// Broadcast or multicast requests before giving up: MAX_MULTICAST_SOLICIT (RFC 4861 10).
const MOST_REQUESTS: u8 = 3;

/// Requests to a known Ethernet address before giving up: MAX_UNICAST_SOLICIT (RFC 4861 10).
const MOST_PROBES: u8 = 3;

/// Time for TCP to confirm a stale neighbour before it is probed: DELAY_FIRST_PROBE_TIME (RFC 4861 10).
const DELAY_FIRST_PROBE: Span = Span::from_secs(5);

/// Time for which a neighbour that did not answer is not requested again (RFC 1122 2.3.2.1).
const HOLD_DOWN: Span = Span::from_secs(1);

/// Default validity of a confirmation: REACHABLE_TIME (RFC 4861 10).
pub(crate) const REACHABLE_TIME: Span = Span::from_secs(30);

/// Reachability state of a neighbour (RFC 4861 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NeighbourState {
    /// A request was sent, and there is no answer yet.
    Incomplete,
    /// The neighbour was reachable a short time ago.
    Reachable,
    /// The neighbour was reachable before; the next packet starts a check.
    Stale,
    /// A packet was sent, and TCP has some time to confirm the neighbour.
    Delay,
    /// Requests are being sent directly to the neighbour.
    Probe,
    /// The neighbour did not answer.
    Failed,
}

/// A neighbour, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Internet address.
    pub addr: IpAddr,
    /// Ethernet address, if known.
    pub mac: Option<[u8; 6]>,
    /// State.
    pub state: NeighbourState,
    /// The neighbour advertised that it is a router.
    pub router: bool,
    /// Packets that wait for the neighbour.
    pub waiting: usize,
}

/// Result of resolving a neighbour's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// Send to this Ethernet address.
    Known([u8; 6]),
    /// A request is pending; packets may wait.
    Asked,
    /// The neighbour did not answer.
    Failed,
}

/// A request for the owner of `target`, to be sent to `to`, or to all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Solicitation {
    pub(crate) target: IpAddr,
    pub(crate) to: Option<[u8; 6]>,
}

/// A neighbour's advertisement (RFC 4861 4.4). An ARP reply counts as one that overrides, solicited if it was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Advertisement {
    pub(crate) addr: IpAddr,
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) solicited: bool,
    pub(crate) overrides: bool,
    /// `None` if the message does not say whether the neighbour is a router.
    pub(crate) router: Option<bool>,
}

/// Packets whose neighbour became known, and its Ethernet address.
#[derive(Debug, Default)]
pub(crate) struct Released {
    pub(crate) mac: [u8; 6],
    pub(crate) packets: VecDeque<Vec<u8>>,
}

/// A neighbour that did not answer, and the packets that waited for it.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) addr: IpAddr,
    pub(crate) packets: VecDeque<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Entry {
    state: NeighbourState,
    /// All zeros while unknown.
    mac: [u8; 6],
    router: bool,
    /// Time at which the state ends without an event.
    deadline: Time,
    /// Requests since the last answer.
    requests: u8,
    /// When a packet was last sent to the neighbour, or it last advertised itself.
    used: Time,
    waiting: VecDeque<Vec<u8>>,
}

/// All neighbours.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    entries: FxHashMap<IpAddr, Entry>,
    solicitations: VecDeque<Solicitation>,
    reachable_time: Span,
    /// Lower bound of the deadlines of all entries.
    deadline: Time,
}

impl Entry {
    fn new(now: Time, state: NeighbourState, deadline: Time) -> Self {
        Self {
            state,
            mac: [0; 6],
            router: false,
            deadline,
            requests: 0,
            used: now,
            waiting: VecDeque::new(),
        }
    }

    fn knows_mac(&self) -> bool {
        !matches!(
            self.state,
            NeighbourState::Incomplete | NeighbourState::Failed
        )
    }

    fn release(&mut self) -> Released {
        Released {
            mac: self.mac,
            packets: std::mem::take(&mut self.waiting),
        }
    }

    /// Order in which entries are dropped: failed ones first, then stale ones, then the least recently used.
    fn worth(&self) -> (u8, Time) {
        let class = match self.state {
            NeighbourState::Failed => 0,
            NeighbourState::Stale => 1,
            _ => 2,
        };
        (class, self.used)
    }
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        Self {
            entries: FxHashMap::default(),
            solicitations: VecDeque::new(),
            reachable_time: REACHABLE_TIME,
            deadline: Time::NEVER,
        }
    }

    // --- getters ---

    pub(crate) fn iter(&self) -> impl Iterator<Item = Neighbour> + '_ {
        self.entries.iter().map(|(&addr, entry)| Neighbour {
            addr,
            mac: entry.knows_mac().then_some(entry.mac),
            state: entry.state,
            router: entry.router,
            waiting: entry.waiting.len(),
        })
    }

    /// When [`Neighbours::handle_timeouts`] must be called next. May be early.
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Reports whether a request waits to be sent.
    pub(crate) fn solicits(&self) -> bool {
        !self.solicitations.is_empty()
    }

    // --- calls of the interface ---

    /// Resolves `addr` for a packet that is sent now, and requests its Ethernet address if unknown.
    pub(crate) fn resolve(&mut self, now: Time, addr: IpAddr, stats: &mut Stats) -> Resolution {
        let Some(entry) = self.entries.get_mut(&addr) else {
            self.make_room(stats);
            let deadline = now + RETRANSMIT;
            let mut entry = Entry::new(now, NeighbourState::Incomplete, deadline);
            entry.requests = 1;
            self.entries.insert(addr, entry);
            self.solicit(addr, None);
            self.deadline = self.deadline.min(deadline);
            return Resolution::Asked;
        };
        entry.used = now;
        match entry.state {
            NeighbourState::Incomplete => return Resolution::Asked,
            NeighbourState::Failed => return Resolution::Failed,
            NeighbourState::Reachable if entry.deadline > now => {}
            NeighbourState::Reachable | NeighbourState::Stale => {
                entry.state = NeighbourState::Delay;
                entry.deadline = now + DELAY_FIRST_PROBE;
                self.deadline = self.deadline.min(entry.deadline);
            }
            NeighbourState::Delay | NeighbourState::Probe => {}
        }
        Resolution::Known(entry.mac)
    }

    /// Lets a packet wait for a neighbour whose resolution was [`Resolution::Asked`].
    pub(crate) fn wait(&mut self, addr: IpAddr, packet: Vec<u8>, stats: &mut Stats) {
        let Some(entry) = self.entries.get_mut(&addr) else {
            return;
        };
        if entry.waiting.len() == MOST_WAITING {
            entry.waiting.pop_front();
            stats.waiting_dropped += 1;
        }
        entry.waiting.push_back(packet);
    }

    /// Marks `addr` as reachable, since TCP got an acknowledgment of new data through it (RFC 4861 7.3.1).
    pub(crate) fn confirm(&mut self, now: Time, addr: IpAddr) {
        let reachable_time = self.reachable_time;
        if let Some(entry) = self.entries.get_mut(&addr)
            && entry.knows_mac()
        {
            entry.state = NeighbourState::Reachable;
            entry.deadline = now + reachable_time;
            entry.requests = 0;
            self.deadline = self.deadline.min(entry.deadline);
        }
    }

    /// Sets the validity of confirmations, as a router advertised it (RFC 4861 6.3.4).
    pub(crate) fn set_reachable_time(&mut self, time: Span) {
        self.reachable_time = time;
    }

    // --- messages of neighbours ---

    /// Takes the Ethernet address in a neighbour's request, which suffices to answer but does not prove that the neighbour is
    /// reachable (RFC 4861 7.2.3; RFC 826: merge).
    pub(crate) fn heard(
        &mut self,
        now: Time,
        addr: IpAddr,
        mac: [u8; 6],
        add: bool,
        stats: &mut Stats,
    ) -> Released {
        if !self.entries.contains_key(&addr) {
            if !add {
                return Released::default();
            }
            self.make_room(stats);
        }
        let fresh = || Entry::new(now, NeighbourState::Stale, Time::NEVER);
        let entry = self.entries.entry(addr).or_insert_with(fresh);
        if entry.knows_mac() && entry.mac == mac {
            return Released::default();
        }
        entry.mac = mac;
        entry.state = NeighbourState::Stale;
        entry.deadline = Time::NEVER;
        entry.requests = 0;
        entry.release()
    }

    /// Processes a neighbour's advertisement (RFC 4861 7.2.5).
    pub(crate) fn advertised(&mut self, now: Time, said: Advertisement) -> Released {
        let reachable_until = now + self.reachable_time;
        let Some(entry) = self.entries.get_mut(&said.addr) else {
            return Released::default();
        };
        let known = entry.knows_mac();
        let mac = match said.mac {
            Some(mac) => mac,
            None if known => entry.mac,
            None => return Released::default(),
        };
        let changed = !known || mac != entry.mac;
        if known && changed && !said.overrides {
            if entry.state == NeighbourState::Reachable {
                entry.state = NeighbourState::Stale;
                entry.deadline = Time::NEVER;
            }
            return Released::default();
        }
        entry.mac = mac;
        entry.router = said.router.unwrap_or(entry.router);
        entry.used = now;
        if said.solicited {
            entry.state = NeighbourState::Reachable;
            entry.deadline = reachable_until;
            entry.requests = 0;
            self.deadline = self.deadline.min(reachable_until);
        } else if changed {
            entry.state = NeighbourState::Stale;
            entry.deadline = Time::NEVER;
            entry.requests = 0;
        }
        entry.release()
    }

    // --- time ---

    /// Repeats requests, and gives up on neighbours that do not answer.
    pub(crate) fn handle_timeouts(&mut self, now: Time, stats: &mut Stats) -> Vec<Lost> {
        let mut lost = Vec::new();
        if self.deadline > now {
            return lost;
        }
        let mut requests = Vec::new();
        self.entries.retain(|&addr, entry| {
            if entry.deadline > now {
                return true;
            }
            match entry.state {
                NeighbourState::Reachable => {
                    entry.state = NeighbourState::Stale;
                    entry.deadline = Time::NEVER;
                }
                NeighbourState::Delay => {
                    entry.state = NeighbourState::Probe;
                    entry.requests = 0;
                    entry.ask(now, addr, &mut requests);
                }
                NeighbourState::Incomplete if entry.requests < MOST_REQUESTS => {
                    entry.ask(now, addr, &mut requests)
                }
                NeighbourState::Probe if entry.requests < MOST_PROBES => {
                    entry.ask(now, addr, &mut requests)
                }
                NeighbourState::Incomplete | NeighbourState::Probe => {
                    stats.neighbours_failed += 1;
                    stats.waiting_failed += entry.waiting.len() as u64;
                    entry.state = NeighbourState::Failed;
                    entry.deadline = now + HOLD_DOWN;
                    let packets = std::mem::take(&mut entry.waiting);
                    lost.push(Lost { addr, packets });
                }
                NeighbourState::Failed => return false,
                NeighbourState::Stale => unreachable!("being stale does not end by itself"),
            }
            true
        });
        for (target, to) in requests {
            self.solicit(target, to);
        }
        let deadlines = self.entries.values().map(|entry| entry.deadline);
        self.deadline = deadlines.min().unwrap_or(Time::NEVER);
        lost
    }

    /// Returns the next request to be sent.
    pub(crate) fn poll_solicitation(&mut self) -> Option<Solicitation> {
        self.solicitations.pop_front()
    }

    fn solicit(&mut self, target: IpAddr, to: Option<[u8; 6]>) {
        // An equal request may already wait to be sent.
        let request = Solicitation { target, to };
        if !self.solicitations.contains(&request) {
            self.solicitations.push_back(request);
        }
    }

    fn make_room(&mut self, stats: &mut Stats) {
        if self.entries.len() < MOST_NEIGHBOURS {
            return;
        }
        let worth = |(addr, entry): &(&IpAddr, &Entry)| (entry.worth(), **addr);
        let least = self.entries.iter().min_by_key(worth);
        if let Some(addr) = least.map(|(&addr, _)| addr)
            && let Some(entry) = self.entries.remove(&addr)
        {
            stats.neighbours_evicted += 1;
            stats.waiting_dropped += entry.waiting.len() as u64;
        }
    }

    /// Asserts the table's invariants.
    pub(crate) fn check(&self) {
        assert!(
            self.entries.len() <= MOST_NEIGHBOURS,
            "neighbours are limited"
        );
        for (addr, entry) in &self.entries {
            assert!(
                entry.deadline >= self.deadline,
                "{addr}: its deadline is known"
            );
            assert!(
                entry.waiting.len() <= MOST_WAITING,
                "{addr}: what waits is limited"
            );
            let waits = entry.state == NeighbourState::Incomplete;
            assert!(
                waits || entry.waiting.is_empty(),
                "{addr}: packets wait only for an answer"
            );
            assert_eq!(
                entry.state == NeighbourState::Stale,
                entry.deadline == Time::NEVER,
                "{addr}: only being stale lasts"
            );
        }
    }
}

impl Entry {
    /// Adds another request, to the neighbour's Ethernet address if that is known.
    fn ask(&mut self, now: Time, addr: IpAddr, requests: &mut Vec<(IpAddr, Option<[u8; 6]>)>) {
        self.requests += 1;
        self.deadline = now + RETRANSMIT;
        requests.push((addr, self.knows_mac().then_some(self.mac)));
    }
}
