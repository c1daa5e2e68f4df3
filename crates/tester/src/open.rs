//! Opens interfaces, and checks whether they can be tested.

use crate::error::TesterError;
use crate::station::Station;
use baton_live::port::{
    AfXdp, AfXdpConfig, InterfaceError, LinkState, LinkWatch, PacketConfig, PacketSocket, Port,
    RingKind, Tap, bring, ipv4_address,
};
use baton_live::xdp::{Withheld, XdpError};
use baton_live::{Clock, within};
use serde::{Deserialize, Serialize};
use std::fs;

/// Size of the receive ring, for frames that arrive while the receiver is busy: about 400 ms at a million small frames per second.
const RING_BLOCKS: u32 = 1_024;
/// Scope of link-local addresses in `/proc/net/if_inet6`. The kernel assigns them to each interface automatically.
const LINK_LOCAL: &str = "20";

baton_named::named! {
    /// Kind of port that sends and receives frames.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum PortKind {
        /// A packet socket.
        Packet => "packet",
        /// The far end of a TAP device, which is created if it does not exist.
        Tap => "tap",
        /// AF_XDP sockets, which receive all frames of the interface.
        AfXdp => "af-xdp",
    }
}

/// An interface, as the user specifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name of the interface.
    pub interface: String,
    /// Its network namespace; that of the process if `None`.
    pub namespace: Option<String>,
    /// Kind of port that sends and receives frames.
    pub kind: PortKind,
    /// Test the interface although the kernel has an address on it.
    pub force: bool,
}

impl PortKind {
    /// Returns whether frames are copied between driver and program; `None` if the driver decides.
    pub const fn copies(self) -> Option<bool> {
        match self {
            Self::Packet | Self::Tap => Some(true),
            Self::AfXdp => None,
        }
    }

    /// Returns whether the port is the far end of the interface, opposite the kernel.
    pub const fn is_far_end(self) -> bool {
        matches!(self, Self::Tap)
    }

    /// Opens a port on an interface in this thread's network namespace.
    fn open(self, interface: &str) -> Result<Box<dyn Port + Send>, XdpError> {
        Ok(match self {
            Self::Packet => Box::new(PacketSocket::open(
                interface,
                &PacketConfig {
                    ring: RingKind::Blocks,
                    blocks: RING_BLOCKS,
                    merges: false,
                    ..PacketConfig::default()
                },
            )?),
            Self::Tap => {
                let tap = Tap::open(interface, baton_live::mac_for(interface))?;
                bring(interface, true)?;
                Box::new(tap)
            }
            Self::AfXdp => Box::new(AfXdp::open(interface, &AfXdpConfig::default())?),
        })
    }
}

impl Spec {
    /// Checks that the interface can be tested with IP packets of `longest` bytes. A TAP device does not have to exist yet.
    ///
    /// # Errors
    /// The interface does not exist, is down or in use, or its MTU is too small.
    pub fn check(&self, longest: usize) -> Result<(), TesterError> {
        let namespace = self.namespace.as_deref();
        if self.kind == PortKind::Tap {
            return Ok(());
        }
        let (state, address) = within(namespace, || {
            let state = LinkWatch::of(&self.interface)?.state()?;
            Ok::<_, InterfaceError>((state, self.address()?))
        })??;
        self.check_state(&state, longest)?;
        match address {
            Some(address) if !self.force => Err(TesterError::BadInput(format!(
                "{} has the address {address}, so the kernel uses it; a test and its traffic would disturb each other: give --force, or remove \
                 the address",
                self.interface
            ))),
            _ => Ok(()),
        }
    }

    fn check_state(&self, state: &LinkState, longest: usize) -> Result<(), TesterError> {
        let name = &self.interface;
        let command = match &self.namespace {
            Some(namespace) => format!("ip -n {namespace} link set {name}"),
            None => format!("ip link set {name}"),
        };
        if !state.is_up {
            return Err(TesterError::BadInput(format!(
                "{name} is down; switch it on with `{command} up`, or give --up"
            )));
        }
        if !state.has_carrier {
            return Err(TesterError::BadInput(format!(
                "{name} has no carrier: its cable is not connected, or the interface at the other end is down"
            )));
        }
        if (state.mtu as usize) < longest {
            return Err(TesterError::BadInput(format!(
                "{name} has an MTU of {} bytes; expected {longest} for these tests: run `{command} mtu {longest}`, or test only small frames",
                state.mtu
            )));
        }
        Ok(())
    }

    /// Returns an address that the kernel has on the interface, other than link-local ones.
    fn address(&self) -> Result<Option<String>, InterfaceError> {
        if let Some(address) = ipv4_address(&self.interface)? {
            return Ok(Some(address.to_string()));
        }
        let all = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
        Ok(ipv6_address(&all, &self.interface))
    }

    /// Opens a port on the interface.
    ///
    /// # Errors
    /// There is no permission, or another program uses the interface.
    pub fn open(&self, clock: Clock) -> Result<Station, TesterError> {
        let open = || {
            let port = self.kind.open(&self.interface)?;
            // If this fails, as on older kernels, frames of packet sockets also reach the kernel's IP layer.
            let withheld = match self.kind {
                PortKind::Packet => Withheld::attach(&self.interface).ok(),
                PortKind::Tap | PortKind::AfXdp => None,
            };
            Ok::<_, XdpError>((port, LinkWatch::of(&self.interface)?, withheld))
        };
        let namespace = self.namespace.clone();
        let (port, watch, withheld) = within(namespace.as_deref(), open)??;
        let is_far_end = self.kind.is_far_end();
        let station = Station::new(port, Some(watch), namespace, is_far_end, clock);
        Ok(station.with_withheld(withheld))
    }
}

/// Returns an address of `interface` that is not link-local, from the kernel's list.
fn ipv6_address(list: &str, interface: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let digits = fields.next()?;
        let (scope, name) = (fields.nth(2)?, fields.nth(1)?);
        if name != interface || scope == LINK_LOCAL {
            return None;
        }
        let address = u128::from_str_radix(digits, 16).ok()?;
        Some(std::net::Ipv6Addr::from(address).to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_do_not_count_as_in_use() {
        let list = "fe80000000000000e0d5e5fffe3b2a01 05 40 20 80     eth0\n\
                    fd000009000000000000000000000002 05 40 00 80     eth1\n";
        assert_eq!(ipv6_address(list, "eth0"), None);
        assert_eq!(ipv6_address(list, "eth1").as_deref(), Some("fd00:9::2"));
        assert_eq!(ipv6_address(list, "eth2"), None);
    }

    #[test]
    fn loopback_has_an_address_and_missing_interfaces_are_named() {
        let spec = |interface: &str, force| Spec {
            interface: interface.to_owned(),
            namespace: None,
            kind: PortKind::Packet,
            force,
        };
        let error = spec("baton-none", true).check(1_500).expect_err("absent");
        assert!(
            error.to_string().contains("no interface baton-none"),
            "{error}"
        );
        let error = spec("lo", false)
            .check(1_500)
            .expect_err("not to be tested");
        assert!(error.to_string().starts_with("lo "), "{error}");
    }

    #[test]
    fn problems_of_an_interface_are_reported_with_advice() {
        let spec = Spec {
            interface: "eth1".to_owned(),
            namespace: Some("lab".to_owned()),
            kind: PortKind::Packet,
            force: false,
        };
        let state = |is_up, has_carrier, mtu| LinkState {
            is_up,
            has_carrier,
            mtu,
            counters: baton_live::port::LinkCounters::default(),
        };
        for (state, words) in [
            (state(false, false, 1_500), "ip -n lab link set eth1 up"),
            (state(true, false, 1_500), "eth1 has no carrier"),
            (state(true, true, 1_400), "link set eth1 mtu 1500"),
        ] {
            let error = spec.check_state(&state, 1_500).expect_err(words);
            assert!(error.to_string().contains(words), "{error}");
        }
        spec.check_state(&state(true, true, 1_500), 1_500)
            .expect("nothing");
    }
}
