//! The adapters of a layer: the ends that are lent to each call, and the layer's state of each adapter.

use crate::SocketId;
use crate::adapter::OsLayer;
use baton_wire::Flow;
use rustc_hash::FxHashMap;

/// Index of an adapter among those lent to each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u8);

impl AdapterId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The host's end of an adapter.
#[derive(Debug)]
pub struct AdapterEnd<P, L> {
    /// The adapter's sockets.
    pub os: OsLayer<P>,
    /// The link of these sockets.
    pub link: L,
}

/// The connections of one adapter.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Connections on the adapter or moving, by the number of the adapter's socket.
    pub(super) sockets: FxHashMap<u32, SocketId>,
    /// Connections whose socket the application has closed and that have not ended yet, by the same number, and whether the application
    /// closed before the peer.
    pub(super) closing: FxHashMap<u32, (Flow, bool)>,
    /// The adapter refused the last handoff for lack of memory: if its Soft_Limit is 0, this is why.
    pub(super) is_short_of_memory: bool,
    /// Number of adapters with this index that were lost before.
    pub(super) generation: u32,
}

impl Connections {
    /// Returns Cnum, as far as it is known here (handoff-policies 3.2): a connection counts until it has ended on the adapter.
    pub(super) fn imported(&self) -> u32 {
        (self.sockets.len() + self.closing.len()) as u32
    }
}
