//! What firmware work costs is for the machine around it to say.

/// Pieces of firmware work that take time on the NIC's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Task {
    /// Decide whether a received packet belongs to a connection on the NIC.
    Lookup,
    /// Pass a received packet to the host.
    HostReceive,
    /// Send a packet of the host.
    HostSend,
    /// TCP input of a NIC packet.
    Receive,
    /// TCP output of one segment.
    Transmit,
    /// Read and carry out a command other than handoff and restore.
    Command,
    /// Take over a connection.
    Handoff,
    /// Give a connection back.
    Restore,
    /// Post an event to the host.
    Event,
    /// Run a timer of a connection.
    Timer,
    /// Carry out a nic_cache_init or nic_cache_insert.
    CacheInsert,
    /// Append a part in host memory to a packet, headers aside.
    AppendMemory,
    /// Append a part in the cache to a packet.
    AppendCache,
    /// Copy 64 bytes within on-board memory, where the transmit engine cannot gather.
    CopyLine,
    /// Begin a transfer of responses to the host.
    Transfer,
    /// Begin a transfer of data, or take note that it is over.
    Dma,
}

/// Bytes that [`Task::CopyLine`] copies.
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

/// Receives every task as it is done. The simulated machine charges instructions; the live one counts.
pub trait Meter {
    /// One `task` was done.
    fn run(&mut self, task: Task);

    /// The same `task` was done `count` times.
    fn run_many(&mut self, task: Task, count: u32) {
        for _ in 0..count {
            self.run(task);
        }
    }
}

/// A meter that takes no notice.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn run(&mut self, _task: Task) {}
}
