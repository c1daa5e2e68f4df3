//! What can happen next.

/// The most NICs a machine has: their ticks have fixed places.
pub(crate) const MOST_NICS: u32 = 8;

/// What can happen next. At most one of each is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tick {
    /// A client's timer or wake-up is due.
    ClientTimer,
    /// An open loop's next connection is due.
    ClientOpen,
    /// The time series wants a point.
    Sample,
    /// A disk is done with a request.
    Disk,
    /// Something happens on the host, on an adapter, or between them.
    Server,
    /// Something happens on the wire of the NIC of this number.
    Nic(NicTick, u8),
}

/// What can happen on each wire.
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
/// How many ticks there are.
pub(super) const TICKS: usize = FIRST_NIC_TICK + NIC_TICKS * MOST_NICS as usize;

impl Tick {
    /// Its place among all ticks.
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

    /// That of a place.
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
