//! Compares each policy with a model that keeps keys in plain vectors and follows the paper's pseudocode.

use super::*;
use crate::Replacement;

/// Like [`Replacement`], with keys in place of slots.
trait Model {
    fn inserted(&mut self, key: u64, bytes: u32);
    fn used(&mut self, key: u64);
    fn removed(&mut self, key: u64);
    fn victim(&mut self) -> Option<u64>;
}

fn position(keys: &[u64], key: u64) -> usize {
    keys.iter().position(|&k| k == key).expect("it is there")
}

/// LRU and FIFO: a queue, oldest first.
struct Queue {
    keys: Vec<u64>,
    renews: bool,
}

impl Model for Queue {
    fn inserted(&mut self, key: u64, _bytes: u32) {
        self.keys.push(key);
    }

    fn used(&mut self, key: u64) {
        if self.renews {
            self.removed(key);
            self.keys.push(key);
        }
    }

    fn removed(&mut self, key: u64) {
        self.keys.remove(position(&self.keys, key));
    }

    fn victim(&mut self) -> Option<u64> {
        (!self.keys.is_empty()).then(|| self.keys.remove(0))
    }
}

/// LFU and GDSF: evicts the block with the lowest priority, the oldest of equals.
struct Ranked {
    /// Key, bytes, uses and priority of each block, in order of use.
    blocks: Vec<(u64, u64, u64, u64)>,
    /// GDSF: bytes count, and blocks age.
    greedy_dual: bool,
    inflation: u64,
}

impl Ranked {
    fn place(&mut self, key: u64, bytes: u64, uses: u64) {
        let priority = if self.greedy_dual {
            self.inflation + uses * bytes
        } else {
            uses
        };
        self.blocks.push((key, bytes, uses, priority));
    }

    fn take(&mut self, key: u64) -> (u64, u64, u64, u64) {
        let i = self.blocks.iter().position(|b| b.0 == key);
        self.blocks.remove(i.expect("it is there"))
    }
}

impl Model for Ranked {
    fn inserted(&mut self, key: u64, bytes: u32) {
        self.place(key, bytes.into(), 1);
    }

    fn used(&mut self, key: u64) {
        let (_, bytes, uses, _) = self.take(key);
        self.place(key, bytes, uses + 1);
    }

    fn removed(&mut self, key: u64) {
        self.take(key);
    }

    fn victim(&mut self) -> Option<u64> {
        let (key, .., priority) = *self.blocks.iter().min_by_key(|b| b.3)?;
        self.inflation = priority;
        self.removed(key);
        Some(key)
    }
}

/// SIEVE: a queue with marks, oldest first; the hand is an index into it.
#[derive(Default)]
struct SieveModel {
    queue: Vec<(u64, bool)>,
    hand: usize,
}

impl SieveModel {
    fn position(&self, key: u64) -> usize {
        let position = self.queue.iter().position(|&(k, _)| k == key);
        position.expect("it is there")
    }
}

impl Model for SieveModel {
    fn inserted(&mut self, key: u64, _bytes: u32) {
        // A hand at the end starts again at the oldest block, not at the new one.
        if self.hand == self.queue.len() {
            self.hand = 0;
        }
        self.queue.push((key, false));
    }

    fn used(&mut self, key: u64) {
        let i = self.position(key);
        self.queue[i].1 = true;
    }

    fn removed(&mut self, key: u64) {
        let i = self.position(key);
        self.queue.remove(i);
        if i < self.hand {
            self.hand -= 1;
        }
    }

    fn victim(&mut self) -> Option<u64> {
        if self.queue.is_empty() {
            return None;
        }
        loop {
            self.hand %= self.queue.len();
            let (key, visited) = self.queue[self.hand];
            if !visited {
                self.queue.remove(self.hand);
                return Some(key);
            }
            self.queue[self.hand].1 = false;
            self.hand += 1;
        }
    }
}

/// S3-FIFO: queues of keys and uses, oldest first.
#[derive(Default)]
struct S3Model {
    slots: usize,
    small: Vec<(u64, u8)>,
    main: Vec<(u64, u8)>,
    ghosts: Vec<u64>,
}

impl S3Model {
    fn small_target(&self) -> usize {
        (self.slots / 10).max(1)
    }

    fn evict_main(&mut self) -> Option<u64> {
        while !self.main.is_empty() {
            let (key, uses) = self.main.remove(0);
            if uses == 0 {
                return Some(key);
            }
            self.main.push((key, uses - 1));
        }
        None
    }

    fn evict_small(&mut self) -> Option<u64> {
        while !self.small.is_empty() {
            let (key, uses) = self.small.remove(0);
            if uses <= 1 {
                // The name is not present: inserting a block removes its ghost.
                self.ghosts.push(key);
                let limit = self.slots - self.small_target();
                while self.ghosts.len() > limit {
                    self.ghosts.remove(0);
                }
                return Some(key);
            }
            self.main.push((key, 0));
            if self.main.len() > self.slots - self.small_target() {
                return self.evict_main();
            }
        }
        self.evict_main()
    }
}

impl Model for S3Model {
    fn inserted(&mut self, key: u64, _bytes: u32) {
        if let Some(i) = self.ghosts.iter().position(|&k| k == key) {
            // Its position in the queue of ghosts stays occupied.
            self.ghosts[i] = u64::MAX;
            self.main.push((key, 0));
        } else {
            self.small.push((key, 0));
        }
    }

    fn used(&mut self, key: u64) {
        let mut all = self.small.iter_mut().chain(&mut self.main);
        let entry = all.find(|(k, _)| *k == key).expect("it is there");
        entry.1 = (entry.1 + 1).min(3);
    }

    fn removed(&mut self, key: u64) {
        self.small.retain(|&(k, _)| k != key);
        self.main.retain(|&(k, _)| k != key);
    }

    fn victim(&mut self) -> Option<u64> {
        if self.small.len() >= self.small_target() || self.main.is_empty() {
            self.evict_small()
        } else {
            self.evict_main()
        }
    }
}

/// W-TinyLFU with exact counts. Lists are oldest first.
#[derive(Default)]
struct TinyModel {
    slots: usize,
    window: Vec<u64>,
    probation: Vec<u64>,
    protected: Vec<u64>,
    counts: std::collections::BTreeMap<u64, u8>,
    seen: u64,
}

impl TinyModel {
    const SAMPLE: u64 = 640;

    fn count(&mut self, key: u64) {
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(1);
        self.seen += 1;
        if self.seen == Self::SAMPLE {
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.seen /= 2;
        }
    }

    fn estimate(&self, key: u64) -> u8 {
        self.counts[&key]
    }
}

impl Model for TinyModel {
    fn inserted(&mut self, key: u64, _bytes: u32) {
        self.count(key);
        self.window.push(key);
        if self.window.len() > 1 {
            self.probation.push(self.window.remove(0));
        }
    }

    fn used(&mut self, key: u64) {
        self.count(key);
        if self.window.contains(&key) {
            return; // It is alone there: fewer than 200 slots.
        }
        self.removed(key);
        self.protected.push(key);
        if self.protected.len() > (self.slots - 1) * 80 / 100 {
            self.probation.push(self.protected.remove(0));
        }
    }

    fn removed(&mut self, key: u64) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            list.retain(|&k| k != key);
        }
    }

    fn victim(&mut self) -> Option<u64> {
        let candidate = self.window.first().copied();
        let main = self.probation.first().or(self.protected.first()).copied();
        let victim = match (candidate, main) {
            (Some(candidate), Some(main)) if self.estimate(candidate) > self.estimate(main) => {
                self.removed(candidate);
                self.probation.push(candidate);
                main
            }
            (Some(candidate), _) => candidate,
            (None, main) => main?,
        };
        self.removed(victim);
        Some(victim)
    }
}

fn model(policy: ReplacementConfig, slots: u32) -> Box<dyn Model> {
    let slots = slots as usize;
    let queue = |renews| Queue {
        keys: Vec::new(),
        renews,
    };
    let ranked = |greedy_dual| Ranked {
        blocks: Vec::new(),
        greedy_dual,
        inflation: 0,
    };
    match policy {
        ReplacementConfig::Lru => Box::new(queue(true)),
        ReplacementConfig::Fifo => Box::new(queue(false)),
        ReplacementConfig::Lfu => Box::new(ranked(false)),
        ReplacementConfig::Gdsf => Box::new(ranked(true)),
        ReplacementConfig::Sieve => Box::new(SieveModel::default()),
        ReplacementConfig::S3Fifo => Box::new(S3Model {
            slots,
            ..S3Model::default()
        }),
        ReplacementConfig::WTinyLfu => Box::new(TinyModel {
            slots,
            ..TinyModel::default()
        }),
    }
}

/// A policy and its model, with the same input.
struct Pair {
    policy: Box<dyn Replacement>,
    model: Box<dyn Model>,
    /// The key in each slot.
    keys: Vec<Option<u64>>,
}

impl Pair {
    fn new(policy: ReplacementConfig, slots: u32) -> Self {
        Self {
            policy: policy.build(slots),
            model: model(policy, slots),
            keys: vec![None; slots as usize],
        }
    }

    fn slot_of(&self, key: Option<u64>) -> Option<usize> {
        self.keys.iter().position(|&k| k == key)
    }

    /// Uses `key`, or puts it into the cache.
    fn request(&mut self, key: u64, bytes: u32) -> Result<(), TestCaseError> {
        if let Some(slot) = self.slot_of(Some(key)) {
            self.policy.used(slot as u32);
            self.model.used(key);
            return Ok(());
        }
        if self.slot_of(None).is_none() {
            self.evict()?;
        }
        let slot = self.slot_of(None).expect("there is room now");
        self.keys[slot] = Some(key);
        self.policy.inserted(slot as u32, key, bytes);
        self.model.inserted(key, bytes);
        Ok(())
    }

    /// Removes `key` as the owner, if it is cached.
    fn remove(&mut self, key: u64) {
        if let Some(slot) = self.slot_of(Some(key)) {
            self.policy.removed(slot as u32);
            self.model.removed(key);
            self.keys[slot] = None;
        }
    }

    fn evict(&mut self) -> Result<(), TestCaseError> {
        let victim = self.policy.victim();
        let key = victim.and_then(|slot| self.keys[slot as usize].take());
        prop_assert_eq!(victim.is_some(), key.is_some(), "a victim was in the cache");
        prop_assert_eq!(key, self.model.victim());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn policies_choose_the_victims_of_their_models(
        slots in 1u32..14,
        operations in prop::collection::vec((0u8..20, 0u64..20, 1u32..4096), 1..400),
    ) {
        for policy in ReplacementConfig::ALL {
            let mut pair = Pair::new(policy, slots);
            for &(kind, key, bytes) in &operations {
                match kind {
                    0 => pair.remove(key),
                    1 => pair.evict()?,
                    // Half of all requests are for few keys.
                    2..11 => pair.request(key % 5, bytes)?,
                    _ => pair.request(key, bytes)?,
                }
                pair.policy.check();
            }
        }
    }
}
