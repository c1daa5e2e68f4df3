//! Calls of the application.

use super::{OURS, PEERS, Player, with_setting};
use crate::grammar::Call;
use baton_tcp::{
    Config, ConnId, Event, FastOpen, FastOpenKey, FastOpenKeys, ListenerId, Portable, Stack,
    WriteError, WriteFlags,
};
use baton_testkit::{SegmentText, symbolic};
use baton_wire::{Flags, Span, Stages, Symbolic};

impl Player {
    pub(super) fn call(&mut self, call: &Call) -> Result<(), String> {
        match call {
            Call::Listen { backlog } => {
                self.listener = Some(self.stack.listen(self.local, *backlog));
            }
            Call::Unlisten => {
                let listener = self.listener()?;
                self.stack.unlisten(self.now, listener);
                self.listener = None;
            }
            Call::Backlog(backlog) => {
                let listener = self.listener()?;
                self.stack.set_backlog(listener, *backlog);
            }
            Call::Connect => self.connect()?,
            Call::ConnectFast { len, how } => self.connect_fast(*len, *how)?,
            Call::FastOpen(rules) => {
                let listener = self.listener()?;
                self.stack.set_fast_open(listener, *rules);
            }
            Call::FastOpenKeys(current, previous) => {
                let key = |byte| FastOpenKey([byte; 16]);
                self.stack.set_fast_open_keys(FastOpenKeys {
                    current: key(*current),
                    previous: previous.map(key),
                });
            }
            Call::Accept => self.accept()?,
            _ => return self.call_connection(call),
        }
        Ok(())
    }

    /// Executes a call on a connection.
    fn call_connection(&mut self, call: &Call) -> Result<(), String> {
        let id = self.id()?;
        let stack = &mut self.stack;
        match call {
            Call::Write {
                len,
                more,
                record,
                urgent,
                timed,
                result,
            } => {
                let flags = WriteFlags {
                    more: *more,
                    end_of_record: *record,
                    urgent: *urgent,
                };
                self.write(*len, flags, result.unwrap_or(*len))?;
                let asked = timed.is_none_or(|key| self.stack.ask_times(id, key, Stages::all()));
                if !asked {
                    return Err("expected that the times can be requested".into());
                }
            }
            Call::WriteClosed => {
                let data = symbolic(OURS, 0, 1);
                if stack.write(id, data) != Err(WriteError::Closed) {
                    return Err("expected that nothing can be written".into());
                }
            }
            Call::Read { len, consume } => return self.read(*len, *consume),
            Call::Consume(len) => stack.consume(id, *len as usize),
            Call::Shutdown => stack.shutdown(id),
            Call::ShutdownRead => stack.shutdown_receive(id),
            Call::Close => stack.close(id),
            Call::Abort => stack.abort(id),
            Call::Cork(cork) => stack.set_cork(id, *cork),
            Call::Defer(defer) => stack.set_deferred(id, *defer),
            Call::Settle(settle) => stack.set_settling(id, *settle),
            Call::Nodelay(nodelay) => stack.set_nodelay(id, *nodelay),
            Call::QuickAck => stack.quick_ack(id),
            Call::KeepArrivals(keep) => stack.keep_arrival_times(id, *keep),
            Call::Configure(setting) => {
                let config = with_setting(stack.config_of(id), setting)?;
                stack.configure(self.now, id, |parameters| *parameters = config);
            }
            Call::Move => {
                let state = stack.export(self.now, id);
                self.put_in(state)?;
            }
            Call::MoveAway { listening } => self.move_away(id, *listening)?,
            Call::Listen { .. }
            | Call::Unlisten
            | Call::Backlog(_)
            | Call::Connect
            | Call::ConnectFast { .. }
            | Call::FastOpen(_)
            | Call::FastOpenKeys(..)
            | Call::Accept => {
                unreachable!("not calls on a connection")
            }
        }
        Ok(())
    }

    fn put_in(&mut self, state: Portable<Symbolic>) -> Result<(), String> {
        let moved = self.stack.import(self.now, state);
        let moved = moved.map_err(|_| "expected that the stack imports the state")?;
        self.peer().id = Some(moved);
        Ok(())
    }

    /// Moves a connection as bytes to a stack with other parameters, another secret and another clock, and checks that nothing stays
    /// behind.
    fn move_away(&mut self, id: ConnId, listening: bool) -> Result<(), String> {
        let state = self.stack.export(self.now, id);
        let flow = self.peer().flow;
        let left = (
            self.stack.find(&flow),
            self.stack.poll_event(),
            self.stack.poll_transmit(self.now),
        );
        if left != (None, None, None) {
            return Err(format!(
                "expected that nothing remains in the stack, got {left:?}"
            ));
        }
        let read = Portable::from_bytes(&state.to_bytes()).map_err(|error| error.to_string())?;
        if read != state {
            return Err(format!("expected that the bytes decode to {state:?}"));
        }
        let config = Config {
            nagle: true,
            rto_min_ms: 3000,
            mss: 100,
            ..Config::default()
        };
        self.stack = Stack::new(config, 4711);
        self.listener = listening.then(|| self.stack.listen(self.local, 5));
        let later = Span::from_secs(5000);
        (self.start, self.now) = (self.start + later, self.now + later);
        self.put_in(read)
    }

    pub fn listener(&self) -> Result<ListenerId, String> {
        self.listener.ok_or_else(|| "there is no listener".into())
    }

    fn connect(&mut self) -> Result<(), String> {
        let flow = self.peer().flow;
        let id = self.stack.connect(self.now, flow);
        self.peer().id = Some(id.ok_or("expected that the four-tuple is free")?);
        Ok(())
    }

    fn connect_fast(&mut self, len: u32, how: FastOpen) -> Result<(), String> {
        let (flow, config) = (self.peer().flow, self.stack.config().clone());
        let id = self.stack.connect_fast_open(self.now, flow, &config, how);
        let peer = self.peer();
        (peer.id, peer.written, peer.read) = (id, 0, 0);
        id.ok_or("expected that the four-tuple is free")?;
        self.write(len, WriteFlags::default(), len)
    }

    fn accept(&mut self) -> Result<(), String> {
        let listener = self.listener()?;
        let id = self
            .stack
            .accept(listener)
            .ok_or("expected that a connection waits")?;
        let flow = self.stack.flow(id);
        let peer = self.peer();
        if flow != peer.flow {
            return Err(format!(
                "expected the connection of peer {}, got {flow:?}",
                peer.number
            ));
        }
        peer.id = Some(id);
        peer.events
            .retain(|event| !matches!(event, Event::Acceptable(_)));
        Ok(())
    }

    fn write(&mut self, len: u32, flags: WriteFlags, expected: u32) -> Result<(), String> {
        let id = self.id()?;
        let data = symbolic(OURS, self.peer().written, len);
        let taken = self.stack.write_with(id, data, flags);
        if taken != Ok(expected as usize) {
            return Err(format!(
                "expected that {expected} bytes are taken, got {taken:?}"
            ));
        }
        self.peer().written += u64::from(expected);
        Ok(())
    }

    /// Reads exactly `len` bytes, which must be those that the peer sent.
    fn read(&mut self, len: u32, consume: bool) -> Result<(), String> {
        let id = self.id()?;
        let mut left = len;
        while left > 0 {
            let piece = self.stack.read(id, left as usize);
            let piece = piece.ok_or_else(|| format!("{left} of {len} bytes are missing"))?;
            let at = self.peer().read + 1;
            if piece.source != PEERS || piece.offset != at {
                return Err(format!("read {piece:?} where byte {at} belongs"));
            }
            self.peer().read += u64::from(piece.len);
            left -= piece.len;
            if consume {
                self.stack.consume(id, piece.len as usize);
            }
        }
        Ok(())
    }

    /// Opens a connection passively.
    pub(super) fn accepted(&mut self, syn: &SegmentText) -> Result<(), String> {
        if self.listener.is_none() {
            self.call(&Call::Listen { backlog: 5 })?;
        }
        self.inject(syn)?;
        self.settle()?;
        self.sent.clear();
        let window = syn.window;
        self.inject(&SegmentText {
            flags: Flags::ACK,
            start: 1,
            end: 1,
            ack: Some(1),
            window,
            urgent: None,
            options: None,
            ecn: None,
        })?;
        self.settle()?;
        self.accept()
    }

    /// Opens a connection actively.
    pub(super) fn connected(&mut self, answer: &SegmentText) -> Result<(), String> {
        self.connect()?;
        self.settle()?;
        self.inject(answer)?;
        self.settle()?;
        self.sent.clear();
        self.event(Some("connected"))
    }
}
