//! Determines when waiting descriptors are transferred (batching, section 3.1): by level and timer, or by a policy that finds both itself.

mod adaptive;
#[cfg(test)]
mod tests;

use adaptive::Adaptive;
use baton_wire::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Who chooses the level and the timer of batching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchingPolicy {
    /// The user: level and timer stay as they are set.
    #[default]
    Fixed,
    /// The queue itself, from what it observes.
    ///
    /// See [`Urgency`].
    Adaptive,
}

/// Batching parameters of one side, host or adapter; each side has its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Batching {
    /// Who chooses the level and the timer.
    pub policy: BatchingPolicy,
    /// Number of waiting descriptors at which they are transferred; 1 transfers each as soon as it is queued. Fixed batching only.
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub level: u32,
    /// Maximum time that a descriptor waits for others, microseconds. The timer starts when the first descriptor of a batch is queued.
    /// Fixed batching only.
    pub timer_us: u32,
    /// Tick of the timer, microseconds. The timer runs for whole ticks, as the timers of a process do. Fixed batching only.
    #[schemars(range(min = 1))]
    pub tick_us: u32,
    /// Maximum number of descriptors in one transfer.
    #[schemars(range(min = 1))]
    pub max_descriptors: u32,
    /// Maximum number of bytes in one transfer, of descriptors or of data.
    #[schemars(range(min = crate::Descriptor::BYTES))]
    pub max_transfer_bytes: u32,
}

/// Disables batching. The limits are those of the paper: 4 KiB transfers, 128 descriptors of 32 bytes.
impl Default for Batching {
    fn default() -> Self {
        Self {
            policy: BatchingPolicy::Fixed,
            level: 1,
            timer_us: 1_000,
            tick_us: 1,
            max_descriptors: 128,
            max_transfer_bytes: 4096,
        }
    }
}

/// Invalid batching parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchingError {
    /// A parameter is zero but must not be.
    #[error("{0} = 0: expected 1 or more")]
    Zero(&'static str),
    /// The level can never be reached, because the ring holds fewer descriptors.
    #[error("level = {level}: expected 1 to {depth}, the depth of the ring")]
    LevelAboveDepth {
        /// The requested level.
        level: u32,
        /// Depth of the ring, descriptors.
        depth: u32,
    },
    /// A transfer cannot hold even one descriptor.
    #[error(
        "max_transfer_bytes = {max_transfer_bytes}: expected at least {descriptor_bytes}, one descriptor"
    )]
    TransferTooSmall {
        /// The requested limit.
        max_transfer_bytes: u32,
        /// Bytes of one descriptor.
        descriptor_bytes: u32,
    },
}

impl BatchingError {
    /// Returns the name of the parameter, its value, and the accepted values.
    pub fn parts(&self) -> (&'static str, u32, String) {
        match *self {
            Self::Zero(field) => (field, 0, "1 or more".to_owned()),
            Self::LevelAboveDepth { level, depth } => {
                ("level", level, format!("1 to ring_depth = {depth}"))
            }
            Self::TransferTooSmall {
                max_transfer_bytes: bytes,
                descriptor_bytes: least,
            } => (
                "max_transfer_bytes",
                bytes,
                format!("at least {least}, one descriptor"),
            ),
        }
    }
}

impl Batching {
    /// Returns the duration of the timer.
    pub fn timer(&self) -> Span {
        let ticks = self.timer_us.div_ceil(self.tick_us.max(1));
        Span::from_us(u64::from(ticks) * u64::from(self.tick_us))
    }

    /// Returns the maximum number of descriptors of `descriptor_bytes` in one transfer.
    pub fn most_per_transfer(&self, descriptor_bytes: u32) -> u32 {
        self.max_descriptors
            .min(self.max_transfer_bytes / descriptor_bytes.max(1))
    }

    /// Checks that these parameters can work for a ring of `depth` descriptors of `descriptor_bytes`.
    ///
    /// # Errors
    /// Names the invalid parameter and the accepted values.
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

/// Who waits for an entry. Fixed batching only distinguishes entries that must go immediately. Adaptive batching delays awaited entries by
/// a small share of the time that the work takes, and holds lazy entries until others go with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Nobody waits for the entry. It only frees something, like the completions of CLOSE and of most SENDs. A completion that the other
    /// side needs in order to continue is not lazy: for example, that of a SEND that announced [more](crate::descriptor::Action::Send)
    /// data.
    Lazy,
    /// Somebody waits for the entry, for example for a connection to be accepted.
    Awaited,
    /// Neither the entry nor the entries before it may wait in this queue: it refers to data that has already crossed, or reports an error.
    AtOnce,
}

/// A rule that chooses the moments of transfers from what is queued and when. [`BatchingPolicy::Adaptive`] is one.
pub trait BatchingRule: Debug + Send {
    /// Records that an entry about the socket `flow` was queued at `now`. Returns the new deadline of all waiting entries.
    fn queued(&mut self, now: Time, flow: u32, urgency: Urgency) -> Time;

    /// Returns the number of waiting entries at which they become due immediately. By default, only the deadline limits the wait.
    fn most_waiting(&self) -> u32 {
        u32::MAX
    }

    /// Records that all waiting entries were taken at `now`.
    fn taken(&mut self, now: Time);

    /// Forgets all waiting entries, which were not transferred.
    fn clear(&mut self);
}

/// Decides when the entries in one queue are transferred. With fixed batching, that is when the number of entries reaches the level, when
/// they refer to as much data as one transfer moves, when one of them is urgent, or when the timer set by the first of them fires; adaptive
/// batching has its own rules. All entries that wait at that moment are transferred.
///
/// The caller calls [`Batcher::queued`] for each entry, then [`Batcher::is_due`], and again at [`Batcher::deadline`]. If entries are due,
/// it calls [`Batcher::taken`].
#[derive(Debug)]
pub struct Batcher {
    rule: Rule,
    waiting: u32,
    data_bytes: u32,
    urgent: bool,
    deadline: Option<Time>,
}

#[derive(Debug)]
enum Rule {
    Fixed {
        level: u32,
        timer: Span,
        max_transfer_bytes: u32,
    },
    Found(Box<dyn BatchingRule>),
}

impl Batcher {
    /// Creates a batcher for a ring of `depth` descriptors of `descriptor_bytes`.
    ///
    /// # Errors
    /// Names the invalid parameter and the accepted values.
    pub fn new(
        config: &Batching,
        depth: u32,
        descriptor_bytes: u32,
    ) -> Result<Self, BatchingError> {
        config.validate(depth, descriptor_bytes)?;
        let rule = match config.policy {
            BatchingPolicy::Fixed => Rule::Fixed {
                level: config.level,
                timer: config.timer(),
                max_transfer_bytes: config.max_transfer_bytes,
            },
            BatchingPolicy::Adaptive => Rule::Found(Box::new(Adaptive::new(depth))),
        };
        Ok(Self {
            rule,
            waiting: 0,
            data_bytes: 0,
            urgent: false,
            deadline: None,
        })
    }

    /// Replaces the configured policy by the caller's own rule. Must be called before any entry waits.
    pub fn set_rule(&mut self, rule: Box<dyn BatchingRule>) {
        self.rule = Rule::Found(rule);
    }

    /// Records that an entry about the socket `flow`, which refers to `data_bytes` of data, was queued at `now`.
    pub fn queued(&mut self, now: Time, flow: u32, data_bytes: u32, urgency: Urgency) {
        self.waiting += 1;
        self.data_bytes = self.data_bytes.saturating_add(data_bytes);
        self.urgent |= urgency == Urgency::AtOnce;
        match &mut self.rule {
            Rule::Fixed { timer, .. } => {
                self.deadline.get_or_insert(now + *timer);
            }
            Rule::Found(rule) => self.deadline = Some(rule.queued(now, flow, urgency)),
        }
    }

    /// Makes all waiting entries due immediately.
    pub fn flush(&mut self) {
        self.urgent = self.waiting > 0;
    }

    /// Returns whether the waiting entries must be transferred at `now`.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.deadline.is_some_and(|deadline| {
            let is_enough = match &self.rule {
                Rule::Fixed {
                    level,
                    max_transfer_bytes,
                    ..
                } => self.waiting >= *level || self.data_bytes >= *max_transfer_bytes,
                Rule::Found(rule) => self.waiting >= rule.most_waiting(),
            };
            self.urgent || is_enough || now >= deadline
        })
    }

    /// Records that all waiting entries were taken at `now`.
    #[inline]
    pub fn taken(&mut self, now: Time) {
        if let Rule::Found(rule) = &mut self.rule {
            rule.taken(now);
        }
        self.clear();
    }

    /// Forgets all waiting entries, which were not transferred.
    pub fn clear(&mut self) {
        if let Rule::Found(rule) = &mut self.rule {
            rule.clear();
        }
        self.waiting = 0;
        self.data_bytes = 0;
        self.urgent = false;
        self.deadline = None;
    }

    /// Returns the time at which the waiting entries become due at the latest, or `None` if there are none.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Returns the number of waiting entries.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }
}
