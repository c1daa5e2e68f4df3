//! A rate limit for log lines.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Number of lines that may be shown in a burst.
const BURST: u32 = 20;
/// Interval at which one more line may be shown after that.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which hidden lines are counted before one line reports their number.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);
/// Maximum number of keys with buckets of their own.
const MOST_KEYS: usize = 1024;

/// Decides which lines to show, by a token bucket per key.
#[derive(Debug)]
pub struct Lines<K> {
    buckets: FxHashMap<K, Bucket>,
    hidden: u64,
}

#[derive(Debug)]
struct Bucket {
    lines: u32,
    since: Instant,
    /// Number of hidden lines, and the time of the first.
    hidden: Option<(u64, Instant)>,
}

impl<K> Default for Lines<K> {
    fn default() -> Self {
        Self {
            buckets: FxHashMap::default(),
            hidden: 0,
        }
    }
}

impl<K: Copy + Eq + Hash> Lines<K> {
    /// Returns the number of lines hidden so far.
    pub fn hidden(&self) -> u64 {
        self.hidden
    }

    /// Returns whether to show a line of this key; if not, counts the line as hidden.
    pub fn shows(&mut self, now: Instant, key: K) -> bool {
        if self.buckets.len() >= MOST_KEYS && !self.buckets.contains_key(&key) {
            let is_used = |_: &K, bucket: &mut Bucket| !bucket.is_full(now);
            self.buckets.retain(is_used);
        }
        let has_room = self.buckets.len() < MOST_KEYS;
        let bucket = match has_room || self.buckets.contains_key(&key) {
            true => Some(self.buckets.entry(key).or_insert(Bucket {
                lines: BURST,
                since: now,
                hidden: None,
            })),
            false => None,
        };
        let is_shown = bucket.is_some_and(|bucket| bucket.take(now));
        self.hidden += u64::from(!is_shown);
        is_shown
    }

    /// Returns a key some of whose lines have been hidden for a while, and their number.
    pub fn poll_hidden(&mut self, now: Instant) -> Option<(K, u64)> {
        self.buckets.iter_mut().find_map(|(key, bucket)| {
            let is_due = |(_, since): &mut (u64, Instant)| *since + LONGEST_SILENCE <= now;
            let (hidden, _) = bucket.hidden.take_if(is_due)?;
            Some((*key, hidden))
        })
    }
}

impl Bucket {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_secs() / INTERVAL.as_secs();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        self.since += INTERVAL * passed;
        self.lines = self.lines.saturating_add(passed).min(BURST);
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.lines == BURST && self.hidden.is_none()
    }

    fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        if self.lines > 0 && self.hidden.is_none() {
            self.lines -= 1;
            return true;
        }
        self.hidden.get_or_insert((0, now)).0 += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_many_lines_is_limited_alone_and_summarised_in_one_line() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let shown = (0..3778).filter(|_| lines.shows(start, 1)).count();
        assert_eq!(shown, BURST as usize);
        assert!(lines.shows(start, 2), "another's");
        assert_eq!(lines.poll_hidden(start), None);
        let later = start + LONGEST_SILENCE;
        assert_eq!(lines.poll_hidden(later), Some((1, 3758)));
        assert_eq!(lines.poll_hidden(later), None);
        assert!(lines.shows(later, 1), "it may again");
        assert_eq!(lines.hidden(), 3758);
        // In the long run, one line per interval is shown, however many there are.
        let shown = |at| lines.shows(later + Duration::from_millis(at), 1);
        assert!((0..9000).map(shown).filter(|shown| *shown).count() < 20);
    }

    #[test]
    fn keys_are_bounded() {
        let mut lines = Lines::default();
        let start = Instant::now();
        for key in 0..2 * MOST_KEYS {
            lines.shows(start, key);
        }
        assert_eq!(lines.buckets.len(), MOST_KEYS);
        assert_eq!(lines.hidden(), MOST_KEYS as u64);
        let later = start + 2 * INTERVAL;
        assert!(lines.shows(later, 2 * MOST_KEYS), "others are full again");
    }
}
