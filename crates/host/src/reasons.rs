//! Reasons why a connection is not on a NIC. Every refusal and every fallback has a name.

use serde::Serialize;

/// Reason why a connection is not on the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotOffloaded {
    /// The selection policy has not chosen the connection (yet).
    Policy,
    /// Chosen, but the host knew that the NIC holds as many connections as its Soft_Limit allows.
    SoftLimit,
    /// Chosen, but the host knew that there is no memory for the connection: either the NIC's memory is full, or no buffer is free for the
    /// data that the connection will receive.
    Memory,
    /// Chosen, but its state does not allow a handoff (closing, closed, or already moving).
    State,
    /// Chosen, but no handle was free.
    Handles,
    /// Chosen, but another NIC than the one on which its packets arrive answers the connection.
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
    /// Chosen, but the peer did not acknowledge all sent data in time. On a live host a connection can leave only when no data is in
    /// flight.
    UnderWay,
    /// Another process shares the connection's socket.
    Shared,
    /// The connection was on the NIC and the host took it back.
    Restored,
}

impl NotOffloaded {
    /// The reasons that results of the simulator list. [`UnderWay`](Self::UnderWay) never occurs in the simulator.
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

    /// Returns the reason's name in results.
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

/// Reason why a connection moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveReason {
    /// The reason is not known.
    #[default]
    Unknown,
    /// The selection policy chose the connection, or took it back.
    Policy,
    /// The policy chose the connection for an adapter that no longer exists, and another adapter is available.
    NextAdapter,
    /// The adapter asked the host to take the connection back.
    Relief,
    /// The application made a call that only the host can serve.
    Call,
    /// The adapter refused the connection, for this reason.
    Refused(NotOffloaded),
    /// An operator requested that all connections go back.
    Command,
    /// The adapter is shutting down in an orderly way.
    AdapterEnds,
    /// The adapter was killed.
    AdapterKilled,
}

impl MoveReason {
    /// All reasons in the order of their numbers in messages.
    const ALL: [Self; 15] = [
        Self::Unknown,
        Self::Policy,
        Self::NextAdapter,
        Self::Relief,
        Self::Call,
        Self::Command,
        Self::AdapterEnds,
        Self::AdapterKilled,
        Self::Refused(NotOffloaded::Handles),
        Self::Refused(NotOffloaded::RefusedSoftLimit),
        Self::Refused(NotOffloaded::RefusedHardLimit),
        Self::Refused(NotOffloaded::RefusedMemory),
        Self::Refused(NotOffloaded::RefusedState),
        Self::Refused(NotOffloaded::RefusedDuplicate),
        Self::Refused(NotOffloaded::State),
    ];

    /// Returns the reason's number in messages.
    pub fn number(self) -> u16 {
        let at = Self::ALL.iter().position(|other| *other == self);
        at.map_or(0, |at| at as u16)
    }

    /// Returns the reason with this number in messages, or [`Unknown`](Self::Unknown) if there is none.
    pub fn of_number(number: u16) -> Self {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the reason's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Policy => "policy",
            Self::NextAdapter => "next_adapter",
            Self::Relief => "relief",
            Self::Call => "call",
            Self::Refused(why) => why.name(),
            Self::Command => "command",
            Self::AdapterEnds => "adapter_ends",
            Self::AdapterKilled => "adapter_killed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_of_reasons_are_distinct() {
        let mut names = std::collections::BTreeSet::new();
        for reason in MoveReason::ALL {
            assert_eq!(MoveReason::of_number(reason.number()), reason);
            assert!(names.insert(reason.name()), "{reason:?}");
        }
        assert_eq!(MoveReason::of_number(u16::MAX), MoveReason::Unknown);
    }
}
