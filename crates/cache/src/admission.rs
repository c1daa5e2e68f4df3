//! Admission policies.

use crate::Admission;
use crate::ghost::Ghosts;
use crate::sketch::Sketch;

/// Every block is worth a slot, as in the network interface data caching paper.
#[derive(Clone, Copy, Default, Debug)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admits(&mut self, _key: u64, _bytes: u32, _full: bool) -> bool {
        true
    }

    fn used(&mut self, _key: u64) {}
}

/// A block is worth a slot when it is asked for a second time, while its first request is remembered: what is asked for
/// once never enters (the cache-on-second-hit rule of Maggs and Sitaraman, "Algorithmic nuggets in content delivery",
/// Computer Communication Review 2015).
#[derive(Clone, Debug)]
pub struct SecondRequest {
    requested: Ghosts,
}

impl SecondRequest {
    /// Remembers the last `remembered` blocks that were asked for and not admitted.
    pub fn new(remembered: u32) -> Self {
        Self {
            requested: Ghosts::new(remembered),
        }
    }
}

impl Admission for SecondRequest {
    fn admits(&mut self, key: u64, _bytes: u32, _full: bool) -> bool {
        let again = self.requested.take(key);
        if !again {
            self.requested.add(key);
        }
        again
    }

    fn used(&mut self, _key: u64) {}
}

/// A full cache admits a block that was asked for often enough lately, counted by TinyLFU's sketch (see
/// [`crate::WTinyLfu`]). A cache with room admits every block.
#[derive(Debug)]
pub struct TinyLfuAdmission {
    sketch: Sketch,
    requests: u8,
}

impl TinyLfuAdmission {
    /// For a cache of `slots` slots; asks for `requests` requests, this one included.
    pub fn new(slots: u32, requests: u8) -> Self {
        Self {
            sketch: Sketch::new(slots),
            requests,
        }
    }
}

impl Admission for TinyLfuAdmission {
    fn admits(&mut self, key: u64, _bytes: u32, full: bool) -> bool {
        self.sketch.count(key);
        !full || self.sketch.estimate(key) >= self.requests
    }

    fn used(&mut self, key: u64) {
        self.sketch.count(key);
    }
}
