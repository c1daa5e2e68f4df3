//! When waiting descriptors are transferred (batching, section 3.1): by level and timer, or by a policy that finds both itself.

mod adaptive;
#[cfg(test)]
mod tests;

use adaptive::Adaptive;
use baton_wire::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Who finds the level and the timer of batching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchingPolicy {
    /// The user: they stay as they are set.
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
    /// Who finds level and timer.
    pub policy: BatchingPolicy,
    /// Descriptors that wait before they are transferred at once; 1 transfers each as soon as it is queued. Fixed batching only.
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub level: u32,
    /// The longest that a descriptor waits for others, microseconds. Set when the first of a batch is queued. Fixed batching only.
    pub timer_us: u32,
    /// What the timer is counted in, microseconds: it runs for whole ticks, as the timers of a process do. Fixed batching only.
    #[schemars(range(min = 1))]
    pub tick_us: u32,
    /// The most descriptors in one transfer.
    #[schemars(range(min = 1))]
    pub max_descriptors: u32,
    /// The most bytes in one transfer, of descriptors or of data.
    #[schemars(range(min = crate::Descriptor::BYTES))]
    pub max_transfer_bytes: u32,
}

/// No batching; the limits of the paper: 4 KiB transfers, 128 descriptors of 32 bytes.
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

impl BatchingError {
    /// The parameter, what it is, and what was expected of it.
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

/// Who waits for an entry. Fixed batching only asks whether it goes at once; adaptive batching delays what somebody waits for by a small
/// share of the time that the work takes, and what nobody waits for until others go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Nobody: it only lets go of something, as the completions of CLOSE and of most SENDs do. Not the completion that somebody needs
    /// for going on: the one of a SEND after which [more](crate::descriptor::Action::Send) is to follow.
    Lazy,
    /// Somebody waits for it, as for a connection to be accepted.
    Awaited,
    /// It is not to wait in this queue, and nothing before it: it follows data that has crossed already, or tells of an error.
    AtOnce,
}

/// Finds level and timer of batching by itself, from what is queued and when. [`BatchingPolicy::Adaptive`] is one.
pub trait BatchingRule: Debug + Send {
    /// An entry about the socket `flow` was queued at `now`: until when all that waits may wait at the latest.
    fn queued(&mut self, now: Time, flow: u32, urgency: Urgency) -> Time;

    /// Entries that do not wait for more; by default as many as the timer lets wait.
    fn most_waiting(&self) -> u32 {
        u32::MAX
    }

    /// All that waited was taken at `now`.
    fn taken(&mut self, now: Time);

    /// All that waited is forgotten: it was not transferred.
    fn clear(&mut self);
}

/// Decides when the entries waiting in one queue are transferred. By fixed batching that is when the level is reached, when they tell of
/// as much data as one transfer moves, when one is urgent, or when the timer set by the first of them fires; adaptive batching has
/// rules of its own. All that wait by then go.
///
/// Order of calls: [`Batcher::queued`] for each entry; [`Batcher::is_due`] after that and at [`Batcher::deadline`], and if so,
/// [`Batcher::taken`].
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

    /// A rule of the caller's own in place of what the parameters say, before anything waits.
    pub fn set_rule(&mut self, rule: Box<dyn BatchingRule>) {
        self.rule = Rule::Found(rule);
    }

    /// An entry about the socket `flow` that tells of `data_bytes` of data was queued at `now`.
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

    /// What waits is wanted at once.
    pub fn flush(&mut self) {
        self.urgent = self.waiting > 0;
    }

    /// Whether what waits is to be transferred at `now`.
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

    /// All that waited was taken at `now`.
    pub fn taken(&mut self, now: Time) {
        if let Rule::Found(rule) = &mut self.rule {
            rule.taken(now);
        }
        self.clear();
    }

    /// All that waited is forgotten: it was not transferred.
    pub fn clear(&mut self) {
        if let Rule::Found(rule) = &mut self.rule {
            rule.clear();
        }
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
