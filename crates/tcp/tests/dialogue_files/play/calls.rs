//! Calls of the application.

use super::checks::path_error;
use super::{OURS, PEERS, Player, with_setting};
use baton_tcp::{
    Config, ConnId, FastOpen, FastOpenKey, FastOpenKeys, FastOpenListening, ListenerId, PathError,
    Portable, Stack, WriteError, WriteFlags,
};
use baton_testkit::dialogue::value;
use baton_testkit::{SegmentText, relative, symbolic};
use baton_wire::{Flags, SeqNr, Span, Stages, Symbolic};

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("expected `on` or `off`, found `{text}`")),
    }
}

fn without_cookie(words: &[&str]) -> Result<bool, String> {
    match words {
        [] => Ok(false),
        ["nocookie"] => Ok(true),
        _ => Err(format!("expected `nocookie` or nothing, found {words:?}")),
    }
}

impl Player {
    pub(super) fn call(&mut self, word: &str, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match (word, &words[..]) {
            ("listen", []) => self.listen(5),
            ("listen", ["backlog", backlog]) => self.listen(value(backlog)?),
            ("unlisten", []) => {
                self.stack.unlisten(self.now, self.listener()?);
                self.listener = None;
            }
            ("backlog", [backlog]) => self.stack.set_backlog(self.listener()?, value(backlog)?),
            ("connect", []) => self.connect()?,
            ("connect", ["fastopen", len, rest @ ..]) => {
                self.connect_fast(value(len)?, without_cookie(rest)?)?;
            }
            ("fastopen", ["keys", current, previous @ ..]) => {
                let key = |byte: &&str| Ok::<_, String>(FastOpenKey([value(byte)?; 16]));
                self.stack.set_fast_open_keys(FastOpenKeys {
                    current: key(current)?,
                    previous: previous.first().map(key).transpose()?,
                });
            }
            ("fastopen", [pending, rest @ ..]) => {
                let rules = FastOpenListening {
                    pending: value(pending)?,
                    without_cookie: without_cookie(rest)?,
                };
                self.stack.set_fast_open(self.listener()?, rules);
            }
            ("accept", []) => self.accept()?,
            ("icmp", ["fragmentation-needed", "mtu", mtu, "seq", seq]) => {
                let mtu = value(mtu)?;
                self.icmp(PathError::FragmentationNeeded { mtu }, seq)?;
            }
            ("icmp", [name, "seq", seq]) => self.icmp(path_error(name)?, seq)?,
            _ => return self.call_connection(word, &words, rest),
        }
        Ok(())
    }

    /// Executes a call on a connection.
    fn call_connection(&mut self, word: &str, words: &[&str], rest: &str) -> Result<(), String> {
        let id = self.id();
        let (now, stack) = (self.now, &mut self.stack);
        match (word, words) {
            ("write", [_, "=", "closed"]) => {
                if stack.write(id?, symbolic(OURS, 0, 1)) != Err(WriteError::Closed) {
                    return Err("expected that nothing can be written".into());
                }
            }
            ("write", [len, rest @ ..]) => return self.write_as_told(value(len)?, rest),
            ("read", [len]) => return self.read(value(len)?, true),
            ("take", [len]) => return self.read(value(len)?, false),
            ("consume", [len]) => stack.consume(id?, value(len)?),
            ("shutdown", []) => stack.shutdown(id?),
            ("shutdown", ["read"]) => stack.shutdown_receive(id?),
            ("close", []) => stack.close(id?),
            ("abort", []) => stack.abort(id?),
            ("cork", [on]) => stack.set_cork(id?, switch(on)?),
            ("defer", [on]) => stack.set_deferred(id?, switch(on)?),
            ("settle", [on]) => stack.set_settling(id?, switch(on)?),
            ("nodelay", [on]) => stack.set_nodelay(id?, switch(on)?),
            ("quickack", []) => stack.quick_ack(id?),
            ("arrivals", [on]) => stack.keep_arrival_times(id?, switch(on)?),
            ("configure", [_, ..]) => {
                let id = id?;
                let config = with_setting(stack.config_of(id), rest)?;
                stack.configure(now, id, |parameters| *parameters = config);
            }
            ("move", []) => {
                let state = stack.export(now, id?);
                self.put_in(state)?;
            }
            ("move", ["away"]) => self.move_away(id?, false)?,
            ("move", ["away", "listening"]) => self.move_away(id?, true)?,
            _ => return Err(format!("expected a command, found `{word} {rest}`")),
        }
        Ok(())
    }

    fn listen(&mut self, backlog: usize) {
        self.listener = Some(self.stack.listen(self.local, backlog));
    }

    /// Injects an ICMP error that quotes this sequence number.
    fn icmp(&mut self, error: PathError, seq: &str) -> Result<(), String> {
        let seq = self.peer().iss.unwrap_or(SeqNr(0)) + relative(Some(seq))?;
        let flow = self.flow();
        let outcome = self.stack.handle_path_error(self.now, &flow, seq, error);
        self.last_refusal = outcome.err();
        Ok(())
    }

    /// Writes `len` bytes. Further words give flags, a key for reports when the last byte reaches each stage, and how much is accepted.
    fn write_as_told(&mut self, len: u32, words: &[&str]) -> Result<(), String> {
        let (mut flags, mut key, mut taken) = (WriteFlags::default(), None, len);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or("expected a number");
            match *word {
                "more" => flags.more = true,
                "record" => flags.end_of_record = true,
                "urgent" => flags.urgent = true,
                "timed" => key = Some(value(next()?)?),
                "=" => taken = value(next()?)?,
                _ => {
                    return Err(format!(
                        "expected `more`, `record`, `urgent`, `timed KEY` or `= N`, found `{word}`"
                    ));
                }
            }
        }
        self.write(len, flags, taken)?;
        let id = self.id()?;
        match key.is_none_or(|key| self.stack.ask_times(id, key, Stages::all())) {
            true => Ok(()),
            false => Err("expected that the times can be requested".into()),
        }
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

    /// Connects by Fast Open, with this many bytes written before the SYN leaves.
    fn connect_fast(&mut self, len: u32, without_cookie: bool) -> Result<(), String> {
        let how = match without_cookie {
            true => FastOpen::WithoutCookie,
            false => FastOpen::Cookie,
        };
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
            .retain(|event| !matches!(event, baton_tcp::Event::Acceptable(_)));
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
            self.listen(5);
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
        self.event("connected")
    }
}
