//! The machine around the kernel decides what the work of kernel and application costs. The host reports each operation that it performs
//! and each structure that it touches; the simulated machine converts these reports into cycles and cache misses.

/// Layers in which cycles are spent: the kernel's layers from the wire up, then the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Interrupt entry, exit and dispatch.
    Interrupt,
    /// The NIC's driver: rings, buffers, completion.
    Driver,
    /// IP.
    Ip,
    /// TCP.
    Tcp,
    /// The stateless bypass of offloaded connections.
    Bypass,
    /// Moving connections to the NIC and back.
    Handoff,
    /// Socket buffers and wake-ups.
    Socket,
    /// System calls, copies between user and kernel, the file system's part of sendfile.
    Syscall,
    /// The application, in user mode.
    Application,
}

/// All layers, in order of their discriminants.
pub const LAYERS: [Layer; 9] = [
    Layer::Interrupt,
    Layer::Driver,
    Layer::Ip,
    Layer::Tcp,
    Layer::Bypass,
    Layer::Handoff,
    Layer::Socket,
    Layer::Syscall,
    Layer::Application,
];

impl Layer {
    /// Returns whether this layer is part of the network stack, below the system-call layer.
    pub const fn is_network_stack(self) -> bool {
        !matches!(self, Self::Syscall | Self::Application)
    }
}

/// Operations with an instruction cost. Each operation belongs to a fixed layer, see [`Op::layer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Take one interrupt.
    InterruptEntry,
    /// Take one received packet from the ring and replace its buffer.
    DriverReceive,
    /// Put one packet on the transmit ring.
    DriverTransmit,
    /// Free one transmitted packet's buffers.
    DriverComplete,
    /// Put one command on the ring.
    DriverCommand,
    /// Take one event off the ring.
    DriverEvent,
    /// IP input of one packet.
    IpInput,
    /// IP output of one packet.
    IpOutput,
    /// TCP input of one segment.
    TcpInput,
    /// TCP output of one segment.
    TcpOutput,
    /// Create a connection from an entry of the SYN cache.
    TcpOpen,
    /// Tear a connection down.
    TcpClose,
    /// Run one timer of a connection.
    TcpTimer,
    /// Bypass: turn one socket request into a command.
    BypassRequest,
    /// Bypass: turn one NIC event into a socket operation.
    BypassEvent,
    /// Pack a connection's state and switch its protocol to the bypass.
    HandoffOut,
    /// Unpack a connection's state and switch its protocol back to TCP.
    HandoffBack,
    /// Append to or drop from a socket buffer.
    SocketBuffer,
    /// Wake the owner of a socket.
    SocketWakeup,
    /// Create or free a socket.
    SocketCreate,
    /// Enter and leave the kernel.
    SyscallEntry,
    /// accept: allocate a descriptor for a new connection.
    SyscallAccept,
    /// Body of read.
    SyscallRead,
    /// Body of write.
    SyscallWrite,
    /// Body of sendfile, per call.
    SyscallSendfile,
    /// sendfile, per page: look it up, wire it, wrap it.
    SyscallSendfilePage,
    /// Body of close.
    SyscallClose,
    /// Body of setsockopt.
    SyscallOption,
    /// Wait for events, per call.
    SyscallWait,
    /// Wait for events, per event returned.
    SyscallWaitEvent,
    /// Application: main loop, per event.
    AppLoop,
    /// Application: accept a new connection.
    AppAccept,
    /// Application: parse one request.
    AppParse,
    /// Application: translate the name, find the file in its cache.
    AppLookup,
    /// Application: make the response header.
    AppHeader,
    /// Switch to another process.
    ContextSwitch,
    /// Application: start a program that generates content: parse its query and generate the frame of the page.
    AppProgram,
    /// Application: create a process for a request and reap the process when it exits.
    AppProcess,
    /// Application: choose an advertisement for a client.
    AppAdvertisement,
    /// Application: find the places for advertisements, per KiB.
    AppSearch,
    /// Application: parse a form and log it.
    AppForm,
    /// Application: produce dynamic content, per KiB.
    AppDynamic,
    /// Application: log the request, finish.
    AppFinish,
    /// Driver: look one block up in the directory of a NIC's cache.
    CacheLookup,
    /// Driver: insert a block into the directory of a NIC's cache, and remove the block that it replaces.
    CacheInsert,
    /// Driver: remove a block from a directory.
    CacheRemove,
    /// File system: find a page in the file cache.
    FilePageLookup,
    /// File system: start a disk read.
    DiskRead,
    /// Disk controller's driver: handle the interrupt that ends a read and wake up the waiting process.
    DiskDone,
    /// File system: insert a page that was read into the file cache, or remove a page.
    FilePageEnter,
    /// Driver: start a transfer of commands by ringing the doorbell.
    DriverDoorbell,
    /// Copy one KiB between the application and a buffer of the link to an adapter.
    CopyKilobyte,
    /// Compute or verify a TCP checksum over 64 bytes, where the NIC does not.
    Checksum,
}

/// All operations, in order of their discriminants.
pub const OPS: [Op; 53] = [
    Op::InterruptEntry,
    Op::DriverReceive,
    Op::DriverTransmit,
    Op::DriverComplete,
    Op::DriverCommand,
    Op::DriverEvent,
    Op::IpInput,
    Op::IpOutput,
    Op::TcpInput,
    Op::TcpOutput,
    Op::TcpOpen,
    Op::TcpClose,
    Op::TcpTimer,
    Op::BypassRequest,
    Op::BypassEvent,
    Op::HandoffOut,
    Op::HandoffBack,
    Op::SocketBuffer,
    Op::SocketWakeup,
    Op::SocketCreate,
    Op::SyscallEntry,
    Op::SyscallAccept,
    Op::SyscallRead,
    Op::SyscallWrite,
    Op::SyscallSendfile,
    Op::SyscallSendfilePage,
    Op::SyscallClose,
    Op::SyscallOption,
    Op::SyscallWait,
    Op::SyscallWaitEvent,
    Op::AppLoop,
    Op::AppAccept,
    Op::AppParse,
    Op::AppLookup,
    Op::AppHeader,
    Op::ContextSwitch,
    Op::AppProgram,
    Op::AppProcess,
    Op::AppAdvertisement,
    Op::AppSearch,
    Op::AppForm,
    Op::AppDynamic,
    Op::AppFinish,
    Op::CacheLookup,
    Op::CacheInsert,
    Op::CacheRemove,
    Op::FilePageLookup,
    Op::DiskRead,
    Op::DiskDone,
    Op::FilePageEnter,
    Op::DriverDoorbell,
    Op::CopyKilobyte,
    Op::Checksum,
];

impl Op {
    /// Returns whether the operation's instructions were counted in this program rather than estimated for a layer of a kernel or an
    /// application. Scales that were fitted to the operation's layer do not apply to counted operations.
    pub const fn is_counted(self) -> bool {
        matches!(
            self,
            Self::CacheLookup | Self::CacheInsert | Self::CacheRemove
        )
    }

    /// Returns the layer to which the operation's cycles are charged.
    pub const fn layer(self) -> Layer {
        match self {
            Self::InterruptEntry => Layer::Interrupt,
            Self::DriverReceive
            | Self::DriverTransmit
            | Self::DriverComplete
            | Self::DriverCommand
            | Self::DriverEvent
            | Self::DriverDoorbell
            | Self::CacheLookup
            | Self::CacheInsert
            | Self::CacheRemove => Layer::Driver,
            Self::IpInput | Self::IpOutput => Layer::Ip,
            Self::TcpInput
            | Self::TcpOutput
            | Self::TcpOpen
            | Self::TcpClose
            | Self::TcpTimer
            | Self::Checksum => Layer::Tcp,
            Self::BypassRequest | Self::BypassEvent => Layer::Bypass,
            Self::HandoffOut | Self::HandoffBack => Layer::Handoff,
            Self::SocketBuffer | Self::SocketWakeup | Self::SocketCreate => Layer::Socket,
            Self::SyscallEntry
            | Self::SyscallAccept
            | Self::SyscallRead
            | Self::SyscallWrite
            | Self::SyscallSendfile
            | Self::SyscallSendfilePage
            | Self::SyscallClose
            | Self::SyscallOption
            | Self::SyscallWait
            | Self::SyscallWaitEvent
            | Self::ContextSwitch
            | Self::FilePageLookup
            | Self::DiskRead
            | Self::DiskDone
            | Self::FilePageEnter
            | Self::CopyKilobyte => Layer::Syscall,
            Self::AppLoop
            | Self::AppAccept
            | Self::AppParse
            | Self::AppLookup
            | Self::AppHeader
            | Self::AppProgram
            | Self::AppProcess
            | Self::AppAdvertisement
            | Self::AppSearch
            | Self::AppForm
            | Self::AppDynamic
            | Self::AppFinish => Layer::Application,
        }
    }
}

/// Kinds of structures in host memory. Each is an array of slots handed out by a modelled allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Pool {
    /// Socket with its two buffer heads, file descriptor and knotes.
    Socket,
    /// TCP connection block (inpcb and tcpcb).
    Connection,
    /// The bypass's state of an offloaded connection.
    Bypass,
    /// Small buffer: packet header and short data.
    Mbuf,
    /// 2 KiB buffer.
    Cluster,
    /// Buckets of the connection hash table.
    HashBucket,
    /// Receive and event ring entries.
    ReceiveRing,
    /// Transmit and command ring entries.
    TransmitRing,
    /// Vnode and file-cache metadata of a file.
    File,
    /// `struct vm_page` of one page of memory; `slot` is the page's number. A file's pages lie anywhere.
    VmPage,
    /// Mapping of a page that `sendfile` has wrapped: `struct sf_buf`.
    SfBuf,
    /// Kernel statistics, routes and run queues, which every packet touches.
    KernelGlobal,
    /// Application's block of one connection.
    AppConnection,
    /// Application's name and file cache entry.
    AppFile,
    /// Application's buffers (requests, headers, dynamic content).
    AppBuffer,
    /// Application's global data.
    AppGlobal,
    /// Bucket of the directory of a NIC's cache.
    DirectoryBucket,
    /// Entry of the directory of a NIC's cache: file, offset, revision, place, links of the replacement policy.
    DirectoryBlock,
    /// Bucket of the table in which the file cache looks pages up.
    PageBucket,
    /// A page of memory that holds content of a file.
    FilePage,
    /// The page-table entry of an sf_buf's address; `slot` is the number of the sf_buf.
    PageTable,
    /// Reference count of a cluster; `slot` is the number of the cluster.
    ClusterReferences,
    /// The driver's own state for an entry of the receive ring.
    ReceiveSoft,
    /// The driver's own state for an entry of the transmit ring.
    TransmitSoft,
    /// The process's table of open files; `slot` is the number of a socket.
    Descriptor,
    /// Buckets of the SYN cache.
    SyncacheBucket,
    /// Entry of the SYN cache.
    Syncache,
}

/// All pools, in order of their discriminants, with the size of a slot in bytes.
pub const POOLS: [(Pool, u32); 27] = [
    (Pool::Socket, 352),
    (Pool::Connection, 544),
    (Pool::Bypass, 128),
    (Pool::Mbuf, 256),
    (Pool::Cluster, 2048),
    (Pool::HashBucket, 64),
    (Pool::ReceiveRing, 32),
    (Pool::TransmitRing, 32),
    (Pool::File, 512),
    (Pool::VmPage, 64),
    (Pool::SfBuf, 16),
    (Pool::KernelGlobal, 4096),
    (Pool::AppConnection, 1024),
    (Pool::AppFile, 256),
    (Pool::AppBuffer, 16384),
    (Pool::AppGlobal, 4096),
    (Pool::DirectoryBucket, 16),
    (Pool::DirectoryBlock, 64),
    (Pool::PageBucket, 4),
    (Pool::FilePage, 4096),
    (Pool::PageTable, 4),
    (Pool::ClusterReferences, 1),
    (Pool::ReceiveSoft, 8),
    (Pool::TransmitSoft, 8),
    (Pool::Descriptor, 4),
    (Pool::SyncacheBucket, 12),
    (Pool::Syncache, 160),
];

/// Read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads.
    Read,
    /// Stores (or loads and stores).
    Write,
}

/// Owner of the connection whose packets the kernel is processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Owner {
    /// A connection that the host processes.
    Host,
    /// A connection that is on the NIC.
    Nic,
}

/// Receives reports of all operations and memory accesses. Implemented by the simulated machine; [`NoMeter`] discards the reports.
pub trait Meter {
    /// Attributes all work until the next call to a connection of `owner`.
    fn owner(&mut self, owner: Owner);

    /// Reports that `count` operations were performed.
    fn run(&mut self, op: Op, count: u32);

    /// Reports an access to `len` bytes, starting at `offset`, in `slot` of `pool` on behalf of `layer`.
    fn touch(&mut self, layer: Layer, pool: Pool, slot: u32, offset: u32, len: u32, access: Access);

    /// Reports that the device wrote (`Access::Write`) or read this memory by DMA. The processor does not stall; its caches may lose lines.
    fn dma(&mut self, pool: Pool, slot: u32, offset: u32, len: u32, access: Access);
}

/// A meter that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn owner(&mut self, _owner: Owner) {}
    fn run(&mut self, _op: Op, _count: u32) {}
    fn touch(
        &mut self,
        _layer: Layer,
        _pool: Pool,
        _slot: u32,
        _offset: u32,
        _len: u32,
        _access: Access,
    ) {
    }
    fn dma(&mut self, _pool: Pool, _slot: u32, _offset: u32, _len: u32, _access: Access) {}
}
