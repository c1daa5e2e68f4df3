//! Log lines with time, level, process and text. Each is one write, so that lines of several processes do not mix.

use crate::lines::Lines;
use rustix::fs::{Mode, OFlags};
use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

baton_named::named! {
    /// The severity of a line, the most severe first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Level {
        /// A request cannot be fulfilled.
        Error => "error",
        /// Something is lost, or may be soon.
        Warn => "warn",
        /// An event of normal operation that an operator wants to know about.
        #[default]
        Info => "info",
        /// Single steps, such as each connection that moves.
        Debug => "debug",
    }
}

impl FromStr for Level {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        let expected = "expected error, warn, info or debug";
        all.find(|level| level.name() == name).ok_or(expected)
    }
}

/// The environment variable that names the level.
pub const LEVEL: &str = "BATON_LOG_LEVEL";

/// The destination of log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To stderr.
    Stderr,
    /// The end of the file at this path, which is opened for each line, because an application may close descriptors that it does not know.
    File(String),
}

/// Writes log lines of one process.
#[derive(Debug)]
pub struct Log {
    who: String,
    level: Level,
    target: Target,
    lines: Mutex<Lines<&'static str>>,
}

impl Log {
    /// Creates a log that shows lines of `level` and more severe ones, under the name `who`.
    pub fn new(who: impl Into<String>, level: Level, target: Target) -> Self {
        Self {
            who: who.into(),
            level,
            target,
            lines: Mutex::default(),
        }
    }

    /// Returns whether lines of this level are shown.
    pub fn shows(&self, level: Level) -> bool {
        level <= self.level
    }

    /// Writes a line without a rate limit.
    pub fn write(&self, level: Level, text: impl Display) {
        if self.shows(level) {
            self.put(&line(SystemTime::now(), level, &self.who, &text));
        }
    }

    /// Writes a line of this kind within a rate limit. A later line reports how many were hidden.
    pub fn tell(&self, level: Level, kind: &'static str, text: impl Display) {
        if !self.shows(level) {
            return;
        }
        let now = Instant::now();
        // In a child after fork(2), a lock that another thread held stays locked forever.
        let Ok(mut lines) = self.lines.try_lock() else {
            return self.write(level, text);
        };
        let is_shown = lines.shows(now, kind);
        let hidden = lines.poll_hidden(now);
        drop(lines);
        if let Some((kind, count)) = hidden {
            self.write(level, Hidden { kind, count });
        }
        if is_shown {
            self.write(level, text);
        }
    }

    /// Uses system calls only: the preload library replaces functions of the C library.
    fn put(&self, line: &str) {
        let mut left = line.as_bytes();
        let file = match &self.target {
            Target::Stderr => None,
            Target::File(path) => {
                let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
                let opened = rustix::fs::open(path.as_str(), flags, Mode::from_raw_mode(0o666));
                // There is no other place to report this.
                let Ok(file) = opened else { return };
                Some(file)
            }
        };
        while !left.is_empty() {
            let written = match &file {
                Some(file) => rustix::io::write(file, left),
                None => rustix::io::write(std::io::stderr(), left),
            };
            match written {
                Ok(len) if len > 0 => left = &left[len..],
                Err(rustix::io::Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

/// Reports hidden lines of one kind.
struct Hidden {
    kind: &'static str,
    count: u64,
}

impl Display for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, count } = self;
        write!(out, "{count} more lines like these were not shown: {kind}")
    }
}

static GLOBAL: OnceLock<Log> = OnceLock::new();

/// Makes this the log that [`tell`] writes to, unless there is one already.
pub fn set_global(log: Log) {
    let _ = GLOBAL.set(log);
}

/// Returns whether the process has a log that shows lines of this level.
pub fn shows(level: Level) -> bool {
    GLOBAL.get().is_some_and(|log| log.shows(level))
}

/// Calls [`Log::tell`] of the process's log, if it has one.
pub fn tell(level: Level, kind: &'static str, text: impl Display) {
    if let Some(log) = GLOBAL.get() {
        log.tell(level, kind, text);
    }
}

/// Formats a line: the time in UTC (RFC 3339, milliseconds), the level, the name and the text.
fn line(at: SystemTime, level: Level, who: &str, text: &dyn Display) -> String {
    let (at, level) = (timestamp(at), level.name());
    // A line break in the text must not look like another line.
    let text = text.to_string().replace(['\n', '\r'], " ");
    format!("{at} {level} {who}: {text}\n")
}

/// Formats a time as RFC 3339 with milliseconds.
fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date_of(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let ms = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns year, month and day of a number of days since the start of 1970. Its years begin in March, so that the leap day is the last day
/// of a year (Richards, Explanatory Supplement to the Astronomical Almanac, 15.11).
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (400 * era + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        for (s, ms, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, 5, "2024-02-29T00:00:00.005Z"),
            (1_735_689_599, 50, "2024-12-31T23:59:59.050Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(s) + Duration::from_millis(ms);
            assert_eq!(timestamp(at), expected);
        }
    }

    #[test]
    fn a_log_filters_by_level_and_limits_lines_of_one_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let text = path.to_str().expect("a name in Unicode").to_owned();
        let log = Log::new("adapter", Level::Info, Target::File(text));
        log.write(Level::Debug, "a step");
        log.write(Level::Warn, "two\nlines");
        for number in 0..50 {
            log.tell(Level::Info, "numbers", number);
        }
        log.tell(Level::Info, "others", "another");
        let written = std::fs::read_to_string(&path).expect("a log");
        let lines: Vec<&str> = written.lines().collect();
        assert!(lines[0].ends_with("Z warn adapter: two lines"), "{written}");
        assert!(lines[1].ends_with("Z info adapter: 0"), "{written}");
        assert!(lines[lines.len() - 1].ends_with(": another"), "{written}");
        // A burst is shown, and one more line for each second that has passed.
        assert!((22..32).contains(&lines.len()), "{written}");
    }

    #[test]
    fn levels_have_names() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!("verbose".parse::<Level>().is_err());
        assert!(Level::Error < Level::Debug);
    }
}
