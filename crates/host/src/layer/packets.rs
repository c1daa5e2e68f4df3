//! Packets of connections that are not in the stack: on their way, or on an adapter.

use super::socket::Place;
use super::{AdapterId, Away, SocketLayer};
use baton_bus::link::Inline;
use baton_wire::Flow;

/// Packets kept for one connection on its way: about a window of them.
const MOST_KEPT: usize = 256;

/// What is to be done with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<P> {
    /// It was kept, or dropped because too many were.
    Kept,
    /// It goes to the adapter that has its connection.
    Forward(AdapterId, P),
}

impl<P: Inline> SocketLayer<P> {
    /// Whether a packet of `flow` is not for the stack.
    pub fn is_away(&self, flow: &Flow) -> bool {
        self.away.contains_key(flow)
    }

    /// Says what is to be done with a packet of `flow`, which [is away](SocketLayer::is_away).
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

    /// The next packet that was kept for a connection which is on this adapter now.
    pub fn poll_forward(&mut self) -> Option<(AdapterId, P)> {
        self.to_forward.pop_front()
    }

    /// The next packet that was kept for a connection which is in the stack now.
    pub fn poll_arrived(&mut self) -> Option<P> {
        self.arrived.pop_front()
    }
}
