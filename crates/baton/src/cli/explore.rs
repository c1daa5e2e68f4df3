//! Arguments of `baton explore`.

use super::{ExperimentArgs, complete};
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// `baton explore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton explore --out explorer.html
  baton explore dcache-2002 --set nic.firmware.cache.kib=8192 --out cache.html

The page is one file that needs no network. It contains the simulator as WebAssembly, which gives the same numbers as `baton run`; an \
access log that you drop on the page stays in the browser. Runs are short unless the experiment or a flag sets their length.")]
pub struct ExploreArgs {
    /// The experiment to start with: a name that `baton list experiments` shows, a file (TOML), or a shorthand
    #[arg(default_value = "W-1024-P-N-FCFS-400", add = ArgValueCompleter::new(complete::experiments))]
    pub experiment: String,
    /// Changes to the experiment.
    #[command(flatten)]
    pub changes: ExperimentArgs,
    /// The variant of the file, if it has several
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// The page to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Title of the page [default: the experiment]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}
