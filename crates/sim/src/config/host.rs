//! The server's processor, memory and kernel.

use super::{Invalid, one_to, positive};
use crate::hardware::{CacheConfig, DmaPolicy, DramConfig, MemoryConfig, ProcessorConfig};
use baton_host::Op;
use serde::{Deserialize, Serialize};

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// Processor clock, MHz; one instruction a cycle unless memory stalls it.
    pub clock_mhz: u32,
    /// Level-1 data cache.
    pub l1: CacheConfig,
    /// Level-2 cache.
    pub l2: CacheConfig,
    /// Memory behind the caches.
    pub dram: DramConfig,
    /// A level-2 miss also fetches the next line.
    pub prefetch_next_line: bool,
    /// What DMA writes do to the level-2 cache.
    pub dma: DmaPolicy,
    /// Most readiness events one wait call returns.
    pub wait_events: u32,
    /// Kernel parameters.
    pub kernel: baton_host::Config,
    /// Multipliers of the instruction counts, in per cent.
    pub scale: HostScale,
    /// Instructions of each operation.
    pub instructions: HostInstructions,
}

/// Multipliers of instruction counts by group, per cent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[allow(missing_docs)]
        pub struct HostInstructions { $($(#[$doc])* pub $field: u32,)* }

        impl Default for HostInstructions {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl HostInstructions {
            /// The count of one operation.
            pub fn of(&self, op: Op) -> u32 {
                match op { $(Op::$op => self.$field,)* }
            }
        }
    };
}

host_instructions! {
    interrupt_entry = InterruptEntry: 600,
    driver_receive = DriverReceive: 300,
    driver_transmit = DriverTransmit: 300,
    driver_complete = DriverComplete: 100,
    driver_command = DriverCommand: 200,
    driver_event = DriverEvent: 200,
    ip_input = IpInput: 200,
    ip_output = IpOutput: 250,
    tcp_input = TcpInput: 600,
    tcp_output = TcpOutput: 500,
    tcp_open = TcpOpen: 2000,
    tcp_close = TcpClose: 1000,
    tcp_timer = TcpTimer: 200,
    bypass_request = BypassRequest: 150,
    bypass_event = BypassEvent: 150,
    handoff_out = HandoffOut: 1500,
    handoff_back = HandoffBack: 1500,
    socket_buffer = SocketBuffer: 150,
    socket_wakeup = SocketWakeup: 300,
    socket_create = SocketCreate: 800,
    syscall_entry = SyscallEntry: 300,
    syscall_accept = SyscallAccept: 800,
    syscall_read = SyscallRead: 400,
    syscall_write = SyscallWrite: 500,
    syscall_sendfile = SyscallSendfile: 600,
    syscall_sendfile_page = SyscallSendfilePage: 400,
    syscall_close = SyscallClose: 600,
    syscall_option = SyscallOption: 100,
    syscall_wait = SyscallWait: 500,
    syscall_wait_event = SyscallWaitEvent: 200,
    app_loop = AppLoop: 200,
    app_accept = AppAccept: 800,
    app_parse = AppParse: 2000,
    app_lookup = AppLookup: 800,
    app_header = AppHeader: 1000,
    app_dynamic = AppDynamic: 1000,
    app_finish = AppFinish: 800,
    /// Measured: own directory, callgrind (`nic_cache/costs.rs`): a hit. Not scaled, nor are the next two.
    cache_lookup = CacheLookup: 141,
    /// Measured likewise: a miss of which a block makes room, 358, less the look-up.
    cache_insert = CacheInsert: 217,
    /// Measured likewise.
    cache_remove = CacheRemove: 126,
    /// Assumed: a part of the work on a page that memory without limit spares.
    file_page_lookup = FilePageLookup: 100,
    /// Assumed: down through file system, buffer layer and disk driver.
    disk_read = DiskRead: 6000,
    /// Assumed: interrupt, completion, wake-up.
    disk_done = DiskDone: 4000,
    /// Assumed: allocate, enter, queue.
    file_page_enter = FilePageEnter: 300,
    /// Assumed: write a register, and what the driver does around it.
    driver_doorbell = DriverDoorbell: 300,
    /// Assumed: a load and a store for each eight bytes.
    copy_kilobyte = CopyKilobyte: 256,
}

impl Default for HostConfig {
    fn default() -> Self {
        let memory = MemoryConfig::default();
        Self {
            clock_mhz: ProcessorConfig::default().clock_mhz,
            l1: memory.l1,
            l2: memory.l2,
            dram: memory.dram,
            prefetch_next_line: memory.prefetch_next_line,
            dma: memory.dma,
            wait_events: 64,
            kernel: baton_host::Config::default(),
            scale: HostScale::default(),
            instructions: HostInstructions::default(),
        }
    }
}

impl HostConfig {
    /// The processor; one instruction a cycle unless memory stalls it.
    pub(crate) fn processor(&self) -> ProcessorConfig {
        ProcessorConfig {
            clock_mhz: self.clock_mhz,
            instructions_per_cycle: 1,
        }
    }

    /// The memory behind it.
    pub(crate) fn memory(&self) -> MemoryConfig {
        MemoryConfig {
            l1: self.l1.clone(),
            l2: self.l2.clone(),
            prefetch_next_line: self.prefetch_next_line,
            dma: self.dma,
            dram: self.dram.clone(),
        }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        positive("host.wait_events", u64::from(self.wait_events))?;
        self.processor().validate().map_err(|e| e.within("host"))?;
        self.memory().validate().map_err(|e| e.within("host"))?;
        self.kernel.validate().map_err(|error| {
            let path = format!("host.kernel.{}", error.field);
            Invalid::new(&path, error.value, &error.expected.to_string())
        })?;
        one_to(
            1 << 24,
            "host.kernel.hash_buckets",
            self.kernel.hash_buckets,
        )?;
        Ok(())
    }
}
