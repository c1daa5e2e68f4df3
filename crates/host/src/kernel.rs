//! The kernel: what there is, what goes in and what comes out. The work itself is in the modules by layer:
//! [`input`](crate::input), [`output`](crate::output), [`bypass`](crate::bypass), [`handoff`](crate::handoff),
//! [`syscalls`](crate::syscalls).

use crate::affinity::Affinity;
use crate::config::Config;
use crate::driver::Driver;
use crate::files::Files;
use crate::footprint;
use crate::memory::{Buffers, Slots};
use crate::meter::{Meter, Owner};
use crate::nic_cache::{Coherence, MakeReplacement};
use crate::nics::{NicId, Nics};
use crate::pcb_lists::PcbLists;
use crate::selection::Selection;
use crate::socket::{Mode, Socket, SocketTable, Storage};
use crate::sockets::{Ready, SocketId};
use crate::stats::{Connections, NotOffloaded, Stats};
use crate::syscalls::Syscalls;
use baton_bus::handoff::{Handle, ToHost, ToNic};
use baton_cache::Replacement;
use baton_tcp::{ConnId, ListenerId, Stack};
use baton_wire::{Endpoint, Flow, Payload, Time};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The host's half of Baton: sockets over a TCP stack, and over the bypass for connections that the NIC processes.
///
/// Calling order: each `handle_*` call, each system call made through [`Kernel::sockets`] and each [`Kernel::wait`] is one
/// piece of work, complete when it returns and reported to the meter. After it, take what is for the NIC from
/// [`Kernel::poll_descriptor`] until there is nothing, ask [`Kernel::has_ready`] whether the application has something to
/// do, and call [`Kernel::handle_timeouts`] when the moment that [`Kernel::poll_timeout`] gives has come. Time never goes back.
#[derive(Debug)]
pub struct Kernel<P> {
    pub(crate) config: Config,
    pub(crate) stack: Stack<P>,
    /// Send buffer of each connection, bytes.
    pub(crate) send_limit: usize,
    pub(crate) selection: Box<dyn Selection>,
    pub(crate) sockets: SocketTable<P>,
    /// The socket of each connection in the stack.
    pub(crate) conn_sockets: Vec<Option<SocketId>>,
    pub(crate) listeners: Vec<ListenerId>,
    /// Established, not yet accepted by the application.
    pub(crate) accept_queue: VecDeque<SocketId>,
    /// Established in this piece of work, not yet shown to the selection policy.
    pub(crate) established: Vec<SocketId>,
    /// Sockets with something to report, and stale entries of sockets that no longer have.
    pub(crate) ready_queue: VecDeque<SocketId>,
    /// How many sockets have something to report.
    pub(crate) ready_count: usize,

    pub(crate) handles: Slots,
    /// The socket of each handle in use.
    pub(crate) handle_sockets: Vec<Option<SocketId>>,
    /// Connections that are not in the stack: on the NIC, or on their way.
    pub(crate) flows: FxHashMap<Flow, Handle>,

    pub(crate) buffers: Buffers,
    pub(crate) pcbs: PcbLists,
    pub(crate) nics: Nics<P>,
    pub(crate) files: Files<P>,
    pub(crate) coherence: Box<dyn Coherence>,
    /// None: as its parameters say.
    pub(crate) replacement: Option<MakeReplacement>,
    /// None: every connection is answered by the NIC on which it came.
    pub(crate) affinity: Option<Box<dyn Affinity>>,
    /// Buffer of the packet being processed, until somebody keeps it.
    pub(crate) arriving: Option<(u32, u32)>,
    /// Writers that found no mbufs.
    pub(crate) memory_waiters: VecDeque<SocketId>,

    pub(crate) connections: Connections,
    pub(crate) stats: Stats,

    /// Room for what one call works on, kept from call to call: pieces of a file ...
    pub(crate) pieces: Vec<P>,
    /// ... and blocks that each NIC has.
    pub(crate) cached_counts: Vec<u32>,
}

impl<P: Payload> Kernel<P> {
    /// A kernel with no connections and no NIC yet: see [`Kernel::attach_nic`]. `secret` seeds what TCP must not let be guessed.
    pub fn new(config: Config, tcp: baton_tcp::Config, secret: u64) -> Self {
        let buffers = Buffers::new(config.mbufs, config.clusters);
        Self {
            send_limit: tcp.send_buffer as usize,
            stack: Stack::new(tcp, secret),
            selection: config.selection.build(),
            sockets: SocketTable::new(),
            conn_sockets: Vec::new(),
            listeners: Vec::new(),
            accept_queue: VecDeque::new(),
            established: Vec::new(),
            ready_queue: VecDeque::new(),
            ready_count: 0,
            handles: Slots::new(config.handles),
            handle_sockets: Vec::new(),
            flows: FxHashMap::default(),
            buffers,
            pcbs: PcbLists::new(config.hash_buckets),
            nics: Nics::new(),
            files: Files::new(&config.file_cache),
            coherence: config.nic_cache.coherence.build(),
            replacement: None,
            affinity: config.affinity.build(),
            arriving: None,
            memory_waiters: VecDeque::new(),
            connections: Connections::default(),
            stats: Stats::default(),
            pieces: Vec::new(),
            cached_counts: Vec::new(),
            config,
        }
    }

    // --- getters ---

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Totals.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Totals of the host's TCP.
    pub fn tcp_stats(&self) -> &baton_tcp::Stats {
        self.stack.stats()
    }

    /// Connections by owner.
    pub fn connections(&self) -> Connections {
        self.connections
    }

    /// All sockets, those not yet accepted and those closed by the application among them.
    pub fn socket_ids(&self) -> impl Iterator<Item = SocketId> {
        self.sockets.iter().map(|(id, _)| id)
    }

    /// Who processes the socket's connection. `None`: no such socket.
    pub fn mode(&self, socket: SocketId) -> Option<Mode> {
        self.sockets.get(socket).map(|socket| socket.mode)
    }

    /// The socket's connection.
    pub fn flow(&self, socket: SocketId) -> Option<Flow> {
        self.sockets.get(socket).map(|socket| socket.flow)
    }

    /// Why the socket's connection is not on the NIC. `None` while it is, or is on its way there.
    pub fn not_offloaded(&self, socket: SocketId) -> Option<NotOffloaded> {
        self.sockets
            .get(socket)
            .and_then(|socket| socket.not_offloaded)
    }

    /// Whether a [`Kernel::wait`] would report anything.
    pub fn has_ready(&self) -> bool {
        self.ready_count > 0 || !self.accept_queue.is_empty()
    }

    /// mbufs and clusters in use.
    pub fn buffers_in_use(&self) -> (u32, u32) {
        (self.buffers.mbufs.in_use(), self.buffers.clusters.in_use())
    }

    // --- events in ---

    /// A NIC interrupted. What it has to say follows, entry by entry, in [`Kernel::handle_upcall`].
    pub fn handle_interrupt<M: Meter>(&mut self, m: &mut M) {
        footprint::interrupt(m);
    }

    /// Takes one entry off the ring from a NIC and does everything that follows from it.
    pub fn handle_upcall<M: Meter>(&mut self, now: Time, nic: NicId, entry: ToHost<P>, m: &mut M) {
        m.owner(if matches!(entry, ToHost::Event(_)) {
            Owner::Nic
        } else {
            Owner::Host
        });
        let slot = self.nics[nic].driver.next_entry(m);
        match entry {
            ToHost::Packet(segment) => self.receive_packet(now, nic, slot, segment, m),
            ToHost::Event(event) => self.handle_event(now, nic, event, m),
            ToHost::Sent(count) => {
                let driver = &mut self.nics[nic].driver;
                driver.complete(count, &mut self.buffers, m);
            }
        }
        self.wake_memory_waiter(m);
    }

    /// Runs the TCP timers that are due.
    pub fn handle_timeouts<M: Meter>(&mut self, now: Time, m: &mut M) {
        m.owner(Owner::Host);
        let due = self.stack.handle_timeouts(now);
        if due > 0 {
            footprint::tcp_timers(m, due as u32);
        }
        self.settle(now, m);
        self.wake_memory_waiter(m);
    }

    // --- mutators ---

    /// Policies of the caller's own in place of those that its parameters name, before there is any connection.
    pub fn set_policies(
        &mut self,
        selection: Option<Box<dyn Selection>>,
        coherence: Option<Box<dyn Coherence>>,
        affinity: Option<Box<dyn Affinity>>,
    ) {
        self.selection = selection.unwrap_or_else(|| self.config.selection.build());
        self.coherence = coherence.unwrap_or_else(|| self.config.nic_cache.coherence.build());
        self.affinity = affinity.or_else(|| self.config.affinity.build());
    }

    /// What chooses the block that makes room in a NIC's cache, made for so many blocks, in place of what its parameters name; before a
    /// cache is started.
    pub fn set_replacement(&mut self, make: impl Fn(u32) -> Box<dyn Replacement> + Send + 'static) {
        self.replacement = Some(MakeReplacement(Box::new(make)));
    }

    /// Accepts connections to `local`.
    pub fn listen(&mut self, local: Endpoint) {
        let listener = self.stack.listen(local, self.config.backlog as usize);
        self.listeners.push(listener);
    }

    /// System calls of the application at `now`.
    pub fn sockets<'a, M: Meter>(&'a mut self, now: Time, m: &'a mut M) -> Syscalls<'a, P, M> {
        Syscalls {
            kernel: self,
            now,
            meter: m,
        }
    }

    /// The system call by which an application waits for events (kevent): appends at most `max` to `ready` and never blocks.
    ///
    /// Waiting connections are reported each time there are any; all else once per change, so that an application that
    /// does not take all there is must remember it.
    pub fn wait<M: Meter>(&mut self, m: &mut M, ready: &mut Vec<Ready>, max: usize) {
        footprint::wait(m);
        let end = ready.len() + max;
        if !self.accept_queue.is_empty() && ready.len() < end {
            footprint::wait_event(m, None);
            ready.push(Ready::Acceptable);
        }
        while ready.len() < end {
            let Some(id) = self.ready_queue.pop_front() else {
                break;
            };
            let socket = &mut self.sockets[id];
            socket.in_ready_queue = false;
            if !socket.accepted {
                // The entry was made for a socket that had this slot before.
                continue;
            }
            if socket.readable {
                socket.readable = false;
                ready.push(Ready::Readable(id));
            } else if socket.writable {
                socket.writable = false;
                ready.push(Ready::Writable(id));
            } else {
                continue;
            }
            if socket.writable {
                socket.in_ready_queue = true;
                self.ready_queue.push_back(id);
            } else {
                self.ready_count -= 1;
            }
            footprint::wait_event(m, Some(id.0));
        }
    }

    // --- effects out ---

    /// The next packet or command for a NIC, in order.
    pub fn poll_descriptor(&mut self) -> Option<(NicId, ToNic<P>)> {
        self.nics.poll()
    }

    /// When [`Kernel::handle_timeouts`] must next be called, if ever. May be early, never late.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.stack.poll_timeout()
    }

    // --- what the layers share ---

    /// Lets everything happen that follows from what was just done to the stack: its events, the policy's look at new
    /// connections, its output.
    pub(crate) fn settle<M: Meter>(&mut self, now: Time, m: &mut M) {
        loop {
            let mut idle = true;
            while let Some((conn, event)) = self.stack.poll_event() {
                self.handle_stack_event(now, conn, event, m);
                idle = false;
            }
            while let Some(id) = self.established.pop() {
                self.consider_established(now, id, m);
            }
            while let Some((conn, segment)) = self.stack.poll_transmit(now) {
                self.transmit(conn, segment, m);
                idle = false;
            }
            if idle {
                return;
            }
        }
    }

    /// The hash bucket of a connection.
    pub(crate) fn bucket(&self, flow: &Flow) -> u32 {
        self.pcbs.bucket(flow)
    }

    pub(crate) fn socket_of(&self, conn: ConnId) -> Option<SocketId> {
        self.conn_sockets.get(conn.0 as usize).copied().flatten()
    }

    pub(crate) fn set_socket_of(&mut self, conn: ConnId, socket: Option<SocketId>) {
        let index = conn.0 as usize;
        if index >= self.conn_sockets.len() {
            self.conn_sockets.resize(index + 1, None);
        }
        self.conn_sockets[index] = socket;
    }

    pub(crate) fn set_mode(&mut self, id: SocketId, mode: Mode) {
        let socket = &mut self.sockets[id];
        let old = std::mem::replace(&mut socket.mode, mode);
        let on_nic = &mut self.nics[socket.nic].connections;
        *on_nic = *on_nic + u32::from(mode.is_away()) - u32::from(old.is_away());
        self.count_mode(old, |n| *n -= 1);
        self.count_mode(mode, |n| *n += 1);
    }

    pub(crate) fn count_mode(&mut self, mode: Mode, change: impl Fn(&mut u32)) {
        match mode {
            Mode::Host(_) => change(&mut self.connections.host),
            Mode::HandingOff(_) => change(&mut self.connections.handing_off),
            Mode::Offloaded(_) => change(&mut self.connections.offloaded),
            Mode::Restoring(_) => change(&mut self.connections.restoring),
            Mode::Closed(_) => {}
        }
    }

    /// Asserts every invariant of the kernel, its stack included. Takes time in proportion to the connections.
    pub fn check(&self) {
        self.check_files();
        self.check_caches();
        self.stack.check();
        self.buffers.check();
        self.handles.check();
        self.pcbs.check();
        assert!(
            self.arriving.is_none() && self.established.is_empty(),
            "no work is left half done"
        );
        let mut connections = Connections::default();
        let mut ready = 0;
        self.nics.check();
        let drivers = || self.nics.iter().map(|(_, nic)| &nic.driver);
        let mut mbufs: usize = drivers().map(Driver::mbufs_held).sum();
        let mut clusters: usize = drivers().map(Driver::clusters_held).sum();
        for (id, socket) in self.sockets.iter() {
            self.check_socket(id, socket);
            match socket.mode {
                Mode::Host(_) => connections.host += 1,
                Mode::HandingOff(_) => connections.handing_off += 1,
                Mode::Offloaded(_) => connections.offloaded += 1,
                Mode::Restoring(_) => connections.restoring += 1,
                Mode::Closed(_) => {}
            }
            ready += usize::from(socket.accepted && (socket.readable || socket.writable));
            mbufs += socket.receive_buffers.len() + socket.send_buffers.len();
            clusters += socket.receive_buffers.len();
            clusters += socket
                .send_buffers
                .iter()
                .filter(|buffer| matches!(buffer.storage, Storage::Cluster(_)))
                .count();
        }
        assert_eq!(
            connections, self.connections,
            "connections are counted by owner"
        );
        let on_nics: u32 = self.nics.iter().map(|(_, nic)| nic.connections).sum();
        assert_eq!(
            on_nics,
            connections.on_nic(),
            "and counted by the NIC they are on"
        );
        assert_eq!(ready, self.ready_count, "ready sockets are counted");
        assert_eq!(
            mbufs,
            self.buffers.mbufs.in_use() as usize,
            "every mbuf in use belongs to somebody"
        );
        assert_eq!(
            clusters,
            self.buffers.clusters.in_use() as usize,
            "every cluster in use belongs to somebody"
        );
        assert_eq!(
            connections.on_nic() as usize,
            self.flows.len(),
            "every connection away from the stack is known by its flow"
        );
        assert_eq!(
            connections.on_nic(),
            self.handles.in_use(),
            "and has one handle"
        );
    }

    /// Asserts that the pages in memory are those that something is sent from, and others.
    fn check_files(&self) {
        let Some(cache) = &self.files.cache else {
            return;
        };
        let mut wires = vec![0; cache.frames()];
        for (_, socket) in self.sockets.iter() {
            let sent = socket
                .send_buffers
                .iter()
                .filter_map(|buffer| match buffer.storage {
                    Storage::File(page) => Some(page.frame),
                    _ => None,
                });
            for frame in sent.chain(socket.reader.frames()) {
                wires[frame as usize] += 1;
            }
        }
        cache.check(&wires);
    }

    fn check_socket(&self, id: SocketId, socket: &Socket<P>) {
        let received: usize = socket.receive.iter().map(Payload::len).sum();
        assert_eq!(
            received, socket.receive_len,
            "{id:?}: unread bytes are counted"
        );
        let in_buffers: usize = socket
            .receive_buffers
            .iter()
            .map(|buffer| buffer.len as usize)
            .sum();
        assert_eq!(
            in_buffers, socket.receive_len,
            "{id:?}: unread bytes have buffers"
        );
        let unacknowledged: usize = socket
            .send_buffers
            .iter()
            .map(|buffer| buffer.len as usize)
            .sum();
        assert_eq!(
            unacknowledged, socket.send_len,
            "{id:?}: unacknowledged bytes have buffers"
        );
        if let Some(front) = socket.send_buffers.front() {
            assert_eq!(
                front.at + u64::from(front.skipped),
                socket.bytes_sent - socket.send_len as u64,
                "{id:?}: buffers know their place among all that was sent"
            );
        }
        assert!(
            socket.send_len <= self.send_limit,
            "{id:?}: the send buffer keeps its limit"
        );
        assert!(
            socket.deferred.is_empty() || socket.is_moving(),
            "{id:?}: things are kept only on the way"
        );
        let waits = socket.readable || socket.writable;
        assert!(
            !waits || !socket.accepted || socket.in_ready_queue,
            "{id:?}: what is ready is in the queue"
        );
        assert!(
            !waits || !socket.closed,
            "{id:?}: a closed socket is never ready"
        );
        match socket.mode {
            Mode::Host(conn) => {
                assert_eq!(
                    self.socket_of(conn),
                    Some(id),
                    "{id:?}: its connection knows it"
                );
                assert_eq!(
                    self.stack.flow(conn),
                    socket.flow,
                    "{id:?}: it is the same connection"
                );
                assert_eq!(
                    self.stack.unacknowledged(conn),
                    socket.send_len,
                    "{id:?}: stack and socket agree"
                );
                assert!(
                    !self.flows.contains_key(&socket.flow),
                    "{id:?}: it is not away"
                );
            }
            Mode::HandingOff(handle) | Mode::Offloaded(handle) | Mode::Restoring(handle) => {
                assert_eq!(
                    self.flows.get(&socket.flow),
                    Some(&handle),
                    "{id:?}: its flow is away"
                );
                assert_eq!(
                    self.handle_sockets[handle.0 as usize],
                    Some(id),
                    "{id:?}: its handle knows it"
                );
                assert!(
                    self.stack.find(&socket.flow).is_none(),
                    "{id:?}: it has one owner"
                );
            }
            Mode::Closed(_) => {
                assert_eq!(socket.send_len, 0, "{id:?}: nothing is left to send");
                assert!(
                    !socket.closed,
                    "{id:?}: a socket both sides are done with is freed"
                );
            }
        }
    }
}
