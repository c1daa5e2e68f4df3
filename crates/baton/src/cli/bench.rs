//! Arguments of `baton bench`.

use super::{ThreadsArg, complete};
use crate::config::Setting;
use baton_microbench::simulated::FLOWS;
use baton_microbench::{Test, measure::Algorithm};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// `baton bench`.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "only one exists")]
pub enum BenchCommand {
    /// Measure how fast a simulated NIC or an interface sends and receives, and what limits it
    Nic(BenchNicArgs),
    #[cfg(live)]
    /// Take part in tests of an interface of another machine
    Reflect(super::BenchReflectArgs),
}

/// `baton bench nic`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples with simulated NICs:
  baton bench nic nic-3com
  baton bench nic nic-ace --partner nic-intel-server --test tcp-send --test udp-three-way-18
  baton bench nic nic-e810 --cores 4 --flows 16 --test udp-receive-18 --latency
  baton bench nic nic-e810 --set nic.hardware.descriptors.receive=64 --test udp-receive-18
  baton bench nic my-nic.toml --search bisection --rfc2544 --json my-nic.json

A simulated NIC is a profile that ships with the program, `ideal` (limited only by the wire), or a file like those in profiles/nics. \
Frames are passed to the driver of the modelled host, below sockets. The highest rates with losses of 0 and of 0.5 % are searched for; the \
best result is the highest that any trial counted.

Examples with interfaces of this machine, as root:
  baton bench nic eth1 --partner eth2 --report eth1.md
  baton bench nic eth1 --partner eth2 --test udp-send-18 --rate 100000 --trial 10
  baton bench nic eth1 --partner 02:00:00:00:00:01 --csv eth1.csv

An interface is tested if its partner is another interface of this machine, or the Ethernet address of an interface on which `baton bench \
reflect` runs. A name that is both an interface and a profile is refused. Tests load the link as much as they can, with addresses in \
198.18.0.0/15. An interface that is down is refused without --up, and one on which the kernel has an address without --force. All changed \
settings are restored at the end, or by the next `baton bench` if this one is killed.")]
pub struct BenchNicArgs {
    /// Name or file of the NIC under test, or an interface
    #[arg(value_name = "NIC", value_hint = ValueHint::FilePath)]
    pub nic: String,
    /// Name or file of the NIC of its partners [default: the same]; for an interface: another interface, or the Ethernet address of a
    /// reflector
    #[arg(long, value_name = "NIC", value_hint = ValueHint::FilePath)]
    pub partner: Option<String>,
    /// The hosts: a name, or a file like those in profiles/hosts [default: the hosts that the NIC's profile names]
    #[arg(long, value_name = "HOST", value_hint = ValueHint::FilePath)]
    pub host: Option<String>,
    /// Set one value of the NIC under test or of the hosts, as in --set nic.hardware.dma.frames=8 or --set host.clock_mhz=3000; may be
    /// given again; `baton keys nic.hardware` and `baton keys host` list them. A partner that is not named has the same values
    #[arg(long, value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::settings))]
    pub set: Vec<Setting>,
    /// Use at most this many processors of each host, each with a pair of the NIC's queues [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..))]
    pub cores: Option<u8>,
    /// Flows of datagrams of a sender, which receive-side scaling spreads over queues
    #[arg(long, value_name = "COUNT", default_value_t = FLOWS, value_parser = clap::value_parser!(u16).range(1..=32_768))]
    pub flows: u16,
    /// Make only this test; may be given again
    #[arg(long, value_name = "TEST", value_parser = PossibleValuesParser::new(Test::ALL.map(Test::name)))]
    pub test: Vec<String>,
    /// Algorithm that searches for rates
    #[arg(long, value_name = "HOW", default_value = "multiple")]
    pub search: SearchName,
    /// Also measure throughput, latency and back-to-back frames as in RFC 2544
    #[arg(long)]
    pub rfc2544: bool,
    /// Also measure latency at shares of the highest rate without loss
    #[arg(long)]
    pub latency: bool,
    /// Write everything, with all trials, to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
    /// Options for real interfaces only.
    #[cfg(live)]
    #[command(flatten)]
    pub live: super::LiveBenchArgs,
}

/// Search algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// All loss ratios in one search, after MLRsearch
    Multiple,
    /// A binary search for each loss ratio, as for RFC 2544
    Bisection,
}

impl From<SearchName> for Algorithm {
    fn from(name: SearchName) -> Self {
        match name {
            SearchName::Multiple => Self::Multiple,
            SearchName::Bisection => Self::Bisection,
        }
    }
}

impl BenchNicArgs {
    /// Returns the tests to make, in their order.
    pub fn tests(&self) -> Vec<Test> {
        let is_asked =
            |test: &Test| self.test.is_empty() || self.test.iter().any(|name| name == test.name());
        Test::ALL.into_iter().filter(is_asked).collect()
    }
}
