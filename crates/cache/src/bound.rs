//! An upper bound of the bytes that any policy can hit.

use crate::{Optimum, Reference};
use std::cmp::Reverse;

/// Number of layers into which bytes are divided.
const LAYERS: usize = 16;
/// Marks a block that has not been referenced yet.
const NEVER: u32 = u32::MAX;

/// An upper bound of the bytes that any policy can hit, for hits that are worth different numbers of bytes (the last block of a file is
/// partial). The exact optimum would be a minimum-cost flow through the whole string.
///
/// The bytes of all hits are summed layer by layer, like areas by horizontal slices: a hit of `b` bytes adds to every layer below `b`. The
/// hits that reach into a layer are a subset of the references that do, and no policy can hit more of these than [`Optimum`] does if all
/// others are omitted. That number of the largest references bounds what the layer adds. The bound is exact if all hits are worth the same,
/// and if everything fits; otherwise it is too high, because every layer makes its own best choice.
///
/// The optimum itself is between [`Self::hits_of_optimum`], which a cache can actually reach, and [`Self::hit_bytes`].
#[derive(Clone, Debug)]
pub struct ByteBound {
    /// Each reference to a block that was referenced before.
    again: Vec<Again>,
    references: usize,
    /// The bytes of each reference in `again`, largest first.
    bytes: Vec<u32>,
    /// Prefix sums of `bytes`: entry `n` is the sum of the first `n`.
    sums: Vec<u64>,
    /// The upper limits of the layers in bytes, ascending.
    layers: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    previous: u32,
    now: u32,
    bytes: u32,
}

impl ByteBound {
    /// Creates the bound for these references. Blocks must be small numbers.
    pub fn new(references: &[Reference]) -> Self {
        let mut latest = Vec::new();
        let mut again = Vec::new();
        for (now, reference) in (0u32..).zip(references) {
            let block = reference.block as usize;
            if block >= latest.len() {
                latest.resize(block + 1, NEVER);
            }
            let previous = std::mem::replace(&mut latest[block], now);
            if previous != NEVER {
                again.push(Again {
                    previous,
                    now,
                    bytes: reference.bytes,
                });
            }
        }
        let mut bytes: Vec<u32> = again.iter().map(|again| again.bytes).collect();
        bytes.sort_unstable_by_key(|&bytes| Reverse(bytes));
        let sum = |sum: &mut u64, &bytes: &u32| {
            *sum += u64::from(bytes);
            Some(*sum)
        };
        Self {
            layers: layers(&bytes),
            sums: std::iter::once(0)
                .chain(bytes.iter().scan(0, sum))
                .collect(),
            bytes,
            again,
            references: references.len(),
        }
    }

    /// Returns an upper bound of the bytes that any policy hits in a cache of `slots` slots.
    pub fn hit_bytes(&self, slots: u32) -> u64 {
        let below = std::iter::once(0).chain(self.layers.iter().copied());
        let layers = below.zip(&self.layers);
        layers
            .map(|(bottom, &top)| self.largest(self.hits_above(slots, bottom), bottom, top))
            .sum()
    }

    /// Returns the total of the largest `count` references between `bottom` and `top`. All of them reach above `bottom`.
    fn largest(&self, count: usize, bottom: u32, top: u32) -> u64 {
        let through = self.bytes.partition_point(|&bytes| bytes >= top).min(count);
        let whole = through as u64 * u64::from(top - bottom);
        let partial = (count - through) as u64 * u64::from(bottom);
        whole + (self.sums[count] - self.sums[through]) - partial
    }

    /// Returns the maximum number of hits among the references of more than `bytes` bytes, if all others are omitted.
    fn hits_above(&self, slots: u32, bytes: u32) -> usize {
        let mut optimum = Optimum::new(slots, self.references);
        let reach = self.again.iter().filter(|again| again.bytes > bytes);
        let hits = reach.filter(|again| optimum.reference(again.previous, again.now));
        hits.count()
    }

    /// Returns the bytes hit by the policy with the maximum number of hits ([`Optimum`]).
    pub fn hits_of_optimum(&self, slots: u32) -> u64 {
        let mut optimum = Optimum::new(slots, self.references);
        let hits = self
            .again
            .iter()
            .filter(|again| optimum.reference(again.previous, again.now));
        hits.map(|again| u64::from(again.bytes)).sum()
    }
}

/// Returns the upper limits of the layers for `bytes`, which must be in descending order: all values that occur, or values with about
/// equally many references in between.
fn layers(bytes: &[u32]) -> Vec<u32> {
    let mut values = bytes.to_vec();
    values.dedup();
    values.retain(|&value| value > 0);
    if values.len() > LAYERS {
        // Full blocks are many and need only one layer; the other layers are spread over the partial blocks.
        let most = values[0];
        let partial = &bytes[bytes.partition_point(|&b| b == most)..];
        let quantile = |i: usize| partial[i * partial.len() / (LAYERS - 1)];
        values = (0..LAYERS - 1)
            .map(quantile)
            .filter(|&value| value > 0)
            .collect();
        values.insert(0, most);
        values.dedup();
    }
    values.reverse();
    values
}
