//! Sockets: what the kernel keeps of each connection, whoever processes it.

use crate::files::{FilePage, Reader};
use crate::nics::NicId;
use crate::sockets::SocketId;
use crate::stats::NotOffloaded;
use baton_bus::handoff::Handle;
use baton_tcp::{CloseReason, ConnId, Segment};
use baton_wire::{Flow, Payload, Time};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Who processes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The host's TCP.
    Host(ConnId),
    /// Nobody: its state is on its way to the NIC.
    HandingOff(Handle),
    /// The NIC.
    Offloaded(Handle),
    /// The NIC, or nobody: its state has been asked back.
    Restoring(Handle),
    /// It is over; the application has not closed the socket yet.
    Closed(CloseReason),
}

impl Mode {
    /// On a NIC, or on the way to or from one.
    pub(crate) fn is_away(self) -> bool {
        matches!(
            self,
            Self::HandingOff(_) | Self::Offloaded(_) | Self::Restoring(_)
        )
    }
}

/// A modelled receive buffer (mbuf with cluster) and how much unread data it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveBuffer {
    pub mbuf: u32,
    pub cluster: u32,
    pub offset: u32,
    pub len: u32,
}

/// A modelled send buffer: an mbuf, where its data is, and how many unacknowledged bytes it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendBuffer {
    pub mbuf: u32,
    pub storage: Storage,
    pub len: u32,
    /// Acknowledged bytes before those.
    pub skipped: u32,
    /// Bytes put into the send buffer before this buffer's first.
    pub at: u64,
}

impl SendBuffer {
    /// Bytes put into the send buffer up to this buffer's last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.at + u64::from(self.skipped + self.len)
    }
}

/// Where the data of an mbuf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the mbuf itself.
    Internal,
    /// In this cluster.
    Cluster(u32),
    /// In this page of memory; the kernel does not know what it is.
    Page(u32),
    /// In a page of a file that the kernel knows.
    File(FilePage),
}

/// What is kept, in order, while a connection is on its way to the NIC or back.
#[derive(Debug)]
pub(crate) enum Deferred<P> {
    Packet(Segment<P>),
    Send(P),
    Cork(bool),
    Close,
}

impl<P: Payload> Deferred<P> {
    /// Bytes to send.
    pub fn send_len(&self) -> usize {
        if let Self::Send(data) = self {
            data.len()
        } else {
            0
        }
    }
}

/// One socket. Its queues keep their memory when the slot is reused.
#[derive(Debug)]
pub(crate) struct Socket<P> {
    pub in_use: bool,
    pub mode: Mode,
    pub flow: Flow,
    /// The NIC on which the connection came.
    pub nic: NicId,
    /// The NIC that sends what the host's stack has for it.
    pub out: NicId,
    /// Its first response has been seen by the affinity policy.
    pub nic_chosen: bool,

    /// Received in order and not yet read.
    pub receive: VecDeque<P>,
    pub receive_len: usize,
    pub receive_buffers: VecDeque<ReceiveBuffer>,
    /// Read by the application, but not yet told to the owner of the connection.
    pub unreported: u32,
    /// Posted receive buffers that the NIC has not used, bytes.
    pub posted: u32,
    /// The peer will send no more.
    pub peer_closed: bool,

    /// Taken from the application and not yet known to be acknowledged, bytes.
    pub send_len: usize,
    pub send_buffers: VecDeque<SendBuffer>,
    /// What it keeps of the file that it sends.
    pub reader: Reader<P>,
    /// A send came short: its writer waits for room.
    pub wants_room: bool,
    /// It has an entry among those that wait for memory.
    pub waits_for_memory: bool,

    /// Kept while the connection is on its way.
    pub deferred: Vec<Deferred<P>>,
    pub deferred_packets: u32,
    /// A restore was asked for while the handoff was under way.
    pub restore_wanted: bool,

    /// The application has it.
    pub accepted: bool,
    /// The application has closed it.
    pub closed: bool,
    /// It has an entry in the ready queue (perhaps a stale one).
    pub in_ready_queue: bool,
    pub readable: bool,
    pub writable: bool,

    pub opened_at: Time,
    pub requests: u32,
    pub enqueues: u32,
    pub bytes_sent: u64,
    /// Failed attempts to hand it off.
    pub failures: u32,
    /// It was handed off once, or is now.
    pub offloaded_once: bool,
    /// Why it is not on the NIC.
    pub not_offloaded: Option<NotOffloaded>,
}

impl<P: Payload> Socket<P> {
    fn new(conn: ConnId, flow: Flow, nic: NicId, now: Time) -> Self {
        Self {
            in_use: true,
            mode: Mode::Host(conn),
            flow,
            nic,
            out: nic,
            nic_chosen: false,
            receive: VecDeque::new(),
            receive_len: 0,
            receive_buffers: VecDeque::new(),
            unreported: 0,
            posted: 0,
            peer_closed: false,
            send_len: 0,
            send_buffers: VecDeque::new(),
            reader: Reader::default(),
            wants_room: false,
            waits_for_memory: false,
            deferred: Vec::new(),
            deferred_packets: 0,
            restore_wanted: false,
            accepted: false,
            closed: false,
            in_ready_queue: false,
            readable: false,
            writable: false,
            opened_at: now,
            requests: 0,
            enqueues: 0,
            bytes_sent: 0,
            failures: 0,
            offloaded_once: false,
            not_offloaded: None,
        }
    }

    /// Keeps an mbuf with `len` bytes until the peer has acknowledged them; the same call put `before` bytes in already.
    pub fn hold(&mut self, mbuf: u32, storage: Storage, len: u32, before: u64) {
        self.send_buffers.push_back(SendBuffer {
            mbuf,
            storage,
            len,
            skipped: 0,
            at: self.bytes_sent + before,
        });
    }

    /// Makes a freed slot a new socket, keeping the queues' memory and the slot's place in the ready queue.
    fn renew(&mut self, conn: ConnId, flow: Flow, nic: NicId, now: Time) {
        debug_assert!(
            self.receive.is_empty() && self.receive_buffers.is_empty(),
            "nothing received is left"
        );
        debug_assert!(
            self.reader.frames().next().is_none(),
            "no page is kept wired"
        );
        debug_assert!(
            self.send_buffers.is_empty() && self.deferred.is_empty(),
            "nothing sent or kept is left"
        );
        let old = std::mem::replace(self, Self::new(conn, flow, nic, now));
        self.receive = old.receive;
        self.receive_buffers = old.receive_buffers;
        self.send_buffers = old.send_buffers;
        self.deferred = old.deferred;
        self.in_ready_queue = old.in_ready_queue;
        self.waits_for_memory = old.waits_for_memory;
    }

    /// The handle by which host and NIC know it, if it has one.
    pub fn handle(&self) -> Option<Handle> {
        match self.mode {
            Mode::HandingOff(handle) | Mode::Offloaded(handle) | Mode::Restoring(handle) => {
                Some(handle)
            }
            Mode::Host(_) | Mode::Closed(_) => None,
        }
    }

    /// True while its state is on its way to the NIC or back.
    pub fn is_moving(&self) -> bool {
        matches!(self.mode, Mode::HandingOff(_) | Mode::Restoring(_))
    }

    /// True when nothing more can come from the peer.
    pub fn is_at_end(&self) -> bool {
        self.peer_closed || matches!(self.mode, Mode::Closed(_))
    }
}

/// All sockets; the slot freed last is used first.
#[derive(Debug)]
pub(crate) struct SocketTable<P> {
    slots: Vec<Socket<P>>,
    free: Vec<u32>,
}

impl<P: Payload> SocketTable<P> {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub fn insert(&mut self, conn: ConnId, flow: Flow, nic: NicId, now: Time) -> SocketId {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].renew(conn, flow, nic, now);
            return SocketId(slot);
        }
        self.slots.push(Socket::new(conn, flow, nic, now));
        SocketId(self.slots.len() as u32 - 1)
    }

    pub fn remove(&mut self, id: SocketId) {
        let socket = &mut self[id];
        debug_assert!(socket.in_use, "{id:?} is in use");
        socket.in_use = false;
        self.free.push(id.0);
    }

    pub fn get(&self, id: SocketId) -> Option<&Socket<P>> {
        self.slots.get(id.0 as usize).filter(|socket| socket.in_use)
    }

    pub fn iter(&self) -> impl Iterator<Item = (SocketId, &Socket<P>)> {
        let all = self.slots.iter().enumerate();
        all.filter(|(_, socket)| socket.in_use)
            .map(|(slot, socket)| (SocketId(slot as u32), socket))
    }
}

impl<P> Index<SocketId> for SocketTable<P> {
    type Output = Socket<P>;
    fn index(&self, id: SocketId) -> &Socket<P> {
        &self.slots[id.0 as usize]
    }
}

impl<P> IndexMut<SocketId> for SocketTable<P> {
    fn index_mut(&mut self, id: SocketId) -> &mut Socket<P> {
        &mut self.slots[id.0 as usize]
    }
}
