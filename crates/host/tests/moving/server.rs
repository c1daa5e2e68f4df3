//! The host and its server: packets, moving connections, and conversations.

use crate::adapter::{destination, source};
use crate::conversation::Side;
use crate::machine::Machine;
use baton_host::layer::{AdapterId, Fate};
use baton_host::{Gone, Ready, Receive, SocketId, Sockets};
use baton_wire::Flow;
use bytes::Bytes;

impl Machine {
    pub fn pump_host(&mut self, number: usize) -> bool {
        if self.adapters[number].is_lost {
            return false;
        }
        let end = &mut self.ends[number];
        let did = end.os.pump(self.now, &mut end.link);
        let did = did.expect("the adapter obeys the protocol");
        if self.random.percent(30) {
            // The layer above runs later.
            return did;
        }
        let mut packets = 0;
        let socket = self.adapters[number].packets;
        while let Some(packet) = self.ends[number].os.next_packet(socket) {
            packets += 1;
            assert_eq!(
                destination(&packet),
                number,
                "the packet's destination is this adapter"
            );
            self.host_takes(packet);
        }
        self.tell_layer();
        self.host_settles();
        did || packets > 0
    }

    pub fn tell_layer(&mut self) {
        let stack = self.host.stack_mut();
        self.layer.handle_adapters(self.now, stack, &mut self.ends);
        while let Some((adapter, packet)) = self.layer.poll_forward() {
            assert_eq!(destination(&packet), usize::from(adapter.0));
            self.send_by(usize::from(adapter.0), packet, true);
        }
        while let Some(packet) = self.layer.poll_arrived() {
            self.host_takes(packet);
        }
    }

    pub fn host_takes(&mut self, packet: Bytes) {
        let layer = &self.layer;
        let is_away = |flow: &Flow| layer.is_away(flow);
        self.host.handle_frame_unless(self.now, packet, is_away);
        while let Some(unclaimed) = self.host.poll_unclaimed() {
            match self.layer.sort(&unclaimed.flow, unclaimed.packet) {
                Fate::Kept => {}
                Fate::Forward(adapter, packet) => {
                    assert_eq!(destination(&packet), usize::from(adapter.0));
                    self.send_by(usize::from(adapter.0), packet, true);
                }
            }
        }
    }

    fn send_by(&mut self, number: usize, packet: Bytes, forward: bool) {
        let (end, socket) = (&mut self.ends[number], self.adapters[number].packets);
        end.os
            .send_packet(self.now, &mut end.link, socket, packet, forward);
    }

    pub fn host_settles(&mut self) {
        loop {
            while let Some((conn, event)) = self.host.stack_mut().poll_event() {
                self.layer.handle_event(self.host.stack_mut(), conn, &event);
            }
            let mut frame = Vec::new();
            if !self.host.poll_frame(self.now, &mut frame) {
                return;
            }
            let number = source(&frame);
            match self.adapters[number].is_lost {
                true => self.to_peers.send(self.now, frame.into()),
                false => self.send_by(number, frame.into(), false),
            }
        }
    }

    // --- the server ---

    pub fn server_acts(&mut self) -> bool {
        let mut acted = false;
        for _ in 0..1 + self.random.below(4) {
            let Some(ready) = self.layer.next_ready() else {
                break;
            };
            acted = true;
            match ready {
                Ready::Acceptable => self.accept(),
                Ready::Readable(id) => self.serve(id, true),
                Ready::Writable(id) => self.serve(id, false),
            }
            self.host_settles();
        }
        acted
    }

    /// Returns the adapter of a connection: the one that has the connection's local address.
    fn adapter_of(&self, id: SocketId) -> usize {
        let state = self.layer.state_of(id).expect("the socket exists");
        let AdapterId(number) = state.adapter;
        let address = crate::adapter::address(number.into());
        assert_eq!(
            state.flow.local.addr, address,
            "the connection's address is the adapter's"
        );
        number.into()
    }

    fn accept(&mut self) {
        let (now, stack) = (self.now, self.host.stack_mut());
        let Some(id) = self.layer.calls(now, stack, &mut self.ends).accept() else {
            return;
        };
        let port = self.layer.state_of(id).map(|state| state.flow.remote.port);
        let Some((client_says, server_says)) = port.and_then(|port| self.scripts.get(&port)) else {
            panic!("only known peers connect");
        };
        let side = Side::new(*server_says, *client_says);
        self.servers.insert(id.0, side);
        self.serve(id, false);
    }

    fn serve(&mut self, id: SocketId, readable: bool) {
        let side = self.servers.remove(&id.0);
        let mut side = side.expect("events are reported only for open sockets");
        let is_lost = self.adapters[self.adapter_of(id)].is_lost;
        let (now, stack) = (self.now, self.host.stack_mut());
        let mut calls = self.layer.calls(now, stack, &mut self.ends);
        if readable {
            loop {
                match calls.receive(id, 1 + self.random.below(5000) as usize) {
                    Receive::Data(data) => side.receive(&data),
                    Receive::WouldBlock => break,
                    Receive::EndOfStream => {
                        if !side.received_end {
                            side.receive_end();
                        }
                        break;
                    }
                    Receive::Gone => {
                        assert!(is_lost, "no connection is lost");
                        calls.close(id);
                        return;
                    }
                }
            }
        }
        if self.random.percent(40) {
            calls.set_cork(id, true);
        }
        while !side.has_said_all() {
            let content = side.content().filter(|_| self.random.percent(80));
            match content.map(|content| calls.send_cached(id, &content)) {
                Some(Ok(cached)) if cached.taken > 0 || !cached.has_room => {
                    side.said += cached.taken as usize;
                    if !cached.has_room {
                        break;
                    }
                    continue;
                }
                _ => {}
            }
            let data = side.next(1 + self.random.below(6000) as usize);
            let len = data.len();
            let sent = match content {
                Some(content) => calls.send_file(id, content, data),
                None => calls.send(id, data),
            };
            match sent {
                Ok(taken) => {
                    side.said += taken;
                    if taken < len {
                        break;
                    }
                }
                Err(Gone) => {
                    assert!(is_lost, "no connection is lost");
                    calls.close(id);
                    return;
                }
            }
        }
        if side.has_said_all() || self.random.percent(50) {
            calls.set_cork(id, false);
        }
        if side.has_said_all() && !side.shut && self.random.percent(50) {
            side.shut = true;
            calls.shutdown(id);
        }
        if side.has_said_all() && side.received_end {
            calls.close(id);
            return;
        }
        self.servers.insert(id.0, side);
    }

    pub fn move_something(&mut self) -> bool {
        let ids: Vec<u32> = self.servers.keys().copied().collect();
        if ids.is_empty() {
            return false;
        }
        let id = SocketId(ids[self.random.below(ids.len() as u64) as usize]);
        let is_lost = self.adapters[self.adapter_of(id)].is_lost;
        let (now, stack) = (self.now, self.host.stack_mut());
        let mut calls = self.layer.calls(now, stack, &mut self.ends);
        let moved = match self.random.percent(50) {
            true => calls.restore(id),
            false => calls.hand_off(id).is_ok(),
        };
        assert!(
            !(moved && is_lost),
            "a connection of a lost adapter cannot move"
        );
        self.host_settles();
        moved
    }
}
