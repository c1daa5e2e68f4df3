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
    /// Whether these parameters can work for a ring of `depth` descriptors of `descriptor_bytes`.
    ///
    /// # Errors
    /// Says which parameter cannot, and what was expected.
    pub fn validate(&self, depth: u32, descriptor_bytes: u32) -> Result<(), BatchingError> {
        for (name, value) in [
            ("level", self.level),
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

/// Descriptors that are due, and the transfers that move them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Descriptors to take from the ring.
    pub descriptors: u32,
    /// Transfers that they need.
    pub transfers: u32,
}

/// Decides when the descriptors waiting in one ring are transferred: when the level is reached, or when the timer
/// set by the first of them fires. All that wait by then go.
///
/// Order of calls: [`Batcher::queued`] for each descriptor; [`Batcher::take_due`] after that, and at [`Batcher::deadline`].
#[derive(Clone, Debug)]
pub struct Batcher {
    level: u32,
    timer: Span,
    descriptors_per_transfer: u32,
    waiting: u32,
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
            timer: Span::from_us(config.timer_us.into()),
            descriptors_per_transfer: config
                .max_descriptors
                .min(config.max_transfer_bytes / descriptor_bytes.max(1)),
            waiting: 0,
            deadline: None,
        })
    }

    /// A descriptor was put on the ring at `now`.
    pub fn queued(&mut self, now: Time) {
        self.waiting += 1;
        self.deadline.get_or_insert(now + self.timer);
    }

    /// What has to be transferred at `now`, if anything; the caller takes these descriptors off the ring.
    pub fn take_due(&mut self, now: Time) -> Option<Batch> {
        let deadline = self.deadline?;
        if self.waiting < self.level && now < deadline {
            return None;
        }
        let descriptors = std::mem::take(&mut self.waiting);
        self.deadline = None;
        Some(Batch {
            descriptors,
            transfers: descriptors.div_ceil(self.descriptors_per_transfer),
        })
    }

    /// When the descriptors that wait are due at the latest; `None` if none waits.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Descriptors that wait.
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
        assert_eq!(batcher.take_due(at_us(0)), None);
        for us in 0..3 {
            batcher.queued(at_us(us));
            assert_eq!(
                batcher.take_due(at_us(us)),
                Some(Batch {
                    descriptors: 1,
                    transfers: 1
                })
            );
            assert_eq!((batcher.waiting(), batcher.deadline()), (0, None));
        }
    }

    #[test]
    fn level_collects_and_timer_limits_the_wait() {
        let mut batcher = batcher(3, 5);
        batcher.queued(at_us(10));
        batcher.queued(at_us(12));
        assert_eq!(batcher.take_due(at_us(12)), None);
        assert_eq!(
            batcher.deadline(),
            Some(at_us(15)),
            "the first one set the timer"
        );
        assert_eq!(
            batcher.take_due(at_us(15)),
            Some(Batch {
                descriptors: 2,
                transfers: 1
            })
        );
        for _ in 0..3 {
            batcher.queued(at_us(20));
        }
        assert_eq!(
            batcher.take_due(at_us(20)),
            Some(Batch {
                descriptors: 3,
                transfers: 1
            })
        );
    }

    #[test]
    fn more_than_the_level_may_go_and_transfers_are_limited() {
        let config = Batching {
            level: 2,
            max_descriptors: 100,
            max_transfer_bytes: 320,
            ..Batching::default()
        };
        let mut batcher = Batcher::new(&config, 128, 32).unwrap();
        for _ in 0..25 {
            batcher.queued(at_us(0));
        }
        assert_eq!(
            batcher.take_due(at_us(0)),
            Some(Batch {
                descriptors: 25,
                transfers: 3
            })
        );
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
            let mut waiting_since = std::collections::VecDeque::new();
            for gap in gaps_us {
                let next = now + Span::from_us(gap);
                // The timer fires on the way to the next descriptor.
                if let Some(deadline) = batcher.deadline().filter(|&deadline| deadline <= next) {
                    let batch = batcher.take_due(deadline).expect("due at its deadline");
                    taken += batch.descriptors;
                    for since in waiting_since.drain(..batch.descriptors as usize) {
                        prop_assert!(deadline - since <= Span::from_us(timer_us.into()));
                    }
                }
                now = next;
                batcher.queued(now);
                queued += 1;
                waiting_since.push_back(now);
                if let Some(batch) = batcher.take_due(now) {
                    prop_assert!(batch.descriptors >= level || timer_us == 0);
                    taken += batch.descriptors;
                    waiting_since.drain(..batch.descriptors as usize);
                }
                prop_assert_eq!(queued, taken + batcher.waiting());
                prop_assert!(batcher.waiting() < level);
            }
        }
    }
}
