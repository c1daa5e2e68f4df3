//! Address translation: two levels of cached translations, backed by a page table in memory.

use super::cache::{Cache, CacheConfig};
use super::config_error::{ConfigError, check_range};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// Bytes of an entry of the page table, for physical addresses below 4 GiB.
const ENTRY_BYTES: u64 = 4;

/// Start of the page table, beyond all modelled memory.
const PAGE_TABLE: u64 = 1 << 41;

/// The processor's translation look-aside buffers for data, in pages of 4 KiB.
///
/// Other translations are read from the page table by one access to the L2, as if the table's upper levels were at hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlbConfig {
    /// Entries of the first level; 0: translation costs nothing, as in the handoff-policies paper.
    #[schemars(range(max = Self::MOST_ENTRIES))]
    pub entries: u32,
    /// Entries per set of the first level.
    #[schemars(range(min = 1, max = 64))]
    pub ways: u32,
    /// Entries of the second level.
    #[schemars(range(min = 1, max = Self::MOST_ENTRIES))]
    pub second_entries: u32,
    /// Entries per set of the second level.
    #[schemars(range(min = 1, max = 64))]
    pub second_ways: u32,
    /// Processor cycles for a lookup in the second level.
    #[schemars(range(min = 1, max = 10000))]
    pub second_latency_cycles: u32,
}

/// No TLB. The other values, which apply once the first level has entries, are those of an Opteron (AMD publication 25112); its cycles are
/// *assumed*.
impl Default for TlbConfig {
    fn default() -> Self {
        Self {
            entries: 0,
            ways: 32,
            second_entries: 512,
            second_ways: 4,
            second_latency_cycles: 5,
        }
    }
}

impl TlbConfig {
    /// Maximum number of entries of a level.
    pub const MOST_ENTRIES: u32 = 1 << 16;

    /// Checks that such buffers are possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let most = u64::from(Self::MOST_ENTRIES);
        check_range("entries", self.entries.into(), 0, most)?;
        check_range("ways", self.ways.into(), 1, 64)?;
        check_range("second_entries", self.second_entries.into(), 1, most)?;
        check_range("second_ways", self.second_ways.into(), 1, 64)?;
        let cycles = self.second_latency_cycles.into();
        check_range("second_latency_cycles", cycles, 1, 10_000)?;
        whole_sets("entries", "ways", self.entries, self.ways)?;
        let (entries, ways) = (self.second_entries, self.second_ways);
        whole_sets("second_entries", "second_ways", entries, ways)
    }
}

/// Checks that the number of sets is zero or a power of two.
fn whole_sets(
    field: &'static str,
    ways_field: &'static str,
    entries: u32,
    ways: u32,
) -> Result<(), ConfigError> {
    let sets = entries / ways;
    if entries.is_multiple_of(ways) && (sets == 0 || sets.is_power_of_two()) {
        return Ok(());
    }
    let expected = format!("{ways_field} = {ways} times a power of two, the number of sets");
    Err(ConfigError::new(field, entries, expected))
}

/// Creates a level as a cache whose lines are pages.
fn level(entries: u32, ways: u32) -> Result<Cache, ConfigError> {
    Cache::new(&CacheConfig {
        size_kib: entries * (PAGE_BYTES / 1024) as u32,
        ways,
        line_bytes: PAGE_BYTES as u32,
        latency_cycles: 1,
    })
}

/// Cost of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// The first level has the translation.
    First,
    /// The second level has the translation, after this number of cycles.
    Second(u32),
    /// The entry of the page table at this address must be read, after this number of cycles.
    Walk(u32, u64),
}

/// The translations that a processor has cached.
#[derive(Clone, Debug)]
pub(super) struct Tlb {
    first: Cache,
    second: Cache,
    second_latency_cycles: u32,
}

impl Tlb {
    /// Creates empty buffers, or `None` if the first level has no entries.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub(super) fn new(config: &TlbConfig) -> Result<Option<Self>, ConfigError> {
        config.validate()?;
        if config.entries == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            first: level(config.entries, config.ways)?,
            second: level(config.second_entries, config.second_ways)?,
            second_latency_cycles: config.second_latency_cycles,
        }))
    }

    /// Returns the pages of these lines, each of which has `1 << line_shift` bytes.
    pub(super) fn pages_of(lines: &Range<u64>, line_shift: u32) -> Range<u64> {
        let shift = PAGE_BYTES.trailing_zeros() - line_shift;
        if lines.is_empty() {
            return 0..0;
        }
        lines.start >> shift..((lines.end - 1) >> shift) + 1
    }

    /// Translates an address within this page.
    pub(super) fn translate(&mut self, page: u64) -> Translation {
        if self.first.touch(page, false).is_hit() {
            return Translation::First;
        }
        match self.second.touch(page, false).is_hit() {
            true => Translation::Second(self.second_latency_cycles),
            false => Translation::Walk(self.second_latency_cycles, PAGE_TABLE + page * ENTRY_BYTES),
        }
    }
}
