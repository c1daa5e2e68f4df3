//! The memory in which an adapter records the state of its connections for the broker. The broker creates it, and it survives the adapter.
#![allow(unsafe_code)]

use super::record::{Data, Record, WORDS};
use crate::port::Mapping;
use baton_wire::{Endpoint, Flow};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of connections of an adapter.
pub(super) const CAPACITY: usize = 65_536;

/// These seals prevent both sides from changing the size and the seals.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Value of `closed` when the adapter is shutting down.
pub(super) const CLOSED_BY_ADAPTER: u32 = 2;

/// An upper bound for the number of variants of `Owner`.
const OWNERS: u32 = 8;

/// Two addresses of four words each, and a word with both ports.
const FLOW_WORDS: usize = 9;

/// Layout of the memory: only atomic integers, for which all bit patterns are valid.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Table {
    /// Number of connections taken out of the kernel so far. Their places are in `coming`, a ring.
    pub(super) taken: AtomicU32,
    /// Key with which broker and adapter seal states that pass through applications ([`super::seal`]).
    pub(super) key: [AtomicU64; 2],
    /// If not 0, all connections must go back to the kernel: by command, or because the adapter is shutting down ([`CLOSED_BY_ADAPTER`]).
    pub(super) closed: AtomicU32,
    /// After `closed` is set, the number of connections still on the adapter. Larger than any possible number until the adapter has set it.
    pub(super) on_adapter: AtomicU64,
    /// The broker's counters.
    pub(super) counters: [AtomicU64; 8],
    coming: [AtomicU32; CAPACITY],
    pub(super) places: [Place; CAPACITY],
    /// Data of the connection at each place. Pages are only allocated once they are used.
    data: [Data; CAPACITY],
}

/// Owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Nobody: the place is free.
    Nobody,
    /// The application, which has the connection's state and hands it to the adapter or back to the kernel.
    Application,
    /// The adapter.
    Adapter,
    /// Nobody: the connection has ended on the adapter.
    Over,
    /// The broker, which is putting the connection back into the kernel.
    Broker,
}

/// Progress of a connection since it left the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The adapter has not given the connection back.
    Taken,
    /// The adapter has given the connection back to its application.
    Released,
    /// The connection is in TIME-WAIT on the adapter, and nobody may continue it.
    Finished,
}

/// A place in the table: a slot for one connection at a time.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Place {
    /// The owner in the low bits, and above it the number of the connection among all that have had this place.
    owner: AtomicU32,
    /// When the application got the connection, on the clock of [`now_us`].
    since_us: AtomicU32,
    /// User of the application that took the connection out of the kernel.
    user: AtomicU32,
    /// When the adapter got the connection, on the clock of [`now_us`].
    arrived_us: AtomicU32,
    /// The stage, with [`IS_WIDE`] if the application's socket is an IPv6 socket.
    stage: AtomicU32,
    flow: [AtomicU32; FLOW_WORDS],
    pub(crate) record: Record,
}

/// Bit of a place's stage: the application's socket is an IPv6 socket.
const IS_WIDE: u32 = 1 << 8;

impl Place {
    /// Returns the connection's number among those that have had the place, and its owner.
    pub(crate) fn owner(&self) -> (u32, Owner) {
        let word = self.owner.load(Ordering::Acquire);
        let owner = match word % OWNERS {
            1 => Owner::Application,
            2 => Owner::Adapter,
            3 => Owner::Over,
            4 => Owner::Broker,
            _ => Owner::Nobody,
        };
        (word / OWNERS, owner)
    }

    /// Assigns the free place to a connection that an application of `user` has the broker take out of the kernel. `is_wide` says whether
    /// its socket is an IPv6 socket. Returns the connection's number.
    pub(crate) fn occupy(&self, flow: &Flow, user: u32, is_wide: bool) -> u32 {
        let addresses = [flow.local.addr, flow.remote.addr].map(|addr| match addr {
            IpAddr::V4(addr) => addr.to_ipv6_mapped().to_bits(),
            IpAddr::V6(addr) => addr.to_bits(),
        });
        let ports = u32::from(flow.local.port) << 16 | u32::from(flow.remote.port);
        let word = |at: usize| match at {
            0..8 => (addresses[at / 4] >> (32 * (at % 4))) as u32,
            _ => ports,
        };
        for (at, place) in self.flow.iter().enumerate() {
            place.store(word(at), Ordering::Relaxed);
        }
        self.user.store(user, Ordering::Relaxed);
        let is_wide = if is_wide { IS_WIDE } else { 0 };
        let stage = Stage::Taken as u32 | is_wide;
        self.stage.store(stage, Ordering::Release);
        self.record.reset(None);
        self.since_us.store(now_us(), Ordering::Relaxed);
        let (number, _) = self.owner();
        self.set(number, Owner::Application);
        number
    }

    /// Frees the place for another connection.
    pub(crate) fn vacate(&self, number: u32) {
        self.set(number.wrapping_add(1), Owner::Nobody);
    }

    fn set(&self, number: u32, owner: Owner) {
        self.owner.store(word_of(number, owner), Ordering::Release);
    }

    /// Changes the owner of the connection. Returns false if the connection has left the place, or `from` does not own it.
    pub(crate) fn pass(&self, number: u32, from: Owner, to: Owner) -> bool {
        match to {
            Owner::Application => self.since_us.store(now_us(), Ordering::Relaxed),
            Owner::Adapter => self.arrived_us.store(now_us(), Ordering::Relaxed),
            _ => {}
        }
        let (before, after) = (word_of(number, from), word_of(number, to));
        let passed =
            self.owner
                .compare_exchange(before, after, Ordering::AcqRel, Ordering::Relaxed);
        passed.is_ok()
    }

    /// Returns how long the application has had the connection in ms; meaningless after an hour.
    pub(crate) fn age_ms(&self) -> u32 {
        self.age_us() / 1000
    }

    /// Returns how long the application has had the connection in microseconds.
    pub(super) fn age_us(&self) -> u32 {
        now_us().wrapping_sub(self.since_us.load(Ordering::Relaxed))
    }

    /// Returns when the adapter got the connection, on the clock of [`now_us`].
    pub(super) fn arrived_us(&self) -> u32 {
        self.arrived_us.load(Ordering::Relaxed)
    }

    /// Returns the user of the application that took the connection out of the kernel.
    pub(crate) fn user(&self) -> u32 {
        self.user.load(Ordering::Relaxed)
    }

    /// Returns whether the application's socket is an IPv6 socket.
    pub(super) fn is_wide(&self) -> bool {
        self.stage.load(Ordering::Relaxed) & IS_WIDE != 0
    }

    /// Returns the stage of the connection.
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) & !IS_WIDE {
            0 => Stage::Taken,
            1 => Stage::Released,
            _ => Stage::Finished,
        }
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        let is_wide = self.stage.load(Ordering::Relaxed) & IS_WIDE;
        self.stage.store(stage as u32 | is_wide, Ordering::Release);
    }

    /// Returns the flow of the connection.
    pub(crate) fn flow(&self) -> Flow {
        let word = |at: usize| self.flow[at].load(Ordering::Relaxed);
        let addr = |first: usize| {
            let bits = (0..4).map(|at| u128::from(word(first + at)) << (32 * at));
            IpAddr::V6(Ipv6Addr::from_bits(bits.sum())).to_canonical()
        };
        let ports = word(8);
        Flow {
            local: Endpoint::new(addr(0), (ports >> 16) as u16),
            remote: Endpoint::new(addr(4), ports as u16),
        }
    }
}

fn word_of(number: u32, owner: Owner) -> u32 {
    number.wrapping_mul(OWNERS) + owner as u32
}

impl Table {
    /// Announces a captured connection to the adapter.
    pub(crate) fn announce(&self, place: u32) {
        let taken = self.taken.load(Ordering::Relaxed);
        self.coming[taken as usize % CAPACITY].store(place, Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
    }

    /// Calls `each` with the place of each connection announced since `seen`, or with all places if the ring was too short.
    pub(crate) fn news(&self, seen: &mut u32, mut each: impl FnMut(u32)) {
        let taken = self.taken.load(Ordering::Acquire);
        let new = taken.wrapping_sub(std::mem::replace(seen, taken)) as usize;
        match new {
            0..CAPACITY => {
                for at in (0..new as u32).rev() {
                    let at = taken.wrapping_sub(at + 1) as usize % CAPACITY;
                    each(self.coming[at].load(Ordering::Relaxed));
                }
            }
            _ => (0..CAPACITY as u32).for_each(each),
        }
    }

    /// Returns the place with this number, if it exists.
    pub(crate) fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(number as usize)
    }

    /// Returns the data of the connection at a place.
    pub(crate) fn data(&self, number: u32) -> &Data {
        &self.data[number as usize]
    }
}

/// The memory and its mapping.
#[derive(Debug)]
pub(crate) struct Memory {
    file: OwnedFd,
    mapping: Mapping,
}

// SAFETY: the content is only accessed as atomic integers.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates memory for an adapter that attaches.
    ///
    /// # Errors
    /// The system has no memory left.
    pub(crate) fn create() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("baton-connections", flags)?;
        ftruncate(&file, size_of::<Table>() as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        let memory = Self::map(file)?;
        memory.on_adapter.store(u64::MAX, Ordering::Relaxed);
        for word in &memory.key {
            let mut bytes = [0; 8];
            getrandom(&mut bytes[..], GetRandomFlags::empty())?;
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        Ok(memory)
    }

    /// Maps memory that a broker has created.
    ///
    /// # Errors
    /// The file is not such memory, or there is no address space for it.
    pub(super) fn open(file: OwnedFd) -> io::Result<Self> {
        let is_sound = fcntl_get_seals(&file)?.contains(SEALS)
            && fstat(&file)?.st_size as u64 == size_of::<Table>() as u64;
        match is_sound {
            true => Self::map(file),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn map(file: OwnedFd) -> io::Result<Self> {
        let mapping = Mapping::of_file(file.as_fd(), size_of::<Table>())?;
        Ok(Self { file, mapping })
    }
}

impl Deref for Memory {
    type Target = Table;

    fn deref(&self) -> &Table {
        // SAFETY: the mapping is as long as a table, is page-aligned, and lives as long as `self`. A table consists of atomic integers,
        // which both processes may change and for which all bit patterns are valid.
        unsafe { &*self.mapping.at(0, size_of::<Table>()).cast() }
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns the system's monotonic clock, which all processes share, in microseconds. Wraps around after 71 minutes.
pub(super) fn now_us() -> u32 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec.wrapping_mul(1_000_000) + now.tv_nsec / 1000) as u32
}

/// Returns the clock of [`now_us`] in ms.
pub(crate) fn now_ms() -> u32 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec.wrapping_mul(1000) + now.tv_nsec / 1_000_000) as u32
}

const _: () = assert!(size_of::<Record>() == 4 * (1 + WORDS) && size_of::<Place>() == 128);

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(addr: IpAddr) -> Flow {
        Flow {
            local: Endpoint::new(addr, 443),
            remote: Endpoint::new([192, 0, 2, 9].into(), 50_000),
        }
    }

    #[test]
    fn both_ends_see_the_owner_of_a_connection() {
        let broker = Memory::create().expect("memory");
        let copy = broker.file.try_clone().expect("a descriptor");
        let adapter = Memory::open(copy).expect("it is the broker's");
        for addr in [[10, 0, 0, 1].into(), Ipv6Addr::LOCALHOST.into()] {
            let flow = flow(addr);
            let number = broker.places[7].occupy(&flow, 1000, false);
            broker.announce(7);
            let place = adapter.place(7).expect("it is one");
            assert_eq!(
                (place.flow(), place.owner(), place.user()),
                (flow, (number, Owner::Application), 1000)
            );
            assert!(place.pass(number, Owner::Application, Owner::Adapter));
            assert_eq!(broker.places[7].owner(), (number, Owner::Adapter));
            broker.places[7].vacate(number);
            assert!(
                !place.pass(number, Owner::Adapter, Owner::Over),
                "it is gone"
            );
            assert_eq!(place.owner().1, Owner::Nobody);
        }
        assert!(adapter.place(CAPACITY as u32).is_none());
    }

    #[test]
    fn an_adapter_learns_of_all_connections_however_late_it_looks() {
        let memory = Memory::create().expect("memory");
        let mut seen = 0;
        let mut news = |expected: Vec<u32>| {
            let mut heard = Vec::new();
            memory.news(&mut seen, |place| heard.push(place));
            assert_eq!(heard, expected);
        };
        news(vec![]);
        [3, 9, 3].iter().for_each(|place| memory.announce(*place));
        news(vec![3, 9, 3]);
        (0..CAPACITY as u32 + 1).for_each(|_| memory.announce(5));
        news((0..CAPACITY as u32).collect());
        news(vec![]);
    }

    #[test]
    fn memory_without_seals_is_refused() {
        let file = memfd_create("other", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let file = file.expect("memory");
        ftruncate(&file, size_of::<Table>() as u64).expect("memory");
        assert!(Memory::open(file).is_err(), "it may become shorter");
    }
}
