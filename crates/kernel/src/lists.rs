//! Linked lists of the kernel's structures, and hash tables whose chains are such lists. Changing a list touches the neighbours of the
//! changed structure, which were last used long ago.

use baton_wire::Flow;
use std::net::IpAddr;

const NONE: u32 = u32::MAX;

/// A list of structures, identified by number, oldest first.
#[derive(Debug)]
pub(crate) struct List {
    /// Neighbours of each structure that is in the list.
    links: Vec<Option<Links>>,
    latest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            latest: NONE,
        }
    }
}

impl List {
    /// Reports whether a structure is in the list.
    pub fn contains(&self, one: u32) -> bool {
        self.links.get(one as usize).is_some_and(Option::is_some)
    }

    /// Moves a structure to the end of the list, or adds it there. Calls `touched` for every other structure that changes.
    pub fn push(&mut self, one: u32, mut touched: impl FnMut(u32)) {
        if self.latest == one {
            return;
        }
        self.remove(one, &mut touched);
        let index = one as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, None);
        }
        let older = self.latest;
        self.set_newer(older, one, &mut touched);
        self.links[index] = Some(Links { older, newer: NONE });
        self.latest = one;
    }

    /// Removes a structure if it is in the list. Calls `touched` for every other structure that changes.
    pub fn remove(&mut self, one: u32, mut touched: impl FnMut(u32)) {
        let taken = self.links.get_mut(one as usize).and_then(Option::take);
        let Some(Links { older, newer }) = taken else {
            return;
        };
        self.set_newer(older, newer, &mut touched);
        match self.links.get_mut(newer as usize).and_then(Option::as_mut) {
            Some(links) => {
                links.older = older;
                touched(newer);
            }
            None => self.latest = older,
        }
    }

    fn set_newer(&mut self, one: u32, newer: u32, mut touched: impl FnMut(u32)) {
        if let Some(links) = self.links.get_mut(one as usize).and_then(Option::as_mut) {
            links.newer = newer;
            touched(one);
        }
    }
}

/// A hash table of fixed size whose chains hold structures, identified by number.
#[derive(Debug)]
pub(crate) struct Chains {
    /// Structures of each bucket, oldest first.
    chains: Vec<Vec<u32>>,
    /// Bucket of each structure, or [`NONE`] if the structure is not in the table.
    bucket_of: Vec<u32>,
}

impl Chains {
    /// Creates a table with `buckets` buckets, at least one.
    pub fn new(buckets: u32) -> Self {
        Self {
            chains: vec![Vec::new(); buckets.max(1) as usize],
            bucket_of: Vec::new(),
        }
    }

    /// Returns the bucket of a connection: FreeBSD's `INP_PCBHASH`, but modulo any number of buckets.
    pub fn bucket(&self, flow: &Flow) -> u32 {
        self.bucket_by(folded(flow.remote.addr), flow.local.port ^ flow.remote.port)
    }

    /// Returns the bucket of a socket that listens at a port, on all addresses and for all peers.
    pub fn bucket_of_listener(&self, port: u16) -> u32 {
        self.bucket_by(0, port)
    }

    fn bucket_by(&self, addr: u32, ports: u16) -> u32 {
        (addr ^ (addr >> 16) ^ u32::from(ports)) % self.chains.len() as u32
    }

    /// Returns the bucket that contains a structure, or `None` if the structure is not in the table.
    pub fn bucket_of(&self, one: u32) -> Option<u32> {
        let bucket = self.bucket_of.get(one as usize).copied();
        bucket.filter(|&bucket| bucket != NONE)
    }

    /// Returns the structures of a bucket, oldest first.
    pub fn chain(&self, bucket: u32) -> &[u32] {
        &self.chains[bucket as usize]
    }

    /// Appends a structure that is in no chain to its bucket. Calls `touched` for its predecessor.
    pub fn push(&mut self, one: u32, bucket: u32, touched: impl FnMut(u32)) {
        let index = one as usize;
        if index >= self.bucket_of.len() {
            self.bucket_of.resize(index + 1, NONE);
        }
        debug_assert_eq!(self.bucket_of[index], NONE, "{one} is in no chain");
        self.bucket_of[index] = bucket;
        let chain = &mut self.chains[bucket as usize];
        chain.last().copied().into_iter().for_each(touched);
        chain.push(one);
    }

    /// Removes a structure and returns its bucket, or returns `None` if it is not in the table. Calls `touched` for its neighbours.
    pub fn remove(&mut self, one: u32, touched: impl FnMut(u32)) -> Option<u32> {
        let bucket = self.bucket_of(one)?;
        self.bucket_of[one as usize] = NONE;
        let chain = &mut self.chains[bucket as usize];
        if let Some(place) = chain.iter().position(|&other| other == one) {
            chain.remove(place);
            let older = place.checked_sub(1).map(|older| chain[older]);
            let newer = chain.get(place).copied();
            older.into_iter().chain(newer).for_each(touched);
        }
        Some(bucket)
    }

    /// Asserts that chains and buckets are consistent.
    pub fn check(&self) {
        let chained: usize = self.chains.iter().map(Vec::len).sum();
        let held = self.bucket_of.iter().filter(|&&bucket| bucket != NONE);
        assert_eq!(chained, held.count(), "each structure is in one chain");
        for (bucket, chain) in self.chains.iter().enumerate() {
            for &one in chain {
                let known = self.bucket_of[one as usize];
                assert_eq!(known, bucket as u32, "{one} knows its chain");
            }
        }
    }
}

/// Folds an address into 32 bits for the hash function.
fn folded(addr: IpAddr) -> u32 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits(),
        IpAddr::V6(addr) => {
            let bits = addr.to_bits();
            (bits ^ (bits >> 32) ^ (bits >> 64) ^ (bits >> 96)) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_the_neighbours_in_the_list() {
        let mut list = List::default();
        let mut touched = Vec::new();
        for one in 0..4 {
            list.push(one, |other| touched.push(other));
        }
        assert_eq!(touched, [0, 1, 2], "each is linked behind the latest");
        touched.clear();
        list.push(1, |other| touched.push(other));
        assert_eq!(touched, [0, 2, 3]);
        touched.clear();
        list.push(1, |other| touched.push(other));
        assert!(touched.is_empty(), "the latest stays where it is");
        list.remove(2, |other| touched.push(other));
        assert_eq!(touched, [0, 3]);
        assert!(list.contains(1) && !list.contains(2));
    }
}
