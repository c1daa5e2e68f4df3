//! Packets of connections that are not in the stack because they are moving or on an adapter.

use super::socket::Place;
use super::{AdapterId, Away, SocketLayer};
use baton_bus::link::Inline;
use baton_wire::Flow;

/// Maximum number of packets kept for a moving connection: about a window.
const MOST_KEPT: usize = 256;

/// What happens with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<P> {
    /// The layer has kept the packet, or dropped it because it keeps too many.
    Kept,
    /// The packet goes to the adapter that has its connection.
    Forward(AdapterId, P),
}

impl<P: Inline> SocketLayer<P> {
    /// Returns whether packets of `flow` are not for the stack.
    pub fn is_away(&self, flow: &Flow) -> bool {
        self.away.contains_key(flow)
    }

    /// Decides what happens with a packet of `flow`, which [is away](SocketLayer::is_away).
    pub fn sort(&mut self, flow: &Flow, packet: P) -> Fate<P> {
        let id = match self.away.get(flow) {
            Some(&Away::Of(id)) => id,
            Some(&Away::Closing(adapter)) => {
                self.stats.packets_forwarded += 1;
                return Fate::Forward(adapter, packet);
            }
            None => {
                debug_assert!(false, "{flow:?} is away");
                self.stats.packets_dropped += 1;
                return Fate::Kept;
            }
        };
        let socket = &mut self.sockets[id.0 as usize];
        if let Place::Adapter(_) = socket.place {
            self.stats.packets_forwarded += 1;
            return Fate::Forward(socket.adapter, packet);
        }
        if socket.packets.len() < MOST_KEPT {
            socket.packets.push(packet);
            self.stats.packets_kept += 1;
        } else {
            self.stats.packets_dropped += 1;
        }
        Fate::Kept
    }

    /// Returns the next packet that was kept for a connection which is now on this adapter.
    pub fn poll_forward(&mut self) -> Option<(AdapterId, P)> {
        self.to_forward.pop_front()
    }

    /// Returns the next packet that was kept for a connection which is now in the stack.
    pub fn poll_arrived(&mut self) -> Option<P> {
        self.arrived.pop_front()
    }
}
