//! Arbitrary bytes as an adapter's responses, all of which the host must validate.

use baton_bus::descriptor::{Action, Opcode, Request, Response, Status, Times, entries};
use baton_bus::link::{DmaId, MemoryConfig};
use baton_bus::{AdapterLink, Batching, Descriptor, HostLink};
use baton_cluster::script::{SERVER, Script};
use baton_host::adapter::{OsLayerConfig, SendTimes};
use baton_host::{FileContent, FileId, NicCacheConfig, Ready, SocketId, Sockets};
use baton_testkit::{Random, symbolic};
use baton_wire::{Span, Stages, Symbolic};

/// Number of steps in a run.
const STEPS: usize = 200;

/// Rings, and buffers as long as a block of the cache.
const LINK: MemoryConfig = MemoryConfig {
    ring_depth: 64,
    buffers: 12,
    buffer_bytes: 512,
};
/// Length of each file: four blocks.
const FILE_BYTES: u64 = 2000;

struct Host {
    random: Random,
    script: Script<Symbolic>,
    sockets: Vec<SocketId>,
    /// Requests that the adapter has received, answered or not.
    requests: Vec<Request>,
}

/// Runs an application while the adapter gives arbitrary answers. The invariants must always hold. When the host detects a violation, it
/// continues with another adapter.
pub fn hostile_adapter(data: &[u8]) {
    let mut host = Host::new(Random::beginning_with(data));
    for _ in 0..STEPS {
        host.step();
        host.settle();
    }
    host.script.os.handle_link_lost(host.script.now);
    host.script.os.check();
    let outstanding = host.script.os.outstanding();
    assert_eq!(outstanding, 0, "no request of a lost link is outstanding");
}

impl Host {
    fn new(mut random: Random) -> Self {
        let config = OsLayerConfig {
            batching: Batching {
                level: 1 + random.below(3) as u32,
                max_transfer_bytes: LINK.buffer_bytes,
                ..Batching::default()
            },
            most_inline: random.below(65) as u32,
            bulk_accept: 1 + random.below(3) as u16,
            accepts_posted: 1 + random.below(2) as u32,
            half_close: random.percent(50),
            most_sends: 4,
            most_sockets: 32,
            nic_cache: NicCacheConfig {
                enabled: random.percent(50),
                block_bytes: LINK.buffer_bytes,
                ..NicCacheConfig::default()
            },
            reports_unread: random.percent(50),
            ..OsLayerConfig::default()
        };
        let mut script = Script::with_link(config, LINK);
        let listener = script.os.listen(script.now, SERVER, 8);
        Self {
            random,
            script,
            sockets: listener.into_iter().collect(),
            requests: Vec::new(),
        }
    }

    /// Lets the adapter or the application do something.
    fn step(&mut self) {
        let Self {
            random,
            script,
            sockets,
            ..
        } = self;
        let what = random.below(8);
        let any = SocketId(random.below(256) as u32);
        let index = (any.0 as usize).checked_rem(sockets.len());
        let socket = index.map_or(any, |index| sockets[index]);
        let len = random.below(1 << 16);
        let now = script.now;
        match what {
            0 => {
                let words = [(); 4].map(|()| random.word());
                self.put(Descriptor(words));
            }
            1 => self.answer(len as u16),
            2 => sockets.extend(script.os.connect(now, SERVER)),
            3 => {
                let is_corked = random.percent(50);
                let asked = SendTimes {
                    stages: Stages::from_bits_truncate(len as u8),
                    if_whole: true,
                    if_partial: !is_corked,
                };
                script.os.ask_times(socket, asked);
                let mut calls = script.calls();
                calls.set_cork(socket, is_corked);
                let _ = calls.send(socket, symbolic(1, 0, len as u32));
            }
            4 => {
                let offset = len % FILE_BYTES;
                let file = FileId(random.below(4) as u32);
                let content = FileContent {
                    file_len: FILE_BYTES,
                    ..FileContent::new(file, offset, FILE_BYTES - offset)
                };
                let mut calls = script.calls();
                if let Ok(cached) = calls.send_cached(socket, &content) {
                    let rest = content.after(cached.taken);
                    let data = symbolic(1, rest.offset, rest.len as u32);
                    let _ = calls.send_file(socket, rest, data);
                }
            }
            5 if random.percent(50) => script.os.abort(now, socket),
            5 => script.os.close(now, socket),
            6 => {
                let _ = script.os.status(now, socket);
                let times = Times::RECEIVED | Times::FROM_NEXT;
                let _ = script.os.set_times(now, socket, times);
                let _ = script.os.cancel_receive(now, socket);
                script.os.shutdown(now, socket);
            }
            _ => script.now += Span::from_us(len),
        }
    }

    /// Writes an answer that matches a request except for its content. Most answers are valid, so that runs do not end early.
    fn answer(&mut self, len: u16) {
        let mut byte = || self.random.below(256) as u8;
        let (which, opcode, flags, status) = (byte(), byte(), byte(), byte());
        let index = usize::from(which).checked_rem(self.requests.len());
        let Some(request) = index.map(|index| self.requests[index]) else {
            return;
        };
        let mut words = request.encode().0;
        let own = match request.action {
            Action::SendCached { .. } => Opcode::Send.byte().into(),
            _ => words[0] & 0xff,
        };
        let opcode = Opcode::from_byte(opcode).map_or(own, |opcode| opcode.byte().into());
        if opcode == u64::from(Opcode::Time.byte()) {
            let what = [0, 1, 2, 255][usize::from(flags % 4)];
            let socket = u64::from(request.socket) << 32;
            let words = [opcode | socket, u64::from(len) << 32, status.into(), what];
            return self.put(Descriptor(words));
        }
        if request.action == Action::CacheInit {
            // Number of INSERTs that may be pending.
            words[2] = 4;
        }
        let flags = if flags < 200 { 1 } else { u64::from(flags) | 1 };
        let third = match request.action {
            // Number of connections.
            Action::Accept { .. } => u64::from(status) % 3,
            _ if status < 160 => 0,
            _ => u64::from(status) % (Status::ALL.len() as u64 + 1),
        };
        let written = self.write_data(&request, len);
        let len = written.unwrap_or(words[1] >> 32);
        words[0] = opcode | flags << 8 | third << 16 | u64::from(request.socket) << 32;
        words[1] = u64::from(request.tag) | len << 32;
        let answer = Descriptor(words);
        if Response::decode(&answer).is_ok() {
            self.put(answer);
        }
    }

    /// Writes data for a RECV, mostly as long as its buffer allows; returns the length for the answer.
    fn write_data(&mut self, request: &Request, len: u16) -> Option<u64> {
        let (address, room) = match request.action {
            Action::Receive { address, len } => (address, len),
            // Size of the cache.
            Action::CacheInit => return Some(len.into()),
            _ => return None,
        };
        let data = symbolic(2, 0, u32::from(len) % room + 1);
        let Script { adapter, now, .. } = &mut self.script;
        // The buffer may no longer be lent.
        let _ = adapter.write(*now, DmaId(0), address, data);
        let _ = adapter.poll_dma(*now);
        Some(match len {
            ..60_000 => data.len.into(),
            _ => len.into(),
        })
    }

    fn put(&mut self, descriptor: Descriptor) {
        let entry = vec![descriptor; 1 + descriptor.continuations()];
        // The ring may be full.
        let _ = self.script.adapter.put(self.script.now, &entry);
    }

    /// Completes the host's work and processes what has arrived.
    fn settle(&mut self) {
        let script = &mut self.script;
        for ready in script.ready() {
            if ready == Ready::Acceptable {
                self.sockets.extend(script.os.accept());
            }
        }
        if script.try_pump().is_err() {
            script.os.handle_link_lost(script.now);
            script.reconnect();
            self.requests.clear();
        }
        script.os.check();
        while script.os.poll_completion().is_some() {}
        for &socket in &self.sockets {
            if script.os.has_transmit_time(socket) {
                assert!(script.os.poll_transmit_time(socket).is_some());
            }
        }
        assert!(script.host.free_buffers() <= LINK.buffers);
        let mut transfer = Vec::new();
        let got = script.adapter.get(script.now, usize::MAX, &mut transfer);
        if got.is_ok() {
            let heads = entries(&transfer);
            let heads = heads.filter_map(|entry| Request::decode(&entry.ok()?[0]).ok());
            self.requests.extend(heads);
        }
    }
}
