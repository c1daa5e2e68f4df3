//! The optimal policy, which knows the future.

use crate::bits::OrderedSet;

/// The maximum number of hits of any policy in a cache of equal slots where every hit is worth the same: Belady's MIN ("A study of
/// replacement algorithms for a virtual-storage computer", IBM Systems Journal 1966), in a version that may also bypass the cache, as
/// admission policies do.
///
/// This does not simulate a cache. For a block to be a hit, the cache must keep it from its previous reference to this one, which is an
/// interval of time. A set of intervals is feasible if nowhere more than `slots` overlap. Taking intervals in the order of their ends, each
/// that is still feasible, yields the greatest number of them (as in the OPTgen of Jain and Lin, "Back to the future: leveraging Belady's
/// algorithm for improved cache replacement", ISCA 2016).
///
/// Let `M(t)` be the largest overlap at `t` or later. `M` never grows with `t` and ends at 0, so the set of times after which it falls
/// describes it. Taking the interval from `a` to now raises `M` by one from `a` on, and before `a` as far back as `M` had the same value:
/// the nearest fall before `a` disappears, and a new one appears before now. Without a fall before `a`, the greatest overlap of all would
/// grow, which is feasible only below `slots`.
#[derive(Clone, Debug)]
pub struct Optimum {
    falls: OrderedSet,
    overlap: u32,
    slots: u32,
}

impl Optimum {
    /// Creates the computation for a cache of `slots` slots and a string of `references` references.
    pub fn new(slots: u32, references: usize) -> Self {
        Self {
            falls: OrderedSet::new(references),
            overlap: 0,
            slots,
        }
    }

    /// Processes reference `now` to a block whose previous reference was `previous`. References are numbered from 0 and must come in
    /// ascending order; the first reference to each block may be omitted. Returns whether the reference is a hit.
    pub fn reference(&mut self, previous: u32, now: u32) -> bool {
        debug_assert!(previous < now, "references come in the order of time");
        if let Some(fall) = self.falls.below(previous as usize) {
            self.falls.remove(fall);
        } else if self.overlap < self.slots {
            self.overlap += 1;
        } else {
            return false;
        }
        self.falls.insert(now as usize - 1);
        true
    }
}
