//! Hits of caches as a function of their size: figure 3 of the network interface data caching paper, for any policy.

use super::blocks::BlockString;
use baton_cache::{AdmissionConfig, ByteBound, ReplacementConfig, Simulation, StackDistance};
use serde::{Serialize, Serializer};

/// Policy that decides which blocks are in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// An online policy.
    Online(ReplacementConfig, AdmissionConfig),
    /// Belady's MIN, which may bypass the cache: it maximises the number of *blocks* hit, counted here in bytes. A real cache that knew the
    /// future could do at least as well.
    Min,
    /// Upper bound of the bytes that any policy can hit: [`ByteBound`].
    Bound,
}

impl Policy {
    /// The policy whose hits for all sizes are computed in one pass: [`lru_hit_bytes`].
    pub const LRU: Self = Self::Online(ReplacementConfig::Lru, AdmissionConfig::All);

    /// Returns whether the policy needs to know the future, so that no real cache can use it.
    pub const fn knows_future(self) -> bool {
        matches!(self, Self::Min | Self::Bound)
    }

    /// Returns the bytes that caches with each of these numbers of slots hit; `slots` is ascending. Policies that know the future need the
    /// `bound` of `string`.
    ///
    /// # Panics
    /// The policy knows the future, and there is no bound.
    pub fn hit_bytes(
        self,
        string: &BlockString,
        bound: Option<&ByteBound>,
        slots: &[u32],
    ) -> Vec<u64> {
        if self == Self::LRU {
            return lru_hit_bytes(string, slots);
        }
        let hits = |&slots: &u32| match (self, bound) {
            (Self::Online(replacement, admission), _) => {
                hit_bytes(string, slots, replacement, admission)
            }
            (Self::Min, Some(bound)) => min_hit_bytes(string, bound, slots),
            (Self::Bound, Some(bound)) => most_hit_bytes(string, bound, slots),
            (Self::Min | Self::Bound, None) => panic!("`min` and `bound` need a bound"),
        };
        slots.iter().map(hits).collect()
    }

    /// Returns the name in tables and on the command line, such as `lru`, `sieve+second-request` or `min`.
    pub fn name(self) -> String {
        match self {
            Self::Online(replacement, AdmissionConfig::All) => replacement.name().to_owned(),
            Self::Online(replacement, admission) => {
                format!("{}+{}", replacement.name(), admission.name())
            }
            Self::Min => "min".to_owned(),
            Self::Bound => "bound".to_owned(),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// Returns the bytes that LRU caches with each of these numbers of slots hit, in one pass; `slots` is ascending.
pub fn lru_hit_bytes(string: &BlockString, slots: &[u32]) -> Vec<u64> {
    debug_assert!(slots.is_sorted());
    let mut stack = StackDistance::new(string.blocks as usize);
    // Bytes of references for which the cache of this index is the smallest that hits.
    let mut hits = vec![0u64; slots.len() + 1];
    for reference in &string.references {
        if let Some(distance) = stack.reference(reference.block) {
            let fits = slots.partition_point(|&slots| slots <= distance);
            hits[fits] += u64::from(reference.bytes);
        }
    }
    hits.pop();
    let mut so_far = 0;
    for hit in &mut hits {
        so_far += *hit;
        *hit = so_far;
    }
    hits
}

/// Returns the bytes that a cache of `slots` slots hits.
pub fn hit_bytes(
    string: &BlockString,
    slots: u32,
    replacement: ReplacementConfig,
    admission: AdmissionConfig,
) -> u64 {
    if slots >= string.distinct && admission == AdmissionConfig::All {
        return string.again_bytes;
    }
    let mut cache = Simulation::new(slots, string.blocks as usize, replacement, admission);
    for &reference in &string.references {
        cache.reference(reference);
    }
    cache.hits().bytes
}

/// Returns the bytes that Belady's MIN hits in a cache of `slots` slots; `bound` must belong to `string`.
pub fn min_hit_bytes(string: &BlockString, bound: &ByteBound, slots: u32) -> u64 {
    if slots >= string.distinct {
        string.again_bytes
    } else {
        bound.hits_of_optimum(slots)
    }
}

/// Returns the bytes that no policy exceeds in a cache of `slots` slots; `bound` must belong to `string`.
pub fn most_hit_bytes(string: &BlockString, bound: &ByteBound, slots: u32) -> u64 {
    if slots >= string.distinct {
        string.again_bytes
    } else {
        bound.hit_bytes(slots)
    }
}
