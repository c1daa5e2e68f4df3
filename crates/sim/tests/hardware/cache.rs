//! Compares the caches with a second model, written to be as simple as possible.

use std::collections::VecDeque;

use baton_sim::hardware::{
    AccessCost, Cache, CacheConfig, DmaPolicy, MemoryConfig, MemoryHierarchy, Outcome,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// A cache as a list of lines for each set, ordered by last use.
struct PlainCache {
    sets: Vec<VecDeque<PlainLine>>,
    ways: usize,
}

#[derive(Clone, Copy)]
struct PlainLine {
    number: u64,
    dirty: bool,
}

impl PlainCache {
    fn new(config: &CacheConfig) -> Self {
        let lines = config.size_kib * 1024 / config.line_bytes;
        Self {
            sets: vec![VecDeque::new(); (lines / config.ways) as usize],
            ways: config.ways as usize,
        }
    }

    fn set(&mut self, number: u64) -> &mut VecDeque<PlainLine> {
        let sets = self.sets.len() as u64;
        &mut self.sets[(number % sets) as usize]
    }

    fn remove(&mut self, number: u64) -> Option<PlainLine> {
        let set = self.set(number);
        let place = set.iter().position(|line| line.number == number)?;
        set.remove(place)
    }

    fn insert(&mut self, line: PlainLine) -> Option<PlainLine> {
        let ways = self.ways;
        let set = self.set(line.number);
        set.push_front(line);
        if set.len() > ways {
            set.pop_back()
        } else {
            None
        }
    }

    fn touch(&mut self, number: u64, write: bool) -> Outcome {
        if let Some(line) = self.remove(number) {
            let dirty = line.dirty || write;
            self.insert(PlainLine { number, dirty });
            return if dirty == line.dirty {
                Outcome::Hit
            } else {
                Outcome::FirstWrite
            };
        }
        self.fetch(number, write)
    }

    fn fetch(&mut self, number: u64, dirty: bool) -> Outcome {
        match self.insert(PlainLine { number, dirty }) {
            Some(victim) if victim.dirty => Outcome::MissWriteBack(victim.number),
            _ => Outcome::Miss,
        }
    }

    fn fill(&mut self, number: u64) -> Outcome {
        if self.set(number).iter().any(|line| line.number == number) {
            Outcome::Hit
        } else {
            self.fetch(number, false)
        }
    }

    fn mark_dirty(&mut self, number: u64) -> bool {
        self.set(number)
            .iter_mut()
            .find(|line| line.number == number)
            .map(|line| line.dirty = true)
            .is_some()
    }

    fn state_of(&mut self, number: u64) -> Option<bool> {
        self.set(number)
            .iter()
            .find(|line| line.number == number)
            .map(|line| line.dirty)
    }
}

/// Two levels of [`PlainCache`], counting what [`MemoryHierarchy`] counts.
struct PlainHierarchy {
    l1: PlainCache,
    l2: PlainCache,
    config: MemoryConfig,
    prefetches: u64,
    write_backs: u64,
    invalidations: u64,
}

impl PlainHierarchy {
    fn new(config: &MemoryConfig) -> Self {
        Self {
            l1: PlainCache::new(&config.l1),
            l2: PlainCache::new(&config.l2),
            config: config.clone(),
            prefetches: 0,
            write_backs: 0,
            invalidations: 0,
        }
    }

    fn lines(&self, address: u64, len: u32) -> Vec<u64> {
        let mut lines: Vec<u64> = (address..address + u64::from(len))
            .map(|byte| byte / u64::from(self.config.l1.line_bytes))
            .collect();
        lines.dedup();
        lines
    }

    /// Returns the number of hits in the L1, of hits in the L2, and of misses.
    fn access(&mut self, address: u64, len: u32, write: bool) -> (u32, u32, u32) {
        let mut found = (0, 0, 0);
        for line in self.lines(address, len) {
            let outcome = self.l1.touch(line, write);
            if outcome == Outcome::FirstWrite {
                self.l2.mark_dirty(line);
            }
            if outcome.is_hit() {
                found.0 += 1;
                continue;
            }
            let outcome = self.l2.touch(line, write);
            if outcome.is_hit() {
                found.1 += 1;
                continue;
            }
            found.2 += 1;
            self.count_write_back(outcome);
            if self.config.prefetch_next_line {
                let outcome = self.l2.fill(line + 1);
                self.prefetches += u64::from(outcome != Outcome::Hit);
                self.count_write_back(outcome);
            }
        }
        found
    }

    fn dma_write(&mut self, address: u64, len: u32) {
        for line in self.lines(address, len) {
            self.invalidations += u64::from(self.l1.remove(line).is_some());
            if self.config.dma == DmaPolicy::Inject {
                let outcome = self.l2.touch(line, true);
                self.count_write_back(outcome);
            } else {
                self.invalidations += u64::from(self.l2.remove(line).is_some());
            }
        }
    }

    fn count_write_back(&mut self, outcome: Outcome) {
        self.write_backs += u64::from(matches!(outcome, Outcome::MissWriteBack(_)));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Access { address: u64, len: u32, write: bool },
    DmaWrite { address: u64, len: u32 },
    DmaRead { address: u64, len: u32 },
}

struct Pair {
    plain: PlainHierarchy,
    model: MemoryHierarchy,
    cycle: u64,
}

impl Pair {
    fn new(config: &MemoryConfig) -> Self {
        Self {
            plain: PlainHierarchy::new(config),
            model: MemoryHierarchy::new(config).unwrap(),
            cycle: 0,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Access {
                address,
                len,
                write,
            } => {
                let lines = self.plain.lines(address, len).len();
                let cost = match self
                    .model
                    .access_again(&self.model.lines_of(address, len), write)
                {
                    true => AccessCost {
                        l1_hits: lines as u32,
                        ..AccessCost::default()
                    },
                    false => self.model.access(self.cycle, address, len, write),
                };
                let expected = self.plain.access(address, len, write);
                assert_eq!(
                    (cost.l1_hits, cost.l2_hits, cost.misses),
                    expected,
                    "{step:?}"
                );
                self.cycle += cost.stall_cycles() + 10;
            }
            Step::DmaWrite { address, len } => {
                self.model.dma_write(self.cycle, address, len);
                self.plain.dma_write(address, len);
            }
            Step::DmaRead { address, len } => self.model.dma_read(self.cycle, address, len),
        }
    }

    fn compare_counters(&self) {
        let counters = self.model.counters();
        assert_eq!(counters.prefetches, self.plain.prefetches, "prefetches");
        assert_eq!(counters.write_backs, self.plain.write_backs, "write-backs");
        assert_eq!(
            counters.dma_invalidations, self.plain.invalidations,
            "invalidations"
        );
        self.model.check();
    }
}

fn level(size_kib: u32, ways: u32, line_bytes: u32) -> CacheConfig {
    CacheConfig {
        size_kib,
        ways,
        line_bytes,
        latency_cycles: 1,
    }
}

/// Returns geometries small enough for every kind of conflict: direct mapped, fully associative, odd numbers of ways.
fn any_level() -> impl Strategy<Value = CacheConfig> {
    prop_oneof![
        Just(level(1, 1, 64)),
        Just(level(1, 2, 64)),
        Just(level(1, 16, 64)),
        Just(level(3, 3, 64)),
        Just(level(4, 4, 64)),
        Just(level(12, 12, 64)),
        Just(level(4, 64, 64)),
        Just(level(8, 8, 64)),
        Just(level(8, 16, 64)),
        Just(level(16, 32, 64)),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let range = || {
        (
            0_u64..40_000,
            prop_oneof![3 => 0_u32..100, 1 => 0_u32..3_000],
        )
    };
    prop_oneof![
        8 => (range(), any::<bool>()).prop_map(|((address, len), write)| Step::Access { address, len, write }),
        1 => range().prop_map(|(address, len)| Step::DmaWrite { address, len }),
        1 => range().prop_map(|(address, len)| Step::DmaRead { address, len }),
    ]
}

proptest! {
    #[test]
    fn hierarchy_equals_the_plain_model(
        l1 in any_level(),
        l2 in any_level(),
        prefetch_next_line in any::<bool>(),
        inject in any::<bool>(),
        steps in prop::collection::vec(any_step(), 1..300),
    ) {
        let dma = if inject { DmaPolicy::Inject } else { DmaPolicy::Invalidate };
        let mut pair = Pair::new(&MemoryConfig { l1, l2, prefetch_next_line, dma, ..MemoryConfig::default() });
        for step in steps {
            pair.step(step);
            pair.compare_counters();
        }
    }

    #[test]
    fn cache_equals_the_plain_model(
        config in any_level(),
        steps in prop::collection::vec((0_u8..5, 0_u64..1_000), 1..500),
    ) {
        let (mut plain, mut model) = (PlainCache::new(&config), Cache::new(&config).unwrap());
        for (kind, line) in steps {
            match kind {
                0 => prop_assert_eq!(model.touch(line, false), plain.touch(line, false)),
                1 => prop_assert_eq!(model.touch(line, true), plain.touch(line, true)),
                2 => prop_assert_eq!(model.fill(line), plain.fill(line)),
                3 => prop_assert_eq!(model.mark_dirty(line), plain.mark_dirty(line)),
                _ => prop_assert_eq!(model.invalidate(line), plain.remove(line).is_some()),
            }
            model.check();
        }
        for line in 0..1_000 {
            prop_assert_eq!(model.state_of(line), plain.state_of(line), "line {}", line);
        }
    }
}

/// Compares the models with the papers' geometry, over a long mixture of DMA and accesses to hot structures, connections and streams.
#[test]
fn long_runs_equal_the_plain_model() {
    for (seed, dma) in [
        (1, DmaPolicy::Invalidate),
        (2, DmaPolicy::Inject),
        (3, DmaPolicy::Invalidate),
    ] {
        let mut generator = Pcg64::seed_from_u64(seed);
        let mut pair = Pair::new(&MemoryConfig {
            dma,
            ..MemoryConfig::default()
        });
        let mut stream = 1 << 30;
        for _ in 0..100_000 {
            let write = generator.random_bool(0.4);
            let step = match generator.random_range(0..10) {
                0..4 => Step::Access {
                    address: generator.random_range(0..16_384),
                    len: 48,
                    write,
                },
                4..8 => Step::Access {
                    address: 1024 * generator.random_range(100..8_292),
                    len: 640,
                    write,
                },
                8 => Step::Access {
                    address: stream,
                    len: 1_460,
                    write,
                },
                _ if write => Step::DmaWrite {
                    address: stream,
                    len: 1_518,
                },
                _ => Step::DmaRead {
                    address: 1024 * generator.random_range(100..8_292),
                    len: 1_518,
                },
            };
            stream += generator.random_range(0..2_000);
            pair.step(step);
        }
        pair.compare_counters();
    }
}
