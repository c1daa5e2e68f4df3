//! Two levels of cache and main memory, as seen by one processor.

use std::collections::VecDeque;
use std::ops::{Add, AddAssign, Range};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, CacheConfig, Outcome, with_stride};
use super::config_error::ConfigError;
use super::dram::{Dram, DramConfig, DramCounters};
use super::tlb::{Tlb, TlbConfig, Translation};

/// What a device's write does to the caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DmaPolicy {
    /// The data goes to main memory; cached lines of it are dropped.
    #[default]
    Invalidate,
    /// The data goes into the L2 (direct cache access).
    Inject,
}

/// Parameters of the memory hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// First level, data.
    pub l1: CacheConfig,
    /// Second level; lines as long as the first level's.
    pub l2: CacheConfig,
    /// Whether a miss in the L2 also fetches the line after it.
    pub prefetch_next_line: bool,
    /// Effect of a device's write on the caches.
    pub dma: DmaPolicy,
    /// Main memory.
    pub dram: DramConfig,
    /// Translation of addresses.
    pub tlb: TlbConfig,
}

/// Table 2 of the handoff-policies paper.
impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            l1: CacheConfig {
                size_kib: 64,
                ways: 2,
                line_bytes: 64,
                latency_cycles: 1,
            },
            l2: CacheConfig {
                size_kib: 1024,
                ways: 16,
                line_bytes: 64,
                latency_cycles: 15,
            },
            prefetch_next_line: true,
            dma: DmaPolicy::Invalidate,
            dram: DramConfig::default(),
            tlb: TlbConfig::default(),
        }
    }
}

impl MemoryConfig {
    /// Checks that such a hierarchy is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.l1.validate().map_err(|e| e.within("l1"))?;
        self.l2.validate().map_err(|e| e.within("l2"))?;
        if self.l1.line_bytes != self.l2.line_bytes {
            let expected = format!(
                "l1.line_bytes = {}: one line size for both levels",
                self.l1.line_bytes
            );
            return Err(ConfigError::new(
                "l2.line_bytes",
                self.l2.line_bytes,
                expected,
            ));
        }
        self.dram.validate().map_err(|e| e.within("dram"))?;
        self.tlb.validate().map_err(|e| e.within("tlb"))
    }
}

/// Where the lines of an access were found, and the cost of the access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessCost {
    /// Lines found in the L1.
    pub l1_hits: u32,
    /// Lines found in the L2, including lines that a prefetch is still fetching and lines of the page table.
    pub l2_hits: u32,
    /// Lines fetched from main memory.
    pub misses: u32,
    /// Cycles in which the processor waited for the L1, in excess of the one cycle that is part of the instruction.
    pub stall_l1_cycles: u32,
    /// Cycles in which the processor waited for the L2.
    pub stall_l2_cycles: u32,
    /// Cycles in which the processor waited for main memory.
    pub stall_memory_cycles: u32,
}

impl AccessCost {
    /// Returns the number of cycles in which the processor waited.
    pub fn stall_cycles(&self) -> u64 {
        u64::from(self.stall_l1_cycles)
            + u64::from(self.stall_l2_cycles)
            + u64::from(self.stall_memory_cycles)
    }

    /// Returns the number of accessed lines, including lines of the page table.
    pub fn lines(&self) -> u32 {
        self.l1_hits + self.l2_hits + self.misses
    }
}

impl AddAssign for AccessCost {
    fn add_assign(&mut self, other: Self) {
        self.l1_hits += other.l1_hits;
        self.l2_hits += other.l2_hits;
        self.misses += other.misses;
        self.stall_l1_cycles += other.stall_l1_cycles;
        self.stall_l2_cycles += other.stall_l2_cycles;
        self.stall_memory_cycles += other.stall_memory_cycles;
    }
}

impl Add for AccessCost {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// Counters of the hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCounters {
    /// Lines found in the L1.
    pub l1_hits: u64,
    /// Lines found in the L2.
    pub l2_hits: u64,
    /// Lines fetched from main memory because they were accessed.
    pub misses: u64,
    /// Translations that were in neither level of the TLB.
    pub walks: u64,
    /// Lines fetched because the line before them missed.
    pub prefetches: u64,
    /// Prefetched lines that were accessed before they had arrived.
    pub late_prefetches: u64,
    /// Dirty lines written back to main memory.
    pub write_backs: u64,
    /// Lines that devices read.
    pub dma_read_lines: u64,
    /// Lines that devices wrote.
    pub dma_write_lines: u64,
    /// Cached copies that devices' writes invalidated (a line in both levels counts twice).
    pub dma_invalidations: u64,
}

/// L1, L2 and DRAM of one processor.
///
/// Both levels allocate on reads and writes. They hold lines independently: a line evicted from the L2 may stay in the L1. The L1 reports
/// the first write to each line to the L2, which writes the line back to memory on eviction; a line that stays in the L1 longer than in the
/// L2 is not written back a second time. A prefetched line is entered in the L2 immediately, but available only when memory has delivered
/// it, after the line that missed and all other transfers that wait for the channel. A stall ends before the next line is accessed.
#[derive(Clone, Debug)]
pub struct MemoryHierarchy {
    l1: Cache,
    l2: Cache,
    dram: Dram,
    line_shift: u32,
    l1_stall_cycles: u32,
    l2_stall_cycles: u32,
    prefetch_next_line: bool,
    /// Prefetched lines that may still be in flight, oldest first, each with its number among the deferred lines of the memory.
    on_their_way: VecDeque<(u64, u64)>,
    dma: DmaPolicy,
    tlb: Option<Tlb>,
    counters: MemoryCounters,
}

impl MemoryHierarchy {
    /// Creates a hierarchy with empty caches.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &MemoryConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            l1: Cache::new(&config.l1).map_err(|e| e.within("l1"))?,
            l2: Cache::new(&config.l2).map_err(|e| e.within("l2"))?,
            dram: Dram::new(&config.dram, config.l2.line_bytes).map_err(|e| e.within("dram"))?,
            line_shift: config.l1.line_bytes.trailing_zeros(),
            l1_stall_cycles: config.l1.latency_cycles - 1,
            l2_stall_cycles: config.l2.latency_cycles,
            prefetch_next_line: config.prefetch_next_line,
            on_their_way: VecDeque::new(),
            dma: config.dma,
            tlb: Tlb::new(&config.tlb).map_err(|e| e.within("tlb"))?,
            counters: MemoryCounters::default(),
        })
    }

    /// Returns the lines of the `len` bytes from `address` on.
    #[inline]
    pub fn lines_of(&self, address: u64, len: u32) -> Range<u64> {
        let first = address >> self.line_shift;
        if len == 0 {
            return first..first;
        }
        first..((address + u64::from(len) - 1) >> self.line_shift) + 1
    }

    /// Performs an access like [`MemoryHierarchy::access_lines`] if it costs nothing, because it is to one or two lines that were just
    /// used. Returns false, without doing anything, if the access may have a cost.
    #[inline]
    pub fn access_again(&mut self, lines: &Range<u64>, write: bool) -> bool {
        let (first, last) = (lines.start, lines.end.wrapping_sub(1));
        let is_free = self.l1_stall_cycles == 0
            && last.wrapping_sub(first) <= 1
            && self.l1.is_just_used(first, write)
            && (first == last || self.l1.is_just_used(last, write));
        if is_free {
            self.counters.l1_hits += lines.end - lines.start;
        }
        is_free
    }

    /// Accesses every line of the `len` bytes from `address` on, in order, for the processor, starting at `now_cycle`.
    #[inline]
    pub fn access(&mut self, now_cycle: u64, address: u64, len: u32, write: bool) -> AccessCost {
        self.access_lines(now_cycle, self.lines_of(address, len), write)
    }

    /// Accesses these lines in order for the processor, starting at `now_cycle`.
    #[inline]
    pub fn access_lines(&mut self, now_cycle: u64, lines: Range<u64>, write: bool) -> AccessCost {
        let count = (lines.end - lines.start) as u32;
        let translation = match self.tlb.is_some() {
            true => self.translate(now_cycle, &lines),
            false => AccessCost::default(),
        };
        let now_cycle = now_cycle + translation.stall_cycles();
        let mut cost = with_stride!(self.l1.stride(), self.access_l1(now_cycle, lines, write));
        cost.l1_hits = count - cost.l2_hits - cost.misses;
        cost.stall_l1_cycles = cost.l1_hits * self.l1_stall_cycles;
        cost += translation;
        self.counters.l1_hits += u64::from(cost.l1_hits);
        self.counters.l2_hits += u64::from(cost.l2_hits);
        self.counters.misses += u64::from(cost.misses);
        cost
    }

    /// Returns the cost of translating the addresses of these lines. Reads of page table entries bypass the L1.
    #[inline(never)]
    fn translate(&mut self, now_cycle: u64, lines: &Range<u64>) -> AccessCost {
        let mut cost = AccessCost::default();
        for page in Tlb::pages_of(lines, self.line_shift) {
            let Some(tlb) = &mut self.tlb else { break };
            match tlb.translate(page) {
                Translation::First => {}
                Translation::Second(cycles) => cost.stall_l2_cycles += cycles,
                Translation::Walk(cycles, entry) => {
                    cost.stall_l2_cycles += cycles;
                    self.counters.walks += 1;
                    self.access_l2(now_cycle, entry >> self.line_shift, false, &mut cost);
                }
            }
        }
        cost
    }

    /// Returns the cost of the lines that are not in the L1, whose sets have a stride of `W`.
    #[inline]
    fn access_l1<const W: usize>(
        &mut self,
        now_cycle: u64,
        lines: Range<u64>,
        write: bool,
    ) -> AccessCost {
        let mut cost = AccessCost::default();
        for line in lines {
            match self.l1.touch_set::<W>(line, write) {
                Outcome::Hit => {}
                Outcome::FirstWrite => {
                    self.l2.mark_dirty(line);
                }
                Outcome::Miss | Outcome::MissWriteBack(_) => {
                    self.access_l2(now_cycle, line, write, &mut cost)
                }
            }
        }
        cost
    }

    /// Writes the `len` bytes from `address` on for a device at `now_cycle`. The processor does not wait.
    pub fn dma_write(&mut self, now_cycle: u64, address: u64, len: u32) {
        let lines = self.lines_of(address, len);
        self.counters.dma_write_lines += lines.end - lines.start;
        let mut written_back = 0;
        for line in lines.clone() {
            self.counters.dma_invalidations += u64::from(self.l1.invalidate(line));
            match self.dma {
                DmaPolicy::Invalidate => {
                    self.counters.dma_invalidations += u64::from(self.l2.invalidate(line));
                }
                DmaPolicy::Inject => {
                    let outcome = self.l2.touch(line, true);
                    written_back += self.write_back(outcome);
                }
            }
        }
        match self.dma {
            DmaPolicy::Invalidate => self.dram.defer_range(now_cycle, lines),
            DmaPolicy::Inject => self.dram.defer(now_cycle, written_back),
        }
    }

    /// Reads the `len` bytes from `address` on for a device at `now_cycle`. The processor does not wait and keeps its lines: memory is read
    /// while the caches are snooped, and a cache that owns a dirty line supplies a copy to the device.
    pub fn dma_read(&mut self, now_cycle: u64, address: u64, len: u32) {
        let lines = self.lines_of(address, len);
        self.counters.dma_read_lines += lines.end - lines.start;
        self.dram.defer_range(now_cycle, lines);
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> MemoryCounters {
        self.counters
    }

    /// Returns the counters of main memory since the start.
    pub fn dram_counters(&self) -> DramCounters {
        self.dram.counters()
    }

    /// Panics unless both caches are consistent.
    pub fn check(&self) {
        self.l1.check();
        self.l2.check();
    }

    #[inline(never)]
    fn access_l2(&mut self, now_cycle: u64, line: u64, write: bool, cost: &mut AccessCost) {
        with_stride!(
            self.l2.stride(),
            self.access_l2_set(now_cycle, line, write, cost)
        );
    }

    /// Accesses the L2, whose sets have a stride of `W`.
    #[inline]
    fn access_l2_set<const W: usize>(
        &mut self,
        now_cycle: u64,
        line: u64,
        write: bool,
        cost: &mut AccessCost,
    ) {
        let outcome = self.l2.touch_set::<W>(line, write);
        if outcome.is_hit() {
            let late = self.wait_for_prefetch(now_cycle + cost.stall_cycles(), line);
            cost.l2_hits += 1;
            if late > self.l2_stall_cycles {
                cost.stall_memory_cycles += late;
            } else {
                cost.stall_l2_cycles += self.l2_stall_cycles;
            }
            return;
        }
        cost.misses += 1;
        cost.stall_memory_cycles += self.dram.demand(now_cycle + cost.stall_cycles(), line);
        let mut moved = self.write_back(outcome);
        if self.prefetch_next_line {
            moved += self.prefetch::<W>(line + 1);
        }
        self.dram.defer(now_cycle + cost.stall_cycles(), moved);
    }

    /// Prefetches a line unless it is in the L2. Returns the number of lines to transfer for that, of which the prefetched line is the
    /// first.
    #[inline]
    fn prefetch<const W: usize>(&mut self, line: u64) -> u64 {
        let outcome = self.l2.fill_set::<W>(line);
        if outcome == Outcome::Hit {
            return 0;
        }
        self.counters.prefetches += 1;
        self.dram.open_row(line);
        let has_come = |&mut (_, number): &mut (u64, u64)| self.dram.is_moved(number);
        while self.on_their_way.pop_front_if(has_come).is_some() {}
        let number = self.dram.next_deferred();
        self.on_their_way.push_back((line, number));
        1 + self.write_back(outcome)
    }

    /// Returns how many cycles after `now_cycle` the processor waits for a line that is in the L2 but that a prefetch is still fetching.
    #[inline]
    fn wait_for_prefetch(&mut self, now_cycle: u64, line: u64) -> u32 {
        let mut latest_first = self.on_their_way.iter().rev();
        let Some(&(_, number)) = latest_first.find(|(other, _)| *other == line) else {
            return 0;
        };
        let late = self.dram.demand_deferred(now_cycle, number);
        self.counters.late_prefetches += u64::from(late > 0);
        late
    }

    /// Writes back the line that was evicted, if it was dirty. Returns the number of lines to transfer.
    #[inline]
    fn write_back(&mut self, outcome: Outcome) -> u64 {
        let Outcome::MissWriteBack(victim) = outcome else {
            return 0;
        };
        self.counters.write_backs += 1;
        self.dram.open_row(victim);
        1
    }
}
