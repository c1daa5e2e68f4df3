//! Counters of interface, driver and port, and their changes.

use baton_live::port::{Driver, DriverCounter, InterfaceError, LinkCounters, LinkWatch, Port};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters of frames at one moment, or their changes during a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Counters of the kernel.
    pub link: LinkCounters,
    /// Counters of the driver, under its own names (`ethtool -S`).
    pub driver: BTreeMap<String, u64>,
    /// Counters of the port: frames that the port refused or dropped.
    pub port: BTreeMap<String, u64>,
    /// Whether the port is the far end of the interface, opposite the kernel: frames that leave one end arrive at the other.
    pub is_far_end: bool,
}

impl Counts {
    /// Reads the counters of the interface that `watch` looks at.
    ///
    /// # Errors
    /// The interface no longer exists.
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

    /// Reads the counters of a port that is not on a kernel interface.
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

    /// Returns the changes since `before`; for driver and port, only counters that have changed.
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

    /// Returns the sum of the driver's counters whose names contain one of `parts`.
    pub fn of_driver(&self, parts: &[&str]) -> u64 {
        let is_meant = |name: &str| parts.iter().any(|part| name.contains(part));
        let counters = self.driver.iter().filter(|(name, _)| is_meant(name));
        counters.map(|(_, value)| value).sum()
    }

    /// Returns a counter of the port.
    pub fn of_port(&self, name: &str) -> u64 {
        self.port.get(name).copied().unwrap_or_default()
    }
}

/// Returns the driver's counters of an interface in this thread's network namespace; empty if there are none.
pub fn of_driver(interface: &str) -> Vec<DriverCounter> {
    Driver::counters(interface).unwrap_or_default()
}
