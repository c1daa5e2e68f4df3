//! Arguments of `baton list` and `baton keys`.

use super::complete;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

/// `baton list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton list
  baton list experiments
  baton list policies --json
  baton list --schema run")]
pub struct ListArgs {
    /// What to list, with descriptions; without, the names of everything
    pub group: Option<Group>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of this command's --json instead
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["group", "json"])]
    pub schema: Option<Described>,
}

/// A command whose JSON has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// `baton run --json`
    Run,
    /// `baton load --json`
    Load,
}

/// Groups of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// What `baton run` runs by name
    Experiments,
    /// Machines: `profile = "NAME"` of an experiment, and `--profile`
    Profiles,
    /// NICs: `nic.hardware` of an experiment, and the NIC of `baton bench nic`
    Nics,
    /// Hosts: `--host` of `baton bench nic`
    Hosts,
    /// Generated logs, `workload.preset`
    Presets,
    /// Values of keys that are names: policies, algorithms, kinds
    Policies,
    /// Formats of access logs that can be read
    Formats,
    /// Published experiments that `baton reproduce` runs again
    Reproductions,
    /// Metrics in the tables of `baton sweep`, version 1; the end of each name is the unit
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
    /// Only keys that begin with this
    #[arg(add = ArgValueCandidates::new(complete::keys))]
    pub prefix: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
