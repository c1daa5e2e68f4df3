//! The host's half of handoff, as small as it can be: sockets that are on the host's stack, on the NIC, or between.

use super::{SERVER, from_host, from_peer, take_in_order};
use baton_bus::handoff::{CacheReference, Command, Control, Event, Handle, Refusal, ToHost, ToNic};
use baton_tcp::{CloseReason, ConnId, ListenerId, Portable, Stack, State};
use baton_wire::{Flow, Symbolic, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Who has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not established yet.
    Nowhere,
    /// The host's stack.
    Host(ConnId),
    /// A handoff is under way.
    Leaving(Handle),
    /// The NIC.
    Nic(Handle),
    /// A restore is under way.
    Returning(Handle),
    /// It is over.
    Over,
}

/// One connection as the host's application sees it.
#[derive(Debug)]
pub struct Socket {
    pub place: Place,
    pub to_write: u64,
    pub written: u64,
    pub acknowledged: u64,
    pub received: u64,
    /// Bytes the application was given and has not consumed.
    pub held: u32,
    /// Receive buffer bytes posted to the NIC and not used.
    pub posted: u32,
    pub peer_closed: bool,
    pub shut: bool,
    pub closed: Option<CloseReason>,
}

impl Socket {
    pub fn is_over(&self) -> bool {
        self.place == Place::Over
    }
}

pub struct Host {
    pub stack: Stack<Symbolic>,
    listener: ListenerId,
    pub sockets: Vec<Socket>,
    by_conn: FxHashMap<ConnId, usize>,
    by_handle: FxHashMap<Handle, usize>,
    free_handles: Vec<Handle>,
    pub to_nic: VecDeque<ToNic<Symbolic>>,
    pub from_nic: VecDeque<ToHost<Symbolic>>,
    pub refusals: Vec<Refusal>,
    pub relief: Vec<usize>,
    pub soft_limits: Vec<u32>,
    pub memory: Vec<u32>,
    /// Sizes of the data cache that the NIC told.
    pub cache_bytes: Vec<u32>,
    /// Packets that reached the host while their connection was the NIC's.
    pub forwarded: u32,
    /// Lengths of `Acknowledged` events.
    pub acknowledgments: Vec<u32>,
}

impl Host {
    pub fn new(tcp: baton_tcp::Config) -> Self {
        let mut stack = Stack::new(tcp, 1);
        let listener = stack.listen(SERVER, 1024);
        Self {
            stack,
            listener,
            sockets: Vec::new(),
            by_conn: FxHashMap::default(),
            by_handle: FxHashMap::default(),
            free_handles: (0..1024).rev().map(Handle).collect(),
            to_nic: VecDeque::new(),
            from_nic: VecDeque::new(),
            refusals: Vec::new(),
            relief: Vec::new(),
            soft_limits: Vec::new(),
            memory: Vec::new(),
            cache_bytes: Vec::new(),
            forwarded: 0,
            acknowledgments: Vec::new(),
        }
    }

    /// A connection will come on which the application writes `to_write` bytes.
    pub fn expect(&mut self, to_write: u64) {
        self.sockets.push(Socket {
            place: Place::Nowhere,
            to_write,
            written: 0,
            acknowledged: 0,
            received: 0,
            held: 0,
            posted: 0,
            peer_closed: false,
            shut: false,
            closed: None,
        });
    }

    fn command(&mut self, command: Command<Symbolic>) {
        self.to_nic.push_back(ToNic::Command(command));
    }

    fn number(flow: &Flow) -> usize {
        usize::from(flow.remote.port) - 1024
    }

    // --- what the application and the policy do ---

    /// Hands socket `n` off, if it is on the host in a state that can be.
    pub fn hand_off(&mut self, now: Time, n: usize) {
        let Place::Host(conn) = self.sockets[n].place else {
            return;
        };
        if matches!(self.stack.state(conn), State::SynReceived | State::TimeWait) {
            return;
        }
        let state = Box::new(self.stack.export(now, conn));
        self.by_conn.remove(&conn);
        let handle = self.free_handles.pop().expect("enough handles");
        self.by_handle.insert(handle, n);
        self.sockets[n].place = Place::Leaving(handle);
        self.command(Command::Handoff {
            handle,
            state,
            cached: Vec::new(),
        });
    }

    /// Takes socket `n` back, if the NIC has it.
    pub fn restore(&mut self, n: usize) {
        let Place::Nic(handle) = self.sockets[n].place else {
            return;
        };
        self.sockets[n].place = Place::Returning(handle);
        self.command(Command::Restore { handle });
    }

    /// Writes at most `most` bytes to socket `n`; when all is written it closes its side.
    pub fn write(&mut self, now: Time, n: usize, most: u64) {
        let socket = &mut self.sockets[n];
        if socket.shut || !matches!(socket.place, Place::Host(_) | Place::Nic(_)) {
            return;
        }
        // The send buffer bounds what is written and not acknowledged, wherever the connection is.
        let room = u64::from(self.stack.config().send_buffer)
            .saturating_sub(socket.written - socket.acknowledged);
        let len = most.min(socket.to_write - socket.written).min(room) as u32;
        let data = Symbolic {
            source: from_host(n),
            offset: socket.written,
            len,
        };
        socket.written += u64::from(len);
        socket.shut = socket.written == socket.to_write;
        let shut = socket.shut;
        match socket.place {
            Place::Host(conn) => {
                if len > 0 {
                    assert_eq!(
                        self.stack.write(conn, data),
                        Ok(len as usize),
                        "there is room"
                    );
                }
                if shut {
                    self.stack.shutdown(conn);
                }
                self.turn(now);
            }
            Place::Nic(handle) => {
                if len > 0 {
                    self.command(Command::Send {
                        handle,
                        data,
                        cached: None,
                    });
                }
                if shut {
                    self.command(Command::Control {
                        handle,
                        control: Control::Shutdown,
                    });
                }
            }
            Place::Nowhere | Place::Leaving(_) | Place::Returning(_) | Place::Over => {}
        }
    }

    /// Writes `len` bytes, which are all, to socket `n`, which is on the NIC; they also stand in the cache.
    pub fn write_cached(&mut self, n: usize, len: u32, reference: CacheReference) {
        let socket = &mut self.sockets[n];
        let Place::Nic(handle) = socket.place else {
            panic!("it is on the NIC")
        };
        let data = Symbolic {
            source: from_host(n),
            offset: socket.written,
            len,
        };
        socket.written += u64::from(len);
        socket.shut = true;
        self.command(Command::Send {
            handle,
            data,
            cached: Some(reference),
        });
        self.command(Command::Control {
            handle,
            control: Control::Shutdown,
        });
    }

    /// The application has room for `len` more bytes of socket `n`.
    pub fn post_receive(&mut self, n: usize, len: u32) {
        let socket = &mut self.sockets[n];
        if let Place::Nic(handle) = socket.place {
            socket.posted += len;
            self.command(Command::PostReceive { handle, len });
        }
    }

    /// The application is done with at most `most` bytes of what it was given on socket `n`.
    pub fn consume(&mut self, n: usize, most: u32) {
        let socket = &mut self.sockets[n];
        let len = most.min(socket.held);
        match socket.place {
            Place::Host(conn) => self.stack.consume(conn, len as usize),
            Place::Nic(handle) if len > 0 => self.command(Command::Received { handle, len }),
            Place::Nic(_)
            | Place::Nowhere
            | Place::Leaving(_)
            | Place::Returning(_)
            | Place::Over => return,
        }
        self.sockets[n].held -= len;
    }

    // --- what comes from the NIC ---

    /// Takes the oldest upcall.
    pub fn upcall(&mut self, now: Time) -> bool {
        let Some(upcall) = self.from_nic.pop_front() else {
            return false;
        };
        match upcall {
            ToHost::Packet(segment) => {
                let place = self
                    .sockets
                    .get(Self::number(&segment.flow_at_receiver()))
                    .map(|socket| socket.place);
                match place {
                    Some(
                        Place::Leaving(handle) | Place::Nic(handle) | Place::Returning(handle),
                    ) => {
                        self.forwarded += 1;
                        self.command(Command::Forward { handle, segment });
                    }
                    Some(Place::Nowhere | Place::Host(_) | Place::Over) | None => {
                        self.stack.handle_segment(now, segment);
                    }
                }
            }
            ToHost::Event(event) => self.event(now, event),
            ToHost::Sent(_) => {}
        }
        self.turn(now);
        true
    }

    fn event(&mut self, now: Time, event: Event<Symbolic>) {
        match event {
            Event::Handoff {
                handle,
                result: Ok(()),
            } => {
                let n = self.by_handle[&handle];
                assert_eq!(self.sockets[n].place, Place::Leaving(handle));
                self.sockets[n].place = Place::Nic(handle);
            }
            Event::Handoff {
                handle,
                result: Err((reason, state)),
            } => {
                self.refusals.push(reason);
                self.take_back(now, handle, *state);
            }
            Event::Restored { handle, state } => self.take_back(now, handle, *state),
            Event::Receive { handle, data } => {
                let n = self.by_handle[&handle];
                let socket = &mut self.sockets[n];
                assert!(
                    !socket.peer_closed
                        || matches!(socket.place, Place::Nic(_) | Place::Returning(_))
                );
                take_in_order(&mut socket.received, from_peer(n), data);
                socket.posted = socket
                    .posted
                    .checked_sub(data.len)
                    .expect("only into posted buffers");
                socket.held += data.len;
            }
            Event::Acknowledged { handle, len } => {
                self.acknowledgments.push(len);
                let n = self.by_handle[&handle];
                self.acknowledge(n, len);
            }
            Event::PeerClosed { handle } => {
                let n = self.by_handle[&handle];
                self.sockets[n].peer_closed = true;
            }
            Event::Closed { handle, reason } => {
                let n = self.by_handle.remove(&handle).expect("a known handle");
                self.sockets[n].place = Place::Over;
                self.sockets[n].closed = Some(reason);
                self.command(Command::Release { handle });
                self.free_handles.push(handle);
            }
            Event::Relief { handle } => self.relief.extend(self.by_handle.get(&handle)),
            Event::SoftLimit(limit) => self.soft_limits.push(limit),
            Event::Memory(connections) => self.memory.push(connections),
            Event::CacheReady(bytes) => self.cache_bytes.push(bytes),
            Event::Reset => unreachable!("nobody asked for it"),
        }
    }

    fn acknowledge(&mut self, n: usize, len: u32) {
        let socket = &mut self.sockets[n];
        socket.acknowledged += u64::from(len);
        assert!(
            socket.acknowledged <= socket.written,
            "only what was written is acknowledged"
        );
    }

    /// A connection comes back to the host's stack.
    fn take_back(&mut self, now: Time, handle: Handle, state: Portable<Symbolic>) {
        let n = self.by_handle.remove(&handle).expect("a known handle");
        self.free_handles.push(handle);
        let closed = matches!(
            state.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        );
        let conn = self
            .stack
            .import(now, state)
            .expect("a state the NIC exported");
        self.by_conn.insert(conn, n);
        self.sockets[n].place = Place::Host(conn);
        self.sockets[n].posted = 0;
        self.read(n, conn);
        self.sockets[n].peer_closed |= closed;
        self.turn(now);
    }

    fn read(&mut self, n: usize, conn: ConnId) {
        while let Some(data) = self.stack.read(conn, usize::MAX) {
            let socket = &mut self.sockets[n];
            take_in_order(&mut socket.received, from_peer(n), data);
            socket.held += data.len;
        }
    }

    // --- the host's stack ---

    pub fn handle_timeouts(&mut self, now: Time) {
        self.stack.handle_timeouts(now);
        self.turn(now);
    }

    /// The stack gets its events and segments out.
    fn turn(&mut self, now: Time) {
        while let Some((conn, event)) = self.stack.poll_event() {
            if let baton_tcp::Event::Acceptable(listener) = event {
                assert_eq!(listener, self.listener);
                while let Some(conn) = self.stack.accept(listener) {
                    let n = Self::number(&self.stack.flow(conn));
                    self.by_conn.insert(conn, n);
                    self.sockets[n].place = Place::Host(conn);
                    self.read(n, conn);
                }
                continue;
            }
            let Some(n) = self.by_conn.get(&conn).copied() else {
                continue;
            };
            match event {
                baton_tcp::Event::Readable => self.read(n, conn),
                baton_tcp::Event::Acknowledged(len) => self.acknowledge(n, len),
                baton_tcp::Event::PeerClosed => self.sockets[n].peer_closed = true,
                baton_tcp::Event::Closed(reason) => {
                    self.by_conn.remove(&conn);
                    self.sockets[n].place = Place::Over;
                    self.sockets[n].closed = Some(reason);
                }
                baton_tcp::Event::Connected | baton_tcp::Event::Acceptable(_) => {
                    panic!("the host is a server")
                }
            }
        }
        while let Some((_, segment)) = self.stack.poll_transmit(now) {
            self.to_nic.push_back(ToNic::Packet(segment));
        }
    }
}
