//! Access logs that the user gives, read for any command.

use crate::cli::LogArgs;
use crate::failure::Failure;
use crate::output::tell;
use crate::runner::{Interrupt, Spinner};
use baton_report as report;
use baton_workload::Log;
use baton_workload::log::Logs;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// All that were read: commands look at a log before they replay it, many times.
pub static LOGS: Logs = Logs::new();

/// Reads a log as `arguments` say and makes something of it, until the user interrupts.
///
/// # Errors
/// It cannot be read, `then` fails, or the user interrupted.
pub fn read_then<R: Send + 'static>(
    path: &Path,
    arguments: &LogArgs,
    interrupt: &Interrupt,
    then: impl FnOnce(Arc<Log>) -> Result<R, Failure> + Send + 'static,
) -> Result<R, Failure> {
    let _spinner = Spinner::new("reading the log");
    let (path, arguments) = (path.to_owned(), arguments.clone());
    interrupt.during(move || {
        let log = LOGS.read_with(&path, &arguments.options());
        then(log.map_err(|error| Failure::BadInput(error.to_string()))?)
    })?
}

/// Reads a log as `arguments` say, and says on stderr what makes results with it doubtful.
///
/// # Errors
/// It cannot be read, or the user interrupted.
pub fn read(path: &Path, arguments: &LogArgs, interrupt: &Interrupt) -> Result<Arc<Log>, Failure> {
    let log = read_then(path, arguments, interrupt, Ok)?;
    warn(log.warnings());
    Ok(log)
}

/// The same of a log that is to be replayed or measured.
///
/// # Errors
/// As [`read`], or it cannot be replayed.
pub fn read_replayable(
    path: &Path,
    arguments: &LogArgs,
    interrupt: &Interrupt,
) -> Result<Arc<Log>, Failure> {
    let log = read(path, arguments, interrupt)?;
    log.replayable()
        .map_err(|reason| Failure::BadInput(format!("{}: {reason}", path.display())))?;
    Ok(log)
}

/// Says on stderr what makes results with a log doubtful, each thing once: a log may be read for many runs.
pub fn warn(found: impl IntoIterator<Item = String>) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = |warning: &String| told.insert(warning.clone());
    let new: Vec<String> = found.into_iter().filter(is_new).collect();
    tell(&warnings(&new));
}

/// What makes results with a log doubtful, for people.
pub fn warnings(warnings: &[String]) -> String {
    let warning = |text: &String| report::wrapped(&format!("WARNING: {text}."), report::width(), 2);
    warnings.iter().map(warning).collect()
}
