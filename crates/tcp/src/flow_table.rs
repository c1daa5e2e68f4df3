//! Map from four-tuples to slots. The table stores only slots; the four-tuple is read from the slot's content.

use baton_wire::Flow;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::net::IpAddr;

/// A keyed hash table of slots.
#[derive(Debug)]
pub(crate) struct FlowTable {
    slots: HashTable<u32>,
    /// Prevents attackers from choosing four-tuples that collide.
    key: u64,
    /// The slot found last for a segment, while it is in the table.
    recent: Option<u32>,
}

impl FlowTable {
    pub(crate) fn new(key: u64) -> Self {
        Self {
            slots: HashTable::new(),
            key,
            recent: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of `flow`; `flow_of` returns the four-tuple of a slot.
    pub(crate) fn find<'a>(&self, flow: &Flow, flow_of: impl Fn(u32) -> &'a Flow) -> Option<u32> {
        // An adapter looks up every packet even while the host has all connections.
        if self.slots.is_empty() {
            return None;
        }
        self.slots
            .find(hash(flow, self.key), |&slot| flow_of(slot) == flow)
            .copied()
    }

    /// The slot found last for a segment. It is tried first, because consecutive segments often belong to the same connection.
    pub(crate) fn recent(&self) -> Option<u32> {
        self.recent
    }

    /// The slot of `flow` for a segment, which is remembered as recent.
    pub(crate) fn find_for_segment<'a>(
        &mut self,
        flow: &Flow,
        flow_of: impl Fn(u32) -> &'a Flow,
    ) -> Option<u32> {
        let found = self.find(flow, flow_of);
        self.recent = found.or(self.recent);
        found
    }

    /// Adds a four-tuple that is not in the table.
    pub(crate) fn insert<'a>(&mut self, flow: &Flow, slot: u32, flow_of: impl Fn(u32) -> &'a Flow) {
        let key = self.key;
        match self.slots.entry(
            hash(flow, key),
            |&known| flow_of(known) == flow,
            |&known| hash(flow_of(known), key),
        ) {
            Entry::Occupied(_) => unreachable!("a four-tuple names one connection"),
            Entry::Vacant(entry) => {
                entry.insert(slot);
            }
        }
    }

    /// Removes `flow`, if it is in the table.
    pub(crate) fn remove(&mut self, flow: &Flow, slot: u32) {
        if let Ok(entry) = self
            .slots
            .find_entry(hash(flow, self.key), |&known| known == slot)
        {
            entry.remove();
        }
        // Another connection may get the slot.
        if self.recent == Some(slot) {
            self.recent = None;
        }
    }
}

/// Multiplies to 128 bits and folds: every input bit reaches every output bit.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

/// A fast keyed hash of a four-tuple. Not a cryptographic one.
#[inline]
pub(crate) fn hash(flow: &Flow, key: u64) -> u64 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd6e8_feb8_6659_fd93;
    let ports = u64::from(flow.local.port) << 16 | u64::from(flow.remote.port);
    let addresses = match (flow.local.addr, flow.remote.addr) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            u64::from(local.to_bits()) << 32 | u64::from(remote.to_bits())
        }
        (local, remote) => {
            fold(address_word(local, key) ^ A, key ^ B) ^ address_word(remote, key).rotate_left(7)
        }
    };
    fold(addresses ^ key, fold(ports ^ B, key ^ A) | 1)
}

fn address_word(addr: IpAddr, key: u64) -> u64 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits().into(),
        IpAddr::V6(addr) => {
            let bits = addr.to_bits();
            fold((bits >> 64) as u64 ^ key, bits as u64 ^ key.rotate_left(32))
        }
    }
}
