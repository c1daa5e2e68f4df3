//! The log of a daemon.

use crate::failure::Failure;
use crate::output::is_quiet;
use baton_live::bus::log::{LEVEL, Level, Log, Target};

/// Creates a log that writes lines of at least this severity to stderr; without `given`, the environment specifies the level, and
/// without that it is `usual`.
///
/// # Errors
/// Fails if the environment does not name a level.
pub fn daemon_log(who: &str, given: Option<Level>, usual: Level) -> Result<Log, Failure> {
    let level = match (given, std::env::var(LEVEL)) {
        (Some(level), _) => level,
        (None, Ok(name)) => name
            .parse()
            .map_err(|expected| Failure::BadInput(format!("{LEVEL}={name}: {expected}")))?,
        (None, Err(_)) if is_quiet() => Level::Warn,
        (None, Err(_)) => usual,
    };
    Ok(Log::new(who, level, Target::Stderr))
}
