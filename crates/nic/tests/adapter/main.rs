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

use baton_cluster::world;
