//! Determines how long lazy entries are held back to be transferred together with others.

use super::LONGEST_WAIT;
use baton_wire::{Span, Time};

/// Initial estimate of the time until other entries arrive.
const FIRST_EXPECTED: Span = Span::from_us(250);

/// Shortest hold time.
const SHORTEST: Span = Span::from_us(100);

/// The hold time is this many times the mean time until other entries arrive.
const MEANS: u64 = 4;

/// Number of vain waits after which the policy assumes that the other side stalls.
const STALLS: u32 = 3;

/// Initial and maximum number of batches that are released without a wait after a stall, before the policy tries to wait again.
const RELEASES: (u32, u32) = (64, 1024);

/// Learns how soon other entries arrive. The danger is that the other side does nothing until it gets the held entries, such as completions
/// without which it has no buffers. In such a stall, nothing arrives until the timer fires, and then something arrives immediately.
#[derive(Clone, Debug)]
pub(super) struct HoldTime {
    /// Mean time until other entries arrive.
    expected: Span,
    /// Set if the last batch went alone and nothing has arrived since.
    lone: Option<Lone>,
    /// Number of consecutive times that an entry arrived immediately after a batch that went alone.
    stalls: u32,
    /// Number of batches still to be released without a wait.
    releases_left: u32,
    /// Number of batches to be released without a wait after the next stall.
    releases_next: u32,
}

#[derive(Clone, Debug)]
struct Lone {
    since: Time,
    released: Time,
}

impl HoldTime {
    pub(super) fn new() -> Self {
        Self {
            expected: FIRST_EXPECTED,
            lone: None,
            stalls: 0,
            releases_left: 0,
            releases_next: RELEASES.0,
        }
    }

    /// Returns how long lazy entries must wait.
    pub(super) fn hold_time(&self) -> Span {
        if self.releases_left > 0 {
            return Span::ZERO;
        }
        let hold = (self.expected * MEANS).clamp(SHORTEST, LONGEST_WAIT);
        if hold < LONGEST_WAIT {
            return hold;
        }
        // An apparent stall may be an entry that arrives just after the longest wait. If so, the entry does not arrive immediately after a
        // shorter wait.
        hold / (1 << self.stalls)
    }

    /// Records that an entry of any kind was queued.
    pub(super) fn handle_entry(&mut self, now: Time) {
        let Some(Lone { since, released }) = self.lone.take() else {
            return;
        };
        if (now - released) * 4 >= released - since {
            // The entry arrived independently, only later than expected.
            self.handle_companion(now - since);
            return;
        }
        // A different hold time next time can distinguish the two cases: a longer one, or a shorter one at the maximum.
        self.learn(now - since);
        self.stalls += 1;
        if self.stalls >= STALLS {
            self.stalls = STALLS - 1;
            self.expected = FIRST_EXPECTED;
            self.releases_left = self.releases_next;
            self.releases_next = (self.releases_next * 2).min(RELEASES.1);
        }
    }

    /// Records that another entry arrived after `wait`.
    pub(super) fn handle_companion(&mut self, wait: Span) {
        self.learn(wait);
        if self.releases_left == 0 {
            self.stalls = 0;
            self.releases_next = RELEASES.0;
        }
    }

    fn learn(&mut self, wait: Span) {
        self.expected = (self.expected * 3 + wait.min(LONGEST_WAIT)) / 4;
    }

    /// Records that entries that had waited since `since` went alone at `now`.
    pub(super) fn handle_lone_release(&mut self, since: Time, now: Time) {
        if self.releases_left > 0 {
            self.releases_left -= 1;
        } else if now - since >= self.hold_time() {
            let released = now;
            self.lone = Some(Lone { since, released });
        }
    }
}
