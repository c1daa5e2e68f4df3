//! The host and its server: packets, moving connections, and conversations.

use crate::adapter::{AdapterSide, End, destination, source};
use crate::conversation::Side;
use crate::machine::Machine;
use baton_bus::link::MemoryHost;
use baton_host::layer::AdapterId;
use baton_host::process::{HostProcess, Lower, PacketSocket};
use baton_host::{Gone, Ready, Receive, SocketId, Sockets};
use baton_inet::Host;
use baton_tcp::Stack;
use baton_testkit::Network;
use baton_wire::{Flow, Time};
use bytes::Bytes;

/// The host's stack. Its packets take another path once their adapter is lost.
struct Below<'a> {
    host: &'a mut Host,
    adapters: &'a [AdapterSide],
    to_peers: &'a mut Network<Bytes>,
}

impl Lower<Bytes> for Below<'_> {
    type Link = MemoryHost<Bytes>;

    fn stack(&mut self) -> &mut Stack<Bytes> {
        self.host.stack_mut()
    }

    fn accept(&mut self, (adapter, _): PacketSocket, packet: &Bytes) -> bool {
        let of = destination(packet);
        assert_eq!(of, usize::from(adapter.0), "this adapter has the address");
        true
    }

    fn take_in(
        &mut self,
        now: Time,
        packet: Bytes,
        is_away: impl Fn(&Flow) -> bool,
    ) -> Option<(Flow, Bytes)> {
        let unclaimed = self.host.handle_frame_unless(now, packet, is_away)?;
        Some((unclaimed.flow, unclaimed.packet))
    }

    fn handle_timeouts(&mut self, now: Time) {
        self.host.handle_timeouts(now);
    }

    fn has_room(&self, (adapter, socket): PacketSocket, end: &End) -> bool {
        let is_lost = self.adapters[usize::from(adapter.0)].is_lost;
        is_lost || end.os.has_room_for_packet(&end.link, socket, 1)
    }

    fn transmit(&mut self, now: Time, ends: &mut [End], sockets: &[PacketSocket]) -> bool {
        let mut frame = Vec::new();
        if !self.host.poll_frame(now, &mut frame) {
            return false;
        }
        let number = source(&frame);
        if self.adapters[number].is_lost {
            self.to_peers.send(now, frame.into());
        } else {
            let (End { os, link }, (_, socket)) = (&mut ends[number], sockets[number]);
            os.send_packet(now, link, socket, frame.into(), false);
        }
        true
    }
}

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
        self.with_process(HostProcess::handle_arrived);
        self.host_settles();
        did
    }

    pub fn tell_layer(&mut self) {
        self.with_process(HostProcess::handle_adapters);
    }

    pub fn host_takes(&mut self, packet: Bytes) {
        self.with_process(|process, now, ends, below| {
            process.handle_packet(now, ends, below, packet);
        });
    }

    pub fn host_settles(&mut self) {
        self.with_process(HostProcess::settle);
    }

    fn with_process<'a>(
        &'a mut self,
        what: impl FnOnce(&mut HostProcess<Bytes>, Time, &mut [End], &mut Below<'a>),
    ) {
        let mut below = Below {
            host: &mut self.host,
            adapters: &self.adapters,
            to_peers: &mut self.to_peers,
        };
        what(&mut self.process, self.now, &mut self.ends, &mut below);
    }

    // --- the server ---

    pub fn server_acts(&mut self) -> bool {
        let mut acted = false;
        for _ in 0..1 + self.random.below(4) {
            let Some(ready) = self.process.layer_mut().next_ready() else {
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
        let state = self
            .process
            .layer()
            .state_of(id)
            .expect("the socket exists");
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
        let Some(id) = self
            .process
            .layer_mut()
            .calls(now, stack, &mut self.ends)
            .accept()
        else {
            return;
        };
        let port = self
            .process
            .layer()
            .state_of(id)
            .map(|state| state.flow.remote.port);
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
        let mut calls = self.process.layer_mut().calls(now, stack, &mut self.ends);
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
        let mut calls = self.process.layer_mut().calls(now, stack, &mut self.ends);
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
