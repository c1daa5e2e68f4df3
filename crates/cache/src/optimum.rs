//! The policy that knows the future.

use crate::bits::OrderedSet;

/// The most hits that any policy can have in a cache of equal slots where every hit is worth the same: Belady's MIN
/// ("A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 1966), which may also let a
/// block pass by, as admission policies do.
///
/// No cache is simulated. A block that is to be a hit must be kept from its previous reference to this one, which is an
/// interval of time; a choice of intervals is possible if nowhere more than `slots` overlap. Taking intervals by their
/// ends, each that is still possible, gives the greatest number of them (as in the OPTgen of Jain and Lin, "Back to the
/// future: leveraging Belady's algorithm for improved cache replacement", ISCA 2016).
///
/// Let `M(t)` be the largest overlap at `t` or later. It never grows with `t` and ends at 0, so that it is described by
/// the set of times after which it falls. Taking the interval from `a` to now raises `M` by one from `a` on, and before
/// `a` as far back as `M` was the same: the fall nearest before `a` is filled up, and there is a new one before now.
/// Without a fall before `a`, the greatest overlap of all would grow, which is possible only below `slots`.
#[derive(Clone, Debug)]
pub struct Optimum {
    falls: OrderedSet,
    overlap: u32,
    slots: u32,
}

impl Optimum {
    /// For a cache of `slots` slots and a string of `references` references.
    pub fn new(slots: u32, references: usize) -> Self {
        Self {
            falls: OrderedSet::new(references),
            overlap: 0,
            slots,
        }
    }

    /// Reference `now` is to the block that reference `previous` was to, and to which there was none in between.
    /// References are numbered from 0, come in ascending order, and the first ones to a block may be left out. Returns
    /// whether it is a hit.
    pub fn reference(&mut self, previous: u32, now: u32) -> bool {
        debug_assert!(previous < now, "time goes forward");
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
