//! The peers, all on one host: they connect to each of the adapters' addresses, and accept the connections of the host's application.

use super::adapter::{PORT, address};
use super::conversation::{Conversation, Script};
use super::{Cluster, PEERS, web};
use baton_host::FileId;
use baton_tcp::{CloseReason, ConnId, Event, State};
use baton_testkit::Way;
use baton_wire::{Endpoint, Flow};

/// First port on which peers listen: one port for each conversation.
const PEER_PORTS: u16 = 2000;
/// Number of files. Some conversations are about one of them.
const FILES: usize = 3;
/// Maximum number of bytes that one side says.
const MOST_BYTES: u64 = 40_000;

impl Cluster {
    /// Lets a peer act by itself; returns false if there is nothing to do.
    pub(super) fn peers_act(&mut self) -> bool {
        if self.to_open > 0 && self.random.percent(10) {
            self.open();
        }
        if self.conversations.is_empty() {
            return false;
        }
        let number = self.random.below(self.conversations.len() as u64) as usize;
        let conversation = &mut self.conversations[number];
        if conversation.excused && self.random.percent(5) {
            self.give_up(number);
        }
        let acted = self.peer_writes(number);
        self.peers_settle();
        acted
    }

    /// Opens another connection, from one side or the other.
    pub(super) fn open(&mut self) {
        let adapter = self.random.below(self.adapters.len() as u64) as usize;
        let mut conversation = match self.web {
            Some(_) => {
                let (requests, responses) = web::exchange(&mut self.random);
                let mut new = Conversation::orderly(requests, responses, adapter);
                new.server_done = true;
                new
            }
            None => {
                let (peer, server) = (self.script(), self.file());
                Conversation::new(&mut self.random, peer, server, adapter)
            }
        };
        let number = self.conversations.len();
        let by_server = self.server.is_whole && self.web.is_none() && self.random.percent(30);
        if by_server {
            let remote = Endpoint::new(PEERS, PEER_PORTS + number as u16);
            let Ok(socket) = self.server.ends[adapter].os.connect(self.now, remote) else {
                // All sockets are in use.
                return;
            };
            conversation.socket = Some(socket);
            conversation.listener = Some(self.peers.stack_mut().listen(remote, 1));
            self.adapters[adapter].host_rings = true;
        }
        self.to_open -= 1;
        self.conversations.push(conversation);
        if !by_server {
            self.connect(number);
        }
    }

    fn script(&mut self) -> Script {
        self.next_key += 1;
        let total = self.random.below(MOST_BYTES) * self.random.below(2);
        Script::new(self.next_key, total as usize)
    }

    /// Returns one of a few files, which may have changed since its last request.
    fn file(&mut self) -> Script {
        let number = self.random.below(FILES as u64) as usize;
        let revision = &mut self.revisions[number];
        *revision += u32::from(self.random.percent(20));
        let file = FileId(number as u32);
        let key = u64::from(file.0) << 32 | u64::from(*revision);
        let len = [7000, 100, 60_000][number];
        let mut script = Script::new(key, len);
        script.file = Some((file, *revision));
        script.total = (self.random.below(MOST_BYTES) * self.random.below(2)) as usize;
        script
    }

    /// Lets a peer open a connection, or open it again after a refusal.
    fn connect(&mut self, number: usize) {
        let conversation = &mut self.conversations[number];
        let flow = Flow {
            local: Endpoint::new(PEERS, self.next_port),
            remote: Endpoint::new(address(conversation.adapter), PORT),
        };
        self.next_port += 1;
        conversation.port = flow.local.port;
        (conversation.peer.said, conversation.peer.shut) = (0, false);
        conversation.conn = self.peers.stack_mut().connect(self.now, flow);
    }

    /// Lets both sides abort: a lost reset is not repeated, and a connection that was never opened does not end by itself.
    fn give_up(&mut self, number: usize) {
        let conversation = &mut self.conversations[number];
        if let Some(conn) = conversation.conn {
            self.peers.stack_mut().abort(conn);
        } else {
            conversation.outcome.get_or_insert(CloseReason::Aborted);
        }
        let is_over = conversation.outcome.is_some();
        if let Some(socket) = conversation.socket.take_if(|_| is_over) {
            self.server.calls(self.now).abort(socket);
            self.adapters[conversation.adapter].host_rings = true;
        }
        conversation.server_done |= conversation.socket.is_none();
    }

    fn peer_writes(&mut self, number: usize) -> bool {
        self.peer_closes_when_done(number);
        let Conversation { peer, conn, .. } = &mut self.conversations[number];
        let (Some(conn), stack) = (*conn, self.peers.stack_mut()) else {
            return false;
        };
        if peer.aborts() {
            self.conversations[number].excused = true;
            stack.abort(conn);
            return true;
        }
        if peer.shut || peer.has_said_all() && !peer.half_closes {
            return false;
        }
        let data = peer.next(1 + self.random.below(8000) as usize);
        let taken = stack.write(conn, data).unwrap_or(0);
        peer.said += taken;
        if peer.half_closes && peer.has_said_all() {
            peer.shut = true;
            stack.shutdown(conn);
        }
        taken > 0
    }

    fn peer_closes_when_done(&mut self, number: usize) {
        let Conversation { peer, conn, .. } = &mut self.conversations[number];
        let done = peer.has_said_all() && peer.has_received_all();
        let stack = self.peers.stack_mut();
        if let Some(conn) = conn.filter(|_| done && !peer.shut)
            && stack.state(conn) != State::SynSent
        {
            peer.shut = true;
            stack.close(conn);
        }
    }

    fn peer_reads(&mut self, number: usize, conn: ConnId) {
        let stack = self.peers.stack_mut();
        let side = &mut self.conversations[number].peer;
        while let Some(data) = stack.read(conn, 1 + self.random.below(20_000) as usize) {
            stack.consume(conn, data.len());
            side.receive(&data);
        }
    }

    fn handle_peer_event(&mut self, conn: ConnId, event: &Event) {
        if let Event::Acceptable(listener) = *event {
            let conn = self.peers.stack_mut().accept(listener);
            let mut all = self.conversations.iter_mut();
            let of = all.find(|conversation| conversation.listener == Some(listener));
            if let Some(conversation) = of.filter(|conversation| conversation.conn.is_none()) {
                conversation.conn = conn;
            }
            return;
        }
        let mut all = self.conversations.iter();
        let Some(number) = all.position(|conversation| conversation.conn == Some(conn)) else {
            return;
        };
        // A closed connection has been read completely.
        if !matches!(event, Event::Closed(_)) {
            self.peer_reads(number, conn);
        }
        let conversation = &mut self.conversations[number];
        let has_received_all = conversation.peer.has_received_all();
        match *event {
            Event::PeerClosed => assert!(
                has_received_all || conversation.excused,
                "conversation {number} ended early"
            ),
            Event::Closed(reason) => {
                conversation.conn = None;
                // There is no listener yet, or the host is between two adapters.
                if reason == CloseReason::Refused && !conversation.excused {
                    return self.connect(number);
                }
                conversation.outcome = Some(reason);
                // An old acknowledgment that arrives after the end is answered by a reset (RFC 9293 3.10.7.1).
                let in_order = reason == CloseReason::Normal
                    || reason == CloseReason::Reset && !self.server.is_whole;
                let is_complete = in_order && has_received_all && conversation.peer.has_said_all();
                assert!(
                    is_complete || conversation.may_end_early(),
                    "conversation {number}: {reason:?}, {conversation:?}"
                );
                return;
            }
            _ => {}
        }
        self.peer_closes_when_done(number);
    }

    /// Handles the events of the peers' TCP, and sends its packets.
    pub(super) fn peers_settle(&mut self) {
        loop {
            while let Some((conn, event)) = self.peers.stack_mut().poll_event() {
                self.handle_peer_event(conn, &event);
            }
            let mut frame = Vec::new();
            if !self.peers.poll_frame(self.now, &mut frame) {
                return;
            }
            self.to_server.send(self.now, frame.into());
        }
    }
}
