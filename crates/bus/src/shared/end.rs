//! One side of the link: the ring that it fills, the ring that it empties, and its sleep.

use super::atomic::{Ordering, fence};
use super::consumer::Consumer;
use super::memory::{Attention, SharedMemory, SharedRing, Side};
use super::producer::Producer;
use crate::descriptor::Descriptor;
use crate::link::Violation;

/// What became of descriptors that were put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the other side may sleep"]
pub struct Put {
    /// How many the other side had room for, whole entries.
    pub taken: usize,
    /// The other side sleeps: its doorbell is to be rung.
    pub ring: bool,
}

/// One side's end of the two rings.
///
/// Order of calls: [`End::put`] and [`End::get`] at will. Before the side sleeps, [`End::prepare_to_sleep`]; only if that says so it
/// may sleep, until its doorbell rings or it has something else to do; then [`End::awake`] before anything else.
///
/// After a [`Violation`] it is of no use any more.
#[derive(Debug)]
pub struct End<M> {
    memory: M,
    side: Side,
    pub(super) producer: Producer,
    pub(super) consumer: Consumer,
    /// What nobody waits for does not wake this side.
    masked: bool,
    /// What was put last the other side need not have noticed.
    unnoticed: bool,
}

impl<M: SharedMemory> End<M> {
    /// The end of `side`, of memory that is still all zeros, but for what the other side has put already.
    ///
    /// Panics when the number of slots of a ring is no power of two.
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
        }
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Puts whole entries into the ring to the other side, which learns of all of them at once. What finds no room is to be put again.
    ///
    /// # Errors
    /// The other side's index is wrong.
    pub fn put(&mut self, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        self.put_for(Attention::ENTRIES, descriptors)
    }

    /// The same for entries that nobody waits for: a side that [masks them](End::mask_lazy) is not woken for them, and finds them when
    /// something else wakes it.
    ///
    /// # Errors
    /// The other side's index is wrong.
    pub fn put_lazily(&mut self, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        self.put_for(Attention::LAZY, descriptors)
    }

    fn put_for(&mut self, what: u32, descriptors: &[Descriptor]) -> Result<Put, Violation> {
        let ring = SharedRing::new(&self.memory, self.side);
        let taken = self.producer.put(&ring, descriptors)?;
        // A full ring is waited for, whatever is in it.
        let is_short = self.producer.is_short();
        let what = if is_short { Attention::ENTRIES } else { what };
        let is_news = taken > 0 || is_short && self.unnoticed;
        if is_news {
            self.unnoticed = what == Attention::LAZY;
        }
        let ring = is_news && self.must_ring(what);
        Ok(Put { taken, ring })
    }

    /// Appends entries that the other side has put, whole ones, at most `most` descriptors if the first entry is not longer. True
    /// when the other side sleeps and waits for room: its doorbell is to be rung.
    ///
    /// # Errors
    /// The other side's index is wrong, or it has put an entry that is not whole. Nothing is appended then.
    #[must_use = "the other side may sleep"]
    pub fn get(
        &mut self,
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side.other());
        let taken = self.consumer.get(&ring, most, descriptors)?;
        // Whoever waits for room is not woken for a little of it: the rest is going to be taken as well, and wakes it.
        let roomy = 2 * self.consumer.waiting() <= ring.depth();
        Ok(taken > 0 && roomy && self.must_ring(Attention::ROOM))
    }

    /// Whether there is something to get, or, when the last put fell short, room to go on. This is what one looks at while one spins.
    ///
    /// # Errors
    /// An index of the other side is wrong.
    pub fn has_news(&mut self) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side.other());
        let has_entries = self.consumer.has_entries(ring.indices(), ring.depth())?;
        Ok(has_entries || self.has_room_again()?)
    }

    /// Whether the last put fell short and there is room to go on.
    fn has_room_again(&mut self) -> Result<bool, Violation> {
        let ring = SharedRing::new(&self.memory, self.side);
        Ok(self.producer.is_short() && self.producer.has_more_room(ring.indices())?)
    }

    /// Whether this side sleeps on when something comes that nobody waits for, from the next sleep on.
    pub fn mask_lazy(&mut self, masked: bool) {
        self.masked = masked;
    }

    /// Says that this side is going to sleep until something comes, or, when its last put fell short, until there is room. False
    /// when that is so already: it must not sleep.
    ///
    /// # Errors
    /// An index of the other side is wrong.
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

    /// The same for a side whose last put fell short and that can take nothing before there is room: whatever comes, it sleeps on.
    ///
    /// # Errors
    /// An index of the other side is wrong.
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
        // The word is there before the indices are looked at; the other side does it the other way round.
        fence(Ordering::SeqCst);
        let has_come = has_come(self)?;
        if has_come {
            self.awake();
        }
        Ok(!has_come)
    }

    /// Says that this side is awake. True when the other side has rung, or is about to.
    pub fn awake(&mut self) -> bool {
        self.wait_for(0) == 0
    }

    /// Changes this side's word. Both sides only exchange it, so that all its changes stand in one order, each seeing the one
    /// before: what this side waits for is never undone by a change that the other made for an earlier sleep. Gives what it was.
    fn wait_for(&self, what: u32) -> u32 {
        let own = self.memory.control().attention(self.side);
        own.swap(what, Ordering::Relaxed)
    }

    /// Whether the other side sleeps and waits for `what`, which an index has just told it of.
    fn must_ring(&self, what: u32) -> bool {
        // The index is there before the word is looked at.
        fence(Ordering::SeqCst);
        let other = self.memory.control().attention(self.side.other());
        // Usually nobody sleeps, and a look does not take the line away. Whoever takes the word has to ring, even if
        // the other side has woken up and waits for something else by now.
        other.load(Ordering::Relaxed) & what != 0 && other.swap(0, Ordering::Relaxed) != 0
    }
}
