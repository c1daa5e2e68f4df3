//! Admission policies.

use crate::Admission;
use crate::ghost::Ghosts;
use crate::sketch::Sketch;

/// Admits every block, as in the network interface data caching paper.
#[derive(Clone, Copy, Default, Debug)]
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admits(&mut self, _key: u64, _bytes: u32, _full: bool) -> bool {
        true
    }

    fn used(&mut self, _key: u64) {}
}

/// Admits a block at its second request, while the first is remembered: a block that is requested once never enters (the
/// cache-on-second-hit rule of Maggs and Sitaraman, "Algorithmic nuggets in content delivery", Computer Communication Review 2015).
#[derive(Clone, Debug)]
pub struct SecondRequest {
    requested: Ghosts,
}

impl SecondRequest {
    /// Creates a policy that remembers the last `remembered` blocks that were requested and not admitted.
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

/// A full cache admits a block that was requested often enough recently, as counted by TinyLFU's sketch (see [`crate::WTinyLfu`]). A cache
/// with free slots admits every block.
#[derive(Debug)]
pub struct TinyLfuAdmission {
    sketch: Sketch,
    requests: u8,
}

impl TinyLfuAdmission {
    /// Creates a policy for a cache of `slots` slots that requires `requests` requests, including the current one.
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
