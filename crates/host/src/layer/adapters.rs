//! The adapters of a layer: what is lent to each call, and what is known here of each.

use crate::SocketId;
use crate::adapter::OsLayer;
use baton_wire::Flow;
use rustc_hash::FxHashMap;

/// An adapter's place among those that are lent to each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u8);

impl AdapterId {
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The host's end of an adapter.
#[derive(Debug)]
pub struct AdapterEnd<P, L> {
    /// Its sockets.
    pub os: OsLayer<P>,
    /// Their link.
    pub link: L,
}

/// The connections that one adapter has.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Those that are there or on their way, by the number of the adapter's socket.
    pub(super) sockets: FxHashMap<u32, SocketId>,
    /// Those whose socket the application has closed and that are not over, by that number.
    pub(super) closing: FxHashMap<u32, Flow>,
    /// The last handoff was refused for want of memory: if its Soft_Limit is 0, this is why.
    pub(super) is_short_of_memory: bool,
    /// Which adapter this is, of those that have been here one after another.
    pub(super) generation: u32,
}

impl Connections {
    /// Cnum, as far as it is known here (handoff-policies 3.2): a connection counts until it has ended on the adapter.
    pub(super) fn imported(&self) -> u32 {
        (self.sockets.len() + self.closing.len()) as u32
    }
}
