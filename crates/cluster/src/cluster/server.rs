//! The host and its application: sockets of an adapter, or of a host with TCP of its own whose connections move.

use super::Cluster;
use super::adapter::{AdapterSide, End, address, destination, source};
use super::conversation::Conversation;
use super::times::Times;
use baton_bus::link::MemoryHost;
use baton_host::layer::AdapterId;
use baton_host::process::{HostProcess, Lower, PacketSocket};
use baton_host::{Gone, Ready, Receive, SocketId, Sockets};
use baton_inet::Host;
use baton_tcp::Stack;
use baton_testkit::{Network, Random, Way};
use baton_wire::{Flow, Time};
use bytes::Bytes;

/// The host.
pub struct Server {
    /// Whether the application's sockets are those of its only adapter, which has the whole of TCP.
    pub is_whole: bool,
    pub host: Host,
    pub process: HostProcess<Bytes>,
    pub ends: Vec<End>,
    /// Whether the socket layer has yet to handle what `ends` have received.
    pub is_behind: bool,
}

impl Server {
    /// Returns the application's system calls.
    pub fn calls(&mut self, now: Time) -> Box<dyn Sockets<Bytes> + '_> {
        if self.is_whole {
            let End { os, link } = &mut self.ends[0];
            return Box::new(os.calls(now, link));
        }
        let (layer, stack) = (self.process.layer_mut(), self.host.stack_mut());
        Box::new(layer.calls(now, stack, &mut self.ends))
    }

    /// Takes the next notification for the application.
    pub fn next_ready(&mut self) -> Option<Ready> {
        match self.is_whole {
            true => self.ends[0].os.next_ready(),
            false => self.process.layer_mut().next_ready(),
        }
    }

    /// Returns the port of a socket's peer.
    fn peer_port(&self, socket: SocketId) -> u16 {
        let remote = match self.is_whole {
            true => self.ends[0].os.peer(socket),
            false => (self.process.layer().state_of(socket)).map(|state| state.flow.remote),
        };
        remote.expect("the socket has a connection").port
    }
}

/// The layers below the sockets of a host with TCP of its own. Its packets take another path once their adapter is lost.
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

impl Cluster {
    /// Exchanges requests and responses with an adapter, if the host has been notified or has something to do.
    pub(super) fn host_works(&mut self, number: usize) -> bool {
        let (side, end) = (&mut self.adapters[number], &mut self.server.ends[number]);
        let is_due = end.os.poll_timeout().is_some_and(|due| due <= self.now);
        if side.is_lost || self.by_doorbell && !side.host_rings && !is_due {
            return false;
        }
        let did = end.os.pump(self.now, &mut end.link);
        let did = did.expect("the adapter obeys the protocol");
        side.host_rings = did;
        side.rings |= did;
        if !self.server.is_whole {
            self.server.is_behind |= did;
            if self.server.is_behind && self.random.percent(30) {
                side.host_rings = true;
            } else if std::mem::take(&mut self.server.is_behind) {
                self.with_process(HostProcess::handle_arrived);
                self.host_settles();
            }
        }
        did
    }

    /// Handles a packet that reaches a host with TCP of its own by another path.
    pub(super) fn host_takes(&mut self, packet: Bytes) {
        self.with_process(|process, now, ends, below| {
            process.handle_packet(now, ends, below, packet);
        });
        self.host_settles();
    }

    /// Runs after the application's calls.
    pub(super) fn host_settles(&mut self) {
        self.adapters
            .iter_mut()
            .for_each(|side| side.host_rings = true);
        if !self.server.is_whole {
            self.with_process(HostProcess::settle);
        }
    }

    pub(super) fn tell_layer(&mut self) {
        self.with_process(HostProcess::handle_adapters);
    }

    fn with_process<'a>(
        &'a mut self,
        what: impl FnOnce(&mut HostProcess<Bytes>, Time, &mut [End], &mut Below<'a>),
    ) {
        let Server {
            host,
            process,
            ends,
            ..
        } = &mut self.server;
        let mut below = Below {
            host,
            adapters: &self.adapters,
            to_peers: &mut self.to_peers,
        };
        what(process, self.now, ends, &mut below);
    }

    // --- the application ---

    /// Runs one iteration of the application's event loop, or part of one.
    pub(super) fn application_acts(&mut self) -> bool {
        let mut acted = false;
        for _ in 0..1 + self.random.below(4) {
            let Some(ready) = self.server.next_ready() else {
                break;
            };
            acted = true;
            self.handle_ready(ready);
            self.host_settles();
        }
        acted
    }

    fn handle_ready(&mut self, ready: Ready) {
        if let Some(web) = &mut self.web {
            let (now, server) = (self.now, &mut self.server);
            if server.is_whole {
                let End { os, link } = &mut server.ends[0];
                return web.step(&mut os.calls(now, link), ready);
            }
            let (layer, stack) = (server.process.layer_mut(), server.host.stack_mut());
            return web.step(&mut layer.calls(now, stack, &mut server.ends), ready);
        }
        match ready {
            Ready::Acceptable => self.accept(),
            Ready::Readable(socket) | Ready::Writable(socket) => {
                assert_ne!(self.listener, Some(socket), "the listener failed");
                let mut all = self.conversations.iter();
                if let Some(number) =
                    all.position(|conversation| conversation.socket == Some(socket))
                {
                    self.serve(number);
                }
            }
        }
    }

    fn accept(&mut self) {
        // Leave some connections in the queue; the next wait reports them again.
        for _ in 0..1 + self.random.below(3) {
            let Some(socket) = self.server.calls(self.now).accept() else {
                return;
            };
            let port = self.server.peer_port(socket);
            let mut all = self.conversations.iter();
            let is_expected = |conversation: &Conversation| {
                let is_new = conversation.socket.is_none() && !conversation.server_done;
                conversation.port == port && is_new
            };
            match all.position(is_expected) {
                Some(number) => {
                    self.conversations[number].socket = Some(socket);
                    self.serve(number);
                }
                // A connection that the peer has already given up.
                None => self.server.calls(self.now).close(socket),
            }
        }
    }

    /// Lets the application read all data and write as much as fits, in random portions.
    fn serve(&mut self, number: usize) {
        let conversation = &mut self.conversations[number];
        let Some(socket) = conversation.socket else {
            return;
        };
        let (now, server, random) = (self.now, &mut self.server, &mut self.random);
        let asks = server.is_whole && conversation.wants_times && conversation.times.is_none();
        if asks && random.percent(50) {
            let os = &mut server.ends[0].os;
            conversation.times = Times::begin(now, os, socket, conversation.server.said);
        }
        let mut ends = server.ends.iter();
        let may_be_reported = ends.any(|end| end.os.config().reports_unread);
        let (mut gone, ended) =
            conversation.reads(may_be_reported, &mut *server.calls(now), socket, random);
        gone |= conversation.writes(server, now, socket, random).is_err();
        if let Some(times) = &mut conversation.times {
            times.check(now, &mut server.ends[0].os, socket);
        }
        let excused = conversation.may_end_early();
        let mut calls = server.calls(now);
        let side = &mut conversation.server;
        if side.has_said_all() && !side.shut && !gone {
            calls.set_cork(socket, false);
            side.shut = side.half_closes && calls.shutdown(socket);
        }
        let all = side.has_said_all() && side.has_received_all();
        assert!(!gone || excused || all, "conversation {number} ended early");
        if side.aborts() {
            conversation.excused = true;
            calls.abort(socket);
        } else if gone
            || all && (ended || conversation.server_closes_first)
            || ended && conversation.excused
        {
            assert!(all || excused);
            calls.close(socket);
        } else {
            return;
        }
        conversation.socket = None;
        conversation.server_done = true;
    }

    /// Lets the host hand a connection off, or take it back.
    pub(super) fn move_something(&mut self) -> bool {
        let mut sockets: Vec<SocketId> = match &self.web {
            Some(web) => web.sockets().collect(),
            None => (self.conversations.iter())
                .filter_map(|conversation| conversation.socket)
                .collect(),
        };
        if sockets.is_empty() {
            return false;
        }
        let id = sockets.swap_remove(self.random.below(sockets.len() as u64) as usize);
        let layer = self.server.process.layer_mut();
        let state = layer.state_of(id).expect("the socket exists");
        let AdapterId(number) = state.adapter;
        assert_eq!(state.flow.local.addr, address(number.into()));
        let stack = self.server.host.stack_mut();
        let mut calls = layer.calls(self.now, stack, &mut self.server.ends);
        let moved = match self.random.percent(50) {
            true => calls.restore(id),
            false => calls.hand_off(id).is_ok(),
        };
        let is_lost = self.adapters[usize::from(number)].is_lost;
        assert!(!(moved && is_lost), "the adapter no longer exists");
        if moved {
            self.moves -= 1;
            self.host_settles();
        }
        moved
    }
}

impl Conversation {
    /// Reads all data that has arrived; returns whether the connection is gone, and whether the stream has ended. `may_be_reported`: the
    /// adapter may have reported data before it delivers it.
    fn reads(
        &mut self,
        may_be_reported: bool,
        calls: &mut dyn Sockets<Bytes>,
        socket: SocketId,
        random: &mut Random,
    ) -> (bool, bool) {
        loop {
            let unread = calls.unread(socket);
            match calls.receive(socket, 1 + random.below(5000) as usize) {
                Receive::Data(data) => {
                    assert!(unread.len >= data.len());
                    self.server.receive(&data);
                }
                Receive::WouldBlock => {
                    // Data or an end that the adapter has reported is delivered later.
                    let is_reported = may_be_reported && (unread.len > 0 || unread.ended);
                    assert!(is_reported || (unread.len, unread.ended) == (0, false));
                    return (false, false);
                }
                Receive::EndOfStream => {
                    assert!(unread.ended);
                    let all = self.server.has_received_all();
                    assert!(all || self.may_end_early(), "{self:?} ended early");
                    return (false, true);
                }
                Receive::Gone => return (true, true),
            }
        }
    }

    /// Writes until nothing more fits: content of a file, from the adapter's cache where possible, or data.
    fn writes(
        &mut self,
        server: &mut Server,
        now: Time,
        socket: SocketId,
        random: &mut Random,
    ) -> Result<(), Gone> {
        if random.percent(30) {
            server.calls(now).set_cork(socket, random.percent(50));
        }
        while !self.server.has_said_all() {
            let (most, content) = (1 + random.below(6000), self.server.content());
            let Some(mut content) = content.filter(|_| random.percent(70)) else {
                let data = self.server.next(most as usize);
                let taken = self.writes_data(server, now, socket, data.clone(), random)?;
                if taken < data.len() {
                    break;
                }
                continue;
            };
            if random.percent(50) {
                content.len = content.len.min(most);
            }
            let mut calls = server.calls(now);
            let cached = calls.send_cached(socket, &content)?;
            self.server.said += cached.taken as usize;
            if !cached.has_room {
                break;
            }
            let rest = content.after(cached.taken);
            if rest.len > 0 {
                let data = self.server.next(rest.len.min(most) as usize);
                let len = data.len();
                let taken = calls.send_file(socket, rest, data)?;
                self.server.said += taken;
                if taken < len {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes data, with random requests for times; returns the number of bytes taken.
    fn writes_data(
        &mut self,
        server: &mut Server,
        now: Time,
        socket: SocketId,
        data: Bytes,
        random: &mut Random,
    ) -> Result<usize, Gone> {
        if let Some(times) = &mut self.times {
            times.ask(&mut server.ends[0].os, socket, random);
        }
        let taken = server.calls(now).send(socket, data)?;
        self.server.said += taken;
        if let Some(times) = &mut self.times {
            let written = (self.server.said, taken);
            times.wrote(now, &mut server.ends[0].os, socket, written);
        }
        Ok(taken)
    }
}
