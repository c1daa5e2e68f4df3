//! How long entries that nobody waits for are held back for others to go with them.

use super::LONGEST_WAIT;
use baton_wire::{Span, Time};

/// The time after which others are expected at first.
const FIRST_EXPECTED: Span = Span::from_us(250);

/// The least that they wait.
const SHORTEST: Span = Span::from_us(100);

/// They wait for so many times the mean time after which others came.
const MEANS: u64 = 4;

/// Waits in vain after which it is believed that the other side stands still.
const STALLS: u32 = 3;

/// Releases without a wait after that, at first and at most. Then waiting is tried again.
const RELEASES: (u32, u32) = (64, 1024);

/// How soon others come, learned. The danger is an other side that does nothing before it gets what waits here, such as
/// completions without which it has no buffers. It shows: nothing comes until the timer fires, and then something comes at once.
#[derive(Clone, Debug)]
pub(super) struct HoldTime {
    /// Mean time after which others came.
    expected: Span,
    /// The last batch went alone, and nothing has come since.
    lone: Option<Lone>,
    /// Times in succession that something came at once after that.
    stalls: u32,
    /// Releases that are still to come without a wait.
    releases_left: u32,
    /// How many there are next time.
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

    /// How long entries that nobody waits for are to wait.
    pub(super) fn hold_time(&self) -> Span {
        if self.releases_left > 0 {
            return Span::ZERO;
        }
        let hold = (self.expected * MEANS).clamp(SHORTEST, LONGEST_WAIT);
        if hold < LONGEST_WAIT {
            return hold;
        }
        // What looks like a standstill may be something that comes just after the longest wait; if so, it does not come at once
        // after a shorter one.
        hold / (1 << self.stalls)
    }

    /// An entry of any kind was queued.
    pub(super) fn handle_entry(&mut self, now: Time) {
        let Some(Lone { since, released }) = self.lone.take() else {
            return;
        };
        if (now - released) * 4 >= released - since {
            // It came by itself, only later than was thought.
            self.handle_companion(now - since);
            return;
        }
        // Next time another hold may tell one from the other: more, or less where it cannot be more.
        self.learn(now - since);
        self.stalls += 1;
        if self.stalls >= STALLS {
            self.stalls = STALLS - 1;
            self.expected = FIRST_EXPECTED;
            self.releases_left = self.releases_next;
            self.releases_next = (self.releases_next * 2).min(RELEASES.1);
        }
    }

    /// Another came after `wait`.
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

    /// What has waited since `since` went alone at `now`.
    pub(super) fn handle_lone_release(&mut self, since: Time, now: Time) {
        if self.releases_left > 0 {
            self.releases_left -= 1;
        } else if now - since >= self.hold_time() {
            let released = now;
            self.lone = Some(Lone { since, released });
        }
    }
}
