//! Arguments of `baton bench nic` for an interface, and of `baton bench reflect`.

use baton_microbench::Test;
use baton_microbench::frame::LinkRate;
use baton_tester::environment::mac_of;
use baton_tester::{PortKind, Spec};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::str::FromStr;

/// Options for real interfaces only.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for an interface")]
pub struct LiveBenchArgs {
    /// Interface that receives in 3-way tests [default: the partner]
    #[arg(long, value_name = "IFACE")]
    pub receiver: Option<String>,
    /// Network namespace of the interface under test
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Network namespace of the partner
    #[arg(long, value_name = "NAME")]
    pub partner_netns: Option<String>,
    /// Network namespace of the receiver
    #[arg(long, value_name = "NAME", requires = "receiver")]
    pub receiver_netns: Option<String>,
    /// How frames get in and out of the interface under test
    #[arg(long, value_name = "KIND", default_value = "packet")]
    pub port: PortName,
    /// How frames get in and out of the partner's interface
    #[arg(long, value_name = "KIND", default_value = "packet")]
    pub partner_port: PortName,
    /// Processors to use: for the interface under test, the partner, the receiver [default: all in turn]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub cpus: Vec<usize>,
    /// Duration of the counted part of a trial, seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub trial: f64,
    /// Trials at each load, of which half may exceed the loss ratio; the usual goal of MLRsearch has 21 trials of a second
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub trials: u32,
    /// Offer this load in each trial instead of searching, frames (each way) or connections a second
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<f64>,
    /// Rate of the link, Mb/s [default: the rate that the driver reports; without a limit on virtual interfaces]
    #[arg(long, value_name = "MBPS", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub speed: Option<u32>,
    /// Ethernet address that the interface under test sends to, where a router is in between
    #[arg(long, value_name = "MAC", value_parser = mac)]
    pub gateway: Option<Mac>,
    /// Ethernet address that the partner sends to
    #[arg(long, value_name = "MAC", value_parser = mac)]
    pub partner_gateway: Option<Mac>,
    /// Switch on interfaces that are off, and off again at the end
    #[arg(long)]
    pub up: bool,
    /// Also test interfaces on which the kernel has addresses
    #[arg(long)]
    pub force: bool,
    /// Write a line for each trial to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write a report to share to this file (Markdown): the machine, the results, all trials
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

/// An Ethernet address of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

/// Kinds of ports by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PortName {
    /// A packet socket
    Packet,
    /// The end of a TAP device that is not the kernel's; the device is made if there is none
    Tap,
    /// AF_XDP sockets, which take all frames of the interface
    AfXdp,
}

impl From<PortName> for PortKind {
    fn from(name: PortName) -> Self {
        match name {
            PortName::Packet => Self::Packet,
            PortName::Tap => Self::Tap,
            PortName::AfXdp => Self::AfXdp,
        }
    }
}

/// `baton bench reflect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton bench reflect --iface eth1

On the other machine, with the address that this one prints:
  baton bench nic eth2 --partner 02:00:00:00:00:01

The reflector does what a tester on the same Ethernet requests with frames of ethertype 0x88b5: it receives and checks frames, sends \
frames, and acts as a host with TCP. Tests load the link as much as they can. It runs until it is interrupted.")]
pub struct BenchReflectArgs {
    /// The interface
    #[arg(long, value_name = "IFACE")]
    pub iface: String,
    /// Network namespace of the interface
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// How frames get in and out
    #[arg(long, value_name = "KIND", default_value = "packet")]
    pub port: PortName,
    /// The processor to use [default: the first]
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Switch the interface on if it is off, and off again at the end
    #[arg(long)]
    pub up: bool,
    /// Take part although the kernel has an address on the interface
    #[arg(long)]
    pub force: bool,
}

impl BenchReflectArgs {
    /// Returns the interface.
    pub fn spec(&self) -> Spec {
        Spec {
            interface: self.iface.clone(),
            namespace: self.netns.clone(),
            kind: self.port.into(),
            force: self.force,
        }
    }
}

impl LiveBenchArgs {
    /// Returns the interface under test.
    pub fn spec(&self, interface: &str) -> Spec {
        self.spec_of(interface, self.netns.as_ref(), self.port)
    }

    /// Returns the partner, where it is an interface.
    pub fn partner_spec(&self, interface: &str) -> Spec {
        self.spec_of(interface, self.partner_netns.as_ref(), self.partner_port)
    }

    /// Returns the receiver, if there is one.
    pub fn receiver_spec(&self) -> Option<Spec> {
        let interface = self.receiver.as_deref()?;
        Some(self.spec_of(interface, self.receiver_netns.as_ref(), self.partner_port))
    }

    fn spec_of(&self, interface: &str, namespace: Option<&String>, port: PortName) -> Spec {
        Spec {
            interface: interface.to_owned(),
            namespace: namespace.cloned(),
            kind: port.into(),
            force: self.force,
        }
    }

    /// Returns the link, if its rate was given.
    pub fn link(&self) -> Option<LinkRate> {
        self.speed.map(|mbps| LinkRate { mbps })
    }

    /// Returns the length of the longest IP packet of these tests, bytes.
    pub fn longest_packet(tests: &[Test]) -> usize {
        const ETHERNET: usize = 14 + 4;
        let frames = tests.iter().map(|test| test.carried().frame_len());
        frames.max().unwrap_or(0).saturating_sub(ETHERNET)
    }

    /// Returns the first option that was given but does not apply to a simulated NIC.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--receiver", self.receiver.is_some()),
            ("--netns", self.netns.is_some()),
            ("--partner-netns", self.partner_netns.is_some()),
            ("--port", self.port != PortName::Packet),
            ("--partner-port", self.partner_port != PortName::Packet),
            ("--cpus", !self.cpus.is_empty()),
            ("--rate", self.rate.is_some()),
            ("--speed", self.speed.is_some()),
            ("--gateway", self.gateway.is_some()),
            ("--partner-gateway", self.partner_gateway.is_some()),
            ("--up", self.up),
            ("--force", self.force),
            ("--csv", self.csv.is_some()),
            ("--report", self.report.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(name, _)| name)
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected the Ethernet address of one interface, as in 02:00:00:00:00:01";
        mac_of(text).map(Self).ok_or_else(|| expected.to_owned())
    }
}

fn mac(text: &str) -> Result<Mac, String> {
    text.parse()
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.001..=3_600.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.001 to 3600 seconds".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok();
    let rate = rate.filter(|rate| (1.0..=1e9).contains(rate));
    rate.ok_or_else(|| "expected a rate of 1 to 1000000000 a second".to_owned())
}
