//! The measurement environment: everything needed to repeat a measurement.

use crate::error::TesterError;
use crate::open::{PortKind, Spec};
use crate::station::Station;
use baton_live::port::{Driver, InterfaceError, Offload, Offloads};
use baton_live::within;
use serde::{Deserialize, Serialize};
use std::fs;

/// A machine at a point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Date and time in UTC.
    pub date: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the processor.
    pub processor: String,
    /// Number of processors that the process may use.
    pub cores: usize,
    /// Clock source of the kernel.
    pub clock_source: String,
}

/// An interface that takes part in a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Its network namespace, unless it is the default one.
    pub namespace: Option<String>,
    /// Ethernet address of its frames, in the usual notation.
    pub mac: String,
    /// Maximum size of an IP packet, in bytes.
    pub mtu: u16,
    /// The interface's driver.
    pub driver: Driver,
    /// Offloads that were on, by the short names of `ethtool -k`.
    pub offloads: Vec<String>,
    /// Kind of port that sent and received frames.
    pub port: PortKind,
    /// Whether frames were copied between driver and program; `None` if the driver decides.
    pub copied: Option<bool>,
    /// The processor to which its thread was pinned.
    pub core: Option<usize>,
}

impl Environment {
    /// Describes this machine now.
    pub fn take() -> Self {
        let line = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut models = information
            .lines()
            .filter(|one| one.starts_with("model name"));
        let model = models.next().and_then(|one| one.split_once(": "));
        Self {
            date: jiff::Timestamp::now()
                .strftime("%Y-%m-%d %H:%M:%S UTC")
                .to_string(),
            kernel: line("/proc/sys/kernel/osrelease"),
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.to_owned()),
            cores: baton_live::allowed_cores().map_or(0, |cores| cores.len()),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    }
}

impl Interface {
    /// Describes an interface as it is now.
    ///
    /// # Errors
    /// The interface no longer exists.
    pub fn of(spec: &Spec, station: &Station) -> Result<Self, TesterError> {
        let name = &spec.interface;
        let ask = || {
            let mut on = Vec::new();
            for offload in Offload::ALL {
                if Offloads::of(name).is_on(offload)? {
                    on.push(offload.name().to_owned());
                }
            }
            Ok::<_, InterfaceError>((Driver::of(name)?, on))
        };
        let (driver, offloads) = within(spec.namespace.as_deref(), ask)??;
        let link = station.link();
        Ok(Self {
            name: name.clone(),
            namespace: spec.namespace.clone(),
            mac: mac_text(link.mac),
            mtu: link.mtu,
            driver,
            offloads,
            port: spec.kind,
            copied: spec.kind.copies(),
            core: station.core(),
        })
    }

    /// Returns the speed of the link in Mb/s, if the link limits the rate. The nominal speed of virtual interfaces does not.
    pub fn speed_mbps(&self) -> Option<u32> {
        const VIRTUAL: [&str; 5] = ["veth", "tun", "bridge", "macvlan", "dummy"];
        let is_virtual = VIRTUAL.contains(&self.driver.name.as_str());
        self.driver.speed_mbps.filter(|_| !is_virtual)
    }
}

/// Formats an Ethernet address in the usual notation.
pub fn mac_text(mac: [u8; 6]) -> String {
    let bytes = mac.map(|byte| format!("{byte:02x}"));
    bytes.join(":")
}

/// Parses an Ethernet address in the usual notation; returns `None` if it is not a unicast address.
pub fn mac_of(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    (parts.next().is_none() && mac[0] & 1 == 0).then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_addresses_are_read_and_written() {
        let mac = [2, 0xab, 0, 1, 0x7f, 0xff];
        assert_eq!(mac_text(mac), "02:ab:00:01:7f:ff");
        assert_eq!(mac_of("02:ab:00:01:7f:ff"), Some(mac));
        assert_eq!(mac_of("02-AB-00-01-7F-FF"), Some(mac));
        for wrong in [
            "",
            "eth0",
            "02:ab:00:01:7f",
            "02:ab:00:01:7f:ff:00",
            "03:ab:00:01:7f:ff",
            "2:ab:00:01:7f:ff",
        ] {
            assert_eq!(mac_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_machine_is_described() {
        let here = Environment::take();
        assert!(!here.kernel.is_empty() && here.cores > 0, "{here:?}");
        assert!(here.date.ends_with("UTC"), "{here:?}");
    }
}
