//! Arbitrary bytes as an adapter's responses, all of which the host must validate.

use arbitrary::{Arbitrary, Unstructured};
use baton_bus::descriptor::{Action, Opcode, Request, Response, Status, Times, entries};
use baton_bus::link::{DmaId, MemoryAdapter, MemoryConfig, MemoryHost, memory_link};
use baton_bus::{AdapterLink, Batching, Descriptor, HostLink};
use baton_host::adapter::{OsLayer, OsLayerConfig, SendTimes};
use baton_host::{FileContent, FileId, NicCacheConfig, Ready, SocketId, Sockets};
use baton_testkit::symbolic;
use baton_wire::{Endpoint, Span, Stages, Symbolic, Time};
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of steps in a run.
const MOST_STEPS: usize = 200;

/// Size of the longest transfer: a block of the cache.
const BUFFER_BYTES: u32 = 512;
/// Length of each file.
const FILE_BYTES: u64 = 2000;

/// The next action.
#[derive(Debug, Arbitrary)]
enum Step {
    /// The adapter writes an arbitrary descriptor.
    Write([u64; 4]),
    /// The adapter answers a request arbitrarily.
    Completion {
        which: u8,
        opcode: u8,
        flags: u8,
        status: u8,
        len: u16,
    },
    Connect,
    Send {
        socket: u8,
        len: u16,
        cork: bool,
    },
    /// Content of a file of four blocks.
    SendFile {
        socket: u8,
        file: u8,
        offset: u16,
    },
    Close {
        socket: u8,
        abort: bool,
    },
    Ask {
        socket: u8,
    },
    Wait {
        us: u16,
    },
}

struct Host {
    os: OsLayer<Symbolic>,
    link: MemoryHost<Symbolic>,
    adapter: MemoryAdapter<Symbolic>,
    now: Time,
    sockets: Vec<SocketId>,
    /// Requests that the adapter has received, answered or not.
    requests: Vec<Request>,
}

/// Runs an application while the adapter gives arbitrary answers. The invariants must always hold. When the host detects a violation, it
/// continues with another adapter.
pub fn hostile_adapter(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(mut host) = Host::new(&mut input) else {
        return;
    };
    for _ in 0..MOST_STEPS {
        let Ok(step) = Step::arbitrary(&mut input) else {
            break;
        };
        host.step(step);
        host.settle();
        if input.is_empty() {
            break;
        }
    }
    host.os.handle_link_lost(host.now);
    host.os.check();
    assert_eq!(
        host.os.outstanding(),
        0,
        "no request of a lost link is outstanding"
    );
}

fn endpoint() -> Endpoint {
    Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80)
}

fn new_link() -> (MemoryHost<Symbolic>, MemoryAdapter<Symbolic>) {
    memory_link(MemoryConfig {
        ring_depth: 64,
        buffers: 12,
        buffer_bytes: BUFFER_BYTES,
    })
}

impl Host {
    fn new(input: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let config = OsLayerConfig {
            batching: Batching {
                level: input.int_in_range(1..=3)?,
                max_transfer_bytes: BUFFER_BYTES,
                ..Batching::default()
            },
            most_inline: input.int_in_range(0..=64)?,
            bulk_accept: input.int_in_range(1..=3)?,
            accepts_posted: input.int_in_range(1..=2)?,
            half_close: input.arbitrary()?,
            most_sends: 4,
            most_sockets: 32,
            nic_cache: NicCacheConfig {
                enabled: input.arbitrary()?,
                block_bytes: 512,
                ..NicCacheConfig::default()
            },
            ..OsLayerConfig::default()
        };
        let (link, adapter) = new_link();
        let mut os = OsLayer::new(config).expect("the parameters are valid");
        let listener = os.listen(Time::ZERO, endpoint(), 8);
        Ok(Self {
            os,
            link,
            adapter,
            now: Time::ZERO,
            sockets: listener.into_iter().collect(),
            requests: Vec::new(),
        })
    }

    fn socket(&self, which: u8) -> SocketId {
        let known = self.sockets.len().max(1);
        let socket = self.sockets.get(usize::from(which) % known);
        socket.copied().unwrap_or(SocketId(which.into()))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(words) => self.put(Descriptor(words)),
            Step::Completion {
                which,
                opcode,
                flags,
                status,
                len,
            } => self.answer(which, opcode, flags, status, len),
            Step::Connect => self.sockets.extend(self.os.connect(self.now, endpoint())),
            Step::Send { socket, len, cork } => {
                let socket = self.socket(socket);
                self.os.ask_times(
                    socket,
                    SendTimes {
                        stages: Stages::from_bits_truncate(len as u8),
                        if_whole: true,
                        if_partial: !cork,
                    },
                );
                let mut calls = self.os.calls(self.now, &mut self.link);
                calls.set_cork(socket, cork);
                let data = symbolic(1, 0, len.into());
                let _ = calls.send(socket, data);
            }
            Step::SendFile {
                socket,
                file,
                offset,
            } => {
                let socket = self.socket(socket);
                let offset = u64::from(offset) % FILE_BYTES;
                let content = FileContent {
                    file_len: FILE_BYTES,
                    ..FileContent::new(FileId((file % 4).into()), offset, FILE_BYTES - offset)
                };
                let mut calls = self.os.calls(self.now, &mut self.link);
                if let Ok(cached) = calls.send_cached(socket, &content) {
                    let rest = content.after(cached.taken);
                    let data = symbolic(1, rest.offset, rest.len as u32);
                    let _ = calls.send_file(socket, rest, data);
                }
            }
            Step::Close { socket, abort } => {
                let socket = self.socket(socket);
                if abort {
                    self.os.abort(self.now, socket);
                } else {
                    self.os.close(self.now, socket);
                }
            }
            Step::Ask { socket } => {
                let socket = self.socket(socket);
                let _ = self.os.status(self.now, socket);
                let times = Times::RECEIVED | Times::FROM_NEXT;
                let _ = self.os.set_times(self.now, socket, times);
                let _ = self.os.cancel_receive(self.now, socket);
                self.os.shutdown(self.now, socket);
            }
            Step::Wait { us } => self.now += Span::from_us(us.into()),
        }
    }

    /// Writes an answer that matches a request except for its content. Most answers are valid, so that runs do not end early.
    fn answer(&mut self, which: u8, opcode: u8, flags: u8, status: u8, len: u16) {
        let Some(&request) = self
            .requests
            .get(usize::from(which) % self.requests.len().max(1))
        else {
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
        let _ = self.adapter.write(self.now, DmaId(0), address, data);
        let _ = self.adapter.poll_dma(self.now);
        Some(if len < 60_000 {
            data.len.into()
        } else {
            len.into()
        })
    }

    fn put(&mut self, descriptor: Descriptor) {
        let entry = vec![descriptor; 1 + descriptor.continuations()];
        let _ = self.adapter.put(self.now, &entry);
    }

    /// Completes the host's work and processes what has arrived.
    fn settle(&mut self) {
        while let Some(ready) = self.os.next_ready() {
            if ready == Ready::Acceptable {
                self.sockets.extend(self.os.accept());
            }
        }
        for _ in 0..8 {
            let moved = self.os.pump(self.now, &mut self.link);
            if moved.is_err() {
                self.os.handle_link_lost(self.now);
                (self.link, self.adapter) = new_link();
                self.requests.clear();
            }
            self.os.check();
            if moved != Ok(true) {
                break;
            }
        }
        while self.os.poll_completion().is_some() {}
        for &socket in &self.sockets {
            if self.os.has_transmit_time(socket) {
                assert!(self.os.poll_transmit_time(socket).is_some());
            }
        }
        assert!(self.link.free_buffers() <= 12);
        let mut transfer = Vec::new();
        if self
            .adapter
            .get(self.now, usize::MAX, &mut transfer)
            .is_ok()
        {
            let heads =
                entries(&transfer).filter_map(|entry| Request::decode(&entry.ok()?[0]).ok());
            self.requests.extend(heads);
        }
    }
}
