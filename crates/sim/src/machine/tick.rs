//! Kinds of events.

/// Maximum number of NICs of a machine, because their ticks have fixed indices.
pub(crate) const MOST_NICS: u32 = 64;

/// A kind of event. At most one event of each kind is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// A client's timer or wake-up is due.
    ClientTimer,
    /// An open loop's next connection is due.
    ClientOpen,
    /// The next point of the time series is due.
    Sample,
    /// A disk has completed a request.
    Disk,
    /// An event on the host, on an adapter, or on a link between them.
    Server,
    /// An event on the wire of the NIC with this number.
    Nic(NicTick, u8),
}

/// A kind of event on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum NicTick {
    /// A frame reaches the NIC.
    AtNic,
    /// A frame reaches the clients.
    AtClients,
}

const NIC_TICKS: usize = NicTick::AtClients as usize + 1;
const FIRST_NIC_TICK: usize = 5;
/// Number of ticks.
pub(super) const TICKS: usize = FIRST_NIC_TICK + NIC_TICKS * MOST_NICS as usize;

impl Tick {
    /// Returns the index of the tick among all ticks.
    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Self::ClientTimer => 0,
            Self::ClientOpen => 1,
            Self::Sample => 2,
            Self::Disk => 3,
            Self::Server => 4,
            Self::Nic(tick, nic) => FIRST_NIC_TICK + nic as usize * NIC_TICKS + tick as usize,
        }
    }

    /// Returns the tick with this index.
    #[inline]
    pub(super) const fn at(index: u8) -> Self {
        match index {
            0 => Self::ClientTimer,
            1 => Self::ClientOpen,
            2 => Self::Sample,
            3 => Self::Disk,
            4 => Self::Server,
            index => {
                let index = index - FIRST_NIC_TICK as u8;
                let tick = match index % NIC_TICKS as u8 {
                    0 => NicTick::AtNic,
                    _ => NicTick::AtClients,
                };
                Self::Nic(tick, index / NIC_TICKS as u8)
            }
        }
    }
}
