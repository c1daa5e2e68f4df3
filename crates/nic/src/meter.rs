//! Reports firmware work. The machine that runs the firmware decides how much each task costs.

/// Tasks of the firmware that take time on the NIC's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Task {
    /// Determine whether a received packet belongs to a connection on the NIC.
    Lookup,
    /// Pass a received packet to the host.
    HostReceive,
    /// Send a packet of the host.
    HostSend,
    /// TCP input of a NIC packet.
    Receive,
    /// TCP output of one segment.
    Transmit,
    /// Read and execute a command other than handoff and restore.
    Command,
    /// Take over a connection from the host.
    Handoff,
    /// Give a connection back to the host.
    Restore,
    /// Post an event to the host.
    Event,
    /// Run a timer of a connection.
    Timer,
    /// Execute a nic_cache_init or nic_cache_insert.
    CacheInsert,
    /// Append a part in host memory to a packet, not counting headers.
    AppendMemory,
    /// Append a part in the cache to a packet.
    AppendCache,
    /// Copy 64 bytes within on-board memory, if the transmit engine cannot gather.
    CopyLine,
    /// Start a transfer of responses to the host.
    Transfer,
    /// Start a transfer of data, or handle its completion.
    Dma,
}

/// Number of bytes that one [`Task::CopyLine`] copies.
pub const LINE_BYTES: u32 = 64;

/// All tasks, in order of their discriminants.
pub const TASKS: [Task; 16] = [
    Task::Lookup,
    Task::HostReceive,
    Task::HostSend,
    Task::Receive,
    Task::Transmit,
    Task::Command,
    Task::Handoff,
    Task::Restore,
    Task::Event,
    Task::Timer,
    Task::CacheInsert,
    Task::AppendMemory,
    Task::AppendCache,
    Task::CopyLine,
    Task::Transfer,
    Task::Dma,
];

/// Is called for every task that the firmware performs. The simulated machine charges instructions; the live one counts tasks.
pub trait Meter {
    /// Records one `task`.
    fn run(&mut self, task: Task);

    /// Records `count` tasks of the same kind.
    fn run_many(&mut self, task: Task, count: u32) {
        for _ in 0..count {
            self.run(task);
        }
    }
}

/// A meter that ignores all tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn run(&mut self, _task: Task) {}
}
