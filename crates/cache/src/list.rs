//! Doubly linked lists of slots, in which nearly all policies keep their blocks.

/// Marks the absence of a slot.
const NONE: u32 = u32::MAX;

/// The neighbours of every slot in its [`List`]. Several lists may share the links: a slot is in at most one of them.
#[derive(Clone, Debug)]
pub struct Links(Vec<Link>);

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
    linked: bool,
}

impl Links {
    /// Creates links for slots below `slots`, none of which is in a list.
    pub fn new(slots: u32) -> Self {
        let unlinked = Link {
            newer: NONE,
            older: NONE,
            linked: false,
        };
        Self(vec![unlinked; slots as usize])
    }

    /// Returns the slot pushed next after `slot` into its list.
    pub fn newer(&self, slot: u32) -> Option<u32> {
        some(self.0[slot as usize].newer)
    }

    /// Returns whether `slot` is in a list.
    pub fn is_linked(&self, slot: u32) -> bool {
        self.0[slot as usize].linked
    }

    /// Returns the number of slots in all lists together.
    pub fn linked(&self) -> usize {
        self.0.iter().filter(|link| link.linked).count()
    }
}

const fn some(slot: u32) -> Option<u32> {
    if slot == NONE { None } else { Some(slot) }
}

/// Slots in the order in which they were pushed.
#[derive(Clone, Debug)]
pub struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl List {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self {
            newest: NONE,
            oldest: NONE,
            len: 0,
        }
    }

    /// Returns the number of slots.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Returns the slot that was pushed first.
    pub const fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    /// Adds `slot`, which must be in no list, as the newest.
    pub fn push(&mut self, links: &mut Links, slot: u32) {
        debug_assert!(!links.is_linked(slot), "slot {slot} is in a list");
        links.0[slot as usize] = Link {
            newer: NONE,
            older: self.newest,
            linked: true,
        };
        match some(self.newest) {
            Some(newest) => links.0[newest as usize].newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
        self.len += 1;
    }

    /// Removes `slot`, which must be in this list.
    pub fn remove(&mut self, links: &mut Links, slot: u32) {
        let Link {
            newer,
            older,
            linked,
        } = links.0[slot as usize];
        debug_assert!(linked, "slot {slot} is in no list");
        match some(newer) {
            Some(newer) => links.0[newer as usize].older = older,
            None => self.newest = older,
        }
        match some(older) {
            Some(older) => links.0[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        links.0[slot as usize].linked = false;
        self.len -= 1;
    }

    /// Removes and returns the oldest slot.
    pub fn pop_oldest(&mut self, links: &mut Links) -> Option<u32> {
        let slot = self.oldest()?;
        self.remove(links, slot);
        Some(slot)
    }

    /// Makes `slot`, which must be in this list, the newest.
    pub fn renew(&mut self, links: &mut Links, slot: u32) {
        if self.newest != slot {
            self.remove(links, slot);
            self.push(links, slot);
        }
    }

    /// Returns all slots, oldest first.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(self.oldest(), |&slot| links.newer(slot))
    }

    /// Asserts that both directions agree.
    ///
    /// # Panics
    /// Panics if they do not.
    pub fn check(&self, links: &Links) {
        let (mut previous, mut len) = (NONE, 0);
        for slot in self.iter(links) {
            let link = links.0[slot as usize];
            assert!(link.linked, "slot {slot} is in a list but not linked");
            assert_eq!(link.older, previous, "slot {slot} follows another");
            previous = slot;
            len += 1;
            assert!(len <= self.len, "the list is longer than its length says");
        }
        assert_eq!(previous, self.newest, "the last slot is the newest");
        assert_eq!(len, self.len, "the list is as long as its length says");
    }
}
