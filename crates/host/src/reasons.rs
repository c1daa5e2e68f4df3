//! Why a connection is not on a NIC. Every refusal and fallback has a name.

use serde::Serialize;

/// Why a connection is not on the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotOffloaded {
    /// The selection policy has not chosen it (yet).
    Policy,
    /// Chosen, but the host knew that the NIC holds as many connections as its Soft_Limit allows.
    SoftLimit,
    /// Chosen, but the host knew that there is no memory for it: the NIC's is full, or no buffer of its own is left.
    Memory,
    /// Chosen, but its state does not allow a handoff (closing, moving already, or over).
    State,
    /// Chosen, but no handle was free.
    Handles,
    /// Chosen, but it is answered by another NIC than the one on which it came.
    Affinity,
    /// Refused by the NIC: Soft_Limit reached.
    RefusedSoftLimit,
    /// Refused by the NIC: Hard_Limit reached.
    RefusedHardLimit,
    /// Refused by the NIC: out of memory.
    RefusedMemory,
    /// Refused by the NIC: state.
    RefusedState,
    /// Refused by the NIC: four-tuple or handle in use.
    RefusedDuplicate,
    /// Chosen, but the peer did not acknowledge in time what was sent: on a live host a connection leaves only when it has.
    UnderWay,
    /// Another process has its socket, too.
    Shared,
    /// It was on the NIC and the host took it back.
    Restored,
}

impl NotOffloaded {
    /// Those that results of the simulator list. There [`UnderWay`](Self::UnderWay) never occurs.
    pub const ALL: [Self; 13] = [
        Self::Policy,
        Self::SoftLimit,
        Self::Memory,
        Self::State,
        Self::Handles,
        Self::Affinity,
        Self::Shared,
        Self::RefusedSoftLimit,
        Self::RefusedHardLimit,
        Self::RefusedMemory,
        Self::RefusedState,
        Self::RefusedDuplicate,
        Self::Restored,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::SoftLimit => "soft_limit",
            Self::Memory => "memory",
            Self::State => "state",
            Self::Handles => "handles",
            Self::Affinity => "affinity",
            Self::UnderWay => "under_way",
            Self::Shared => "shared",
            Self::RefusedSoftLimit => "refused_soft_limit",
            Self::RefusedHardLimit => "refused_hard_limit",
            Self::RefusedMemory => "refused_memory",
            Self::RefusedState => "refused_state",
            Self::RefusedDuplicate => "refused_duplicate",
            Self::Restored => "restored",
        }
    }
}
