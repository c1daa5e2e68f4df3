//! Arguments of `baton report`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `baton report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton report results -o report.html
  baton run W-1024-P-N-FCFS-400 --json run.json && baton report run.json -o report.html
  baton report before after -o both.html

The page needs no network and no other file. It says what limits each configuration, shows all runs in a table that can be sorted and \
filtered, has figures that can be zoomed, compares any two runs, and says where the data comes from.")]
pub struct ReportArgs {
    /// Folders of `baton sweep` with one study, FOLDER/STUDY, or files that `baton run --json` or `baton load --json` wrote
    #[arg(required = true, value_name = "RESULTS", value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// The page to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Title of the page [default: the results]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}
