//! When waiting descriptors are transferred (batching, section 3.1).

use baton_wire::{Span, Time};
use serde::{Deserialize, Serialize};

/// Batching parameters of one side, host or adapter; each side has its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Batching {
    /// Descriptors that wait before they are transferred at once; 1 transfers each as soon as it is queued.
    pub level: u32,
    /// The longest that a descriptor waits for others, microseconds. Set when the first of a batch is queued.
    pub timer_us: u32,
    /// What the timer is counted in, microseconds: it runs for whole ticks, as the timers of a process do.
    pub tick_us: u32,
    /// The most descriptors in one transfer.
    pub max_descriptors: u32,
    /// The most bytes in one transfer, of descriptors or of data.
    pub max_transfer_bytes: u32,
}

/// No batching; the limits of the paper: 4 KiB transfers, 128 descriptors of 32 bytes.
impl Default for Batching {
    fn default() -> Self {
        Self {
            level: 1,
            timer_us: 1_000,
            tick_us: 1,
            max_descriptors: 128,
            max_transfer_bytes: 4096,
        }
    }
}

/// Batching parameters that could not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchingError {
    /// A parameter is zero that must not be.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// The level can never be reached, because fewer descriptors fit into the ring.
    #[error("level = {level}: expected 1 to {depth}, the depth of the ring")]
    LevelAboveDepth {
        /// The level asked for.
        level: u32,
        /// Depth of the ring, descriptors.
        depth: u32,
    },
    /// Not even one descriptor fits into a transfer.
    #[error(
        "max_transfer_bytes = {max_transfer_bytes}: expected at least {descriptor_bytes}, one descriptor"
    )]
    TransferTooSmall {
        /// The limit asked for.
        max_transfer_bytes: u32,
        /// Bytes of one descriptor.
        descriptor_bytes: u32,
    },
}

impl Batching {
    /// How long the timer runs.
    pub fn timer(&self) -> Span {
        let ticks = self.timer_us.div_ceil(self.tick_us.max(1));
        Span::from_us(u64::from(ticks) * u64::from(self.tick_us))
    }

    /// The most descriptors of `descriptor_bytes` that one transfer moves.
    pub fn most_per_transfer(&self, descriptor_bytes: u32) -> u32 {
        self.max_descriptors
            .min(self.max_transfer_bytes / descriptor_bytes.max(1))
    }

    /// Whether these parameters can work for a ring of `depth` descriptors of `descriptor_bytes`.
    ///
    /// # Errors
    /// Says which parameter cannot, and what was expected.
    pub fn validate(&self, depth: u32, descriptor_bytes: u32) -> Result<(), BatchingError> {
        for (name, value) in [
            ("level", self.level),
            ("tick_us", self.tick_us),
            ("max_descriptors", self.max_descriptors),
        ] {
            if value == 0 {
                return Err(BatchingError::Zero(name));
            }
        }
        if self.level > depth {
            return Err(BatchingError::LevelAboveDepth {
                level: self.level,
                depth,
            });
        }
        if self.max_transfer_bytes < descriptor_bytes {
            let max_transfer_bytes = self.max_transfer_bytes;
            return Err(BatchingError::TransferTooSmall {
                max_transfer_bytes,
                descriptor_bytes,
            });
        }
        Ok(())
    }
}

/// Who waits for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Nobody: it only lets go of something, as the completions of SEND and CLOSE do.
    Lazy,
    /// Somebody waits for it, as for a connection to be accepted.
    Awaited,
    /// It is not to wait in this queue, and nothing before it: it follows data that has crossed already, or tells of an error.
    AtOnce,
}

/// Decides when the entries waiting in one queue are transferred: when the level is reached, when they tell of as much data as one
/// transfer moves, when one is urgent, or when the timer set by the first of them fires. All that wait by then go.
///
/// Order of calls: [`Batcher::queued`] for each entry; [`Batcher::is_due`] after that and at [`Batcher::deadline`], and if so,
/// [`Batcher::taken`].
#[derive(Clone, Debug)]
pub struct Batcher {
    level: u32,
    timer: Span,
    max_transfer_bytes: u32,
    waiting: u32,
    data_bytes: u32,
    urgent: bool,
    deadline: Option<Time>,
}

impl Batcher {
    /// A batcher for a ring of `depth` descriptors of `descriptor_bytes`.
    ///
    /// # Errors
    /// Says which parameter cannot work, and what was expected.
    pub fn new(
        config: &Batching,
        depth: u32,
        descriptor_bytes: u32,
    ) -> Result<Self, BatchingError> {
        config.validate(depth, descriptor_bytes)?;
        Ok(Self {
            level: config.level,
            timer: config.timer(),
            max_transfer_bytes: config.max_transfer_bytes,
            waiting: 0,
            data_bytes: 0,
            urgent: false,
            deadline: None,
        })
    }

    /// An entry that tells of `data_bytes` of data was queued at `now`.
    pub fn queued(&mut self, now: Time, data_bytes: u32, urgency: Urgency) {
        self.waiting += 1;
        self.data_bytes = self.data_bytes.saturating_add(data_bytes);
        self.urgent |= urgency == Urgency::AtOnce;
        self.deadline.get_or_insert(now + self.timer);
    }

    /// What waits is wanted at once.
    pub fn hurry(&mut self) {
        self.urgent = self.waiting > 0;
    }

    /// Whether what waits is to be transferred at `now`.
    pub fn is_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| {
            self.urgent
                || self.waiting >= self.level
                || self.data_bytes >= self.max_transfer_bytes
                || now >= deadline
        })
    }

    /// All that waited was taken.
    pub fn taken(&mut self) {
        self.waiting = 0;
        self.data_bytes = 0;
        self.urgent = false;
        self.deadline = None;
    }

    /// When what waits is due at the latest; `None` if nothing waits.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Entries that wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batcher(level: u32, timer_us: u32) -> Batcher {
        Batcher::new(
            &Batching {
                level,
                timer_us,
                ..Batching::default()
            },
            128,
            32,
        )
        .unwrap()
    }

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn level_one_transfers_each_at_once() {
        let mut batcher = batcher(1, 1_000);
        assert!(!batcher.is_due(at_us(0)), "nothing waits");
        for us in 0..3 {
            batcher.queued(at_us(us), 0, Urgency::Awaited);
            assert!(batcher.is_due(at_us(us)));
            batcher.taken();
            assert_eq!((batcher.waiting(), batcher.deadline()), (0, None));
        }
    }

    #[test]
    fn level_collects_and_timer_limits_the_wait() {
        let mut batcher = batcher(3, 5);
        batcher.queued(at_us(10), 0, Urgency::Awaited);
        batcher.queued(at_us(12), 0, Urgency::Awaited);
        assert!(!batcher.is_due(at_us(12)));
        assert_eq!(
            batcher.deadline(),
            Some(at_us(15)),
            "the first one set the timer"
        );
        assert!(batcher.is_due(at_us(15)));
        batcher.queued(at_us(13), 0, Urgency::Awaited);
        assert!(batcher.is_due(at_us(13)), "the level is reached");
    }

    #[test]
    fn what_is_urgent_or_fills_a_transfer_does_not_wait() {
        let mut batcher = batcher(128, 1_000);
        batcher.hurry();
        batcher.queued(at_us(0), 4_095, Urgency::Awaited);
        assert!(!batcher.is_due(at_us(0)), "there was nothing to hurry");
        batcher.queued(at_us(0), 1, Urgency::Awaited);
        assert!(batcher.is_due(at_us(0)));
        batcher.taken();
        batcher.queued(at_us(1), 0, Urgency::Awaited);
        batcher.hurry();
        assert!(batcher.is_due(at_us(1)));
        batcher.taken();
        batcher.queued(at_us(2), 0, Urgency::Awaited);
        assert!(!batcher.is_due(at_us(2)));
        batcher.queued(at_us(2), 0, Urgency::AtOnce);
        assert!(batcher.is_due(at_us(2)));
    }

    #[test]
    fn timers_run_for_whole_ticks() {
        let config = |timer_us| Batching {
            timer_us,
            tick_us: 10_000,
            ..Batching::default()
        };
        for (timer_us, runs_us) in [(0, 0), (1, 10_000), (10_000, 10_000), (10_001, 20_000)] {
            assert_eq!(config(timer_us).timer(), Span::from_us(runs_us));
        }
    }

    #[test]
    fn parameters_that_cannot_work_are_named() {
        let error = |config: Batching| config.validate(128, 32).unwrap_err().to_string();
        assert_eq!(
            error(Batching {
                level: 0,
                ..Batching::default()
            }),
            "level = 0: expected 1 or more"
        );
        assert_eq!(
            error(Batching {
                max_descriptors: 0,
                ..Batching::default()
            }),
            "max_descriptors = 0: expected 1 or more"
        );
        assert_eq!(
            error(Batching {
                level: 129,
                ..Batching::default()
            }),
            "level = 129: expected 1 to 128, the depth of the ring"
        );
        assert_eq!(
            error(Batching {
                max_transfer_bytes: 31,
                ..Batching::default()
            }),
            "max_transfer_bytes = 31: expected at least 32, one descriptor"
        );
    }

    #[test]
    fn reads_from_toml_and_refuses_unknown_keys() {
        let read: Batching = toml::from_str("level = 8\ntimer_us = 50").unwrap();
        assert_eq!(
            read,
            Batching {
                level: 8,
                timer_us: 50,
                ..Batching::default()
            }
        );
        let error = toml::from_str::<Batching>("levels = 8")
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field `levels`"), "{error}");
        assert!(toml::from_str::<Batching>("level = -1").is_err());
    }

    proptest! {
        #[test]
        fn none_is_lost_and_none_waits_beyond_its_timer(level in 1_u32..20, timer_us in 0_u32..30, gaps_us in prop::collection::vec(0_u64..10, 1..200)) {
            let mut batcher = batcher(level, timer_us);
            let (mut now, mut queued, mut taken) = (Time::ZERO, 0, 0);
            let mut waiting_since = Vec::new();
            for gap in gaps_us {
                let next = now + Span::from_us(gap);
                // The timer fires on the way to the next descriptor.
                if let Some(deadline) = batcher.deadline().filter(|&deadline| deadline <= next) {
                    prop_assert!(batcher.is_due(deadline));
                    taken += batcher.waiting();
                    batcher.taken();
                    for since in waiting_since.drain(..) {
                        prop_assert!(deadline - since <= Span::from_us(timer_us.into()));
                    }
                }
                now = next;
                batcher.queued(now, 0, Urgency::Awaited);
                queued += 1;
                waiting_since.push(now);
                if batcher.is_due(now) {
                    prop_assert!(batcher.waiting() >= level || timer_us == 0);
                    taken += batcher.waiting();
                    batcher.taken();
                    waiting_since.clear();
                }
                prop_assert_eq!(queued, taken + batcher.waiting());
                prop_assert!(batcher.waiting() < level);
            }
        }
    }
}
