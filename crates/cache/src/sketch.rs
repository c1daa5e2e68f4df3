//! Estimates how often a block was requested recently.

use cmsketch::CMSketchU8;

/// Counters per row for each slot of the cache.
const COUNTERS_PER_SLOT: u32 = 8;
/// Number of references until counts are halved, for each slot of the cache (TinyLFU paper, section 3.3: sample size over cache size;
/// Caffeine uses 10).
const SAMPLE_PER_SLOT: u64 = 10;
/// Results in four rows: the probability that an estimate is far off is at most 1 - 0.9 (2^-4).
const CONFIDENCE: f64 = 0.9;

/// TinyLFU's approximate counts with aging (Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM
/// Transactions on Storage 2017): a count-min sketch whose counters are halved periodically.
#[derive(Debug)]
pub struct Sketch {
    counts: CMSketchU8,
    sample: u64,
    seen: u64,
}

impl Sketch {
    /// Creates a sketch for a cache of `slots` slots.
    pub fn new(slots: u32) -> Self {
        let width = COUNTERS_PER_SLOT * slots.clamp(64, 1 << 26);
        Self {
            counts: CMSketchU8::new(2.0 / f64::from(width), CONFIDENCE),
            sample: SAMPLE_PER_SLOT * u64::from(slots.max(64)),
            seen: 0,
        }
    }

    /// Counts a reference to `key`.
    pub fn count(&mut self, key: u64) {
        self.counts.inc(mix(key));
        self.seen += 1;
        if self.seen >= self.sample {
            self.counts.halve();
            self.seen /= 2;
        }
    }

    /// Returns the estimated number of recent references to `key`: never too low (except for halving), seldom too high.
    pub fn estimate(&self, key: u64) -> u8 {
        self.counts.estimate(mix(key))
    }
}

/// Spreads names, which are often small numbers, over 64 bits (the finaliser of SplitMix64).
const fn mix(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_estimated_and_age() {
        let mut sketch = Sketch::new(100);
        for _ in 0..20 {
            sketch.count(7);
        }
        for key in 1000..1100 {
            sketch.count(key);
        }
        assert_eq!(sketch.estimate(7), 20);
        assert!(sketch.estimate(8) <= 1);
        // There are 120 references so far; the counts are halved at 1000.
        for key in 2000..2880 {
            sketch.count(key);
        }
        assert_eq!(sketch.estimate(7), 10);
    }
}
