//! The peers, all on one host: they connect to each of the server's addresses.

use crate::adapter::address;
use crate::conversation::{Script, Side};
use crate::machine::{Client, Machine, PEERS, PORT};
use baton_host::FileId;
use baton_tcp::{CloseReason, ConnId, Event};
use baton_testkit::Pattern;
use baton_wire::{Endpoint, Flow};

impl Machine {
    pub fn peers_act(&mut self) -> bool {
        if self.to_open > 0 && self.random.percent(20) {
            self.open();
        }
        let ids: Vec<u32> = self.clients.keys().copied().collect();
        let mut acted = false;
        for id in ids {
            acted |= self.client_acts(ConnId(id));
        }
        self.peers_settle();
        acted
    }

    fn open(&mut self) {
        let adapter = self.random.below(self.adapters.len() as u64) as usize;
        // The adapter refuses connections until the host is attached.
        if !self.adapters[adapter].is_lost && self.ends[adapter].os.soft_limit().is_none() {
            return;
        }
        self.to_open -= 1;
        let local = Endpoint::new(PEERS, 1000 + self.to_open as u16);
        let remote = Endpoint::new(address(adapter), PORT);
        let flow = Flow { local, remote };
        let says = self.script(None);
        let expects = self.file();
        self.scripts.insert(local.port, (says, expects));
        let conn = self.peers.stack_mut().connect(self.now, flow);
        let conn = conn.expect("the four-tuple is free");
        let side = Side::new(says, expects);
        self.clients.insert(conn.0, Client { side, adapter });
    }

    fn script(&mut self, file: Option<(FileId, u32)>) -> Script {
        self.next_key += 1;
        Script {
            bytes: Pattern::new(self.next_key),
            len: self.random.below(60_000) as usize,
            file,
        }
    }

    /// Returns one of a few files, which may have changed since its last request.
    fn file(&mut self) -> Script {
        let number = self.random.below(3) as usize;
        while self.files.len() <= number {
            let file = FileId(self.files.len() as u32);
            let script = self.script(Some((file, 0)));
            self.files.push(script);
        }
        if let Some((file, revision)) = self.files[number].file
            && self.random.percent(25)
        {
            self.files[number] = self.script(Some((file, revision + 1)));
        }
        self.files[number]
    }

    fn client_acts(&mut self, conn: ConnId) -> bool {
        let Some(Client { side, .. }) = self.clients.get_mut(&conn.0) else {
            return false;
        };
        let stack = self.peers.stack_mut();
        let mut acted = false;
        while let Some(data) = stack.read(conn, 1 + self.random.below(20_000) as usize) {
            stack.consume(conn, data.len());
            side.receive(&data);
            acted = true;
        }
        if !side.received_end && stack.peer_closed(conn) && stack.readable_len(conn) == 0 {
            side.receive_end();
            acted = true;
        }
        if !side.has_said_all() {
            let data = side.next(1 + self.random.below(8000) as usize);
            if let Ok(taken) = stack.write(conn, data) {
                side.said += taken;
                acted |= taken > 0;
            }
        }
        if side.has_said_all() && !side.shut {
            side.shut = true;
            stack.shutdown(conn);
        }
        if side.shut && side.received_end {
            stack.close(conn);
            self.clients.remove(&conn.0);
        }
        acted
    }

    pub fn peers_settle(&mut self) {
        let now = self.now;
        loop {
            while let Some((conn, event)) = self.peers.stack_mut().poll_event() {
                // Read before a reset could discard data. A closed connection has been read completely.
                if !matches!(event, Event::Closed(_)) {
                    self.client_acts(conn);
                }
                if let Event::Closed(reason) = event
                    && let Some(Client { side, adapter }) = self.clients.remove(&conn.0)
                {
                    let is_complete = side.shut && side.received == side.expects.len;
                    // An old acknowledgment that arrives after the end is answered by a reset (RFC 9293 3.10.7.1).
                    let reset = reason == CloseReason::Reset && is_complete;
                    let in_order = reason == CloseReason::Normal && is_complete;
                    let is_lost = self.adapters[adapter].is_lost;
                    assert!(
                        in_order || reset || is_lost,
                        "the connection was lost: {reason:?}, {side:?}"
                    );
                }
            }
            let mut frame = Vec::new();
            if !self.peers.poll_frame(now, &mut frame) {
                return;
            }
            self.to_server.send(now, frame.into());
        }
    }
}
