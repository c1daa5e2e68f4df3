//! One side of the link: the ring that it fills, the ring that it empties, and its sleep state.

use super::atomic::{Ordering, fence};
use super::consumer::Consumer;
use super::memory::{Attention, SharedMemory, SharedRing, Side};
use super::producer::Producer;
use crate::descriptor::Descriptor;
use crate::link::Violation;

/// Result of putting descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the other side may sleep"]
pub struct Put {
    /// Number of descriptors that fitted, in whole entries.
    pub taken: usize,
    /// Whether the other side sleeps, so that the caller must ring its doorbell.
    pub ring: bool,
}

/// One side's end of the two rings.
///
/// The caller may call [`End::put`] and [`End::get`] at any time. Before the side sleeps, it must call [`End::prepare_to_sleep`]. Only if
/// that returns true may the side sleep, until its doorbell rings or it has other work; then it must call [`End::awake`] before anything
/// else.
///
/// After a [`Violation`], the end can no longer be used.
#[derive(Debug)]
pub struct End<M> {
    memory: M,
    side: Side,
    pub(super) producer: Producer,
    pub(super) consumer: Consumer,
    /// Whether this side must stay asleep when entries arrive that nobody waits for.
    masked: bool,
    /// Whether the other side may not have noticed the last put.
    unnoticed: bool,
    /// Whether this side's attention word was set for a sleep. The other side may have cleared the word since.
    waits: bool,
    /// Number of rings not yet returned by [`End::take_rings`].
    rings: u32,
}

impl<M: SharedMemory> End<M> {
    /// Creates the end of `side`. The memory must be all zeros, except for entries that the other side has already put.
    ///
    /// Panics if the number of slots of a ring is not a power of two.
    pub fn new(memory: M, side: Side) -> Self {
        assert!(
            memory.ring_depth().is_power_of_two(),
            "indices run through 2^32 and have to meet the same slot again"
        );
        Self {
            memory,
            side,
            producer: Producer::default(),
            consumer: Consumer::default(),
            masked: false,
            unnoticed: false,
            waits: false,
            rings: 0,
        }
    }

    /// Returns the shared memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts whole entries into the ring to the other side, which sees all of them at the same time. The caller must put entries that did
    /// not fit again later.
    ///
    /// # Errors
    /// Fails if the other side's index is wrong.
    pub fn put(&mut self, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        self.put_for(Attention::ENTRIES, descriptors)
    }

    /// Puts entries that nobody waits for: a side that [masks them](End::mask_lazy) is not woken up for them, and finds them when something
    /// else wakes it up.
    ///
    /// # Errors
    /// Fails if the other side's index is wrong.
    pub fn put_lazily(&mut self, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        self.put_for(Attention::LAZY, descriptors)
    }

    fn put_for(&mut self, what: u32, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        let ring = SharedRing::new(&self.memory, self.side);
        let taken = self.producer.put(&ring, descriptors)?;
        // A full ring wakes the other side up, whatever is in it.
        let is_short = self.producer.is_short();
        let what = if is_short { Attention::ENTRIES } else { what };
        let is_news = taken > 0 || is_short && self.unnoticed;
        if is_news {
            self.unnoticed = what == Attention::LAZY;
        }
        let ring = is_news && self.must_ring(what);
        Ok(Put { taken, ring })
    }

    /// Appends whole entries that the other side has put, at most `most` descriptors unless the first entry is longer. Returns true if the
    /// other side sleeps and waits for space: the caller must then ring its doorbell.
    ///
    /// # Errors
    /// Fails if the other side's index is wrong, or if it has put an incomplete entry. Nothing is appended then.
    #[must_use = "the other side may sleep"]
    pub fn get(
        &mut self,
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side.other());
        let taken = self.consumer.get(&ring, most, descriptors)?;
        // A side that waits for space is woken up only once half of the ring is free. The remaining entries will be taken, too.
        let roomy = 2 * self.consumer.waiting() <= ring.depth();
        Ok(taken > 0 && roomy && self.must_ring(Attention::ROOM))
    }

    /// Returns whether there are entries to get or, if the last put fell short, space to continue. A spinning thread polls this.
    ///
    /// # Errors
    /// Fails if an index of the other side is wrong.
    pub fn has_news(&mut self) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side.other());
        let has_entries = self.consumer.has_entries(ring.indices(), ring.depth())?;
        Ok(has_entries || self.has_room_again()?)
    }

    /// Returns whether the last put fell short and there is now space to continue.
    fn has_room_again(&mut self) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side);
        Ok(self.producer.is_short() && self.producer.has_more_room(ring.indices())?)
    }

    /// Sets whether this side stays asleep when entries arrive that nobody waits for, from the next sleep on.
    pub fn mask_lazy(&mut self, masked: bool) {
        self.masked = masked;
    }

    /// Announces that this side is going to sleep until entries arrive or, if its last put fell short, until there is space. Returns false
    /// if that is already so: the side must not sleep.
    ///
    /// # Errors
    /// Fails if an index of the other side is wrong.
    #[must_use = "it must not sleep when there is something to do"]
    pub fn prepare_to_sleep(&mut self) -> Result<bool, Violation> {
        let mut waits_for = Attention::ENTRIES;
        if self.producer.is_short() {
            waits_for |= Attention::ROOM;
        }
        if !self.masked {
            waits_for |= Attention::LAZY;
        }
        self.sleep_unless(waits_for, Self::has_news)
    }

    /// Announces that this side, whose last put fell short, is going to sleep until there is space. Arriving entries do not wake it up,
    /// because it cannot take any before. Returns false if there is space already: the side must not sleep.
    ///
    /// # Errors
    /// Fails if an index of the other side is wrong.
    #[must_use = "it must not sleep when there is something to do"]
    pub fn prepare_to_sleep_for_room(&mut self) -> Result<bool, Violation> {
        self.sleep_unless(Attention::ROOM, Self::has_room_again)
    }

    fn sleep_unless(
        &mut self,
        waits_for: u32,
        has_come: impl FnOnce(&mut Self) -> Result<bool, Violation>,
    ) -> Result<bool, Violation> {
        self.wait_for(waits_for);
        // This side writes the word before it reads the indices; the other side does the reverse.
        fence(Ordering::SeqCst);
        let has_come = has_come(self)?;
        if has_come {
            self.awake();
        }
        Ok(!has_come)
    }

    /// Announces that this side is awake. Returns true if the other side has rung since this side announced its sleep, or is about to.
    pub fn awake(&mut self) -> bool {
        self.wait_for(0)
    }

    /// Returns how often the other side has rung, or is about to, since the last call. The other side may ring even if this side did not
    /// sleep in the end.
    pub fn take_rings(&mut self) -> u32 {
        std::mem::take(&mut self.rings)
    }

    /// Changes this side's attention word. Both sides change the word only by atomic exchange, so that all changes are in one order and
    /// each sees the one before: the other side never undoes a wait by a change meant for an earlier sleep. Returns true if the other side
    /// has taken the previous value.
    fn wait_for(&mut self, what: u32) -> bool {
        let own = self.memory.control().attention(self.side);
        let is_taken = own.swap(what, Ordering::Relaxed) == 0;
        let is_rung = std::mem::replace(&mut self.waits, what != 0) && is_taken;
        self.rings = self.rings.saturating_add(u32::from(is_rung));
        is_rung
    }

    /// Returns whether the other side sleeps and waits for `what`, which an index update has just announced.
    fn must_ring(&self, what: u32) -> bool {
        // The index is written before the word is read.
        fence(Ordering::SeqCst);
        let other = self.memory.control().attention(self.side.other());
        // Usually the other side is awake, and a plain load does not claim the cache line. The side that takes the word must ring, even if
        // the other side has woken up and waits for something else by now.
        other.load(Ordering::Relaxed) & what != 0 && other.swap(0, Ordering::Relaxed) != 0
    }
}
