//! Keeping cached blocks in step with their files (data-caching 4.2 and 6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// How a cached block stands to the content that a packet needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is that content.
    Same,
    /// It is older: of no use to anybody who asks from now on.
    Older,
    /// It is newer: the packet sends what was current when it was given to the socket.
    Newer,
}

/// What is done with a cached block at the moment its file changes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChange {
    /// Nothing: the system need not even notice.
    Leave,
    /// It leaves the directory.
    Remove,
    /// The new content takes its place.
    Update,
}

/// A protocol that keeps the caches coherent.
pub trait Coherence: Debug + Send {
    /// A block was put into the cache when its file had the revision `since`; a packet needs what it was at `asked`.
    fn compare(&self, since: u32, asked: u32) -> Freshness;

    /// What to do with a cached block that a change touches.
    fn on_change(&self) -> OnChange;
}

/// Blocks of an old revision are noticed when they are looked up; the paper's protocol. A change of any part of a file makes all
/// its blocks old.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lazy;

impl Coherence for Lazy {
    fn compare(&self, since: u32, asked: u32) -> Freshness {
        match since.cmp(&asked) {
            std::cmp::Ordering::Equal => Freshness::Same,
            std::cmp::Ordering::Less => Freshness::Older,
            std::cmp::Ordering::Greater => Freshness::Newer,
        }
    }

    fn on_change(&self) -> OnChange {
        OnChange::Leave
    }
}

/// What changes is known at once, so that a block in the directory has not changed since it was put there.
fn unchanged_since(since: u32, asked: u32) -> Freshness {
    if since <= asked {
        Freshness::Same
    } else {
        Freshness::Newer
    }
}

/// A changed block leaves the directory as soon as it changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eager;

impl Coherence for Eager {
    fn compare(&self, since: u32, asked: u32) -> Freshness {
        unchanged_since(since, asked)
    }

    fn on_change(&self) -> OnChange {
        OnChange::Remove
    }
}

/// A changed block is put into the cache again at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Update;

impl Coherence for Update {
    fn compare(&self, since: u32, asked: u32) -> Freshness {
        unchanged_since(since, asked)
    }

    fn on_change(&self) -> OnChange {
        OnChange::Update
    }
}

/// A protocol as a configuration names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoherenceConfig {
    /// A block of another revision is found out when it is looked up: [`Lazy`].
    #[default]
    Lazy,
    /// A block leaves the cache when it changes: [`Eager`].
    Eager,
    /// A block is put into the cache again when it changes: [`Update`].
    Update,
}

impl CoherenceConfig {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Lazy, Self::Eager, Self::Update];

    /// The protocol itself.
    pub fn build(self) -> Box<dyn Coherence> {
        match self {
            Self::Lazy => Box::new(Lazy),
            Self::Eager => Box::new(Eager),
            Self::Update => Box::new(Update),
        }
    }
}
