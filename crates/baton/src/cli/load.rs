//! Arguments of `baton load`.

use super::{ExperimentArgs, FigureArgs, ThreadsArg};
use crate::commands::load::{Goal, Point};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `baton load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton load W-0-N-N-FCFS-400 W-4096-P-L-FCFS-400 --log access.log.xz
  baton load experiments/handoff-table1.toml --goal p99=20ms --figure load.svg --size \"84mm x 80mm\"
  baton load W-1024-P-N-FCFS-400 --points 5000/s,10000/s,15000/s --json load.json

The capacity of a configuration is the request rate that it serves in a closed loop, in which clients send their next request as soon as \
they can. The configuration is then run in open loops at shares of its capacity, with connections that arrive as a Poisson process (or as \
--arrivals says). Response times count from when a request was due. The knee is the load at which load divided by mean response time is \
largest (Kleinrock's power). Unless a length is given, each run measures 100,000 responses, after a warm-up of a fifth as many.")]
pub struct LoadArgs {
    /// Experiment files (TOML) or shorthands
    #[arg(required = true, value_name = "EXPERIMENT", value_hint = ValueHint::FilePath)]
    pub experiments: Vec<String>,
    /// Changes to the experiments.
    #[command(flatten)]
    pub changes: ExperimentArgs,
    /// Run only this variant of a file; may be given again
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Loads to run at: shares of the capacity, per cent, or rates, as in 5000/s [default: 10,20,50,70,80,90,95]
    #[arg(long, value_name = "LOAD,...", value_delimiter = ',', conflicts_with_all = ["from", "to"])]
    pub points: Vec<Point>,
    /// The first of eight evenly spaced loads, a share of the capacity, per cent
    #[arg(long, value_name = "PERCENT", requires = "to")]
    pub from: Option<Point>,
    /// The last of these loads
    #[arg(long, value_name = "PERCENT", requires = "from")]
    pub to: Option<Point>,
    /// Requests a second that shares refer to [default: the rate that each configuration serves in a closed loop]
    #[arg(long, value_name = "RATE")]
    pub capacity: Option<Point>,
    /// Find the largest load at which a response time is at most this: mean, p50, p90, p99 or p99.9, as in p99=20ms
    #[arg(long, value_name = "TIME")]
    pub goal: Option<Goal>,
    /// Options for the figure: response times over loads.
    #[command(flatten)]
    pub figure: FigureArgs,
    /// Write all results, with configuration, seed and commit, to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}
