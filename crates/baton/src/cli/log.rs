//! Options for reading an access log, which are the same for all commands that take one.

use crate::config::Setting;
use baton_workload::log::{FormatSpec, ReadOptions};
use clap::Args;

/// Options for reading an access log.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How an access log is read")]
pub struct LogArgs {
    /// The log's format, where its content does not tell it: combined, json, csv and others; json:client=NAME,time=NAME,... or csv:... for
    /// fields with other names; or written as for a server, as in '%h %t "%r" %>s %b' (workload.format)
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FormatSpec>,
    /// Read a log even if more than half of its lines must be skipped (workload.allow_skipped)
    #[arg(long)]
    pub allow_skipped: bool,
}

impl LogArgs {
    /// Returns these options for a reader.
    pub fn options(&self) -> ReadOptions<'static> {
        ReadOptions {
            format: self.format.clone(),
            allow_skipped: self.allow_skipped,
            cancelled: None,
        }
    }

    /// Returns these options as settings of an experiment.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        let format = self.format.as_ref();
        let format = format.map(|format| Setting::of_flag("--format", "workload.format", format));
        let allowed = Setting::of_set("workload.allow_skipped", true);
        format
            .into_iter()
            .chain(self.allow_skipped.then_some(allowed))
    }
}
