//! Memory for the data of connections: one limit for a whole stack, shared by users and their connections.
//!
//! Each connection has a block with space for a page of data in each direction, whatever the others hold. Dynamic thresholds divide the
//! rest (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on Networking
//! 6(2), 1998): a user may hold as much as is free, so that a single user stops at half of it and two at a third each; and each
//! direction of a connection may hold a sixteenth of what its user may still take. Windows close as memory gets scarce. An offered
//! window is not taken back; data that a peer sends into it is refused only if the user holds more than twice what is free.

/// Bytes that a connection may hold in one direction, however scarce memory is.
const PAGE: u32 = 4096;
/// Charge for each connection: its state in the engine and above it, and a page for each direction.
const BLOCK: u32 = 4096 + 2 * PAGE;
/// Memory charged for each piece of data besides its bytes: its slot in a queue, its headers, and the overhead of the allocator and
/// of the list of segments in flight.
pub(crate) const PIECE: u32 = 256;
/// Each direction of a connection may hold one part in this many of what its user may still take.
const PART: u64 = 16;

/// Memory that a connection holds, and memory that it may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    /// Bytes charged; 0 if there is no limit.
    bytes: u32,
    /// Index of the connection's user.
    user: u16,
    /// Pages that each direction may hold besides its own.
    pages: u16,
}

impl Charge {
    /// The charge of a connection for which no limit is set.
    pub(crate) const NONE: Self = Self {
        bytes: 0,
        user: 0,
        pages: u16::MAX,
    };

    /// Maximum number of bytes that each direction may hold, which limits writes and windows, or `None` if there is no limit.
    #[inline]
    pub(crate) fn share(self) -> Option<u32> {
        let pages = u32::from(self.pages);
        (self.pages < u16::MAX).then_some(PAGE + pages * PAGE)
    }

    /// Maximum number of received bytes that are kept, if less than an offered window may hold.
    #[inline]
    pub(crate) fn most_received(self) -> Option<u32> {
        (self.pages == 0).then_some(PAGE)
    }
}

/// Memory that a user holds outside of connections: states of connections that arrive or leave.
#[derive(Debug)]
pub struct Holding(Charge);

impl Default for Holding {
    fn default() -> Self {
        Self(Charge::NONE)
    }
}

/// Memory use of a stack's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Limit, bytes.
    pub limit: u64,
    /// Bytes held: blocks, data, and the overhead of storing the data.
    pub held: u64,
    /// Bytes held by the user who holds most.
    pub largest_user: u64,
}

/// A user, whose connections share a limit.
#[derive(Clone, Copy, Debug, Default)]
struct User {
    /// `None` for connections without a user.
    number: Option<u32>,
    held: u64,
    /// Charges that are not 0.
    charges: u32,
    /// Part of `held` that does not belong to connections.
    beside: u64,
}

/// Memory accounting of a stack.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `None`: unlimited.
    limit: Option<u64>,
    held: u64,
    /// Users by the index in charges. The first is for connections without a user.
    users: Vec<User>,
    /// A user may hold too much, so that shares are computed at each segment.
    pub(crate) is_tight: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            limit: None,
            held: 0,
            users: vec![User::default()],
            is_tight: false,
        }
    }

    /// Limits the memory of connections that are added from now on.
    pub(crate) fn limit(&mut self, bytes: u64) {
        self.limit = Some(bytes);
    }

    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    pub(crate) fn usage(&self) -> Option<MemoryUse> {
        let limit = self.limit?;
        let largest_user = self.users.iter().map(|user| user.held).max();
        Some(MemoryUse {
            limit,
            held: self.held,
            largest_user: largest_user.unwrap_or_default(),
        })
    }

    /// Reports whether `user` may have another connection that brings `data` bytes.
    pub(crate) fn has_room(&self, user: Option<u32>, data: usize) -> bool {
        let Some(limit) = self.limit else {
            return true;
        };
        let held = self.users.iter().find(|it| it.number == user);
        let held = held.map_or(0, |user| user.held);
        let free = limit.saturating_sub(self.held);
        free.saturating_sub(held) >= u64::from(BLOCK) + data as u64
    }

    /// Charges a connection for its written and its received bytes.
    #[inline]
    pub(crate) fn charge(&mut self, charge: &mut Charge, written: u32, received: u32) {
        let beyond = written
            .saturating_sub(PAGE)
            .saturating_add(received.saturating_sub(PAGE));
        self.set(charge, beyond.saturating_add(BLOCK));
    }

    fn set(&mut self, charge: &mut Charge, bytes: u32) {
        let Some(limit) = self.limit else { return };
        let user = &mut self.users[usize::from(charge.user)];
        user.charges += u32::from(charge.bytes == 0);
        user.charges -= u32::from(bytes == 0);
        user.held = user.held + u64::from(bytes) - u64::from(charge.bytes);
        self.held = self.held + u64::from(bytes) - u64::from(charge.bytes);
        charge.bytes = bytes;
        // If this is false, no user can hold more than twice what is free.
        self.is_tight = self.held > 2 * limit.saturating_sub(self.held);
        *charge = self.judged(*charge);
    }

    /// Returns the charge with the connection's current share.
    #[inline]
    pub(crate) fn judged(&self, charge: Charge) -> Charge {
        let Some(limit) = self.limit else {
            return charge;
        };
        let held = self.users[usize::from(charge.user)].held;
        let free = limit.saturating_sub(self.held);
        let pages = free.saturating_sub(held) / PART / u64::from(PAGE);
        let least = u16::from(held <= 2 * free);
        let pages = u16::try_from(pages).unwrap_or(u16::MAX).max(least);
        Charge { pages, ..charge }
    }

    /// Releases the charge of a connection that is gone.
    pub(crate) fn release(&mut self, charge: &mut Charge) {
        if charge.bytes > 0 {
            self.set(charge, 0);
        }
    }

    /// Moves a charge to the user with this number, or to no user if there are too many users.
    pub(crate) fn give(&mut self, charge: &mut Charge, number: u32) {
        let bytes = charge.bytes;
        self.release(charge);
        charge.user = self.index_of(number);
        if bytes > 0 {
            self.set(charge, bytes);
        }
    }

    /// Sets the bytes that a user holds outside of connections.
    #[inline]
    pub(crate) fn hold(&mut self, holding: &mut Holding, number: Option<u32>, bytes: u32) {
        let charge = &mut holding.0;
        if self.limit.is_none() || charge.bytes == bytes {
            return;
        }
        if let Some(number) = number.filter(|_| charge.bytes == 0) {
            charge.user = self.index_of(number);
        }
        let beside = &mut self.users[usize::from(charge.user)].beside;
        *beside = *beside + u64::from(bytes) - u64::from(charge.bytes);
        self.set(charge, bytes);
    }

    fn index_of(&mut self, number: u32) -> u16 {
        let number = Some(number);
        let known = self.users.iter().position(|user| user.number == number);
        let unused = || {
            let mut later = self.users.iter().skip(1);
            later.position(|user| user.charges == 0).map(|at| at + 1)
        };
        let index = known.or_else(unused).unwrap_or(self.users.len());
        let Ok(short) = u16::try_from(index) else {
            return 0;
        };
        if index == self.users.len() {
            self.users.push(User::default());
        }
        self.users[index].number = number;
        short
    }

    /// Asserts that these are all charges of connections.
    pub(crate) fn check<'a>(&self, charges: impl Iterator<Item = &'a Charge>) {
        let mut held: Vec<u64> = self.users.iter().map(|user| user.beside).collect();
        for charge in charges {
            held[usize::from(charge.user)] += u64::from(charge.bytes);
        }
        let kept = self.users.iter().map(|user| user.held);
        assert!(
            kept.eq(held.iter().copied()),
            "each user's memory is counted"
        );
        assert_eq!(self.held, held.iter().sum::<u64>(), "memory is counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 << 20;

    /// Lets connections of each user take all they may, in turns, until none may take more. Returns the accounts and all charges.
    fn fill(users: &[u32], connections: usize) -> (Memory, Vec<Charge>) {
        let mut memory = Memory::new();
        memory.limit(LIMIT);
        let mut charges = Vec::new();
        for &user in users {
            for _ in 0..connections {
                let mut charge = Charge::NONE;
                memory.give(&mut charge, user);
                memory.charge(&mut charge, 0, 0);
                charges.push((charge, 0));
            }
        }
        loop {
            let mut grew = false;
            for (charge, written) in &mut charges {
                let may = memory.judged(*charge).share().unwrap_or(u32::MAX);
                let now = *written;
                if may > now {
                    *written = may.min(now + 16_384);
                    grew = true;
                }
                memory.charge(charge, *written, 0);
            }
            if !grew {
                break;
            }
        }
        let charges: Vec<_> = charges.into_iter().map(|(charge, _)| charge).collect();
        memory.check(charges.iter());
        (memory, charges)
    }

    #[test]
    fn one_user_stops_at_half_of_the_memory_and_two_at_a_third_each() {
        for (users, part) in [(&[1][..], 2), (&[1, 2], 3), (&[1, 2, 3], 4)] {
            let (memory, charges) = fill(users, 200);
            let most = LIMIT / part;
            for user in &memory.users[1..] {
                assert!(user.held <= most + most / 10, "{user:?} of {users:?}");
                assert!(user.held >= most - most / 5, "{user:?} of {users:?}");
            }
            let keeps_all = |charge: &Charge| memory.judged(*charge).most_received().is_none();
            assert!(charges.iter().all(keeps_all), "{users:?}");
        }
    }

    #[test]
    fn a_later_user_gets_a_share_of_the_free_memory() {
        let (mut memory, _) = fill(&[1], 500);
        assert!(!memory.has_room(Some(1), 1 << 20));
        assert!(memory.has_room(Some(2), 1 << 20));
        let mut late = Charge::NONE;
        memory.give(&mut late, 2);
        memory.charge(&mut late, 0, 0);
        assert!(late.share() > Some(1 << 19), "{late:?}");
    }

    #[test]
    fn each_connection_may_always_use_a_page() {
        let (mut memory, mut charges) = fill(&[1], 500);
        // Peers may still use the windows that were offered before.
        for charge in &mut charges {
            memory.charge(charge, 0, 1 << 20);
        }
        assert!(memory.is_tight);
        memory.charge(&mut charges[0], 0, 0);
        let least = (Some(PAGE), Some(PAGE));
        assert_eq!((charges[0].share(), charges[0].most_received()), least);
        assert!(!memory.has_room(Some(2), 0));
    }

    #[test]
    fn released_memory_is_free() {
        let (mut memory, mut charges) = fill(&[1, 2], 10);
        for charge in &mut charges {
            memory.release(charge);
        }
        memory.check([].iter());
        assert_eq!(memory.usage().map(|usage| usage.held), Some(0));
        // Indices of users without connections are used again.
        for number in 0..1000 {
            let mut charge = Charge::NONE;
            memory.give(&mut charge, number);
            memory.charge(&mut charge, 0, 0);
            memory.release(&mut charge);
        }
        assert_eq!(memory.users.len(), 3);
    }
}
