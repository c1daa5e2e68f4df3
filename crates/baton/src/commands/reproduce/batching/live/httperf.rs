//! The load: httperf in closed loops, with a connection for each request, which the server closes.

use super::LOOK_AGAIN;
use super::process::Process;
use crate::failure::Failure;
use crate::runner::Interrupt;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum duration of a run. A run that takes longer has hung.
const LONGEST_RUN: Duration = Duration::from_secs(60);

/// The load to generate.
#[derive(Debug)]
pub(super) struct Load {
    pub server: &'static str,
    /// Path of the file, without the leading slash.
    pub path: String,
    /// Simultaneous connections.
    pub connections: u32,
    /// Requests in each loop.
    pub calls: u32,
}

/// Measurements of httperf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub replies: u32,
    pub duration_s: f64,
    /// Mean time from the first byte of the request to the first byte of the reply, microseconds.
    pub response_us: f64,
    /// Mean time from the first to the last byte of the reply, microseconds.
    pub transfer_us: f64,
}

/// Checks that httperf is installed.
///
/// # Errors
/// Fails if it is not.
pub(super) fn is_there() -> Result<(), Failure> {
    let mut command = Command::new("httperf");
    command.arg("--version");
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.map(drop).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::BadInput(
            "--live: the command `httperf` is missing; install the package httperf".to_owned(),
        ),
        _ => Failure::BadInput(format!("--live: cannot run `httperf`: {error}")),
    })
}

impl Load {
    /// Runs httperf in a network namespace.
    ///
    /// # Errors
    /// Fails if a request has no reply, if the run does not end, or if the user interrupts.
    pub fn run(&self, namespace: &str, interrupt: &Interrupt) -> Result<Seen, Failure> {
        let failed = |why: &str| Failure::Failed(format!("httperf: {why}"));
        let folder = tempfile::tempdir().map_err(|error| failed(&error.to_string()))?;
        let mut process = Process::start("httperf", &mut self.command(namespace), folder.path())?;
        let until = Instant::now() + LONGEST_RUN;
        let status = loop {
            if let Some(status) = process.ended()? {
                break status;
            }
            interrupt.check()?;
            if Instant::now() > until {
                return Err(failed(&format!("did not end within {LONGEST_RUN:?}")));
            }
            thread::sleep(LOOK_AGAIN);
        };
        let words = process.words();
        let seen = Seen::parse(&words).filter(|_| status.success());
        let wanted = self.connections * self.calls;
        match seen {
            Some((seen, errors)) if seen.replies == wanted && errors.starts_with("total 0 ") => {
                Ok(seen)
            }
            Some((seen, errors)) => Err(failed(&format!(
                "{} replies to {wanted} requests; errors: {errors}",
                seen.replies
            ))),
            None => {
                // httperf receives Ctrl-C, too.
                interrupt.check()?;
                Err(failed(words.trim()))
            }
        }
    }

    /// Returns the command. A session is a closed loop; with HTTP/1.0 each of its requests has a connection of its own.
    fn command(&self, namespace: &str) -> Command {
        let Self {
            server,
            path,
            connections,
            calls,
        } = self;
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", namespace, "httperf", "--hog"])
            .args(["--server", server, "--http-version", "1.0"])
            .args(["--uri", &format!("/{path}")])
            .args(["--wsess", &format!("{connections},{calls},0")])
            .args(["--rate", "1000"]);
        command
    }
}

impl Seen {
    /// Parses the output of httperf 0.9. Also returns the numbers of errors by kind.
    fn parse(words: &str) -> Option<(Self, &str)> {
        // Finds the first number after `before` in the line that starts with `begin`.
        let number = |begin: &str, before: &str| -> Option<f64> {
            let line = words.lines().find(|line| line.starts_with(begin))?;
            let (_, rest) = line.split_once(before)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let seen = Self {
            replies: number("Total:", " replies ")? as u32,
            duration_s: number("Total:", " test-duration ")?,
            response_us: 1e3 * number("Reply time", " response ")?,
            transfer_us: 1e3 * number("Reply time", " transfer ")?,
        };
        let errors = words
            .lines()
            .find_map(|line| line.strip_prefix("Errors: "))?;
        Some((seen, errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "\
httperf --hog --client=0/1 --server=10.9.0.2 --port=80 --uri=/1024
Maximum connect burst length: 1

Total: connections 500 requests 500 replies 499 test-duration 9.756 s

Connection rate: 51.2 conn/s (19.5 ms/conn, <=5 concurrent connections)

Reply rate [replies/s]: min 47.4 avg 47.4 max 47.4 stddev 0.0 (1 samples)
Reply time [ms]: response 53.2 transfer 4.1
Reply status: 1xx=0 2xx=499 3xx=0 4xx=0 5xx=0

Errors: total 1 client-timo 1 socket-timo 0 connrefused 0 connreset 0
";

    #[test]
    fn the_output_of_httperf_is_parsed() {
        let seen = Seen {
            replies: 499,
            duration_s: 9.756,
            response_us: 53_200.0,
            transfer_us: 4_100.0,
        };
        let (parsed, errors) = Seen::parse(WORDS).expect("all is there");
        assert_eq!(
            errors,
            "total 1 client-timo 1 socket-timo 0 connrefused 0 connreset 0"
        );
        assert_eq!((parsed.replies, parsed.duration_s), (499, seen.duration_s));
        assert!((parsed.response_us - seen.response_us).abs() < 1e-6);
        assert!((parsed.transfer_us - seen.transfer_us).abs() < 1e-6);
        for line in ["Total:", "Reply time", "Errors: total"] {
            let cut = WORDS.replace(line, "");
            assert_eq!(Seen::parse(&cut), None, "without {line}");
        }
    }
}
