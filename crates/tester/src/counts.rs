//! What interface, driver and port count, before and after.

use baton_live::port::{Driver, DriverCounter, InterfaceError, LinkCounters, LinkWatch, Port};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Frames that something has counted while a task was done, or at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The kernel.
    pub link: LinkCounters,
    /// The driver, under its own names (`ethtool -S`).
    pub driver: BTreeMap<String, u64>,
    /// The port: what it refused and dropped.
    pub port: BTreeMap<String, u64>,
    /// The port is the end of the interface that is not the kernel's: what leaves the one arrives at the other.
    pub is_far_end: bool,
}

impl Counts {
    /// At this moment, of the interface that `watch` looks at.
    ///
    /// # Errors
    /// It is gone.
    pub fn take(
        watch: &mut LinkWatch,
        driver: Vec<DriverCounter>,
        port: &dyn Port,
        is_far_end: bool,
    ) -> Result<Self, InterfaceError> {
        Ok(Self {
            link: watch.state()?.counters,
            driver: driver
                .into_iter()
                .map(|one| (one.name, one.value))
                .collect(),
            ..Self::of_port_alone(port, is_far_end)
        })
    }

    /// At this moment, of a port on no interface of the kernel.
    pub fn of_port_alone(port: &dyn Port, is_far_end: bool) -> Self {
        let mut counts = Self {
            is_far_end,
            ..Self::default()
        };
        port.counters(&mut |name: &str, value| {
            counts.port.insert(name.to_owned(), value);
        });
        counts
    }

    /// What was counted since `before`; of driver and port what has changed.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let changed = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            let difference = |(name, value): (&String, &u64)| {
                let before = then.get(name).copied().unwrap_or_default();
                (name.clone(), value.wrapping_sub(before))
            };
            now.iter()
                .map(difference)
                .filter(|(_, value)| *value != 0)
                .collect()
        };
        Self {
            link: self.link.since(&before.link),
            driver: changed(&self.driver, &before.driver),
            port: changed(&self.port, &before.port),
            is_far_end: self.is_far_end,
        }
    }

    /// Sum of the driver's counters whose names have one of these parts.
    pub fn of_driver(&self, parts: &[&str]) -> u64 {
        let is_meant = |name: &str| parts.iter().any(|part| name.contains(part));
        let counters = self.driver.iter().filter(|(name, _)| is_meant(name));
        counters.map(|(_, value)| value).sum()
    }

    /// A counter of the port.
    pub fn of_port(&self, name: &str) -> u64 {
        self.port.get(name).copied().unwrap_or_default()
    }
}

/// The driver's counters of an interface in this thread's network namespace, where there are any.
pub fn of_driver(interface: &str) -> Vec<DriverCounter> {
    Driver::counters(interface).unwrap_or_default()
}
