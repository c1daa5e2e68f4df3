//! Arguments of `baton live`.

use super::{DescriptorArgs, EndFilter, FilterArgs, PortArgs};
use crate::config::keys;
use baton_cache::ReplacementConfig;
use baton_host::SelectionConfig;
use baton_inet::{Cidr, Route};
use baton_live::port::FaultSpec;
use baton_live::{Places, Url};
use baton_sockets::AdapterAddress;
use baton_tcp::Congestion;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint, value_parser};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Text below the help of `baton live`.
pub(super) const EXAMPLE: &str = "\
Example:
  baton live serve --tap baton0 --addr 10.9.0.2/24 --netns demo --host-addr 10.9.0.1/24 --root . &
  ip netns exec demo curl -O http://10.9.0.2/README.md
  baton live stat";

/// `baton live`.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Run TCP for applications of other processes, which attach to it
    Adapter(Box<super::AdapterArgs>),
    /// Take connections out of the kernel for an adapter beside it, and keep what must outlive the adapter
    Broker(super::BrokerArgs),
    /// Serve files over HTTP/1.1
    Serve(ServeArgs),
    /// Fetch a file over HTTP/1.1
    Get(GetArgs),
    /// Route packets between interfaces
    Route(RouteArgs),
    /// Run a program unmodified with its TCP servers on an adapter
    Run(RunOnAdapterArgs),
    /// Make an adapter beside the kernel give connections back
    Restore(RestoreArgs),
    /// Show the connections and counters of a running `baton live serve` or `baton live adapter`
    Stat(StatArgs),
    /// Write the frames of a running adapter to a file
    Capture(CaptureArgs),
    /// Show when and why connections moved between the kernel and an adapter beside it
    History(HistoryArgs),
    /// Show the connections of the kernel and of an adapter beside it in one table, as `ss -tinp` does
    Ss(SsArgs),
}

impl LiveCommand {
    /// Returns whether the command drops privileges after its setup. Only then may it start threads, including the thread for signals,
    /// because each thread would keep its own privileges.
    pub fn drops_privileges(&self) -> bool {
        match self {
            Self::Broker(_) => true,
            Self::Adapter(arguments) => arguments.is_beside(),
            _ => false,
        }
    }
}

/// `baton live run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live adapter --tap baton0 --addr 10.9.0.2/24 --netns demo --host-addr 10.9.0.1/24 &
  baton live run --adapter /run/baton/adapter.sock -- nginx -g 'daemon off;' &
  ip netns exec demo curl http://10.9.0.2/

The library that is preloaded into the program is kept in /var/cache/baton for root and in ~/.cache/baton for other users. It reports what \
is on the adapter and what is not to the file that BATON_LOG names, or with BATON_LOG=stderr to standard error.")]
pub struct RunOnAdapterArgs {
    /// Where the adapter listens [default: /run/baton/adapter.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/adapter.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub adapter: Option<PathBuf>,
    /// Where the broker of an adapter beside the kernel listens: connections begin in the kernel and move from there [default:
    /// /run/baton/broker.sock, or /run/baton-N/broker.sock, if a broker listens there; otherwise all of TCP is on the adapter]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
    /// Hand over the connections that this policy chooses, as `baton live serve --handoff` [default: the broker's policy]
    #[arg(long, value_name = "POLICY")]
    pub handoff: Option<SelectionConfig>,
    /// Time that a connection stays where it is before the policy moves it again, milliseconds: each move forgets the congestion window and
    /// the round trip [default: 1000]
    #[arg(long, value_name = "MS")]
    pub least_stay: Option<u32>,
    /// The program and its arguments, after --
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `baton live restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live restore --all
  kill %1        # the adapter is no longer needed")]
pub struct RestoreArgs {
    /// Move all connections back to the kernel, and let no further connection leave it
    #[arg(long, required = true)]
    pub all: bool,
    /// Where the broker listens [default: /run/baton/broker.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/broker.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
}

/// The link and the engine on it.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// Use a TAP device, which is made if there is none
    #[arg(long, value_name = "NAME", group = "link")]
    pub tap: Option<String>,
    /// Make a veth pair NAME and NAMEp; the engine uses NAME
    #[arg(long, value_name = "NAME", group = "link")]
    pub veth: Option<String>,
    /// Use an existing interface
    #[arg(long, value_name = "NAME", group = "link")]
    pub iface: Option<String>,
    /// Options for the port on an interface.
    #[command(flatten)]
    pub frames: PortArgs,
    /// The engine's own address with the length of its network's prefix; may be given again
    #[arg(long, value_name = "ADDR/LEN", value_parser = parse_address)]
    pub addr: Vec<Cidr>,
    /// Gateway for packets that leave the link; may be given again, for the other version of IP
    #[arg(long, value_name = "ADDR")]
    pub gateway: Vec<IpAddr>,
    /// Network namespace of the kernel's end; it is made if there is none, and then deleted at the end
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Address of the kernel's end; may be given again
    #[arg(long, value_name = "ADDR/LEN", value_parser = parse_address)]
    pub host_addr: Vec<Cidr>,
    /// Write all frames to this file (pcapng)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pcap: Option<PathBuf>,
    /// Make the link worse, as in `rx:loss=1%,reorder=2%;tx:duplicate=1%,delay=10ms`, for received frames (rx), sent frames (tx) or both:
    /// loss, duplicate, reorder, corrupt (shares), burst=ENTER/LEAVE (shares), reorder-by (frames), delay, jitter (as in 10ms), rate (as in
    /// 100mbit), queue (frames)
    #[arg(long, value_name = "SPEC")]
    pub fault: Option<FaultSpec>,
    /// Congestion control [default: the engine's]
    #[arg(long, value_name = "NAME", value_parser = congestion())]
    pub congestion: Option<Congestion>,
    /// Send buffer of a connection, KiB
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    pub send_buffer: u32,
    /// Receive buffer of a connection, KiB
    #[arg(long, value_name = "KIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(4..=1_048_576))]
    pub receive_buffer: u32,
    /// Accept TCP and IP checksums of received frames without verifying them
    #[arg(long)]
    pub no_verify: bool,
    /// Seed of faults, sequence numbers and ports [default: from the system]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Options that do not apply to a server whose TCP runs on an adapter or in the kernel.
const LINK_OPTIONS: [&str; 14] = [
    "port_kind",
    "ring",
    "xdp_mode",
    "addr",
    "gateway",
    "netns",
    "host_addr",
    "pcap",
    "fault",
    "congestion",
    "send_buffer",
    "receive_buffer",
    "no_verify",
    "seed",
];

/// `baton live serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live serve --tap baton0 --addr 10.9.0.2/24 --addr fd00:9::2/64 \\
    --netns demo --host-addr 10.9.0.1/24 --host-addr fd00:9::1/64 --root /srv/www
  ip netns exec demo curl http://10.9.0.2/

Through a running adapter: with all of TCP on the adapter, or with a TCP stack in the server, which hands off connections to the adapter:
  baton live serve --adapter /run/baton/adapter.sock --control /run/baton-web.sock --root /srv/www
  baton live serve --adapter /run/baton/adapter.sock --nic-cache --control /run/baton-web.sock --root /srv/www
  baton live serve --adapter /run/baton/adapter.sock --handoff t4 --control /run/baton-web.sock --root /srv/www
  baton live serve --adapter /run/baton/adapter.sock --broker --control /run/baton-web.sock --root /srv/www

The same server on the kernel's TCP, for comparison:
  baton live serve --kernel --port 8080 --root /srv/www

It runs until it is interrupted, and then removes what it has created.")]
#[command(group = clap::ArgGroup::new("link").required(true))]
pub struct ServeArgs {
    /// Options for the link.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Use the sockets of an adapter in another process: the path where it listens, or tcp://HOST:PORT
    #[arg(long, value_name = "ADDRESS", group = "link", conflicts_with_all = LINK_OPTIONS, value_hint = ValueHint::FilePath)]
    pub adapter: Option<AdapterAddress>,
    /// Keep connections on the server's own stack, and hand those to the adapter that this policy chooses: fcfs, tN (at the N-th send), rN
    /// (at the N-th read), rate:PERCENT (of the mean rate), benefit:N (by how much earlier connections have sent), retry:POLICY (a refusal
    /// is not final), alternate:N (there and back at each N-th send, to see what moving costs), never, or by port, as in
    /// ports:80=t4,*=never; with --broker also learn (as many as measurements show to pay) and bulk:SIZE=kernel (responses of this size stay
    /// in the kernel)
    #[arg(long, value_name = "POLICY", requires = "adapter")]
    pub handoff: Option<SelectionConfig>,
    /// Keep connections in the kernel instead of on the server's own stack; the adapter's broker, which listens there, takes connections
    /// that are handed off out of the kernel. Without --handoff the broker chooses these connections [default with no value:
    /// /run/baton/broker.sock]
    #[arg(long, value_name = "PATH", requires = "adapter", conflicts_with = "nic_cache", num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "absent, without a path, and with one")]
    pub broker: Option<Option<PathBuf>>,
    /// Send content of files from the adapter's data cache, with this replacement policy: lru, lfu, fifo, sieve, s3-fifo, w-tinylfu or gdsf
    /// [default with no value: lru]
    #[arg(long, value_name = "POLICY", requires = "adapter", num_args = 0..=1, require_equals = true, default_missing_value = "lru", hide_possible_values = true, value_parser = replacement())]
    pub nic_cache: Option<ReplacementConfig>,
    /// Size of a block in the data cache, bytes: a power of two
    #[arg(
        long,
        value_name = "BYTES",
        requires = "nic_cache",
        default_value_t = 16_384
    )]
    pub nic_cache_block: u32,
    /// Use the kernel's sockets, and no options of a link
    #[arg(long, group = "link", conflicts_with_all = LINK_OPTIONS)]
    pub kernel: bool,
    /// Options for batching of the server's requests to an adapter.
    #[command(flatten)]
    pub descriptors: DescriptorArgs,
    /// TCP port
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// The folder whose files are served
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// Let clients PUT and POST files into this folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub upload: Option<PathBuf>,
    /// Close a connection after this time without activity, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub idle_timeout: u32,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = 1_048_576)]
    pub max_connections: usize,
    /// Where `baton live stat` asks [default: /run/baton/serve.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/serve.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
}

/// `baton live get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, from a server on the kernel's TCP in the same namespace:
  ip netns add demo
  ip netns exec demo python3 -m http.server 8000 &
  baton live get http://10.9.1.1:8000/file --tap baton1 --addr 10.9.1.2/24 --netns demo --host-addr 10.9.1.1/24 -o file

Give the address of the server; names are not looked up.")]
#[command(group = clap::ArgGroup::new("link").required(true))]
pub struct GetArgs {
    /// What to fetch, as in http://10.9.0.1:8080/file
    pub url: Url,
    /// Options for the link.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Write the content to this file; without, to stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `baton live route`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example, between two interfaces whose other ends have the addresses .2:
  baton live route --iface eth1=10.9.1.1/24,fd00:9:1::1/64 --iface eth2=10.9.2.1/24 \\
    --route 0.0.0.0/0=10.9.2.2

The addresses of an interface belong to the router: the kernel must not have them, and must not forward what arrives on the interface. It \
runs until it is interrupted, and then prints its counters.")]
pub struct RouteArgs {
    /// An interface and the router's addresses on it; given once for each interface
    #[arg(long, value_name = "NAME=ADDR/LEN,...", required = true)]
    pub iface: Vec<RoutedInterface>,
    /// A network behind a neighbour; may be given again
    #[arg(long, value_name = "NET=ADDR")]
    pub route: Vec<GivenRoute>,
    /// Options for the ports on the interfaces.
    #[command(flatten)]
    pub frames: PortArgs,
    /// Network namespace of the interfaces
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Accept IP checksums of received frames without verifying them
    #[arg(long)]
    pub no_verify: bool,
}

/// Interface of a router.
#[derive(Clone, Debug)]
pub struct RoutedInterface {
    /// Name of the interface.
    pub name: String,
    /// The router's addresses on it.
    pub addresses: Vec<Cidr>,
}

impl FromStr for RoutedInterface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NAME=ADDR/LEN,... as in eth1=10.9.1.1/24,fd00:9::1/64";
        let (name, list) = text.split_once('=').ok_or(expected)?;
        let address = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text} is not an address with a prefix length; {expected}"))
        };
        Ok(Self {
            name: name.to_owned(),
            addresses: list.split(',').map(address).collect::<Result<_, _>>()?,
        })
    }
}

/// A route beyond a link.
#[derive(Clone, Copy, Debug)]
pub struct GivenRoute(pub Route);

impl FromStr for GivenRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NET/LEN=ADDR, as in 0.0.0.0/0=10.9.2.2";
        let (destination, gateway) = text.split_once('=').ok_or(expected)?;
        let bad = |part: &str| format!("{part} is invalid; {expected}");
        Ok(Self(Route {
            destination: destination.parse().map_err(|_| bad(destination))?,
            gateway: Some(gateway.parse().map_err(|_| bad(gateway))?),
        }))
    }
}

/// `baton live stat`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton live stat
  baton live stat --watch --port 80
  baton live stat --state established --state close-wait --peer 10.9.0.0/24 --rows 20
  baton live stat --control /run/baton/control.sock --json | jq .applications
  baton live stat --glossary | less

The columns are those of `ss -ti`: cwnd in segments, rtt and rto in milliseconds, send-q, acked and received in bytes. `limited by` is \
what keeps a connection from sending more at this moment: the application (all that it wrote has been sent), the peer's window, the \
congestion window, pacing, or coalescing (a partial segment waits for more data). With --watch, counters are shown per second. In JSON, \
names end in their unit; sizes without a unit are bytes.")]
pub struct StatArgs {
    /// Where the process answers [default: the socket of `baton live serve` in this network namespace or, if it does not exist, that of
    /// `baton live adapter`]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// Show where each connection of the applications of an adapter beside the kernel is, since when and why, as its broker reports
    #[arg(long, conflicts_with_all = ["control", "watch", "all"])]
    pub why: bool,
    /// Where the broker listens [default: /run/baton/broker.sock]
    #[arg(long, value_name = "PATH", requires = "why", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the counters in the text format of OpenMetrics, which Prometheus reads
    #[arg(long, conflicts_with_all = ["json", "watch", "why", "state", "peer", "port", "sport", "dport"])]
    pub metrics: bool,
    /// Show everything again each second until interrupted
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
    /// Also show counters that are 0
    #[arg(long)]
    pub all: bool,
    /// Maximum number of connections to show; JSON has all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub rows: usize,
    /// Options that choose connections.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Show the meanings of the counters' names, without asking a process
    #[arg(long, exclusive = true)]
    pub glossary: bool,
}

/// `baton live capture`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live capture 10.9.0.1:443 -w trouble.pcapng --seconds 10

Only root and the user of the adapter may capture. The file has the format pcapng; the comment of each packet says which path the packet \
took. Beside a kernel, the file also contains the frames that the kernel receives and sends on the interface. Frames that the command does \
not read in time are lost and counted, because the adapter does not wait for it.")]
pub struct CaptureArgs {
    /// Segments with this address, port or both at one end: 10.9.0.1, :443, 10.9.0.1:443 or [fd00::1]:443; or all frames of the adapter's
    /// interface [default: all frames]
    #[arg(value_name = "ADDR:PORT|IFACE")]
    pub of: Option<CaptureTarget>,
    /// Write to this file; - for stdout
    #[arg(long, short = 'w', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: PathBuf,
    /// End after this many frames [default: when interrupted]
    #[arg(long, short = 'c', value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this many seconds [default: when interrupted]
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(1..=u32::MAX.into()))]
    pub seconds: Option<u64>,
    /// Keep this many bytes of each frame [default: all]
    #[arg(long, short = 's', value_name = "BYTES", value_parser = value_parser!(u32).range(1..))]
    pub snap: Option<u32>,
    /// Leave out frames that the kernel receives and sends
    #[arg(long)]
    pub adapter_only: bool,
    /// Where the adapter answers [default: /run/baton/control.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/control.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
}

/// Frames to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureTarget {
    /// Segments from and to this end.
    End(EndFilter),
    /// All frames of an interface.
    Interface(String),
}

impl FromStr for CaptureTarget {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(end) => Ok(Self::End(end)),
            Err(expected) if text.is_empty() || text.contains([':', '/', ' ']) => Err(expected),
            Err(_) => Ok(Self::Interface(text.to_owned())),
        }
    }
}

/// `baton live history`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live history 10.9.0.1:443

Users other than root see only the connections of their own programs. The broker keeps the history of each connection that is out of the \
kernel, and of the last 16,384 others, until the broker ends.")]
pub struct HistoryArgs {
    /// Connections with this address, port or both at one end: 10.9.0.1, :443, 10.9.0.1:443 or [fd00::1]:443 [default: all]
    #[arg(value_name = "ADDR:PORT")]
    pub of: Option<EndFilter>,
    /// Only connections that are not in the kernel now
    #[arg(long)]
    pub away: bool,
    /// Where the broker listens [default: /run/baton/broker.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/broker.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Maximum number of connections to show, those that moved last; JSON has all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub rows: u32,
}

/// `baton live ss`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live ss --state established --port 443

Users other than root see on the adapter only the connections of their own programs, and in the kernel what ss(8) shows them. Times are in \
milliseconds, sizes in bytes, cwnd and ssthresh in segments.")]
pub struct SsArgs {
    /// Where the adapter answers [default: /run/baton/control.sock; in a network namespace N other than that of process 1,
    /// /run/baton-N/control.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
    /// Where the broker answers, which knows when connections moved [default: /run/baton/broker.sock, or /run/baton-N/broker.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
    /// Only connections of this user, by name or number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Maximum number of connections to show; JSON has all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub rows: usize,
    /// Options that choose connections.
    #[command(flatten)]
    pub filter: FilterArgs,
}

impl StatArgs {
    /// Returns the control socket to query, and the command whose process answers there, or both commands if the path is not a default one.
    pub fn control(&self, places: &Places) -> (PathBuf, &'static str) {
        let (serve, adapter) = (places.serve(), places.control());
        let is_adapter = !serve.exists() && adapter.exists();
        let usual = if is_adapter { &adapter } else { &serve };
        let path = self.control.as_ref().unwrap_or(usual);
        let server = match path {
            path if *path == serve => "`baton live serve`",
            path if *path == adapter => "`baton live adapter`",
            _ => "`baton live serve` or `baton live adapter`",
        };
        (path.clone(), server)
    }
}

/// Parses an address with the length of its network's prefix.
fn parse_address(text: &str) -> Result<Cidr, String> {
    text.parse().map_err(|_| {
        let address = text.split_once('/').map(|(address, _)| address.parse());
        let most = match address {
            Some(Ok(IpAddr::V4(_))) => 32,
            Some(Ok(IpAddr::V6(_))) => 128,
            _ => return "expected an address with a prefix length, as in 10.9.0.2/24".to_owned(),
        };
        format!("expected a prefix length of 0 to {most} after the address")
    })
}

/// Parses a replacement policy by its name in experiment files.
fn replacement() -> impl TypedValueParser<Value = ReplacementConfig> {
    let names = ReplacementConfig::ALL.map(ReplacementConfig::name);
    let known = |name: String| ReplacementConfig::from_name(&name).ok_or("no such policy");
    PossibleValuesParser::new(names).try_map(known)
}

/// Parses a congestion control algorithm by its name in experiment files, with the help text that it has there.
fn congestion() -> impl TypedValueParser<Value = Congestion> {
    let names = keys::names_of("tcp.congestion").iter();
    let values =
        names.map(|named| PossibleValue::new(named.name.as_str()).help(named.meaning.as_str()));
    PossibleValuesParser::new(values).try_map(|name| {
        let name: StrDeserializer<'_, ValueError> = name.as_str().into_deserializer();
        Congestion::deserialize(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_is_refused_with_what_is_expected() {
        assert!(parse_address("10.9.0.2/24").is_ok());
        assert!(parse_address("fd00::1/64").is_ok());
        for (text, expected) in [
            ("10.9.0.2/33", "a prefix length of 0 to 32"),
            ("fd00::1/x", "a prefix length of 0 to 128"),
            ("10.9.0.2", "as in 10.9.0.2/24"),
            ("10.9.0/24", "as in 10.9.0.2/24"),
        ] {
            let refused = parse_address(text).expect_err(text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn congestion_control_has_the_names_of_experiment_files() {
        let parse = |name: &str| {
            let command =
                clap::Command::new("x").arg(clap::Arg::new("cc").value_parser(congestion()));
            let matches = command
                .try_get_matches_from(["x", name])
                .map_err(|error| error.to_string())?;
            Ok(matches
                .get_one::<Congestion>("cc")
                .copied()
                .expect("a value"))
        };
        assert_eq!(parse("new-reno"), Ok(Congestion::NewReno));
        assert_eq!(parse("bbr"), Ok(Congestion::Bbr));
        let error: String = parse("vegas").expect_err("no such algorithm");
        assert!(
            error.contains("[possible values: new-reno, cubic"),
            "{error}"
        );
    }
}
