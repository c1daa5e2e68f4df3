//! Arguments of the program.

#[cfg(live)]
mod adapter;
mod arrivals;
mod bench;
#[cfg(live)]
mod bench_live;
mod complete;
#[cfg(live)]
mod descriptors;
mod explore;
mod figure;
#[cfg(live)]
mod filter;
mod found;
#[cfg(live)]
mod live;
mod load;
mod log;
#[cfg(live)]
mod port;
mod refusal;
mod report;
mod size;
mod sweep;
mod timeline;

#[cfg(live)]
pub use adapter::{
    AdapterArgs, BrokerArgs, ConfinementArgs, LoadMeasureName, OnExit, QueueArgs, ReliefName,
    SchedulerName,
};
pub use arrivals::ArrivalArgs;
#[cfg(live)]
pub use bench::SearchName;
pub use bench::{BenchCommand, BenchNicArgs};
#[cfg(live)]
pub use bench_live::{BenchReflectArgs, LiveBenchArgs, Mac, PortName};
#[cfg(live)]
pub use descriptors::{BatchingName, DescriptorArgs};
pub use explore::ExploreArgs;
pub use figure::FigureArgs;
#[cfg(live)]
pub use filter::{EndFilter, FilterArgs};
pub use found::{Described, Group, KeysArgs, ListArgs};
#[cfg(live)]
pub use live::{
    CaptureArgs, CaptureTarget, GetArgs, HistoryArgs, LinkArgs, LiveCommand, RestoreArgs,
    RouteArgs, RunOnAdapterArgs, ServeArgs, SsArgs, StatArgs,
};
pub use load::LoadArgs;

pub use log::LogArgs;

#[cfg(live)]
pub use port::{PortArgs, PortKind};

pub use refusal::explain;
pub use report::ReportArgs;
pub use sweep::{CompareArgs, SweepArgs, SweepCommand};
pub use timeline::TimelineArgs;

use crate::config::Setting;
use baton_sim::Link;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use size::parse_count;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Hands TCP connections between a host and its network interface: simulates a server whose NIC takes over connections.
#[derive(Debug, Parser)]
#[command(
    name = "baton",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Example:\n  baton demo\n\nExit codes: 0 done, 1 failed, 2 bad input, 130 interrupted."
)]
pub struct Cli {
    /// Show neither progress nor notes
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the main results in one table; needs no input, writes nothing
    Demo(DemoArgs),
    /// Run an experiment: a name, a file, or a shorthand such as W-1024-P-N-FCFS-400
    Run(RunArgs),
    /// Run a study: an experiment file with lists of values to combine; resumes where it stopped
    Sweep(SweepArgs),
    /// Compare two studies: how they differ, and whether by more than chance
    Compare(CompareArgs),
    /// Write a page of HTML about results: verdict, tables, figures, configuration; needs no network
    Report(ReportArgs),
    /// Write a page of HTML in which the simulator runs, to try other machines and loads; needs no network
    Explore(ExploreArgs),
    /// Measure how response times grow with the load, where the knee is and which load meets a goal
    Load(LoadArgs),
    /// Measure how fast a NIC sends and receives, and what limits it
    #[command(
        subcommand,
        after_help = "Examples:\n  baton bench nic nic-3com --test udp-receive-1472\n  baton bench nic eth1 --partner eth2 --test udp-receive-1472"
    )]
    Bench(Box<BenchCommand>),
    /// Run a published experiment again and compare
    Reproduce(ReproduceArgs),
    /// Derive the fitted constants of a machine again from published numbers
    Calibrate(CalibrateArgs),
    /// Find out whether handoff, a cache on the NIC or batching would help with the traffic of a log
    Advise(AdviseArgs),
    /// Analyse an access log
    Trace(TraceArgs),
    /// Write a synthetic access log
    Generate(GenerateArgs),
    #[cfg(live)]
    /// Use the engine on a real interface: serve files, fetch a file, look at connections
    #[command(subcommand, after_help = live::EXAMPLE)]
    Live(Box<LiveCommand>),
    /// List everything that has a name: experiments, profiles, presets, policies, formats of logs, reproductions
    List(ListArgs),
    /// List the keys of experiments: their meanings and their possible values
    Keys(KeysArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  baton completions bash > /etc/bash_completion.d/baton\n\nThe script calls baton to complete names, keys for --set and files."
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of baton or of one of its commands
    #[command(
        after_help = "Examples:\n  baton man | man -l -\n  baton man run | man -l -\n  baton man trace locality | man -l -"
    )]
    Man {
        /// The command and, if it has several, its subcommand; without, baton itself
        command: Vec<String>,
    },
}

/// Number of simultaneous runs.
#[derive(Clone, Copy, Debug, Args)]
pub struct ThreadsArg {
    /// Simultaneous runs; results do not depend on their number [default: all processors]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,
}

impl ThreadsArg {
    /// Returns the number of runs to use.
    pub fn get(self) -> usize {
        let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.threads.unwrap_or_else(all).get()
    }
}

/// Seed of a command that has a seed of its own.
#[derive(Clone, Copy, Debug, Args)]
pub struct SeedArg {
    /// Seed of all random numbers
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    seed: u64,
}

impl SeedArg {
    /// Returns the seed to use.
    pub const fn get(self) -> u64 {
        self.seed
    }
}

/// `baton demo`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  baton demo --seed 7")]
pub struct DemoArgs {
    /// Seed of the runs.
    #[command(flatten)]
    pub seed: SeedArg,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// How the clients of a log are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clients {
    /// Not at all: a proxy seems to be the only client, or either of two addresses of each request may be the client's.
    Unknown,
}

/// `baton advise`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton advise --log access.log.gz
  baton advise --log access.log.gz --machine dcache-2002 --json verdict.json
  baton advise --log access.log.gz --set clients.connections=512 --set nic.mips=800
  baton advise --log behind-a-proxy.log --clients unknown

The ways that are compared are the variants in experiments/advise.toml.")]
pub struct AdviseArgs {
    /// The access log
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: PathBuf,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Advise although the log does not show who its clients are, as if the addresses in it were those of the clients
    #[arg(long, value_name = "unknown")]
    pub clients: Option<Clients>,
    /// Name or path of the machine [default: handoff-2006]
    #[arg(long, visible_alias = "profile", value_name = "PROFILE", add = ArgValueCompleter::new(complete::profiles))]
    pub machine: Option<String>,
    /// Set one value in all runs, as in --set nic.mips=600; may be given again
    #[arg(long, value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::settings))]
    pub set: Vec<Setting>,
    /// Begin no further question after this many seconds, and report which were left out
    #[arg(long, value_name = "S", default_value_t = 40)]
    pub seconds: u64,
    /// Seed of the runs.
    #[command(flatten)]
    pub seed: SeedArg,
    /// Write the verdict, with all numbers, to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// Length of the measured part.
#[derive(Debug, Args)]
pub struct LengthArgs {
    /// Packets to measure (run.measured_packets)
    #[arg(
        long,
        value_name = "N",
        group = "length",
        allow_negative_numbers = true,
        value_parser = parse_count
    )]
    pub packets: Option<u64>,
    /// Responses to measure (run.measured_responses)
    #[arg(
        long,
        value_name = "N",
        group = "length",
        allow_negative_numbers = true,
        value_parser = parse_count
    )]
    pub requests: Option<u64>,
    /// Simulated seconds to measure (run.measured_seconds)
    #[arg(
        long,
        value_name = "S",
        group = "length",
        allow_negative_numbers = true
    )]
    pub seconds: Option<f64>,
    /// Passes over the log to measure (run.measured_passes)
    #[arg(
        long,
        value_name = "P",
        group = "length",
        allow_negative_numbers = true
    )]
    pub passes: Option<f64>,
    /// Measure until half of the 95 % interval is this narrow, as in ci=2% (run.until_ci_percent)
    #[arg(long, value_name = "ci=PERCENT", value_parser = parse_until)]
    pub until: Option<f64>,
}

impl LengthArgs {
    fn settings(&self) -> Vec<Setting> {
        let counts = [
            ("--packets", "run.measured_packets", self.packets),
            ("--requests", "run.measured_responses", self.requests),
        ];
        let numbers = [
            ("--seconds", "run.measured_seconds", self.seconds),
            ("--passes", "run.measured_passes", self.passes),
            ("--until", "run.until_ci_percent", self.until),
        ];
        let counts = counts
            .into_iter()
            .filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)));
        let numbers = numbers.into_iter().filter_map(|(flag, path, value)| {
            Some(Setting::of_flag(flag, path, format!("{:?}", value?)))
        });
        counts.chain(numbers).collect()
    }
}

fn parse_until(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_prefix("ci=")
        .and_then(|rest| rest.strip_suffix('%'));
    let percent = percent.and_then(|number| number.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && percent.is_finite());
    percent.ok_or_else(|| "expected ci=PERCENT%, as in ci=2%".to_owned())
}

/// Changes to experiments from the command line.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Replay this access log (of nearly any server; plain, bzip2, gzip, xz or Zstandard); `-` for stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Set one value, as in --set nic.mips=600 or --set host.l2.size_kib=2048; may be given again; `baton keys` lists all
    #[arg(long, value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::settings))]
    pub set: Vec<Setting>,
    /// Seed of all random numbers (run.seed)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Packets before measurement starts (run.warmup_packets)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    pub warmup: Option<u64>,
    /// Length of the measured part.
    #[command(flatten)]
    pub length: LengthArgs,
    /// Options for arrivals of requests.
    #[command(flatten)]
    pub arrivals: ArrivalArgs,
    /// Name or path of a machine, in place of the experiment's own
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
}

impl ExperimentArgs {
    /// Returns all single values, `--set` last.
    pub fn settings(&self) -> Vec<Setting> {
        let flags = [
            ("--seed", "run.seed", self.seed),
            ("--warmup", "run.warmup_packets", self.warmup),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, path, value)| Some(Setting::of_flag(flag, path, value?)));
        let length = self.length.settings().into_iter();
        self.reading
            .settings()
            .chain(given)
            .chain(length)
            .chain(self.arrivals.settings())
            .chain(self.set.iter().cloned())
            .collect()
    }
}

/// `baton run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton run W-1024-P-N-FCFS-400 --log access.log.xz
  baton run handoff-table1 --json out.json
  baton run W-4096-P-L-FCFS-400 --set nic.mips=600 --set host.l2.size_kib=2048 --seed 7
  baton run W-1024-P-N-FCFS-400 --rate 20000/s --arrivals poisson
  baton run W-4096-P-N-FCFS-400 --timeline run.pftrace --timeline-connections lossy
  baton run W-1024-P-N-FCFS-400 --print-config

A shorthand is Workload-Connections-Priority-LoadControl-Selection-MIPS:
  Workload      W World Cup log, I IBM log, D SPECweb99, S SPECweb99 with static content only
  Connections   the most the NIC may hold, 0 for no handoff
  Priority      P host packets first, N first come, first served
  LoadControl   L or N
  Selection     FCFS, or Tn: at the n-th enqueue to the send buffer
  MIPS          the NIC's instruction rate")]
pub struct RunArgs {
    /// An experiment: a name that `baton list experiments` shows, a file (TOML), or a shorthand
    #[arg(add = ArgValueCompleter::new(complete::experiments))]
    pub experiment: String,
    /// Changes to the experiment.
    #[command(flatten)]
    pub changes: ExperimentArgs,
    /// Run with this many consecutive seeds, and show means with 95 % intervals over them
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: u32,
    /// Run only this variant of the file; may be given again
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Write all results, with configuration, seed and commit, to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a capture of a simulated link (pcapng) to this file; for a single run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pcap: Option<PathBuf>,
    /// Which link to capture: server, or client:N
    #[arg(long, value_name = "LINK", default_value = "server", requires = "pcap", value_parser = parse_link)]
    pub pcap_link: Link,
    /// Options for the timeline.
    #[command(flatten)]
    pub timeline: TimelineArgs,
    /// Show where cycles went for each run, even if there are several
    #[arg(long)]
    pub details: bool,
    /// Print the experiment as TOML and run nothing: `short` what differs from profile and defaults, `full` all of it
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "short")]
    pub print_config: Option<PrintConfig>,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// How much of a configuration to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrintConfig {
    /// Values that differ from profile and defaults.
    Short,
    /// All values.
    Full,
}

fn parse_link(text: &str) -> Result<Link, String> {
    match text.split_once(':') {
        None if text == "server" => Ok(Link::Server),
        Some(("client", number)) if number.bytes().all(|b| b.is_ascii_digit()) => number
            .parse()
            .map(Link::Client)
            .map_err(|error| format!("client {number:?}: {error}")),
        _ => Err("expected server or client:N, as in client:0".to_owned()),
    }
}

/// `baton reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton reproduce handoff-table1 --log worldcup98_day6_sample200k.csv.xz --json table1.json
  baton reproduce dcache-locality --data logs/ --figure locality.svg
  baton reproduce dcache-traffic --data logs/ --figure traffic.png --json traffic.json
  baton reproduce batching --json batching.json --figure batching.svg
  baton reproduce batching --study connections --study adaptive --out figures/
  baton reproduce nic-microbench --figure nics.svg --json nics.json
  baton reproduce nic-applications --data logs/ --trace link.pcap --figure applications.svg
  baton reproduce nic-correlation --json correlation.json")]
pub struct ReproduceArgs {
    /// Reproduction to run; without, all are listed
    #[arg(add = ArgValueCandidates::new(complete::reproductions))]
    pub name: Option<String>,
    /// The log of the published experiment, or an excerpt of it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// A folder with public excerpts of the published experiments' logs, under their public names
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// A packet capture (pcap, pcapng, ERF) that routers forward instead of the stand-ins of nic-applications and nic-correlation
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Draw the figure of the experiment, if it has one, into this file, .svg, .pdf or .png; its data go into files next to it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub figure: Option<PathBuf>,
    /// Write rows of configuration, metric, published value and simulated value to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Seed of the runs.
    #[command(flatten)]
    pub seed: SeedArg,
    /// Packets before measurement starts, in each run (run.warmup_packets)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    pub warmup: Option<u64>,
    /// Packets to measure in each run (run.measured_packets), or in each trial of nic-microbench, nic-applications and nic-correlation; for
    /// a web server in these, responses
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    pub packets: Option<u64>,
    /// Options of `batching`.
    #[command(flatten)]
    pub batching: BatchingArgs,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// Options of `baton reproduce batching`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of `batching`")]
pub struct BatchingArgs {
    #[cfg(live)]
    /// Measure the paper's tables on this machine, as in `baton reproduce batching --live --json live.json`: httperf against a web server
    /// and an adapter, two processes. Needs root and httperf
    #[arg(long, conflicts_with_all = ["study", "profile"])]
    pub live: bool,
    /// Run a study of a setting that the paper leaves open, instead of its tables; may be given again
    #[arg(long, value_name = "NAME", value_parser = crate::commands::reproduce::BATCHING_STUDIES)]
    pub study: Vec<String>,
    /// Write the figures of the studies into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, requires = "study")]
    pub out: Option<PathBuf>,
    /// Name or path of the machine: batching (the paper's) or offload-pcie [default: batching]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::profiles))]
    pub profile: Option<String>,
    /// Runs of each configuration, with consecutive seeds [default: 5, with --live 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// Replies to measure in each run [default: the machine's, with --live 20 to 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub responses: Option<u32>,
}

impl BatchingArgs {
    /// Returns whether this machine is to be measured.
    pub fn measures_this_machine(&self) -> bool {
        #[cfg(live)]
        return self.live;
        #[cfg(not(live))]
        false
    }
}

/// `baton calibrate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton calibrate handoff-2006 --log worldcup98_day6_sample200k.csv.xz --json calibration.json
  baton calibrate dcache-2002
  baton calibrate batching

The fitted constants start at neutral values, whatever the profile says, and are moved so that results come as near as possible to the \
published numbers with the status `given`. The table [fit] of a study says which constants are fitted, and within which bounds: \
handoff-table1 for machines that hand off connections, dcache-bus for machines with an interconnect whose transfers take time, \
batching-maximal for machines with all of TCP on an adapter. A round runs the study about nine times; rounds end when they bring no \
improvement. No file is changed: copy the lines that are printed last into the profile.")]
pub struct CalibrateArgs {
    /// Name or path of the machine
    #[arg(default_value = "handoff-2006", add = ArgValueCompleter::new(complete::profiles))]
    pub profile: String,
    /// The log of the published experiment, or an excerpt of it; without, a generated one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Write constants, and published and simulated values of each round, to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Maximum number of rounds
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seed of the runs.
    #[command(flatten)]
    pub seed: SeedArg,
    /// Packets before measurement starts, in each run (run.warmup_packets)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    pub warmup: Option<u64>,
    /// Packets to measure in each run (run.measured_packets)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    pub packets: Option<u64>,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// `baton trace`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  baton trace nasa_http_19950701_first9999.tsv.xz
  zcat access.log.*.gz | baton trace -
  baton trace access.json --format json:client=visitor,time=when
  baton trace app.log --format '%h %t \"%r\" %>s %b'
  baton trace locality nasa_http_19950701_first9999.tsv.xz --figure nasa.svg
  baton trace lifetimes capture.pcapng

The format (Combined, JSON lines, CSV, Squid, HAProxy, W3C and others) and the compression (bzip2, gzip, xz, Zstandard) are detected from \
the content."
)]
pub struct TraceArgs {
    /// The access log; `-` for stdin
    #[arg(value_hint = ValueHint::FilePath, required = true)]
    pub log: Option<PathBuf>,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Requests of one client that are closer than this share a connection, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    pub persistent: u32,
    /// Write the analysis to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Part of the analysis with a command of its own.
    #[command(subcommand)]
    pub part: Option<TracePart>,
}

/// Parts of `baton trace` that take longer.
#[derive(Debug, Subcommand)]
pub enum TracePart {
    /// Compute the share of content that caches of all sizes on the NIC would keep off the bus, for many policies
    Locality(Box<LocalityArgs>),
    /// Show how long connections live and how much they carry, in a packet capture
    Lifetimes(LifetimesArgs),
}

/// `baton trace lifetimes`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton trace lifetimes capture.pcapng
  baton trace lifetimes link.erf.xz --json lifetimes.json

Reads pcap, pcapng and ERF files, also compressed ones. Packet headers are enough, and so is one direction; the output says what cannot be \
known then.")]
pub struct LifetimesArgs {
    /// The capture; `-` for stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub capture: PathBuf,
    /// Write the results to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

/// `baton trace locality`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton trace locality access.log.xz
  baton trace locality access.log.xz --policies lru,sieve,min --sizes 1M,4M,16M --caches 2
  baton trace locality access.log.xz --admission second-request --json curves.json --figure curves.png

Policies: lru, lfu, fifo, sieve, s3-fifo, w-tinylfu, gdsf; `min` knows all future requests and hits as many blocks as a cache can, `bound` \
is an upper bound on the bytes that any policy can hit. Two caches stand for two NICs, to which connections are assigned in turn.")]
pub struct LocalityArgs {
    /// The access log; `-` for stdin
    #[arg(value_hint = ValueHint::FilePath)]
    pub log: PathBuf,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Policies, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub policies: Vec<String>,
    /// Sizes of a cache in bytes, or with K, M or G for powers of 1024, separated by commas [default: 64K to 1G]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    pub sizes: Vec<String>,
    /// Numbers of independent caches, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2], value_parser = clap::value_parser!(u8).range(1..=64))]
    pub caches: Vec<u8>,
    /// Size of a block in bytes, a power of two; K and M as above
    #[arg(long, value_name = "BYTES", default_value = "4096")]
    pub block_size: String,
    /// Blocks that enter a cache: all, second-request or tinylfu
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub admission: String,
    /// Requests of one client that are closer than this share a connection, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    pub persistent: u32,
    /// Write the curves to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Options for the figure: solid lines for one cache, dashed for more.
    #[command(flatten)]
    pub figure: FigureArgs,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// `baton generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton generate worldcup-lifetimes --requests 200000 --out generated.log
  baton generate nasa --seed 3 --out nasa-like.log
  baton generate --fit access.log.xz --requests 100000 --seed 7 --out like-mine.log")]
pub struct GenerateArgs {
    /// A preset: demo, berkeley, ibm, nasa, rice, worldcup, worldcup-lifetimes, cdn
    #[arg(required_unless_present = "fit", conflicts_with = "fit", add = ArgValueCandidates::new(complete::presets))]
    pub preset: Option<String>,
    /// Fit the generator to this access log instead
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub fit: Option<PathBuf>,
    /// Options for reading the log.
    #[command(flatten)]
    pub reading: LogArgs,
    /// Requests to generate [default: those of the preset, or of the log]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub requests: Option<u32>,
    /// Seed of the generator.
    #[command(flatten)]
    pub seed: SeedArg,
    /// The file to write, in Common Log Format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Write Combined format instead, with `-` for referer and user agent
    #[arg(long)]
    pub combined: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.starts_with("Example"),
                "baton {} --help shows no example",
                command.get_name()
            );
        }
    }

    #[test]
    fn a_link_is_that_of_the_server_or_of_a_client() {
        assert_eq!(parse_link("server"), Ok(Link::Server));
        assert_eq!(parse_link("client:12"), Ok(Link::Client(12)));
        for text in ["client", "client:", "client:-1", "client:x", "nic"] {
            assert!(parse_link(text).is_err(), "{text}");
        }
    }
}
