//! Arguments of `baton sweep` and `baton compare`.

use super::{ExperimentArgs, FigureArgs, ThreadsArg, complete};
use clap::{Args, Subcommand, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;
use std::str::FromStr;

/// `baton sweep`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  baton sweep study.toml --out results
  baton sweep study.toml --out results --shard 1/4
  baton sweep study.toml --out results --measured mine.csv
  baton sweep study.toml --out results --fit
  baton sweep study.toml --out results --figure paper.svg --size \"84mm x 100mm\"
  baton sweep study.toml --set clients.connections=512 --plan
  baton sweep status results

A study is an experiment file with a table [sweep], whose keys have lists of values or ranges:

  [sweep]
  nic.mips = [200, 400, 800]
  clients.connections = { from = 16, to = 4096, factor = 4 }
  seeds = 5

The result of each run is stored in the folder when the run ends. Started again, or on several machines that share the folder, the command \
does only the runs that are missing. The tables are in results/study.csv and, if the program has the feature `parquet`, in \
results/study.parquet.")]
pub struct SweepArgs {
    /// What to do with results instead of computing them
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    /// The study: a file (TOML)
    #[arg(required = true, value_name = "STUDY", add = ArgValueCompleter::new(complete::experiments))]
    pub study: Option<String>,
    /// The folder for results; results that it already holds are not computed again
    #[arg(long, value_name = "DIR", required_unless_present = "plan", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Changes to all runs.
    #[command(flatten)]
    pub changes: ExperimentArgs,
    /// Run only this variant of the file; may be given again
    #[arg(long, value_name = "NAME")]
    pub variant: Vec<String>,
    /// Compare with measured values: a table (CSV) of `metric` and `value`, and, if there are several points, of `variant` and swept keys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub measured: Option<PathBuf>,
    /// First fit the constants of [fit] to the given numbers
    #[arg(long, conflicts_with_all = ["plan", "shard"])]
    pub fit: bool,
    /// Do only the K-th of N parts of the runs, as in 2/4
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Options for the figure that the study's [figure] asks for, by default in DIR/STUDY.svg.
    #[command(flatten)]
    pub figure: FigureArgs,
    /// Print the runs as CSV and run nothing
    #[arg(long, conflicts_with = "shard")]
    pub plan: bool,
    /// Number of simultaneous runs.
    #[command(flatten)]
    pub threads: ThreadsArg,
}

/// What to do with results.
#[derive(Debug, Subcommand)]
pub enum SweepCommand {
    /// Show the progress of the studies in a folder, and the processes that work there
    #[command(after_help = "Example:\n  baton sweep status results")]
    Status {
        /// The folder
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Merge results from several folders into one
    #[command(after_help = "Example:\n  baton sweep merge from-host-a from-host-b --out results")]
    Merge {
        /// Folders of results; they are not changed
        #[arg(required = true, value_name = "FROM", value_hint = ValueHint::DirPath)]
        from: Vec<PathBuf>,
        /// The folder that gets the results it does not have yet
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: PathBuf,
    },
    /// Remove results that no study in a folder asks for, and files that dead processes left
    #[command(
        after_help = "Examples:\n  baton sweep gc results --dry-run\n  baton sweep gc results"
    )]
    Gc {
        /// The folder
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Show what would be removed, and remove nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// `baton compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  baton compare before after
  baton compare results/mips results/mips-with-cache --json difference.json

Runs with the same variant, seed and values of swept keys are compared with each other. A metric differs if a mean difference as large \
would occur by chance at most once in twenty comparisons (Student's t-test of pairs, corrected for the number of metrics by Holm's \
method); with a single pair, if its two values are not equal. The exit code is 0 if no metric differs and 1 if one does.")]
pub struct CompareArgs {
    /// A folder of `baton sweep` with one study, or FOLDER/STUDY
    #[arg(value_name = "A", value_hint = ValueHint::AnyPath)]
    pub one: PathBuf,
    /// The folder or FOLDER/STUDY to compare with
    #[arg(value_name = "B", value_hint = ValueHint::AnyPath)]
    pub other: PathBuf,
    /// Write all differences to this file; `-` for stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

/// One of several parts of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of this part, from 0.
    index: usize,
    /// Number of parts.
    count: usize,
}

impl Shard {
    /// Returns whether the run of this number is in the part. Runs are distributed in turn, so that each part has runs of every kind.
    pub const fn has(self, run: usize) -> bool {
        run % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/');
        let number = |text: &str| text.parse::<usize>().ok();
        let numbers = numbers.and_then(|(k, n)| Some((number(k)?, number(n)?)));
        match numbers {
            Some((part, count)) if 1 <= part && part <= count => Ok(Self {
                index: part - 1,
                count,
            }),
            _ => Err("expected K/N with K from 1 to N, as in 2/4".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_part() {
        let shards = ["1/3", "2/3", "3/3"].map(|text| text.parse::<Shard>().expect("a part"));
        for run in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1);
        }
        for text in ["0/3", "4/3", "1", "/", "1/0", "a/b", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
