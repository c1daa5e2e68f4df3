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

const NIC_TICKS: [NicTick; 7] = [
    NicTick::Descriptors,
    NicTick::Done,
    NicTick::AtNic,
    NicTick::AtClients,
    NicTick::Interrupt,
    NicTick::Engine,
    NicTick::Timer,
];
const OTHER_TICKS: [Tick; 6] = [
    Tick::HostDone,
    Tick::HostTimer,
    Tick::ClientTimer,
    Tick::ClientOpen,
    Tick::Sample,
    Tick::Disk,
];

impl Tick {
    /// All of a machine with so many NICs, in the order of their [places](Self::index).
    pub(super) fn all(nics: u8) -> impl Iterator<Item = Self> {
        let of_nic = |nic| NIC_TICKS.map(|tick| Self::Nic(tick, nic));
        OTHER_TICKS.into_iter().chain((0..nics).flat_map(of_nic))
    }

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
            Self::Nic(tick, nic) => {
                OTHER_TICKS.len() + nic as usize * NIC_TICKS.len() + tick as usize
            }
        }
    }
}
