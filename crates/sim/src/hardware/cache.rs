//! The tags of one set-associative cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wide::u32x4;

use super::config_error::{ConfigError, check_range};

/// Geometry and speed of one cache level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Capacity, KiB.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub size_kib: u32,
    /// Lines in a set, 1 to 64.
    #[schemars(range(min = 1, max = MAX_WAYS))]
    pub ways: u32,
    /// Bytes in a line, a power of two from 16 to 4096.
    #[schemars(range(min = 16, max = 4096), extend("x-power-of-two" = true))]
    pub line_bytes: u32,
    /// Processor cycles from the request to the data, on a hit in this level.
    #[schemars(range(min = 1, max = 10000))]
    pub latency_cycles: u32,
}

impl CacheConfig {
    /// Returns the number of sets.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn sets(&self) -> Result<u32, ConfigError> {
        check_range("size_kib", self.size_kib.into(), 1, 1 << 20)?;
        check_range("ways", self.ways.into(), 1, MAX_WAYS as u64)?;
        check_range("line_bytes", self.line_bytes.into(), 16, 4096)?;
        check_range("latency_cycles", self.latency_cycles.into(), 1, 10_000)?;
        if !self.line_bytes.is_power_of_two() {
            return Err(ConfigError::new(
                "line_bytes",
                self.line_bytes,
                "a power of two",
            ));
        }
        let (size, way_bytes) = (
            u64::from(self.size_kib) * 1024,
            u64::from(self.ways * self.line_bytes),
        );
        let sets = size / way_bytes;
        if !size.is_multiple_of(way_bytes) || !sets.is_power_of_two() {
            let expected = format!(
                "ways x line_bytes = {way_bytes} bytes times a power of two (the number of sets; this makes {:.2})",
                size as f64 / way_bytes as f64
            );
            return Err(ConfigError::new("size_kib", self.size_kib, expected));
        }
        Ok(u32::try_from(sets).expect("at most 1 GiB in lines of 16 bytes"))
    }

    /// Checks that such a cache is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.sets().map(|_| ())
    }
}

/// Result of accessing a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The line was in the cache.
    Hit,
    /// The line was in the cache, but clean; this is the first write to it.
    FirstWrite,
    /// The line was not in the cache. It took a free way, or replaced a clean line.
    Miss,
    /// The line was not in the cache. It replaced this dirty line, which must be written back.
    MissWriteBack(u64),
}

impl Outcome {
    /// Returns whether the line was in the cache.
    pub fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::FirstWrite)
    }
}

/// The lines that a cache holds. A line is identified by its number: address divided by line size.
///
/// A set is an array of tags in the order of their last use, most recent first: true LRU without timestamps. Sixteen ways fit into one
/// cache line of the real machine, and every search and every move is a fixed number of wide instructions.
#[derive(Clone, Debug)]
pub struct Cache {
    /// `sets * stride` entries: the tag shifted left by one, and [`DIRTY`]. Free ways contain [`FREE`] and come after all others.
    entries: Vec<u32>,
    /// `ways` rounded up to a power of two: the distance between sets. The surplus entries are always `FREE`.
    stride: usize,
    ways: usize,
    set_bits: u32,
    set_mask: usize,
}

/// Bit of an entry that says that its line was written to.
const DIRTY: u32 = 1;
/// An entry without a line. Such a tag is out of range.
const FREE: u32 = u32::MAX;
/// Maximum number of ways.
pub(super) const MAX_WAYS: usize = 64;

/// Calls `$method::<W>`, where W, the stride of a cache's sets, is a compile-time constant.
macro_rules! with_stride {
    ($stride:expr, $self:ident.$method:ident($($argument:expr),*)) => {
        match $stride.trailing_zeros() {
            0 => $self.$method::<1>($($argument),*),
            1 => $self.$method::<2>($($argument),*),
            2 => $self.$method::<4>($($argument),*),
            3 => $self.$method::<8>($($argument),*),
            4 => $self.$method::<16>($($argument),*),
            5 => $self.$method::<32>($($argument),*),
            _ => $self.$method::<{ $crate::hardware::cache::MAX_WAYS }>($($argument),*),
        }
    };
}
pub(super) use with_stride;

impl Cache {
    /// Creates an empty cache.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &CacheConfig) -> Result<Self, ConfigError> {
        let sets = config.sets()?;
        let ways = config.ways as usize;
        let stride = ways.next_power_of_two();
        Ok(Self {
            entries: vec![FREE; sets as usize * stride],
            stride,
            ways,
            set_bits: sets.trailing_zeros(),
            set_mask: sets as usize - 1,
        })
    }

    /// Accesses `line`: makes it the most recent of its set. On a miss, the line replaces the least recently used line of the set.
    #[inline]
    pub fn touch(&mut self, line: u64, write: bool) -> Outcome {
        with_stride!(self.stride, self.touch_set(line, write))
    }

    /// Reports whether accessing `line` would change nothing, because it is the most recent of its set and, for a write, already dirty.
    #[inline]
    pub(super) fn is_just_used(&self, line: u64, write: bool) -> bool {
        let (ignored, written) = if write { (0, DIRTY) } else { (DIRTY, 0) };
        let most_recent = self.entries.get(self.set_of(line) * self.stride);
        most_recent.is_some_and(|entry| entry & !ignored == self.entry_of(line) | written)
    }

    /// Returns the distance between sets, for [`Cache::touch_set`] and [`Cache::fill_set`].
    #[inline]
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Fetches `line` as the most recent of its set, or changes nothing if the line is already in the cache.
    #[inline]
    pub fn fill(&mut self, line: u64) -> Outcome {
        with_stride!(self.stride, self.fill_set(line))
    }

    /// Marks `line` as dirty without changing the LRU order. Returns false if the line is not in the cache.
    #[inline]
    pub fn mark_dirty(&mut self, line: u64) -> bool {
        with_stride!(self.stride, self.mark_dirty_in_set(line))
    }

    /// Drops `line`, dirty or not. Returns false if the line is not in the cache.
    #[inline]
    pub fn invalidate(&mut self, line: u64) -> bool {
        with_stride!(self.stride, self.invalidate_in_set(line))
    }

    /// Returns whether `line` is dirty, or `None` if the line is not in the cache.
    pub fn state_of(&self, line: u64) -> Option<bool> {
        let first = self.set_of(line) * self.stride;
        let wanted = self.entry_of(line);
        let set = &self.entries[first..first + self.ways];
        set.iter()
            .find(|&&entry| entry & !DIRTY == wanted)
            .map(|&entry| entry & DIRTY != 0)
    }

    /// Panics unless every set contains each line at most once, free ways come last, and the surplus entries are free.
    pub fn check(&self) {
        for set in self.entries.chunks(self.stride) {
            let used = set
                .iter()
                .position(|&entry| entry == FREE)
                .unwrap_or(set.len());
            assert!(used <= self.ways, "a set holds more lines than it has ways");
            assert!(
                set[used..].iter().all(|&entry| entry == FREE),
                "a set has a line after a free way"
            );
            for (way, entry) in set[..used].iter().enumerate() {
                assert!(
                    set[..way].iter().all(|other| (other ^ entry) & !DIRTY != 0),
                    "a set holds a line twice"
                );
            }
        }
    }

    #[inline]
    fn set_of(&self, line: u64) -> usize {
        line as usize & self.set_mask
    }

    /// Returns the clean entry of `line`.
    #[inline]
    fn entry_of(&self, line: u64) -> u32 {
        let tag = line >> self.set_bits;
        debug_assert!(
            tag < u64::from(FREE >> 1),
            "line {line:#x} is beyond the memory that 31-bit tags can name"
        );
        (tag as u32) << 1
    }

    /// Returns the number of the line in `set` that has this entry.
    #[inline]
    fn line_of(&self, set: usize, entry: u32) -> u64 {
        u64::from(entry >> 1) << self.set_bits | set as u64
    }

    #[inline]
    fn set<const W: usize>(&mut self, set: usize) -> &mut [u32; W] {
        &mut self.entries.as_chunks_mut().0[set]
    }

    /// Implements [`Cache::touch`] for a stride of `W`.
    #[inline]
    pub(super) fn touch_set<const W: usize>(&mut self, line: u64, write: bool) -> Outcome {
        let (set, wanted) = (self.set_of(line), self.entry_of(line));
        let entries = self.set::<W>(set);
        let most_recent = entries[0];
        if most_recent & !DIRTY == wanted {
            entries[0] |= u32::from(write);
            return hit(most_recent, entries[0]);
        }
        match find(entries, wanted) {
            Some(way) => {
                let before = entries[way];
                let entry = before | u32::from(write);
                insert_first(entries, way, entry);
                hit(before, entry)
            }
            None => self.replace_last::<W>(set, wanted | u32::from(write)),
        }
    }

    /// Implements [`Cache::fill`] for a stride of `W`.
    #[inline]
    pub(super) fn fill_set<const W: usize>(&mut self, line: u64) -> Outcome {
        let (set, wanted) = (self.set_of(line), self.entry_of(line));
        match find(self.set::<W>(set), wanted) {
            Some(_) => Outcome::Hit,
            None => self.replace_last::<W>(set, wanted),
        }
    }

    #[inline]
    fn replace_last<const W: usize>(&mut self, set: usize, entry: u32) -> Outcome {
        let last = self.ways - 1;
        let entries = self.set::<W>(set);
        let victim = entries[last];
        insert_first(entries, last, entry);
        if victim & DIRTY != 0 && victim != FREE {
            return Outcome::MissWriteBack(self.line_of(set, victim));
        }
        Outcome::Miss
    }

    #[inline(never)]
    fn mark_dirty_in_set<const W: usize>(&mut self, line: u64) -> bool {
        let (set, wanted) = (self.set_of(line), self.entry_of(line));
        let entries = self.set::<W>(set);
        let found = find(entries, wanted);
        if let Some(way) = found {
            entries[way] |= DIRTY;
        }
        found.is_some()
    }

    #[inline(never)]
    fn invalidate_in_set<const W: usize>(&mut self, line: u64) -> bool {
        let (set, wanted) = (self.set_of(line), self.entry_of(line));
        let entries = self.set::<W>(set);
        let found = find(entries, wanted);
        if let Some(way) = found {
            entries.copy_within(way + 1.., way);
            entries[W - 1] = FREE;
        }
        found.is_some()
    }
}

/// Returns the outcome of a hit that changed an entry from `before` to `after`.
#[inline]
fn hit(before: u32, after: u32) -> Outcome {
    if before == after {
        Outcome::Hit
    } else {
        Outcome::FirstWrite
    }
}

/// Returns the way that contains `wanted`, a clean entry. Compares all ways without stopping early, which takes a few wide comparisons.
#[inline(always)]
fn find<const W: usize>(entries: &[u32; W], wanted: u32) -> Option<usize> {
    let (fours, rest) = entries.as_chunks::<4>();
    let mut found = 0_u64;
    for (n, &four) in fours.iter().enumerate() {
        let equal = (u32x4::new(four) & u32x4::splat(!DIRTY)).simd_eq(u32x4::splat(wanted));
        found |= u64::from(equal.to_bitmask()) << (4 * n);
    }
    for (way, &entry) in rest.iter().enumerate() {
        found |= u64::from(entry & !DIRTY == wanted) << way;
    }
    (found != 0).then_some(found.trailing_zeros() as usize)
}

/// Puts `entry` first and moves the entries before `way` back by one, which overwrites the entry in `way`.
#[inline(always)]
fn insert_first<const W: usize>(entries: &mut [u32; W], way: usize, entry: u32) {
    if W < 4 {
        for i in (1..W).rev() {
            entries[i] = if i <= way { entries[i - 1] } else { entries[i] };
        }
        entries[0] = entry;
        return;
    }
    if way == W - 1 {
        // The common case, a miss, is a simple move.
        entries.copy_within(..W - 1, 1);
        entries[0] = entry;
        return;
    }
    entries.copy_within(..way, 1);
    entries[0] = entry;
}
