//! What can happen next.

/// The most NICs a machine has: their ticks have fixed places.
pub(crate) const MOST_NICS: u32 = 8;

/// What can happen next. At most one of each is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// The host's processor finishes its piece of work.
    HostDone,
    /// A timer of the host's stack is due.
    HostTimer,
    /// A client's timer or wake-up is due.
    ClientTimer,
    /// An open loop's next connection is due.
    ClientOpen,
    /// The time series wants a point.
    Sample,
    /// A disk is done with a request.
    Disk,
    /// Something happens to sockets on the adapter: on the host, on the adapter, or between them.
    Offload,
    /// Something happens at the NIC of this number.
    Nic(NicTick, u8),
}

/// What can happen at each NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum NicTick {
    /// The driver posts a descriptor.
    Descriptors,
    /// The NIC's processor finishes its piece of work.
    Done,
    /// A frame reaches the NIC.
    AtNic,
    /// A frame reaches the clients.
    AtClients,
    /// Interrupt coalescing ends.
    Interrupt,
    /// The NIC's DMA engine is set up for another read.
    Engine,
    /// A timer of the NIC's stack is due.
    Timer,
}

const NIC_TICKS: usize = NicTick::Timer as usize + 1;
const FIRST_NIC_TICK: usize = 7;
/// How many ticks there are.
pub(super) const TICKS: usize = FIRST_NIC_TICK + NIC_TICKS * MOST_NICS as usize;

impl Tick {
    /// Its place among all ticks.
    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Self::HostDone => 0,
            Self::HostTimer => 1,
            Self::ClientTimer => 2,
            Self::ClientOpen => 3,
            Self::Sample => 4,
            Self::Disk => 5,
            Self::Offload => 6,
            Self::Nic(tick, nic) => FIRST_NIC_TICK + nic as usize * NIC_TICKS + tick as usize,
        }
    }
}
