//! Public excerpts of published experiments' logs.
//!
//! The experiments of "Increasing Web Server Throughput with Network Interface Data Caching" (ASPLOS 2002) run on excerpts of two of its
//! five traces if the user has them, and always on generated logs that resemble all five. The output says which is which. Numbers of an
//! excerpt are not compared with published ones, which are those of whole traces.

use super::Context;
use crate::cli::LogArgs;
use crate::config::GivenLog;
use crate::failure::Failure;
use crate::logs;
use crate::runner::Spinner;
use baton_workload::{Log, Preset};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of the public excerpts in the folder of `--data`.
const EXCERPTS: [(&str, &str); 2] = [
    ("nasa", "nasa_http_19950701_first9999.tsv.xz"),
    ("worldcup", "worldcup98_day6_sample200k.csv.xz"),
];

/// A log that an experiment runs on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// A public excerpt of a trace of the paper.
    Excerpt { trace: &'static str, path: PathBuf },
    /// Another log of the user.
    Own(PathBuf),
    /// A generated log that resembles a trace of the paper.
    Generated(Preset),
}

impl Source {
    /// Returns all logs, the user's first.
    ///
    /// # Errors
    /// Fails if the folder of excerpts has none.
    pub fn all(context: &Context<'_>, presets: &[Preset]) -> Result<Vec<Self>, Failure> {
        let mut all = Vec::new();
        if let Some(folder) = context.data {
            let excerpt = |(trace, path)| Self::Excerpt { trace, path };
            all.extend(excerpts_in(folder)?.into_iter().map(excerpt));
        }
        all.extend(context.log.map(|path| Self::Own(path.to_owned())));
        all.extend(presets.iter().copied().map(Self::Generated));
        Ok(all)
    }

    /// Returns the name in rows, which says whether the log is real.
    pub fn name(&self) -> String {
        match self {
            Self::Excerpt { trace, .. } => name_of(trace),
            Self::Own(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                name.to_string_lossy().into_owned()
            }
            Self::Generated(preset) => format!("{} (generated)", preset.name()),
        }
    }

    /// Reads or generates the log.
    ///
    /// # Errors
    /// Fails if the log cannot be read, or has no sizes.
    pub fn read(&self, context: &Context<'_>) -> Result<Arc<Log>, Failure> {
        match self {
            Self::Excerpt { path, .. } => {
                logs::read_replayable(path, &LogArgs::default(), context.interrupt)
            }
            Self::Own(path) => logs::read_replayable(path, context.reading, context.interrupt),
            Self::Generated(preset) => {
                let _spinner = Spinner::new("generating a log");
                let log = preset.spec().generate(context.seed, preset.requests());
                log.map(Arc::new)
                    .map_err(|error| Failure::Failed(format!("{}: {error}", preset.name())))
            }
        }
    }
}

/// Returns the name of a trace's excerpt in rows.
fn name_of(trace: &str) -> String {
    format!("{trace} (real excerpt)")
}

/// Returns the excerpts in `folder`, for a study that runs them in addition to its own loads.
///
/// # Errors
/// Fails if there are none.
pub(super) fn given_in(folder: &Path) -> Result<Vec<GivenLog>, Failure> {
    let given = |(trace, path)| GivenLog {
        name: name_of(trace),
        path,
        reading: Vec::new(),
    };
    Ok(excerpts_in(folder)?.into_iter().map(given).collect())
}

/// Returns a note that says which logs are real.
pub(super) fn note(context: &Context<'_>) -> &'static str {
    if context.data.is_some() {
        "Excerpts are replayed unchanged, and nothing is fitted to them; they are only parts of the traces that the paper used.\n"
    } else {
        "These are generated logs only, because no --data FOLDER with the public excerpts of the NASA and World Cup logs was given.\n"
    }
}

/// Returns the excerpts in `folder`, with the names of their traces.
///
/// # Errors
/// Fails if there are none.
pub(super) fn excerpts_in(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let found: Vec<_> = EXCERPTS
        .iter()
        .map(|(trace, name)| (*trace, folder.join(name)))
        .filter(|(_, path)| path.is_file())
        .collect();
    if found.is_empty() {
        let names: Vec<&str> = EXCERPTS.iter().map(|(_, name)| *name).collect();
        return Err(Failure::BadInput(format!(
            "--data {}: expected a folder with {}",
            folder.display(),
            names.join(" or ")
        )));
    }
    Ok(found)
}
