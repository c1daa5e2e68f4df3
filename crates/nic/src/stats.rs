//! What the firmware did and refused to do, counted by reason.

use crate::meter::{TASKS, Task};
use baton_bus::handoff::Refusal;
use serde::{Deserialize, Serialize};

/// Counts by reason: a field for each, named as the reason is serialised. Reasons after the word `reasons` are declared as well.
macro_rules! counts {
    (
        $(#[$doc:meta])* $name:ident by
        $(#[$reason_doc:meta])* reasons $reason:ident {
            $($(#[$variant_doc:meta])* $field:ident: $variant:ident,)+
        }
    ) => {
        $(#[$reason_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $reason { $($(#[$variant_doc])* $variant,)+ }

        counts! { $(#[$doc])* $name by $reason { $($field: $variant,)+ } }
    };
    ($(#[$doc:meta])* $name:ident by $reason:ident { $($field:ident: $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $(
                #[doc = concat!("[`", stringify!($reason), "::", stringify!($variant), "`].")]
                pub $field: u64,
            )+
        }

        impl $name {
            pub(crate) fn count(&mut self, reason: $reason) {
                *match reason {
                    $($reason::$variant => &mut self.$field,)+
                } += 1;
            }

            /// All of them.
            pub fn total(&self) -> u64 {
                self.iter().map(|(_, count)| count).sum()
            }

            /// Each reason by name, as it is serialised.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),+].into_iter()
            }
        }
    };
}

counts! {
    /// Dropped packets by reason.
    Drops by
    /// Why a received packet was dropped.
    #[derive(thiserror::Error)]
    reasons Drop {
        /// Too many packets wait for lookup.
        #[error("too many packets wait for lookup")]
        arrival_queue: ArrivalQueue,
        /// A packet for the host found the receive queue full.
        #[error("the receive queue of the host is full")]
        host_receive_queue: HostReceiveQueue,
        /// A packet of a connection on the NIC found the receive queue full.
        #[error("the receive queue of the NIC is full")]
        nic_receive_queue: NicReceiveQueue,
        /// On-board memory is full.
        #[error("on-board memory is full")]
        memory: Memory,
        /// The NIC was reset while the packet waited.
        #[error("the NIC was reset")]
        reset: Reset,
    }
}

counts! {
    /// Refused handoffs by reason.
    Refusals by Refusal {
        soft_limit: SoftLimit,
        hard_limit: HardLimit,
        memory: Memory,
        state: State,
        duplicate: Duplicate,
    }
}

counts! {
    /// Ignored commands by reason.
    IgnoredCommands by
    /// Why a command was not carried out. Commands and events cross on the bus, so the first two are no faults.
    reasons Ignored {
        /// The NIC has not got the handle: restored, released, or its handoff was refused.
        no_connection: NoConnection,
        /// The connection is over, and waits for [`Command::Release`](baton_bus::handoff::Command::Release).
        ended: Ended,
        /// Data to send after this direction was closed.
        closed_for_writing: ClosedForWriting,
        /// Data beyond the connection's send buffer. The host bounds what it sends by what was acknowledged, so this is a fault
        /// of its driver; the connection is aborted, for a gap in the data must not pass unnoticed.
        beyond_send_buffer: BeyondSendBuffer,
        /// Release of a connection that is not over.
        not_ended: NotEnded,
    }
}

counts! {
    /// Refused commands of the data cache by reason.
    CacheRefusals by
    /// Why a command of the data cache, or a packet that it was part of, was not carried out. Each but [`CacheRefusal::NoCache`]
    /// and [`CacheRefusal::NoFirst`], which commands meet that were under way during a reset, is a fault of the driver.
    #[derive(thiserror::Error)]
    reasons CacheRefusal {
        /// There is no cache, or it was not started since the last reset.
        #[error("there is no cache")]
        no_cache: NoCache,
        /// The range does not lie within the cache.
        #[error("the range does not lie within the cache")]
        outside_cache: OutsideCache,
        /// A part of a packet that was not begun.
        #[error("no first part came before")]
        no_first: NoFirst,
        /// A first part that carries no headers.
        #[error("the first part carries no headers")]
        first_without_headers: FirstWithoutHeaders,
        /// Headers in a part that is not the first.
        #[error("headers come in the first part only")]
        headers_not_first: HeadersNotFirst,
        /// Something else came before the last part of a packet.
        #[error("the packet's last part did not come")]
        unfinished: Unfinished,
        /// The packet is longer than a transmit buffer.
        #[error("the packet is longer than a transmit buffer")]
        too_long: TooLong,
    }
}

/// What the data cache did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStats {
    /// Inserts carried out.
    pub inserts: u64,
    /// Bytes they fetched from host memory.
    pub inserted_bytes: u64,
    /// Parts of packets that came from the cache.
    pub appends: u64,
    /// Bytes they had: what did not cross the bus again.
    pub appended_bytes: u64,
    /// Parts of offloaded connections' packets whose place in the cache had been used for something else, and that were
    /// fetched from host memory.
    pub overwritten: u64,
    /// Commands refused, and packets with them.
    pub refused: CacheRefusals,
}

/// Totals since the firmware started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Frames that came from the MAC, dropped ones included.
    pub frames_received: u64,
    /// Received packets dropped.
    pub dropped: Drops,
    /// Received packets passed to the host.
    pub host_packets_received: u64,
    /// Packets sent for the host.
    pub host_packets_sent: u64,
    /// Received packets given to the NIC's TCP, forwarded ones included.
    pub nic_packets_received: u64,
    /// Packets that the NIC's TCP sent.
    pub nic_packets_sent: u64,
    /// Packets that reached the host first and came back with `Forward`.
    pub forwarded: u64,
    /// Forwarded packets given back, because their connection had left or was never taken.
    pub given_back: u64,
    /// Packets that waited for the NIC's TCP while their connection left it, and went on to the host.
    pub passed_on: u64,
    /// Work done, in the order of [`TASKS`].
    pub tasks: [u64; TASKS.len()],
    /// Descriptors given back because their queue was full.
    pub descriptors_given_back: u64,
    /// Connections taken over.
    pub handoffs: u64,
    /// Handoffs refused.
    pub refused: Refusals,
    /// Connections given back.
    pub restores: u64,
    /// Connections that ended on the NIC.
    pub closed: u64,
    /// Connections released by the host after their end.
    pub released: u64,
    /// Commands not carried out.
    pub ignored: IgnoredCommands,
    /// Connections that the host was asked to take back.
    pub relief_requests: u64,
    /// Times Soft_Limit was lowered.
    pub soft_limit_lowered: u64,
    /// Times Soft_Limit was raised.
    pub soft_limit_raised: u64,
    /// The data cache.
    pub cache: CacheStats,
    /// Resets.
    pub resets: u64,
}

impl Stats {
    /// Dropped packets: reason and count.
    pub fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.dropped.iter()
    }

    /// How often `task` was done.
    pub fn task(&self, task: Task) -> u64 {
        self.tasks[task as usize]
    }
}
