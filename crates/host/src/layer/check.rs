//! The invariants of the socket layer.

use super::socket::Place;
use super::{Away, SocketLayer};
use crate::{Ready, SocketId};
use baton_bus::link::Inline;
use baton_tcp::Stack;

impl<P: Inline> SocketLayer<P> {
    /// Asserts the invariants.
    pub fn check(&self, stack: &Stack<P>) {
        assert!(
            self.sockets.len() <= self.most_sockets,
            "sockets are limited"
        );
        let mut away = 0;
        for (slot, socket) in &self.sockets {
            let id = SocketId(slot as u32);
            if let Place::Host(conn) = socket.place {
                assert_eq!(
                    self.socket_of(conn),
                    Some(id),
                    "a connection knows its socket"
                );
                assert_eq!(stack.flow(conn), socket.flow, "it is the same connection");
            }
            if let Some(on_adapter) = socket.place.on_adapter() {
                away += 1;
                assert_eq!(self.socket_on(socket.adapter, on_adapter), Some(id));
                assert_eq!(self.away.get(&socket.flow), Some(&Away::Of(id)));
                assert!(stack.find(&socket.flow).is_none(), "it has one owner");
            }
            if let Some(settling) = socket.settling {
                assert!(matches!(socket.place, Place::Host(_)));
                assert!(self.settling.contains(&(settling.look_at, id)));
            }
            let is_leaving = matches!(socket.place, Place::HandingOff(_));
            assert_eq!(
                socket.kept.is_some(),
                is_leaving,
                "its state is kept until the answer"
            );
            assert!(
                socket.packets.is_empty() || socket.is_moving(),
                "packets are kept only on the way"
            );
            let times = |event| self.ready.iter().filter(|ready| **ready == event).count();
            assert_eq!(times(Ready::Readable(id)), usize::from(socket.readable));
            assert_eq!(times(Ready::Writable(id)), usize::from(socket.writable));
        }
        assert_eq!(away, self.on_adapters(), "connections away are counted");
        let moving = self.sockets.iter().filter(|(_, socket)| socket.is_moving());
        assert_eq!(moving.count(), self.moving);
        let settling = self.sockets.iter().filter(|(_, it)| it.settling.is_some());
        assert_eq!(settling.count(), self.settling.len());
        let closing: usize = self.adapters.iter().map(|of| of.closing.len()).sum();
        assert!(self.away.len() <= away + closing);
    }
}
