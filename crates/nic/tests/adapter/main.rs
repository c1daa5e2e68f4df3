//! Dialogues between applications and the adapter, descriptor by descriptor, with a peer on the network.

mod accepting;
mod caching;
mod closing;
mod connecting;
mod control;
mod custody;
mod exporting;
mod fast_open;
mod on_board;
mod packets;
mod receiving;
mod sending;
mod sessions;
mod times;

use baton_cluster::world::{self, World};
use baton_tcp::ConnId;

/// Adds a connection, socket 2, to a world. Returns the peer's end.
fn connected(mut world: World) -> (World, ConnId) {
    world.listen(0, 1, 80);
    let peer = world.connection(0, 1, 2, 80);
    (world, peer)
}
