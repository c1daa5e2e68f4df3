//! Reads the user's access logs, for all commands.

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

/// All logs that were read, because commands analyse a log before they replay it many times.
pub static LOGS: Logs = Logs::new();

/// Reads a log with the options in `arguments` and passes it to `then`, until the user interrupts.
///
/// # Errors
/// Fails if the log cannot be read, if `then` fails, or if the user interrupts.
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

/// Reads a log with the options in `arguments`, and prints warnings about it to stderr.
///
/// # Errors
/// Fails if the log cannot be read, or if the user interrupts.
pub fn read(path: &Path, arguments: &LogArgs, interrupt: &Interrupt) -> Result<Arc<Log>, Failure> {
    let log = read_then(path, arguments, interrupt, Ok)?;
    warn(log.warnings());
    Ok(log)
}

/// Reads a log that is to be replayed or measured, like [`read`].
///
/// # Errors
/// Fails like [`read`], or if the log cannot be replayed.
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

/// Prints warnings about a log to stderr. Each warning is printed only once, although a log may be read for many runs.
pub fn warn(found: impl IntoIterator<Item = String>) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = |warning: &String| told.insert(warning.clone());
    let new: Vec<String> = found.into_iter().filter(is_new).collect();
    tell(&warnings(&new));
}

/// Formats warnings about a log for people.
pub fn warnings(warnings: &[String]) -> String {
    let warning = |text: &String| report::wrapped(&format!("WARNING: {text}."), report::width(), 2);
    warnings.iter().map(warning).collect()
}
