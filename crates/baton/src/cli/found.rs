//! What can be typed after `baton list` and `baton keys`.

use super::complete;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

/// `baton list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton list
  baton list experiments
  baton list policies --json")]
pub struct ListArgs {
    /// What to list; without, everything
    pub group: Option<Group>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// What `baton run` runs by name
    Experiments,
    /// Machines: `profile = "NAME"` of an experiment, and `--profile`
    Profiles,
    /// Generated logs, `workload.preset`
    Presets,
    /// Values of keys that are names: policies, algorithms, kinds
    Policies,
    /// Access logs that can be read
    Formats,
    /// What `baton reproduce` runs again
    Reproductions,
    /// Metrics in the tables of `baton sweep`, version 1: the unit is the end of the name
    Columns,
}

/// `baton keys`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton keys nic.firmware
  baton keys host.kernel.nic_cache --json
  baton run W-1024-P-N-FCFS-400 --set nic.firmware.hard_limit=2048")]
pub struct KeysArgs {
    /// Only keys that begin so
    #[arg(add = ArgValueCandidates::new(complete::keys))]
    pub prefix: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
