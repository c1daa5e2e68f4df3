//! Dialogues between applications and the adapter, descriptor by descriptor, with a peer on the network.

mod caching;
mod custody;
mod exporting;
mod files;
mod on_board;
mod packets;
mod play;
mod sharing;

use baton_cluster::world;

mod dialogues {
    baton_testkit::dialogues!(
        crate::play::Player, "adapter/dialogues":
        accepting, caching, closing, connecting, control, fast_open, memory, packets, receiving, sending, sessions, times,
    );
}
