//! The server's processor, memory and kernel.

use super::{Invalid, positive};
use crate::hardware::{
    CacheConfig, DmaPolicy, DramConfig, MemoryConfig, ProcessorConfig, TlbConfig,
};
use baton_kernel::Op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// Name of the host in results of `baton bench`.
    pub name: String,
    /// Number of identical processors, each with its own queue on a NIC that has several. `baton run` uses one processor.
    #[schemars(range(min = 1))]
    pub cores: u8,
    /// Clock of a processor, MHz.
    #[schemars(range(min = 1, max = ProcessorConfig::MOST_MHZ))]
    pub clock_mhz: u32,
    /// Instructions per cycle while memory does not stall the processor.
    #[schemars(range(min = 1, max = ProcessorConfig::MOST_INSTRUCTIONS))]
    pub instructions_per_cycle: u32,
    /// Level-1 data cache.
    pub l1: CacheConfig,
    /// Level-2 cache.
    pub l2: CacheConfig,
    /// Memory behind the caches.
    pub dram: DramConfig,
    /// Address translation.
    pub tlb: TlbConfig,
    /// Whether a level-2 miss also fetches the next line.
    pub prefetch_next_line: bool,
    /// What DMA writes do to the level-2 cache.
    pub dma: DmaPolicy,
    /// Maximum number of readiness events that one wait call returns.
    #[schemars(range(min = 1))]
    pub wait_events: u32,
    /// Kernel parameters.
    pub kernel: baton_kernel::Config,
    /// Multipliers of the instruction counts, in per cent.
    pub scale: HostScale,
    /// Instructions of each operation.
    pub instructions: HostInstructions,
    /// Instructions of drivers, tests and the router of `baton bench` and `baton reproduce nic-applications`, which are not scaled.
    pub driver: DriverConfig,
}

/// Instruction counts without waiting for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-unit" = "instructions"))]
pub struct DriverConfig {
    /// The driver accepts a frame and puts it into its ring, including the doorbell.
    pub send: u32,
    /// The driver refuses a frame.
    pub refuse: u32,
    /// The driver takes a frame out of its ring and gives the descriptor a new buffer.
    pub receive: u32,
    /// The driver reclaims the descriptor of a frame that was sent.
    pub reclaim: u32,
    /// Entering the driver by an interrupt, and returning.
    pub interrupt: u32,
    /// A polling driver checks whether its NIC has work.
    pub poll: u32,
    /// The test's TCP handles a segment.
    pub segment: u32,
    /// Descriptors that the driver gives back to the NIC with one register access.
    #[schemars(range(min = 1), extend("x-unit" = "descriptors"))]
    pub refill_batch: u32,
    /// Routing a packet from one driver to another.
    pub route: u32,
}

/// Profile `athlon-2600`.
impl Default for DriverConfig {
    fn default() -> Self {
        Self {
            send: 500,
            refuse: 150,
            receive: 700,
            reclaim: 60,
            interrupt: 1500,
            poll: 60,
            segment: 300,
            refill_batch: 16,
            route: 520,
        }
    }
}

/// Multipliers of instruction counts by group, per cent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-unit" = "%"))]
pub struct HostScale {
    /// Interrupt, driver, IP, TCP, socket layers; but not the driver's directories of NIC caches, whose instructions are counted.
    pub network_stack: u32,
    /// Bypass and handoff layers, and the driver's work on commands and events.
    pub bypass: u32,
    /// System calls and application.
    pub application: u32,
}

impl Default for HostScale {
    fn default() -> Self {
        Self {
            network_stack: 100,
            bypass: 100,
            application: 100,
        }
    }
}

macro_rules! host_instructions {
    ($($(#[$doc:meta])* $field:ident = $op:ident: $default:literal,)*) => {
        /// Instructions per operation, before scaling. One field per [`Op`].
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(extend("x-unit" = "instructions"))]
        pub struct HostInstructions { $($(#[$doc])* pub $field: u32,)* }

        impl Default for HostInstructions {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl HostInstructions {
            /// Returns the instruction count of an operation.
            pub fn of(&self, op: Op) -> u32 {
                match op { $(Op::$op => self.$field,)* }
            }
        }
    };
}

host_instructions! {
    /// Take one interrupt.
    interrupt_entry = InterruptEntry: 600,
    /// Take one received packet from the ring and replace its buffer.
    driver_receive = DriverReceive: 300,
    /// Put one packet on the transmit ring.
    driver_transmit = DriverTransmit: 300,
    /// Free one transmitted packet's buffers.
    driver_complete = DriverComplete: 100,
    /// Put one command on the ring.
    driver_command = DriverCommand: 200,
    /// Take one event off the ring.
    driver_event = DriverEvent: 200,
    /// IP input of one packet.
    ip_input = IpInput: 200,
    /// IP output of one packet.
    ip_output = IpOutput: 250,
    /// TCP input of one segment.
    tcp_input = TcpInput: 600,
    /// TCP output of one segment.
    tcp_output = TcpOutput: 500,
    /// Create a connection from an entry of the SYN cache.
    tcp_open = TcpOpen: 2000,
    /// Tear a connection down.
    tcp_close = TcpClose: 1000,
    /// Run one timer of a connection.
    tcp_timer = TcpTimer: 200,
    /// Bypass: turn one socket request into a command.
    bypass_request = BypassRequest: 150,
    /// Bypass: turn one NIC event into a socket operation.
    bypass_event = BypassEvent: 150,
    /// Pack a connection's state and switch its protocol to the bypass.
    handoff_out = HandoffOut: 1500,
    /// Unpack a connection's state and switch its protocol back to TCP.
    handoff_back = HandoffBack: 1500,
    /// Append to or drop from a socket buffer.
    socket_buffer = SocketBuffer: 150,
    /// Wake the owner of a socket.
    socket_wakeup = SocketWakeup: 300,
    /// Create or free a socket.
    socket_create = SocketCreate: 800,
    /// Enter and leave the kernel.
    syscall_entry = SyscallEntry: 300,
    /// accept: allocate a descriptor for a new connection.
    syscall_accept = SyscallAccept: 800,
    /// Body of read.
    syscall_read = SyscallRead: 400,
    /// Body of write.
    syscall_write = SyscallWrite: 500,
    /// Body of sendfile, per call.
    syscall_sendfile = SyscallSendfile: 600,
    /// sendfile, per page: look it up, wire it, wrap it.
    syscall_sendfile_page = SyscallSendfilePage: 400,
    /// Body of close.
    syscall_close = SyscallClose: 600,
    /// Body of setsockopt.
    syscall_option = SyscallOption: 100,
    /// Wait for events, per call.
    syscall_wait = SyscallWait: 500,
    /// Wait for events, per event returned.
    syscall_wait_event = SyscallWaitEvent: 200,
    /// Application: main loop, per event.
    app_loop = AppLoop: 200,
    /// Application: accept a new connection.
    app_accept = AppAccept: 800,
    /// Application: parse one request.
    app_parse = AppParse: 2000,
    /// Application: translate the name, find the file in its cache.
    app_lookup = AppLookup: 800,
    /// Application: make the response header.
    app_header = AppHeader: 1000,
    /// Switch to another process. Assumed: registers, address space, run queues; some microseconds at the time (lmbench).
    context_switch = ContextSwitch: 2000,
    /// Application: start a program that generates content: parse its query and generate the frame of the page. Assumed.
    app_program = AppProgram: 3000,
    /// Application: create a process for a request, and reap it when it exits. Assumed: fork, exec, wait and exit took about a millisecond at the
    /// time (lmbench).
    app_process = AppProcess: 400000,
    /// Application: choose an advertisement for a client. Assumed: ten instructions for each of SPECweb99's 360 records.
    app_advertisement = AppAdvertisement: 3600,
    /// Application: find the places for advertisements, per KiB. Assumed: two instructions per byte.
    app_search = AppSearch: 2048,
    /// Application: parse a form and log it. Assumed.
    app_form = AppForm: 3000,
    /// Application: produce dynamic content, per KiB.
    app_dynamic = AppDynamic: 1000,
    /// Application: log the request, finish.
    app_finish = AppFinish: 800,
    /// Driver: look one block up in the directory of a NIC's cache. Measured by callgrind (`nic_cache/costs.rs`): a hit. Not scaled; nor are
    /// cache_insert and cache_remove.
    cache_lookup = CacheLookup: 141,
    /// Driver: insert a block into the directory of a NIC's cache, and remove the block that it replaces. Measured in the same way: 358 for a miss
    /// that evicts a block, minus the lookup.
    cache_insert = CacheInsert: 217,
    /// Driver: remove a block from a directory. Measured in the same way.
    cache_remove = CacheRemove: 126,
    /// File system: find a page in the file cache. Assumed: the part of the work on a page that is not needed if the cache has no limit.
    file_page_lookup = FilePageLookup: 100,
    /// File system: start a disk read. Assumed: the path through file system, buffer layer and disk driver.
    disk_read = DiskRead: 6000,
    /// Disk controller's driver: handle the interrupt that ends a read, and wake the waiting process. Assumed: interrupt, completion, wake-up.
    disk_done = DiskDone: 4000,
    /// File system: insert a page that was read into the file cache, or remove a page. Assumed: allocate, insert, queue.
    file_page_enter = FilePageEnter: 300,
    /// Driver: start a transfer of commands by ringing the doorbell. Assumed: a register write, and what the driver does around it.
    driver_doorbell = DriverDoorbell: 300,
    /// Copy a KiB between the application and a buffer of the link to an adapter. Assumed: a load and a store for each eight bytes.
    copy_kilobyte = CopyKilobyte: 256,
    /// Compute or verify 64 bytes of a TCP checksum, if the NIC does not; misses of the data are extra. Assumed: an addition and its carry for
    /// each 4 bytes, loads, and the loop.
    checksum_64_bytes = Checksum: 24,
}

impl Default for HostConfig {
    fn default() -> Self {
        let memory = MemoryConfig::default();
        let processor = ProcessorConfig::default();
        Self {
            name: String::new(),
            cores: 1,
            clock_mhz: processor.clock_mhz,
            instructions_per_cycle: processor.instructions_per_cycle,
            l1: memory.l1,
            l2: memory.l2,
            dram: memory.dram,
            tlb: memory.tlb,
            prefetch_next_line: memory.prefetch_next_line,
            dma: memory.dma,
            wait_events: 64,
            kernel: baton_kernel::Config::default(),
            scale: HostScale::default(),
            instructions: HostInstructions::default(),
            driver: DriverConfig::default(),
        }
    }
}

impl HostConfig {
    /// Returns the configuration of a processor.
    pub(crate) fn processor(&self) -> ProcessorConfig {
        ProcessorConfig {
            clock_mhz: self.clock_mhz,
            instructions_per_cycle: self.instructions_per_cycle,
        }
    }

    /// Returns the configuration of caches and main memory.
    pub(crate) fn memory(&self) -> MemoryConfig {
        MemoryConfig {
            l1: self.l1.clone(),
            l2: self.l2.clone(),
            prefetch_next_line: self.prefetch_next_line,
            dma: self.dma,
            dram: self.dram.clone(),
            tlb: self.tlb.clone(),
        }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        positive("host.wait_events", u64::from(self.wait_events))?;
        positive("host.cores", self.cores.into())?;
        positive("host.driver.refill_batch", self.driver.refill_batch.into())?;
        self.processor().validate().map_err(|e| e.within("host"))?;
        self.memory().validate().map_err(|e| e.within("host"))?;
        self.kernel.validate().map_err(|error| {
            let path = format!("host.kernel.{}", error.field);
            Invalid::new(&path, error.value, &error.expected.to_string())
        })?;
        Ok(())
    }
}
