//! Arguments of `baton live adapter` and `baton live broker`.

use super::port::ModeName;
use super::size::{parse_memory, parse_size};
use super::{DescriptorArgs, LinkArgs, TimelineArgs};
use baton_host::SelectionConfig;
use baton_live::adapter::MOST_ENGINES;
use baton_live::bus::log::Level;
use baton_live::{Admission, ServiceUser};
use clap::{Args, ValueEnum, ValueHint};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Options that do not apply if the kernel keeps the interface.
const BESIDE_NOTHING: [&str; 6] = [
    "addr",
    "gateway",
    "host_addr",
    "port_kind",
    "ring",
    "listen_tcp",
];

/// `baton live adapter`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton live adapter --tap baton0 --addr 10.9.0.2/24 --netns demo --host-addr 10.9.0.1/24 &
  baton live serve --adapter /run/baton/adapter.sock --root /srv/www &
  ip netns exec demo curl http://10.9.0.2/
  baton live stat --control /run/baton/control.sock

  baton live adapter --iface eth1 --addr 192.0.2.7/24 --listen /run/baton/adapter.sock --core 3 --batching adaptive
  baton live adapter --iface eth1 --addr 192.0.2.7/24 --scheduler host-first --hiwat 1024 --lowat 256
  baton live adapter --iface eth1 --addr 192.0.2.7/24 --timeline adapter.pftrace --timeline-connections moved

Beside the kernel, which keeps eth1 and its addresses; the adapter takes over single connections of a server:
  baton live adapter --iface eth1 --handoff t4 &
  baton live serve --adapter /run/baton/adapter.sock --broker --root /srv/www
  baton live run -- nginx -g 'daemon off;'
  baton live adapter --iface eth1 --handoff t4 --replace
  baton live adapter --iface eth1 --handoff t4 --group www-data    # user of nginx's workers

It runs until it is interrupted, and then removes what it has created.")]
#[command(group = clap::ArgGroup::new("link").required(true))]
pub struct AdapterArgs {
    /// Options for the link.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Log lines of this level and of more severe levels: error, warn, info or debug, which reports each connection that moves [default:
    /// BATON_LOG_LEVEL, or info; with --quiet warn]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<Level>,
    /// Where applications attach over shared memory: a Unix socket [default: /run/baton/adapter.sock; in a network namespace N other than
    /// that of process 1, /run/baton-N/adapter.sock; the other sockets are in the same folder. Beside the kernel, N is the namespace of the
    /// interface]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub listen: Option<PathBuf>,
    /// Where applications attach over the kernel's TCP. Clients are not authenticated, so only loopback addresses are allowed, to which a
    /// tunnel may lead
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen_tcp: Option<SocketAddr>,
    /// Let --listen-tcp listen at other addresses: on a network of which every machine may use the adapter
    #[arg(long, requires = "listen_tcp")]
    pub trust_network: bool,
    /// Leave the interface and its addresses to the kernel, and take over single connections of it, which applications hand over through
    /// this socket of a broker; a broker is started where none answers. Needs --iface and XDP [default with no value:
    /// /run/baton/broker.sock]
    #[arg(long, value_name = "PATH", requires = "iface", conflicts_with_all = BESIDE_NOTHING, num_args = 0..=1, require_equals = true, value_hint = ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "absent, without a path, and with one")]
    pub broker: Option<Option<PathBuf>>,
    /// Like --broker, and applications that do not choose a policy themselves hand over the connections that this policy chooses: learn
    /// (as many as measurements show to pay), fcfs, tN (at the N-th send), bulk:SIZE=kernel (responses of this size stay in the kernel),
    /// alternate:N, never, or by port, as in ports:80=t4,*=never; and rN (at the N-th read), rate:PERCENT, benefit:N, retry:POLICY
    /// [default with --broker: learn]
    #[arg(long, value_name = "POLICY", requires = "iface", conflicts_with_all = BESIDE_NOTHING)]
    pub handoff: Option<SelectionConfig>,
    /// Replace the running adapter of the interface's broker: the running adapter gives its connections back to the kernel and ends;
    /// applications attach to the new one and hand the connections over again
    #[arg(long, requires = "iface", conflicts_with_all = BESIDE_NOTHING)]
    pub replace: bool,
    /// Let members of this group use the adapter, besides its own user: they may connect to --listen, to --control and to the socket of a
    /// broker that it starts. A server whose workers change their user, as nginx's do, needs a group of that user
    #[arg(long, value_name = "NAME")]
    pub group: Option<Admission>,
    /// Options for confinement beside the kernel.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// The core that the engine runs on; further engines run on the cores below [default: the last core that the process may use]
    #[arg(long, value_name = "N")]
    pub core: Option<usize>,
    /// Number of engines, each with a thread, a core, and a queue of the interface. An application is served by one of them, so several
    /// engines help servers with several processes. Not beside the kernel, and without captures and timelines
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=MOST_ENGINES as i64))]
    pub engines: u16,
    /// What happens to the connections of an application that has gone
    #[arg(long, value_name = "WHAT", default_value = "reset")]
    pub on_exit: OnExit,
    /// Options for batching of the adapter's answers.
    #[command(flatten)]
    pub descriptors: DescriptorArgs,
    /// Maximum number of applications. A 32nd of them is reserved for root and the adapter's own user
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub most_applications: u32,
    /// Maximum number of applications of one user who is neither root nor the adapter's own; each process of a server counts [default: half
    /// of all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub most_applications_of_user: Option<u32>,
    /// Hard_Limit: the most connections that hosts may hand to the adapter at a time
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(..=1 << 24))]
    pub hard_limit: u32,
    /// Maximum memory for connections and their data, bytes, as in 64M or 1G; rings, shared memory and data caches are not part of it. One
    /// user gets at most half of it, two users get a third each. When memory runs short, windows close, and later connections stay where
    /// they are [default: a quarter of the memory of the machine or of the control group]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Data cache for each application that uses one (see `baton live serve --nic-cache`), bytes, as in 64M or 1G; 0: no cache
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    pub nic_cache: u32,
    /// Do one piece of work at a time, in this order, as the firmware of the handoff papers does. Waiting work is in queues, and work that
    /// finds its queue full is dropped and counted by name. This is slower than the default [default: process all waiting work in bulk]
    #[arg(long, value_name = "ORDER")]
    pub scheduler: Option<SchedulerName>,
    /// Options for queues and bursts of the scheduler.
    #[command(flatten)]
    pub queues: QueueArgs,
    /// Load control: Soft_Limit falls when more segments than this wait, in one iteration of the engine's loop or in a queue [default: no
    /// load control]
    #[arg(long, value_name = "SEGMENTS", requires = "lowat")]
    pub hiwat: Option<u32>,
    /// Load control: Soft_Limit rises when fewer segments than this wait
    #[arg(long, value_name = "SEGMENTS", requires = "hiwat")]
    pub lowat: Option<u32>,
    /// Measure of load control: waiting segments, or packets a second, where packets of the adapter's connections count four times as much
    /// as those of hosts; --hiwat and --lowat are in this measure
    #[arg(long, value_name = "WHAT", default_value = "queue", requires = "hiwat")]
    pub load_measure: LoadMeasureName,
    /// What load control does besides lowering Soft_Limit: wait for connections to end, or ask the hosts to take the busiest back
    #[arg(
        long,
        value_name = "HOW",
        default_value = "passive",
        requires = "hiwat"
    )]
    pub relief: ReliefName,
    /// Options for the timeline.
    #[command(flatten)]
    pub timeline: TimelineArgs,
    /// Where `baton live stat` asks [default: /run/baton/control.sock]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: Option<PathBuf>,
}

impl AdapterArgs {
    /// Returns whether the adapter runs beside the kernel, which keeps the interface.
    pub fn is_beside(&self) -> bool {
        self.broker.is_some() || self.handoff.is_some()
    }
}

/// What `baton live adapter` beside a kernel and `baton live broker` may still do after their setup.
#[derive(Clone, Debug, Args)]
pub struct ConfinementArgs {
    /// Change to this user after the setup beside the kernel, if root starts it [default: the user `baton` if there is one, otherwise a
    /// number from 60706 on that no account has]
    #[arg(long, value_name = "NAME")]
    pub user: Option<ServiceUser>,
    /// Allow all system calls beside the kernel, instead of only those that the program is known to make: for valgrind and the like
    #[arg(long)]
    pub no_seccomp: bool,
}

/// `baton live broker`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  baton live broker --iface eth1 &
  baton live adapter --iface eth1 --handoff t4 &
  baton live run -- nginx -c my.conf

`baton live adapter` starts a broker if there is none, which ends after the last adapter. If the adapter is killed, the broker returns \
idle connections to the kernel and resets the others.")]
pub struct BrokerArgs {
    /// The interface
    #[arg(long, value_name = "NAME")]
    pub iface: String,
    /// Where the broker listens for applications and the adapter: a Unix socket [default: /run/baton/broker.sock; in a network namespace N
    /// other than that of process 1, /run/baton-N/broker.sock, where N is the namespace of the interface]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub broker: Option<PathBuf>,
    /// The network namespace of the interface
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Where AF_XDP takes frames: in the driver, or in the kernel's receive path [default: in the driver if it supports this]
    #[arg(long, value_name = "MODE")]
    pub xdp_mode: Option<ModeName>,
    /// Let members of this group use the broker, besides its own user: they may hand over their own connections, and see where these are
    #[arg(long, value_name = "NAME")]
    pub group: Option<Admission>,
    /// Log lines of this level and of more severe levels: error, warn, info or debug, which reports each connection that moves [default:
    /// BATON_LOG_LEVEL, or info; with --quiet warn]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<Level>,
    /// Options for confinement.
    #[command(flatten)]
    pub confinement: ConfinementArgs,
    /// End when there is no adapter and none of its connections is left
    #[arg(long)]
    pub while_used: bool,
}

/// Lengths of the firmware's queues, and its burst size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct QueueArgs {
    /// Received frames that may wait for lookup [default: 512]
    #[arg(long, value_name = "N", requires = "scheduler", value_parser = clap::value_parser!(u32).range(QUEUE))]
    pub arrival_queue_packets: Option<u32>,
    /// Received frames that may wait after lookup: this many for hosts, and this many for TCP on the adapter [default: 2048]
    #[arg(long, value_name = "N", requires = "scheduler", value_parser = clap::value_parser!(u32).range(QUEUE))]
    pub receive_queue_packets: Option<u32>,
    /// Packets of each application that may wait to be sent; as many of its commands may wait [default: 512]
    #[arg(long, value_name = "N", requires = "scheduler", value_parser = clap::value_parser!(u32).range(QUEUE))]
    pub descriptor_queue_entries: Option<u32>,
    /// Segments that TCP sends in one piece of work [default: 1]
    #[arg(long, value_name = "N", requires = "scheduler", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub transmit_burst_segments: Option<u32>,
}

/// Valid lengths of queues.
const QUEUE: RangeInclusive<i64> = 1..=1 << 20;

/// Order in which work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchedulerName {
    /// First come, first served over all queues.
    Fcfs,
    /// Packets of hosts before commands, commands before segments of the adapter's connections.
    HostFirst,
}

/// How the adapter gets out of overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReliefName {
    /// It waits for connections to end.
    Passive,
    /// It asks hosts to take the busiest connections back.
    Active,
}

/// Measure of load control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadMeasureName {
    /// Waiting segments.
    Queue,
    /// Packets a second, weighted.
    Packets,
}

/// What happens to connections of an application that has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnExit {
    /// The connections are reset.
    Reset,
    /// Data that the adapter has already received is sent, then the connections are closed.
    Drain,
}
