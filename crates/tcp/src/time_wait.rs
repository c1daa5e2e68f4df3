//! Connections in TIME-WAIT (RFC 9293 3.6.1). They need no slot and no timer: each is a few words in a queue ordered by expiry, is
//! found by a hash table, and is dropped when later ones enter TIME-WAIT.

use crate::clock::TimestampClock;
use crate::flow_table::hash;
use baton_wire::{Flags, Flow, Header, Options, SeqNr, Span, Time, Timestamps};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use std::collections::VecDeque;

/// Number of expired entries that are dropped when an entry is added: more than one, so that the queue shrinks.
const PURGED_AT_ONCE: usize = 2;

/// The state of a connection that TIME-WAIT keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Remains {
    pub(crate) flow: Flow,
    /// SND.NXT and RCV.NXT, both after the FINs.
    pub(crate) next: SeqNr,
    pub(crate) receive_next: SeqNr,
    /// Window field of the last ACK.
    pub(crate) window: u16,
    /// TS.Recent and the connection's timestamp clock, if timestamps are in use.
    pub(crate) timestamps: Option<(u32, TimestampClock)>,
    /// 2 MSL.
    pub(crate) duration: Span,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    remains: Remains,
    expires: Time,
    /// Replaced by a later entry of the same flow, or reused.
    gone: bool,
}

/// Entries of one duration, in order of expiry. The first has number `first`.
#[derive(Debug)]
struct Queue {
    duration: Span,
    first: u64,
    entries: VecDeque<Entry>,
}

/// Position of an entry: queue, and number in it.
type Position = (u32, u64);

/// All connections in TIME-WAIT of a stack.
#[derive(Debug)]
pub(crate) struct TimeWait {
    /// One for each duration in use: almost always one.
    queues: Vec<Queue>,
    positions: HashTable<Position>,
    key: u64,
}

/// What to do about a segment for a connection in TIME-WAIT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Send this acknowledgment.
    Acknowledge(Header),
    /// Send nothing.
    Ignore,
    /// The segment opens a new incarnation, whose ISN must be beyond this number.
    Reopen { beyond: SeqNr },
}

impl TimeWait {
    pub(crate) fn new(key: u64) -> Self {
        Self {
            queues: Vec::new(),
            positions: HashTable::new(),
            key,
        }
    }

    /// Number of entries, including expired ones that were not dropped yet.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// Reports whether `flow` is in TIME-WAIT.
    pub(crate) fn contains(&self, now: Time, flow: &Flow) -> bool {
        self.get(now, flow).is_some()
    }

    /// All connections in TIME-WAIT, and their remaining time.
    pub(crate) fn entries(&self, now: Time) -> impl Iterator<Item = (Flow, Span)> + '_ {
        let alive = move |entry: &&Entry| !entry.gone && entry.expires > now;
        let entries = self.queues.iter().flat_map(|queue| &queue.entries);
        entries
            .filter(alive)
            .map(move |entry| (entry.remains.flow, entry.expires - now))
    }

    /// Starts TIME-WAIT, or starts it anew.
    pub(crate) fn insert(&mut self, now: Time, remains: Remains) {
        self.remove(&remains.flow);
        self.purge(now);
        let index = self.queue_of(remains.duration);
        let queue = &mut self.queues[index];
        let position = (index as u32, queue.first + queue.entries.len() as u64);
        queue.entries.push_back(Entry {
            remains,
            expires: now + remains.duration,
            gone: false,
        });
        let Self {
            queues,
            positions,
            key,
        } = self;
        let flow = &remains.flow;
        let same = |position: &Position| flow_at(queues, *position) == flow;
        match positions.entry(hash(flow, *key), same, |position| {
            hash(flow_at(queues, *position), *key)
        }) {
            Slot::Occupied(_) => unreachable!("the entry was removed before"),
            Slot::Vacant(slot) => {
                slot.insert(position);
            }
        }
    }

    /// Index of the queue for this duration.
    fn queue_of(&mut self, duration: Span) -> usize {
        self.queues
            .iter()
            .position(|queue| queue.duration == duration)
            .unwrap_or_else(|| {
                self.queues.push(Queue {
                    duration,
                    first: 0,
                    entries: VecDeque::new(),
                });
                self.queues.len() - 1
            })
    }

    fn position(&self, flow: &Flow) -> Option<Position> {
        self.positions
            .find(hash(flow, self.key), |&position| {
                flow_at(&self.queues, position) == flow
            })
            .copied()
    }

    fn get(&self, now: Time, flow: &Flow) -> Option<&Entry> {
        if self.positions.is_empty() {
            return None;
        }
        let entry = entry_at(&self.queues, self.position(flow)?);
        (entry.expires > now).then_some(entry)
    }

    /// Removes `flow`. Returns false if there is no entry for it.
    pub(crate) fn remove(&mut self, flow: &Flow) -> bool {
        let Self {
            queues,
            positions,
            key,
        } = self;
        let Ok(found) = positions.find_entry(hash(flow, *key), |&position| {
            flow_at(queues, position) == flow
        }) else {
            return false;
        };
        let ((queue, number), _) = found.remove();
        let queue = &mut queues[queue as usize];
        queue.entries[(number - queue.first) as usize].gone = true;
        true
    }

    /// Drops some expired entries.
    fn purge(&mut self, now: Time) {
        for index in 0..self.queues.len() {
            for _ in 0..PURGED_AT_ONCE {
                let queue = &mut self.queues[index];
                let Some(&entry) = queue.entries.front() else {
                    break;
                };
                if !entry.gone && entry.expires > now {
                    break;
                }
                if !entry.gone {
                    self.remove(&entry.remains.flow);
                }
                let queue = &mut self.queues[index];
                queue.entries.pop_front();
                queue.first += 1;
            }
        }
    }

    /// Judges a segment (RFC 9293 3.10.7.4; a reset is ignored, RFC 1337 3). Returns `None` if the flow is not in TIME-WAIT.
    /// `listener` is set if a listener would accept a SYN, and says whether it would use timestamps.
    pub(crate) fn handle(
        &mut self,
        now: Time,
        flow: &Flow,
        header: &Header,
        sequence_len: u32,
        listener: Option<bool>,
    ) -> Option<Verdict> {
        let remains = self.get(now, flow)?.remains;
        if header.flags.contains(Flags::RST) {
            return Some(Verdict::Ignore);
        }
        if header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::ACK) {
            // A SYN with a FIN opens no connection.
            if !header.flags.contains(Flags::FIN)
                && listener.is_some_and(|timestamps| remains.are_before(header, timestamps))
            {
                self.remove(flow);
                return Some(Verdict::Reopen {
                    beyond: remains.next,
                });
            }
            return Some(Verdict::Acknowledge(remains.acknowledgment(now)));
        }
        let next = header.seq == remains.receive_next;
        if next && !header.flags.contains(Flags::ACK) {
            return Some(Verdict::Ignore);
        }
        let ends = header.seq + sequence_len == remains.receive_next;
        if ends && header.flags.contains(Flags::FIN | Flags::ACK) {
            // The peer repeats its FIN: the wait starts anew.
            self.insert(now, remains);
        }
        if sequence_len > 0 || !next {
            return Some(Verdict::Acknowledge(remains.acknowledgment(now)));
        }
        Some(Verdict::Ignore)
    }

    /// Asserts the table's invariants.
    pub(crate) fn check(&self) {
        let mut alive = 0;
        for (index, queue) in self.queues.iter().enumerate() {
            let mut previous = Time::ZERO;
            for (offset, entry) in queue.entries.iter().enumerate() {
                assert!(
                    entry.expires >= previous,
                    "TIME-WAIT entries are in order of expiry"
                );
                previous = entry.expires;
                if !entry.gone {
                    alive += 1;
                    let position = (index as u32, queue.first + offset as u64);
                    assert_eq!(
                        self.position(&entry.remains.flow),
                        Some(position),
                        "TIME-WAIT entries are found"
                    );
                }
            }
        }
        assert_eq!(
            alive,
            self.positions.len(),
            "every known TIME-WAIT entry exists"
        );
    }
}

impl Remains {
    /// Reports whether a SYN is beyond everything that the old incarnation can have sent (RFC 6191 2). `timestamps` says whether the new
    /// one would use timestamps.
    fn are_before(&self, syn: &Header, timestamps: bool) -> bool {
        let later = syn.seq.after(self.receive_next);
        let recent = self.timestamps.map(|(recent, _)| recent);
        match (recent, syn.options.timestamps) {
            (Some(recent), Some(arrived)) if timestamps => {
                let distance = arrived.value.wrapping_sub(recent) as i32;
                distance > 0 || (distance == 0 && later)
            }
            (None, Some(_)) => timestamps || later,
            _ => later,
        }
    }

    /// The acknowledgment of the peer's FIN.
    pub(crate) fn acknowledgment(&self, now: Time) -> Header {
        let timestamps = self.timestamps.map(|(recent, clock)| Timestamps {
            value: clock.value(now),
            echo: recent,
        });
        Header {
            seq: self.next,
            ack: self.receive_next,
            flags: Flags::ACK,
            window: self.window,
            options: Options {
                timestamps,
                ..Options::default()
            },
        }
    }
}

fn entry_at(queues: &[Queue], (queue, number): Position) -> &Entry {
    let queue = &queues[queue as usize];
    &queue.entries[(number - queue.first) as usize]
}

fn flow_at(queues: &[Queue], position: Position) -> &Flow {
    &entry_at(queues, position).remains.flow
}
