//! Timers of many connections: a hashed timing wheel (Varghese and Lauck 1987, scheme 6) with exact deadlines.
//!
//! Each connection has at most one entry, for the earliest of its timers. Postponing a timer does not change the wheel:
//! the entry stays early, and when its slot comes up, the wheel reads the connection's real deadline.

use baton_wire::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Width of a slot: a power of two picoseconds, 1.07 ms.
const TICK_SHIFT: u32 = 30;
const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;
const NONE: u32 = u32::MAX;

/// Where an entry is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Slot(u16),
    /// In the heap of the current slot.
    Near,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// When the entry comes up; never later than the connection's deadline.
    due: Time,
    next: u32,
    previous: u32,
    place: Place,
}

const UNLINKED: Link = Link {
    due: Time::NEVER,
    next: NONE,
    previous: NONE,
    place: Place::Nowhere,
};

/// Entries by connection slot.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The slot whose entries were last moved to `near`.
    current: u64,
    heads: Box<[u32]>,
    occupied: [u64; WORDS],
    /// One bit for each word of `occupied` that is not zero.
    occupied_words: u64,
    entries: usize,
    links: Vec<Link>,
    /// Entries of the current slot by exact time. Stale entries are skipped when they come up.
    near: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            current: 0,
            heads: vec![NONE; SLOTS].into(),
            occupied: [0; WORDS],
            occupied_words: 0,
            entries: 0,
            links: Vec::new(),
            near: BinaryHeap::new(),
        }
    }

    /// Width of a slot.
    pub(crate) const fn tick() -> Span {
        Span::from_ps(1 << TICK_SHIFT)
    }

    /// Makes sure that `id` comes up at `deadline` or before.
    #[inline]
    pub(crate) fn schedule(&mut self, now: Time, id: u32, deadline: Time) {
        // Timers are mostly postponed, which leaves the entry as it is.
        if !self.covers(id, deadline) {
            self.bring_forward(now, id, deadline);
        }
    }

    fn bring_forward(&mut self, now: Time, id: u32, deadline: Time) {
        if self.links.len() <= id as usize {
            self.links.resize(id as usize + 1, UNLINKED);
        }
        self.cancel(id);
        if self.entries == 0 {
            self.near.clear();
            self.current = self.current.max(now.as_ps() >> TICK_SHIFT);
        }
        self.insert(id, deadline);
    }

    fn insert(&mut self, id: u32, deadline: Time) {
        self.entries += 1;
        let tick = deadline.as_ps() >> TICK_SHIFT;
        if tick <= self.current {
            self.links[id as usize] = Link {
                due: deadline,
                place: Place::Near,
                ..UNLINKED
            };
            self.near.push(Reverse((deadline, id)));
            return;
        }
        // An entry beyond the horizon comes up at the horizon and is inserted again.
        let tick = tick.min(self.current + SLOTS as u64 - 1);
        let slot = tick as usize % SLOTS;
        let due = deadline.min(Time::from_ps(((tick + 1) << TICK_SHIFT) - 1));
        let next = std::mem::replace(&mut self.heads[slot], id);
        if next != NONE {
            self.links[next as usize].previous = id;
        }
        self.links[id as usize] = Link {
            due,
            next,
            previous: NONE,
            place: Place::Slot(slot as u16),
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.occupied_words |= 1 << (slot / 64);
    }

    /// Forgets the entry of `id`, if it has one.
    pub(crate) fn cancel(&mut self, id: u32) {
        let Some(&link) = self.links.get(id as usize) else {
            return;
        };
        match link.place {
            Place::Nowhere => return,
            Place::Near => {}
            Place::Slot(slot) => {
                if link.next != NONE {
                    self.links[link.next as usize].previous = link.previous;
                }
                if link.previous != NONE {
                    self.links[link.previous as usize].next = link.next;
                } else {
                    self.heads[slot as usize] = link.next;
                    if link.next == NONE {
                        self.mark_empty(slot as usize);
                    }
                }
            }
        }
        self.links[id as usize] = UNLINKED;
        self.entries -= 1;
    }

    fn mark_empty(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.occupied_words &= !(1 << (slot / 64));
        }
    }

    /// The first occupied slot after the current one, as a tick.
    fn next_occupied(&self) -> Option<u64> {
        if self.occupied_words == 0 {
            return None;
        }
        let start = (self.current as usize + 1) % SLOTS;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // Words after this one first, then around to the lower bits of this one.
            let rotated = self.occupied_words.rotate_right(word as u32 + 1);
            let found = (word + 1 + rotated.trailing_zeros() as usize) % WORDS;
            found * 64 + self.occupied[found].trailing_zeros() as usize
        };
        let ahead = (slot + SLOTS - start) % SLOTS;
        Some(self.current + 1 + ahead as u64)
    }

    /// When [`Wheel::pop_due`] must be called next. May be early, never late.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        let near = self.near.peek().map(|Reverse((due, _))| *due);
        if near.is_some() {
            return near;
        }
        self.next_occupied()
            .map(|tick| Time::from_ps(tick << TICK_SHIFT))
    }

    /// Takes one entry that is due at `now`. `deadline_of` returns a connection's real deadline.
    pub(crate) fn pop_due(&mut self, now: Time, deadline_of: impl Fn(u32) -> Time) -> Option<u32> {
        loop {
            while let Some(&Reverse((due, id))) = self.near.peek() {
                if due > now {
                    return None;
                }
                self.near.pop();
                let link = self.links[id as usize];
                if link.place == Place::Near && link.due == due {
                    self.cancel(id);
                    return Some(id);
                }
            }
            let tick = self
                .next_occupied()
                .filter(|tick| tick << TICK_SHIFT <= now.as_ps())?;
            self.pour(tick, &deadline_of);
        }
    }

    /// Moves the entries of a slot to `near`, or to the slots of their real deadlines.
    fn pour(&mut self, tick: u64, deadline_of: impl Fn(u32) -> Time) {
        self.current = tick;
        let slot = tick as usize % SLOTS;
        let mut id = std::mem::replace(&mut self.heads[slot], NONE);
        self.mark_empty(slot);
        while id != NONE {
            let next = self.links[id as usize].next;
            self.links[id as usize] = UNLINKED;
            self.entries -= 1;
            let deadline = deadline_of(id);
            if deadline != Time::NEVER {
                self.insert(id, deadline);
            }
            id = next;
        }
    }

    /// Reports whether `id` comes up at `deadline` or before.
    pub(crate) fn covers(&self, id: u32, deadline: Time) -> bool {
        deadline == Time::NEVER
            || self
                .links
                .get(id as usize)
                .is_some_and(|link| link.due <= deadline)
    }

    /// Asserts the wheel's invariants.
    pub(crate) fn check(&self) {
        for (word, &bits) in self.occupied.iter().enumerate() {
            let marked = self.occupied_words & (1 << word) != 0;
            assert_eq!(marked, bits != 0, "occupied words are marked");
        }
        let mut linked = 0;
        for slot in self.occupied_slots() {
            let mut id = self.heads[slot];
            assert_ne!(id, NONE, "marked slots are occupied");
            let mut previous = NONE;
            while id != NONE {
                let link = self.links[id as usize];
                assert_eq!(link.previous, previous, "links go both ways");
                assert_eq!(
                    link.place,
                    Place::Slot(slot as u16),
                    "an entry knows its slot"
                );
                linked += 1;
                previous = id;
                id = link.next;
            }
        }
        let near = self
            .links
            .iter()
            .filter(|link| link.place == Place::Near)
            .count();
        assert_eq!(linked + near, self.entries, "entries are counted");
    }

    fn occupied_slots(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self
            .occupied
            .iter()
            .enumerate()
            .filter(|(_, bits)| **bits != 0);
        words.flat_map(|(word, &bits)| {
            let set = (0..64).filter(move |bit| bits & (1 << bit) != 0);
            set.map(move |bit| word * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests;
