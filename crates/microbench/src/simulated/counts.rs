//! Counts of machines and of their applications.

use super::machine::Machine;
use super::switch::Switch;
use crate::port::{Losses, Place};
use baton_wire::Time;
use std::ops::{AddAssign, Sub};

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counts of a machine or of an application since the start.
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct Counts {
            $($(#[$doc])* pub(super) $field: u64,)*
            /// Frames lost in the sending machine, before the wire of its NIC.
            pub(super) lost_before_wire: Losses,
            /// Frames for the machine that were lost after the wire of their sender.
            pub(super) lost_after_wire: Losses,
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
                self.lost_before_wire.add_all(&other.lost_before_wire);
                self.lost_after_wire.add_all(&other.lost_after_wire);
            }
        }

        impl Sub for Counts {
            type Output = Self;

            fn sub(self, before: Self) -> Self {
                Self {
                    $($field: self.$field.saturating_sub(before.$field),)*
                    lost_before_wire: self.lost_before_wire.since(&before.lost_before_wire),
                    lost_after_wire: self.lost_after_wire.since(&before.lost_after_wire),
                }
            }
        }
    };
}

counts! {
    /// Frames or connections that were due.
    offered,
    /// Frames of an application that were given to the driver, including those that it refused.
    tried,
    sent,
    delivered,
    interrupts,
    /// Bytes that a test's TCP received.
    goodput_bytes,
    /// Connections that were opened and, in tests of connections, also closed.
    connections,
    /// Connections of clients that ended before all requests were answered.
    lost_connections,
    /// Complete responses that clients received.
    responses,
    /// Bytes of files that clients received.
    content_bytes,
    /// Packets that a router does not forward, by the rules of IP.
    refused,
    /// Frames that a router itself created: ICMP errors.
    own,
    /// Packets that a router dropped because too many others waited.
    too_many,
}

impl Counts {
    /// Returns the counts by `now` of the machine with this number, which is behind one of the switches or on a cable.
    pub(super) fn of(machine: &Machine, number: usize, switches: &[Switch], now: Time) -> Self {
        let mut counts = Self {
            interrupts: machine.interrupts(),
            ..Self::default()
        };
        for application in machine.applications() {
            counts += application.counts(now);
        }
        for interface in &machine.interfaces {
            counts.sent += interface.nic.counts.sent;
            counts.delivered += interface.nic.counts.delivered;
            // An interrupt handler reads hundreds of microseconds' worth of data at once; without this correction, results would be as
            // coarse as that.
            let not_read = interface.nic.delivered();
            counts.goodput_bytes += not_read.map(|frame| frame.data_len()).sum::<u64>();
            counts.lost_before_wire.add_all(&interface.losses);
            counts.lost_after_wire.add_all(&interface.lost_after_wire());
        }
        let by_switches = switches.iter().map(|switch| switch.dropped(number));
        counts.lost_after_wire.add(Place::Switch, by_switches.sum());
        counts
    }

    /// Returns the sum of these counts.
    pub(super) fn sum(all: &[Self]) -> Self {
        let mut sum = Self::default();
        all.iter().for_each(|one| sum += *one);
        sum
    }
}
