//! The operations that each action of the kernel runs, and the parts of structures that it touches.
//!
//! The layouts follow FreeBSD 4.x, the system of the handoff papers. The machine around the kernel defines instruction counts ([`Op`]); the
//! number of cache misses is a result. All sizes and offsets are in bytes. Lines have 64 bytes, so a field here is a group of members that
//! share lines, not a single member.

use crate::files::memory_page;
use crate::meter::{Access, Layer, Meter, Op, Pool};
use Access::{Read, Write};
use baton_host::FileId;
use baton_host::NicId;
use baton_host::pages;

/// A part of a structure, which is in a slot of a pool.
#[derive(Clone, Copy)]
struct Field {
    pool: Pool,
    offset: u32,
    len: u32,
}

const fn field(pool: Pool, offset: u32, len: u32) -> Field {
    Field { pool, offset, len }
}

// A connection block on i386 (`struct inp_tp`, tcp_subr.c): `struct inpcb`, padded to 192 bytes, `struct tcpcb` with 232 bytes, and
// callouts. Together with its socket it takes "around 1KB per connection" (handoff-policies 2).
/// inpcb: links of the hash chain and of the list of all blocks, ports and addresses.
const PCB_TUPLE: Field = field(Pool::Connection, 0, 60);
/// inpcb: the cached route of outgoing packets.
const PCB_ROUTE: Field = field(Pool::Connection, 60, 32);
/// inpcb: pointers to tcpcb and socket, flags.
const PCB_HEAD: Field = field(Pool::Connection, 92, 20);
/// inpcb: `inp_vflag`, the IP version, which a search checks before it compares addresses, in the line after that of the addresses.
const PCB_VERSION: Field = field(Pool::Connection, 112, 1);
/// inpcb: the links in the list of its port.
const PCB_PORT_LINKS: Field = field(Pool::Connection, 156, 8);
/// tcpcb: sequence space, windows, congestion state, RTT estimate, options; nearly all of it is used for each segment.
const TCPCB: Field = field(Pool::Connection, 192, 232);
/// tcpcb: the part that output reads and changes, from its state to `last_ack_sent`.
const TCPCB_SEND: Field = field(Pool::Connection, 228, 172);
/// tcpcb: the part that determines whether a window update is due, from the state to the receive window.
const TCPCB_WINDOW: Field = field(Pool::Connection, 228, 60);
/// The five callouts after the tcpcb: rexmt, persist, keep, 2msl, delack. Each has 24 bytes (`struct callout`): links, time, argument,
/// function, flags. Input and output access the first and the last.
const TIMERS: Field = field(Pool::Connection, 424, 5 * CALLOUT_BYTES);
const CALLOUT_BYTES: u32 = 24;
/// The links of a callout.
const CALLOUT_LINK_BYTES: u32 = 8;
/// All of a connection block.
const WHOLE_CONNECTION: Field = field(Pool::Connection, 0, 544);

// `struct socket` on i386 (socketvar.h), 184 bytes, which the zone allocator rounds up to 192; its file descriptor and its knote follow.
/// State, options, queue links, pointer to the connection block.
const SOCKET_HEAD: Field = field(Pool::Socket, 0, 64);
/// so_rcv.
const SOCKET_RECEIVE: Field = field(Pool::Socket, 76, 40);
/// so_snd.
const SOCKET_SEND: Field = field(Pool::Socket, 116, 40);
/// `struct file`, 44 bytes, which malloc rounds up to 64.
const SOCKET_FILE: Field = field(Pool::Socket, 192, 44);
/// The knote through which the application waits, 68 bytes.
const SOCKET_KNOTE: Field = field(Pool::Socket, 256, 68);
/// The part that is initialised when a socket is created.
const WHOLE_SOCKET: Field = field(Pool::Socket, 0, 324);

/// The bypass's state of an offloaded connection: handle, socket, credits, counters.
const BYPASS: Field = field(Pool::Bypass, 0, 64);
/// The whole state, which is initialised at creation.
const WHOLE_BYPASS: Field = field(Pool::Bypass, 0, 128);

/// mbuf: header and packet header.
const MBUF_HEAD: Field = field(Pool::Mbuf, 0, 64);
/// mbuf: where protocol headers are built, in front of the data (Ethernet, IP, TCP with timestamps).
const MBUF_HEADERS: Field = field(Pool::Mbuf, 128, 66);

/// A received packet in its cluster: Ethernet and IP headers, after the driver's 2 bytes of alignment.
const PACKET_IP: Field = field(Pool::Cluster, 2, 34);
/// A received packet in its cluster: TCP header with timestamps.
const PACKET_TCP: Field = field(Pool::Cluster, 36, 32);
/// Offset of a received packet's data in its cluster.
pub const PACKET_DATA_OFFSET: u32 = 68;
/// Maximum number of data bytes in one receive buffer.
pub const RECEIVE_BUFFER_BYTES: u32 = 2048 - PACKET_DATA_OFFSET;
/// Size of a cluster.
pub const CLUSTER_BYTES: u32 = 2048;
/// Maximum number of bytes that `write` copies into a bare mbuf; more data goes into clusters (MINCLSIZE).
pub const MBUF_DATA_BYTES: u32 = 200;
/// Offset of the data in a bare mbuf.
const MBUF_DATA_OFFSET: u32 = 56;
pub use baton_host::PAGE_BYTES;

/// One entry of a ring.
const RECEIVE_ENTRY: Field = field(Pool::ReceiveRing, 0, 32);
const TRANSMIT_ENTRY: Field = field(Pool::TransmitRing, 0, 32);
/// First pointer of a hash bucket.
const BUCKET: Field = field(Pool::HashBucket, 0, 16);

// `Pool::KernelGlobal`, one slot: hot kernel data by the layer that uses it.
const GLOBAL_INTERRUPT: Field = field(Pool::KernelGlobal, 0, 128);
const GLOBAL_DRIVER: Field = field(Pool::KernelGlobal, 256, 128);
const GLOBAL_IP: Field = field(Pool::KernelGlobal, 512, 128);
const GLOBAL_TCP: Field = field(Pool::KernelGlobal, 768, 128);
const GLOBAL_SYSCALL: Field = field(Pool::KernelGlobal, 1024, 128);
const GLOBAL_WAIT: Field = field(Pool::KernelGlobal, 1280, 64);
const GLOBAL_PAGES: Field = field(Pool::KernelGlobal, 1536, 64);
const GLOBAL_MBUFS: Field = field(Pool::KernelGlobal, 1792, 64);

// An open file from which `sendfile` sends (uipc_syscalls.c): it is held, its vnode is referenced, and the pages of its object are looked
// up.
/// `struct file`, 44 bytes: type, count, pointer to the vnode.
const OPEN_FILE: Field = field(Pool::File, 0, 44);
/// `struct vnode`: type, use count, object; the first and the last of its 3 lines.
const VNODE_HEAD: Field = field(Pool::File, 64, 64);
const VNODE_OBJECT: Field = field(Pool::File, 192, 64);
/// `struct vm_object`: reference count, paging in progress, size, 2 lines.
const VM_OBJECT: Field = field(Pool::File, 256, 128);
/// A pointer to a file in the descriptor table.
const DESCRIPTOR: Field = field(Pool::Descriptor, 0, 4);

/// `struct vm_page`: queue links, wire count, object.
const VM_PAGE: Field = field(Pool::VmPage, 0, 64);
/// `struct vm_page`: the links of its queue.
const VM_PAGE_LINKS: Field = field(Pool::VmPage, 0, 8);
/// `struct sf_buf`: link, count, page, address.
const SF_BUF: Field = field(Pool::SfBuf, 0, 16);
/// A page-table entry of the kernel's.
const PAGE_TABLE_ENTRY: Field = field(Pool::PageTable, 0, 4);
/// Reference count of a cluster (`mclrefcnt`).
const CLUSTER_REFERENCES: Field = field(Pool::ClusterReferences, 0, 1);
/// The driver's own state for a ring entry: its mbuf and its DMA map.
const RECEIVE_SOFT: Field = field(Pool::ReceiveSoft, 0, 8);
const TRANSMIT_SOFT: Field = field(Pool::TransmitSoft, 0, 8);

/// Pointer of a hash bucket.
const HASH_POINTER: Field = field(Pool::DirectoryBucket, 0, 16);
/// Number of buckets of a directory's hash table.
const TABLE_BUCKETS: u32 = 1 << 16;
/// A bucket of the table of pages, a pointer; there are as many buckets as pages in 2 GB (`vm_page_startup`).
const PAGE_BUCKET: Field = field(Pool::PageBucket, 0, 4);
const PAGE_BUCKETS: u32 = 1 << 19;
/// An entry of a directory.
const DIRECTORY_BLOCK: Field = field(Pool::DirectoryBlock, 0, 64);
/// Distance, in slots, between the structures of one NIC's directory and those of the next.
const DIRECTORY_SLOTS: u32 = 1 << 22;

/// Offset in the application's buffer of a connection (`Pool::AppBuffer`, numbered by the connection's socket) to which received data is
/// copied.
pub const APP_RECEIVE_OFFSET: u32 = 0;
/// Offset in the same buffer of data to send: headers and dynamic content.
pub const APP_SEND_OFFSET: u32 = 8192;
/// Size of each of the two halves; longer transfers overwrite the half again.
pub const APP_HALF_BYTES: u32 = 8192;

fn at<M: Meter>(m: &mut M, layer: Layer, slot: u32, field: Field, access: Access) {
    m.touch(layer, field.pool, slot, field.offset, field.len, access);
}

/// A device reads or writes a part of a structure.
fn dma<M: Meter>(m: &mut M, slot: u32, field: Field, access: Access) {
    m.dma(field.pool, slot, field.offset, field.len, access);
}

fn global<M: Meter>(m: &mut M, layer: Layer, field: Field) {
    at(m, layer, 0, field, Write);
}

/// Interrupt entry and dispatch.
pub fn interrupt<M: Meter>(m: &mut M) {
    m.run(Op::InterruptEntry, 1);
    global(m, Layer::Interrupt, GLOBAL_INTERRUPT);
}

/// The device writes a ring entry and the driver reads it.
pub fn ring_read<M: Meter>(m: &mut M, ring_slot: u32) {
    dma(m, ring_slot, RECEIVE_ENTRY, Write);
    at(m, Layer::Driver, ring_slot, RECEIVE_ENTRY, Read);
}

/// The driver takes a packet off the ring, buffer by buffer, and posts a fresh buffer in its place.
pub fn driver_receive<M: Meter>(
    m: &mut M,
    ring_slot: u32,
    packet: (u32, u32),
    fresh_mbuf: u32,
    frame_len: u32,
) {
    let (mbuf, cluster) = packet;
    m.run(Op::DriverReceive, 1);
    m.dma(
        Pool::Cluster,
        cluster,
        PACKET_IP.offset,
        frame_len.min(CLUSTER_BYTES - PACKET_IP.offset),
        Write,
    );
    global(m, Layer::Driver, GLOBAL_DRIVER);
    global(m, Layer::Driver, GLOBAL_MBUFS);
    at(m, Layer::Driver, fresh_mbuf, MBUF_HEAD, Write);
    at(m, Layer::Driver, ring_slot, RECEIVE_ENTRY, Write);
    at(m, Layer::Driver, ring_slot, RECEIVE_SOFT, Write);
    at(m, Layer::Driver, mbuf, MBUF_HEAD, Write);
}

/// The driver takes an event off the ring.
pub fn driver_event<M: Meter>(m: &mut M) {
    m.run(Op::DriverEvent, 1);
    global(m, Layer::Driver, GLOBAL_DRIVER);
}

/// The driver puts one packet on the ring, with an entry for each of its buffers, and the device reads the entries and the headers.
pub fn driver_transmit<M: Meter>(m: &mut M, ring_slots: impl Iterator<Item = u32>, mbuf: u32) {
    m.run(Op::DriverTransmit, 1);
    global(m, Layer::Driver, GLOBAL_DRIVER);
    at(m, Layer::Driver, mbuf, MBUF_HEAD, Write);
    for slot in ring_slots {
        at(m, Layer::Driver, slot, TRANSMIT_ENTRY, Write);
        at(m, Layer::Driver, slot, TRANSMIT_SOFT, Write);
        dma(m, slot, TRANSMIT_ENTRY, Read);
    }
    dma(m, mbuf, MBUF_HEADERS, Read);
}

/// The driver puts one command on the ring.
pub fn driver_command<M: Meter>(m: &mut M, ring_slot: u32) {
    m.run(Op::DriverCommand, 1);
    at(m, Layer::Driver, ring_slot, TRANSMIT_ENTRY, Write);
}

/// The driver frees the mbufs of one transmitted packet, one for each ring entry, and drops the references to the data.
pub(crate) fn driver_complete<M: Meter>(
    m: &mut M,
    ring_slots: impl Iterator<Item = u32>,
    mbufs: &[u32],
    data: &[Storage],
) {
    m.run(Op::DriverComplete, 1);
    for (&mbuf, slot) in mbufs.iter().zip(ring_slots) {
        at(m, Layer::Driver, slot, TRANSMIT_SOFT, Read);
        free_mbuf(m, Layer::Driver, mbuf);
    }
    for &storage in data {
        count_reference(m, Layer::Driver, storage);
    }
}

/// Memory outside an mbuf that holds the mbuf's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// This cluster.
    Cluster(u32),
    /// This page of memory, mapped by an sf_buf.
    Page {
        /// The page's number.
        frame: u32,
        /// The number of the sf_buf.
        sf_buf: u32,
    },
}

/// The reference count of a cluster or sf_buf changes.
fn count_reference<M: Meter>(m: &mut M, layer: Layer, storage: Storage) {
    let (slot, field) = match storage {
        Storage::Cluster(cluster) => (cluster, CLUSTER_REFERENCES),
        Storage::Page { sf_buf, .. } => (sf_buf, SF_BUF),
    };
    at(m, layer, slot, field, Write);
}

/// The walk of the send buffer from its head to the data to send (`m_copym`) passes this mbuf.
pub fn copy_passes<M: Meter>(m: &mut M, mbuf: u32) {
    at(m, Layer::Tcp, mbuf, MBUF_HEAD, Read);
}

/// `len` bytes of this mbuf of the send buffer are sent. If they are in other memory, the packet refers to that memory and the device reads
/// it.
pub(crate) fn copy_of<M: Meter>(m: &mut M, mbuf: u32, storage: Option<Storage>, len: u32) {
    at(m, Layer::Tcp, mbuf, MBUF_HEAD, Read);
    match storage {
        None => {
            let len = len.min(MBUF_DATA_BYTES);
            m.touch(Layer::Tcp, Pool::Mbuf, mbuf, MBUF_DATA_OFFSET, len, Read);
        }
        Some(storage) => {
            count_reference(m, Layer::Tcp, storage);
            // Which part the device reads makes no difference to the rows of main memory.
            match storage {
                Storage::Cluster(cluster) => m.dma(Pool::Cluster, cluster, 0, len, Read),
                Storage::Page { frame, .. } => m.dma(Pool::FilePage, frame, 0, len, Read),
            }
        }
    }
}

/// TCP verifies the checksum of a received frame, whose data it reads.
pub fn verify_checksum<M: Meter>(m: &mut M, cluster: u32, frame_len: u32) {
    m.run(Op::Checksum, frame_len.div_ceil(64));
    let (offset, len) = (
        PACKET_IP.offset,
        frame_len.min(CLUSTER_BYTES - PACKET_IP.offset),
    );
    m.touch(Layer::Tcp, Pool::Cluster, cluster, offset, len, Read);
}

/// TCP computes the checksum of a segment of this length. `checksum_of` reads its data.
pub fn compute_checksum<M: Meter>(m: &mut M, segment_len: u32) {
    m.run(Op::Checksum, segment_len.div_ceil(64));
}

/// TCP reads `len` bytes of other memory for a checksum, with `left` bytes from their first to the end of what the memory holds. Pages are
/// assumed to be full.
pub(crate) fn checksum_of<M: Meter>(m: &mut M, storage: Storage, len: u32, left: u32) {
    let (pool, slot, offset) = match storage {
        Storage::Cluster(cluster) => (Pool::Cluster, cluster, 0),
        Storage::Page { frame, .. } => (Pool::FilePage, frame, PAGE_BYTES.saturating_sub(left)),
    };
    m.touch(Layer::Tcp, pool, slot, offset, len, Read);
}

/// An mbuf returns to its free list.
pub fn free_mbuf<M: Meter>(m: &mut M, layer: Layer, mbuf: u32) {
    at(m, layer, mbuf, MBUF_HEAD, Write);
    global(m, layer, GLOBAL_MBUFS);
}

/// An mbuf drops the reference to its cluster.
pub fn free_cluster<M: Meter>(m: &mut M, layer: Layer, cluster: u32) {
    count_reference(m, layer, Storage::Cluster(cluster));
}

/// A page that sendfile wrapped is unmapped and unwired (`sf_buf_free`).
pub fn free_page<M: Meter>(m: &mut M, sf_buf: u32, page: u32) {
    at(m, Layer::Socket, sf_buf, SF_BUF, Write);
    at(m, Layer::Socket, sf_buf, PAGE_TABLE_ENTRY, Write);
    at(m, Layer::Socket, page, VM_PAGE, Write);
}

/// A page gets another neighbour in its queue, because the page before or after it is wired or unwired.
pub fn page_link<M: Meter>(m: &mut M, layer: Layer, page: u32) {
    at(m, layer, page, VM_PAGE_LINKS, Write);
}

/// IP input of a received packet.
pub fn ip_input<M: Meter>(m: &mut M, packet: (u32, u32)) {
    let (mbuf, cluster) = packet;
    m.run(Op::IpInput, 1);
    global(m, Layer::Ip, GLOBAL_IP);
    at(m, Layer::Ip, mbuf, MBUF_HEAD, Write);
    at(m, Layer::Ip, cluster, PACKET_IP, Read);
}

/// A connection is looked up by its four-tuple.
pub fn tcp_lookup<M: Meter>(m: &mut M, cluster: u32, bucket: u32) {
    global(m, Layer::Tcp, GLOBAL_TCP);
    at(m, Layer::Tcp, cluster, PACKET_TCP, Read);
    tcp_bucket(m, bucket);
}

/// A search starts at a hash bucket.
pub fn tcp_bucket<M: Meter>(m: &mut M, bucket: u32) {
    at(m, Layer::Tcp, bucket, BUCKET, Read);
}

/// A search along a hash chain passes another connection (`in_pcblookup_hash` of a kernel with IPv6, such as GENERIC).
pub fn tcp_compare<M: Meter>(m: &mut M, connection: u32) {
    at(m, Layer::Tcp, connection, PCB_VERSION, Read);
    at(m, Layer::Tcp, connection, PCB_TUPLE, Read);
}

/// A callout of a connection, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callout {
    Retransmit = 0,
    Keepalive = 2,
    TwoMsl = 3,
}

/// A connection's callout gets another neighbour.
pub(crate) fn callout_link<M: Meter>(m: &mut M, connection: u32, callout: Callout) {
    let links = field(
        Pool::Connection,
        TIMERS.offset + callout as u32 * CALLOUT_BYTES,
        CALLOUT_LINK_BYTES,
    );
    at(m, Layer::Tcp, connection, links, Write);
}

/// A connection block gets another neighbour in its hash chain.
pub fn tcp_chain_link<M: Meter>(m: &mut M, connection: u32) {
    at(m, Layer::Tcp, connection, PCB_TUPLE, Write);
}

/// A connection block gets another neighbour in the list of all blocks and in the list of its port.
pub fn tcp_list_links<M: Meter>(m: &mut M, connection: u32) {
    // The links of all lists except the port's are next to those of the chain.
    tcp_chain_link(m, connection);
    at(m, Layer::Tcp, connection, PCB_PORT_LINKS, Write);
}

/// TCP input of one segment, of a connection if there is one.
pub fn tcp_input<M: Meter>(m: &mut M, connection: Option<u32>) {
    m.run(Op::TcpInput, 1);
    if let Some(slot) = connection {
        at(m, Layer::Tcp, slot, PCB_TUPLE, Read);
        at(m, Layer::Tcp, slot, PCB_HEAD, Read);
        at(m, Layer::Tcp, slot, TCPCB, Write);
        at(m, Layer::Tcp, slot, TIMERS, Write);
    }
}

/// The third packet of a handshake creates a connection; charged instead of the cost of a segment of an existing connection.
pub fn tcp_open<M: Meter>(m: &mut M, connection: u32, bucket: u32) {
    m.run(Op::TcpOpen, 1);
    at(m, Layer::Tcp, connection, WHOLE_CONNECTION, Write);
    at(m, Layer::Tcp, bucket, BUCKET, Write);
}

/// TCP's input reads options and state of the connection's socket, and the free space of its receive buffer if data arrives.
pub fn tcp_input_socket<M: Meter>(m: &mut M, socket: u32, has_data: bool) {
    at(m, Layer::Tcp, socket, SOCKET_HEAD, Read);
    if has_data {
        at(m, Layer::Tcp, socket, SOCKET_RECEIVE, Read);
    }
}

/// TCP's output reads options of the connection's socket, the amount of data to send, and the free space that determines the window.
pub fn tcp_output_socket<M: Meter>(m: &mut M, socket: u32) {
    at(m, Layer::Tcp, socket, SOCKET_HEAD, Read);
    at(m, Layer::Tcp, socket, SOCKET_SEND, Read);
    at(m, Layer::Tcp, socket, SOCKET_RECEIVE, Read);
}

/// A connection ends: the cost of tearing it down, also if its block remains for a while.
pub fn tcp_close<M: Meter>(m: &mut M) {
    m.run(Op::TcpClose, 1);
}

/// A connection block is freed.
pub fn tcp_free<M: Meter>(m: &mut M, connection: u32, bucket: u32) {
    at(m, Layer::Tcp, connection, PCB_TUPLE, Write);
    at(m, Layer::Tcp, connection, PCB_HEAD, Write);
    at(m, Layer::Tcp, connection, TIMERS, Write);
    at(m, Layer::Tcp, bucket, BUCKET, Write);
}

/// Timers of `count` connections ran. Segments that they send are charged as output.
pub fn tcp_timers<M: Meter>(m: &mut M, count: u32) {
    m.run(Op::TcpTimer, count);
    global(m, Layer::Tcp, GLOBAL_TCP);
}

/// TCP output of one segment: its headers are built in the first of the fresh `mbufs`, and the others refer to its data.
pub fn tcp_output<M: Meter>(m: &mut M, connection: Option<u32>, mbufs: &[u32]) {
    m.run(Op::TcpOutput, 1);
    if let Some(slot) = connection {
        at(m, Layer::Tcp, slot, PCB_HEAD, Read);
        at(m, Layer::Tcp, slot, TCPCB_SEND, Write);
        at(m, Layer::Tcp, slot, TIMERS, Write);
    }
    global(m, Layer::Tcp, GLOBAL_MBUFS);
    for &mbuf in mbufs {
        at(m, Layer::Tcp, mbuf, MBUF_HEAD, Write);
    }
    at(m, Layer::Tcp, mbufs[0], MBUF_HEADERS, Write);
}

/// IP output of one packet along its connection's cached route.
pub fn ip_output<M: Meter>(m: &mut M, connection: Option<u32>, mbuf: u32) {
    m.run(Op::IpOutput, 1);
    if let Some(slot) = connection {
        at(m, Layer::Ip, slot, PCB_ROUTE, Read);
    }
    global(m, Layer::Ip, GLOBAL_IP);
    at(m, Layer::Ip, mbuf, MBUF_HEADERS, Write);
}

/// After a read, TCP checks whether the window has opened enough for a window update.
pub fn tcp_window<M: Meter>(m: &mut M, connection: u32) {
    at(m, Layer::Tcp, connection, PCB_HEAD, Read);
    at(m, Layer::Tcp, connection, TCPCB_WINDOW, Write);
}

/// A socket request of an offloaded connection becomes a command.
pub fn bypass_request<M: Meter>(m: &mut M, handle: u32) {
    m.run(Op::BypassRequest, 1);
    at(m, Layer::Bypass, handle, BYPASS, Write);
}

/// An event of the NIC becomes a socket operation.
pub fn bypass_event<M: Meter>(m: &mut M, handle: u32) {
    m.run(Op::BypassEvent, 1);
    at(m, Layer::Bypass, handle, BYPASS, Write);
}

/// A connection's state is packed and its protocol is switched to the bypass.
pub fn hand_off<M: Meter>(m: &mut M, connection: u32, socket: u32, handle: u32, bucket: u32) {
    m.run(Op::HandoffOut, 1);
    at(m, Layer::Handoff, connection, WHOLE_CONNECTION, Read);
    at(m, Layer::Handoff, bucket, BUCKET, Write);
    at(m, Layer::Handoff, handle, WHOLE_BYPASS, Write);
    at(m, Layer::Handoff, socket, SOCKET_HEAD, Write);
}

/// A connection's state is unpacked and its protocol is switched to TCP.
pub fn hand_back<M: Meter>(m: &mut M, connection: u32, socket: u32, handle: u32, bucket: u32) {
    m.run(Op::HandoffBack, 1);
    at(m, Layer::Handoff, handle, BYPASS, Read);
    at(m, Layer::Handoff, connection, WHOLE_CONNECTION, Write);
    at(m, Layer::Handoff, bucket, BUCKET, Write);
    at(m, Layer::Handoff, socket, SOCKET_HEAD, Write);
}

/// A socket is created for a new connection and put into the listener's queue.
pub fn socket_create<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketCreate, 1);
    at(m, Layer::Socket, socket, WHOLE_SOCKET, Write);
}

/// A socket is freed.
pub fn socket_free<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketCreate, 1);
    at(m, Layer::Socket, socket, SOCKET_HEAD, Write);
}

/// A buffer is appended to the receive buffer.
pub fn receive_append<M: Meter>(m: &mut M, socket: u32, mbuf: u32) {
    m.run(Op::SocketBuffer, 1);
    at(m, Layer::Socket, socket, SOCKET_HEAD, Read);
    at(m, Layer::Socket, socket, SOCKET_RECEIVE, Write);
    at(m, Layer::Socket, mbuf, MBUF_HEAD, Write);
}

/// Buffers are appended to the send buffer.
pub fn send_append<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketBuffer, 1);
    at(m, Layer::Socket, socket, SOCKET_SEND, Write);
}

/// Acknowledged bytes are dropped from the send buffer; the buffers that held the bytes are freed one by one.
pub fn send_drop<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketBuffer, 1);
    at(m, Layer::Socket, socket, SOCKET_SEND, Write);
}

/// The owner of a socket is woken up: its knote becomes active.
pub fn wakeup<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketWakeup, 1);
    at(m, Layer::Socket, socket, SOCKET_HEAD, Read);
    at(m, Layer::Socket, socket, SOCKET_KNOTE, Write);
}

/// Enters the kernel for a system call about `socket`.
pub fn syscall<M: Meter>(m: &mut M, body: Op, socket: Option<u32>) {
    m.run(Op::SyscallEntry, 1);
    m.run(body, 1);
    global(m, Layer::Syscall, GLOBAL_SYSCALL);
    if let Some(slot) = socket {
        at(m, Layer::Syscall, slot, DESCRIPTOR, Read);
        at(m, Layer::Syscall, slot, SOCKET_FILE, Read);
        at(m, Layer::Syscall, slot, SOCKET_HEAD, Read);
    }
}

/// accept allocates a descriptor for a socket.
pub fn accept<M: Meter>(m: &mut M, socket: u32) {
    at(m, Layer::Syscall, socket, DESCRIPTOR, Write);
    at(m, Layer::Syscall, socket, SOCKET_FILE, Write);
    at(m, Layer::Syscall, socket, SOCKET_KNOTE, Write);
    at(m, Layer::Syscall, socket, SOCKET_HEAD, Write);
}

/// A wait starts.
pub fn wait<M: Meter>(m: &mut M) {
    m.run(Op::SyscallEntry, 1);
    m.run(Op::SyscallWait, 1);
    global(m, Layer::Syscall, GLOBAL_SYSCALL);
    global(m, Layer::Syscall, GLOBAL_WAIT);
}

/// A wait reports one event.
pub fn wait_event<M: Meter>(m: &mut M, socket: Option<u32>) {
    m.run(Op::SyscallWaitEvent, 1);
    if let Some(slot) = socket {
        at(m, Layer::Syscall, slot, SOCKET_KNOTE, Write);
        at(m, Layer::Syscall, slot, SOCKET_RECEIVE, Read);
    }
}

/// `len` bytes at `offset` of a received buffer's data are copied to the application, to offset `to` of its receive half.
pub fn copy_out<M: Meter>(m: &mut M, socket: u32, cluster: u32, offset: u32, len: u32, to: u32) {
    m.touch(
        Layer::Syscall,
        Pool::Cluster,
        cluster,
        PACKET_DATA_OFFSET + offset,
        len,
        Read,
    );
    let to = (to % APP_HALF_BYTES).min(APP_HALF_BYTES - len);
    m.touch(
        Layer::Syscall,
        Pool::AppBuffer,
        socket,
        APP_RECEIVE_OFFSET + to,
        len,
        Write,
    );
}

/// Bytes are removed from the receive buffer.
pub fn receive_drop<M: Meter>(m: &mut M, socket: u32) {
    m.run(Op::SocketBuffer, 1);
    at(m, Layer::Socket, socket, SOCKET_RECEIVE, Write);
}

/// `len` bytes at offset `from` of the application's send half are copied into a fresh mbuf, or into its cluster.
pub fn copy_in<M: Meter>(
    m: &mut M,
    socket: u32,
    mbuf: u32,
    cluster: Option<u32>,
    from: u32,
    len: u32,
) {
    let from = (from % APP_HALF_BYTES).min(APP_HALF_BYTES - len);
    m.touch(
        Layer::Syscall,
        Pool::AppBuffer,
        socket,
        APP_SEND_OFFSET + from,
        len,
        Read,
    );
    global(m, Layer::Syscall, GLOBAL_MBUFS);
    at(m, Layer::Syscall, mbuf, MBUF_HEAD, Write);
    match cluster {
        Some(cluster) => m.touch(Layer::Syscall, Pool::Cluster, cluster, 0, len, Write),
        None => m.touch(
            Layer::Syscall,
            Pool::Mbuf,
            mbuf,
            MBUF_DATA_OFFSET,
            len,
            Write,
        ),
    }
}

/// sendfile looks up the file.
pub fn file_lookup<M: Meter>(m: &mut M, file: u32) {
    for (part, access) in [
        (OPEN_FILE, Write),
        (VNODE_HEAD, Write),
        (VNODE_OBJECT, Read),
        (VM_OBJECT, Write),
    ] {
        at(m, Layer::Syscall, file, part, access);
    }
}

/// sendfile looks one page up, wires it, maps it, and wraps it into an mbuf. The page's content is not touched.
pub fn file_page<M: Meter>(m: &mut M, (mbuf, sf_buf): (u32, u32), page: u32) {
    m.run(Op::SyscallSendfilePage, 1);
    global(m, Layer::Syscall, GLOBAL_PAGES);
    at(m, Layer::Syscall, page, VM_PAGE, Write);
    at(m, Layer::Syscall, sf_buf, SF_BUF, Write);
    at(m, Layer::Syscall, sf_buf, PAGE_TABLE_ENTRY, Write);
    at(m, Layer::Syscall, mbuf, MBUF_HEAD, Write);
}

/// The device reads content of a file from its pages, which no processor has touched. Only main memory depends on their location, so each
/// page is assumed to be where it would be if all files were in memory.
pub fn file_read_by_dma<M: Meter>(m: &mut M, file: FileId, offset: u64, len: u32) {
    for (start, run) in pages(offset, len as usize) {
        let at = offset + start as u64;
        let within = (at % u64::from(PAGE_BYTES)) as u32;
        m.dma(
            Pool::FilePage,
            memory_page(file, at),
            within,
            run as u32,
            Read,
        );
    }
}

/// sendfile finds a page by its file and number (`vm_page_lookup`); consecutive pages are in consecutive buckets.
pub fn page_bucket<M: Meter>(m: &mut M, file: u32, number: u32) {
    let bucket = file.wrapping_mul(0x9e37_79b1).wrapping_add(number) % PAGE_BUCKETS;
    at(m, Layer::Syscall, bucket, PAGE_BUCKET, Read);
}

/// A page is looked up in the file cache.
pub fn file_page_lookup<M: Meter>(m: &mut M) {
    m.run(Op::FilePageLookup, 1);
}

/// A disk read starts.
pub fn disk_read<M: Meter>(m: &mut M) {
    m.run(Op::DiskRead, 1);
    global(m, Layer::Syscall, GLOBAL_PAGES);
}

/// A disk read ends: `came` pages were read, and `went` pages were evicted to make space for them.
pub fn disk_done<M: Meter>(m: &mut M, came: u32, went: u32) {
    m.run(Op::DiskDone, 1);
    if came + went > 0 {
        m.run(Op::FilePageEnter, came + went);
    }
    global(m, Layer::Syscall, GLOBAL_PAGES);
}

fn directory_slot(nic: NicId, slot: u32) -> u32 {
    u32::from(nic.0) * DIRECTORY_SLOTS + slot % DIRECTORY_SLOTS
}

fn directory_block<M: Meter>(m: &mut M, nic: NicId, slot: u32) {
    at(
        m,
        Layer::Driver,
        directory_slot(nic, slot),
        DIRECTORY_BLOCK,
        Write,
    );
}

/// The driver looks a block up in a directory; `slot` is the block's slot if it is found.
pub fn directory_lookup<M: Meter>(m: &mut M, nic: NicId, name: u32, slot: Option<u32>) {
    m.run(Op::CacheLookup, 1);
    let bucket = name.wrapping_mul(0x9e37_79b1) % TABLE_BUCKETS;
    at(
        m,
        Layer::Driver,
        directory_slot(nic, bucket),
        HASH_POINTER,
        Read,
    );
    if let Some(slot) = slot {
        directory_block(m, nic, slot);
    }
}
