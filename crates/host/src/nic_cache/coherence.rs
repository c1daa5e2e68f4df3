//! Protocols that keep cached blocks consistent with their files (data-caching 4.2 and 6.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Relation of a cached block to the content that a packet needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The block has this content.
    Same,
    /// The block is older, and of no use to future requests.
    Older,
    /// The block is newer: the packet sends the content that was current when it was given to the socket.
    Newer,
}

/// Action on a cached block when its content in the file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnChange {
    /// Do nothing: the system need not even notice the change.
    Leave,
    /// Remove the block from the directory.
    Remove,
    /// Replace the block with the new content.
    Update,
}

/// A protocol that keeps the caches coherent.
pub trait Coherence: Debug + Send {
    /// Compares a block that was put into the cache at revision `since` of its file with the content that a packet needs, of revision
    /// `asked`.
    fn compare(&self, since: u32, asked: u32) -> Freshness;

    /// Returns the action on a cached block that a change affects.
    fn on_change(&self) -> OnChange;
}

/// The paper's protocol: old blocks are detected when they are looked up. A change of any part of a file makes all its blocks old.
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

/// Compares revisions if changes are noticed immediately, so that a block in the directory has not changed since it was put there.
fn unchanged_since(since: u32, asked: u32) -> Freshness {
    if since <= asked {
        Freshness::Same
    } else {
        Freshness::Newer
    }
}

/// A block is removed from the directory as soon as it changes.
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

/// A changed block is immediately put into the cache again.
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

/// Configuration of a coherence protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoherenceConfig {
    /// A block of an old revision is noticed when it is looked up: [`Lazy`].
    #[default]
    Lazy,
    /// A block leaves the cache when its file changes there: [`Eager`].
    Eager,
    /// A block is put into the cache again when its file changes there: [`Update`].
    Update,
}

impl CoherenceConfig {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Lazy, Self::Eager, Self::Update];

    /// Creates the protocol.
    pub fn build(self) -> Box<dyn Coherence> {
        match self {
            Self::Lazy => Box::new(Lazy),
            Self::Eager => Box::new(Eager),
            Self::Update => Box::new(Update),
        }
    }
}
