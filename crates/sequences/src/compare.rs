//! Runs sequences in several ways, and reports differences.

use crate::Sequence;
use crate::play;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The way in which a sequence runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On the kernel's TCP.
    Kernel,
    /// With the preloaded library, and no connection moves.
    Never,
    /// With the preloaded library, and connections move whenever they send.
    Moves,
}

/// The ways that are compared with the kernel.
pub const WAYS: [Way; 2] = [Way::Never, Way::Moves];

/// A difference by design: its name, how to recognise it, and the words of `docs/src/live/differences.md` that document it.
pub struct Documented {
    /// Name under which the difference is counted.
    pub name: &'static str,
    /// Returns whether a difference is this one.
    pub is_it: fn(&Difference) -> bool,
    /// Words that document the difference.
    pub words: &'static str,
}

/// The calls that send on a connection.
const SENDS: &[&str] = &[
    "send", "sendmsg", "write", "writev", "sendto", "sendfile", "move",
];

/// The calls that receive on a connection.
const RECEIVES: &[&str] = &["recv", "recvmsg", "read", "readv", "fork", "exec"];

/// The calls that end a connection or one of its directions.
const ENDS: &[&str] = &[
    "shutdown",
    "close",
    "thread",
    "exec",
    "fork",
    "peershut",
    "peerclose",
    "peerreset",
    "later",
];

/// Returns the first word of a result: a number or an error, also if a child has reported it in its exit status.
fn outcome(text: &str) -> String {
    let of_child = text.strip_prefix("status ").map(str::parse::<i32>);
    match of_child.map(|status| status.map(|status| status >> 8)) {
        Some(Ok(code @ 101..)) => play::error(code - 100),
        Some(Ok(code)) => code.to_string(),
        _ => String::from(text.split(['/', ' ', ',']).next().unwrap_or_default()),
    }
}

/// Returns whether a result says that a connection has ended or that nothing has arrived.
fn is_of_end(text: &str) -> bool {
    let ends = ["0", "ECONNRESET", "EPIPE", "EAGAIN", "ENOTCONN"];
    ends.contains(&&*outcome(text))
}

/// The differences that are documented.
pub const DOCUMENTED: &[Documented] = &[
    Documented {
        name: "data lost by a reset",
        is_it: |found| {
            let pieces = |text: &str| text.matches(':').count();
            let is_over = found.kernel.contains("HUP") && found.here.contains("HUP");
            let is_lost = pieces(&found.here) < pieces(&found.kernel);
            let at_end = found.call == "end" && is_over && is_lost;
            let counts = outcome(&found.kernel).parse::<usize>().is_ok();
            let is_reset = counts && ["ECONNRESET", "0"].contains(&&*outcome(&found.here));
            let by_receive = RECEIVES.contains(&&*found.call) && found.is_after_end && is_reset;
            found.way == Way::Moves && (at_end || by_receive)
        },
        words: "followed by a reset at once, may not arrive",
    },
    Documented {
        name: "ended on the adapter",
        is_it: |found| {
            // ENOTCONN, in the exit status of the sequence's child.
            let in_child = found.call == "fork" && found.here == format!("status {}", 207 << 8);
            let by_splice = found.call == "splice" && found.here == "EINVAL";
            found.way == Way::Moves && (in_child || by_splice)
        },
        words: "A connection that has come to its end on the adapter",
    },
    Documented {
        name: "a reset comes later",
        is_it: |found| {
            let fails = matches!(&*found.kernel, "ECONNRESET" | "EPIPE");
            let is_sent = found.here.parse::<usize>().is_ok() || found.here == "ECONNRESET";
            let by_send = SENDS.contains(&&*found.call) && fails && is_sent;
            let at_peer = fails || found.kernel == "ENOTCONN";
            let by_peer = match &*found.call {
                "peerread" => found.kernel == "ECONNRESET" && found.here == "all",
                call => call.starts_with("peers") && at_peer && found.here == "done",
            };
            // The last value is SO_ERROR: EPIPE or ECONNRESET.
            let without_error = |text: &str| {
                let text = text.replace("+ERR", "").replace("ECONNRESET", "0");
                text.replace(" 20000", " 0000").replace(" 68000", " 0000")
            };
            let is_over = found.call == "end" && found.here.contains("HUP");
            let is_untold = is_over && without_error(&found.here) == without_error(&found.kernel);
            // Data arrives that the reset discards in the kernel.
            let arrives = found.call == "end" && found.here.ends_with("all sent arrived");
            let is_lost = found.kernel.ends_with("and the end");
            found.way == Way::Moves && (by_send || by_peer || is_untold || arrives && is_lost)
        },
        words: "nor has a reset, as it has on the kernel's loopback",
    },
    Documented {
        name: "an end comes later",
        is_it: |found| {
            let is_timed = found.way == Way::Moves || found.is_hasty;
            found.is_after_end && is_timed && is_of_end(&found.kernel) && is_of_end(&found.here)
        },
        words: "nor has a reset, as it has on the kernel's loopback",
    },
    Documented {
        name: "data comes later",
        is_it: |found| {
            let count = |text: &str| outcome(text).parse::<usize>();
            let is_less = match (count(&found.kernel), count(&found.here)) {
                (Ok(kernel), Ok(here)) => 0 < here && here < kernel,
                (Ok(_), Err(_)) => outcome(&found.here) == "EAGAIN",
                _ => false,
            };
            let receives = RECEIVES.contains(&&*found.call);
            found.way == Way::Moves && receives && is_less
        },
        words: "What one end sends has not arrived at the other when the call returns",
    },
    Documented {
        name: "an option of a returned socket",
        is_it: |found| {
            let is_fixed = matches!(
                found.option,
                Some((libc::IPPROTO_IP, libc::IP_MULTICAST_TTL))
                    | Some((libc::IPPROTO_IPV6, libc::IPV6_V6ONLY))
            );
            let bytes = found.here.split(' ').nth(2).unwrap_or_default();
            let reads = match &*found.call {
                // Success, a length, and the bytes of 1.
                "getsockopt" => found.here.starts_with("0 ") && bytes.starts_with('1'),
                // In the kernel, a connection that has been reset no longer has a port, so the program can set the option.
                _ => found.is_after_end && found.here == "EINVAL",
            };
            found.way == Way::Moves && is_fixed && reads
        },
        words: "reads as 1 and `IP_MULTICAST_TTL` as 1",
    },
    Documented {
        name: "cannot return to the kernel",
        is_it: |found| found.way == Way::Moves && found.is_after_fill && found.here == "EOPNOTSUPP",
        words: "where a connection cannot go back within a second",
    },
    Documented {
        name: "another edge",
        is_it: |found| {
            let waits = ["wait", "pollset", "poll", "select"];
            let is_more = found.kernel.starts_with('0') && found.here.starts_with('1');
            found.way == Way::Moves && found.has_edges && waits.contains(&&*found.call) && is_more
        },
        words: "an edge-triggered registration reports once more what is ready",
    },
    Documented {
        name: "held back until something arrives",
        is_it: |found| {
            let is_timed = found.way == Way::Moves || found.is_hasty;
            let looks = ["end", "poll", "select", "wait", "pollset", "peerread"];
            is_timed && found.has_joined && looks.contains(&&*found.call)
        },
        words: "What the program sends with `MSG_MORE` or `MSG_EOR`",
    },
    Documented {
        name: "different buffer space",
        is_it: |found| {
            let looks = [
                "poll", "select", "wait", "pollset", "ioctl", "end", "thread", "peerread", "fork",
                "exec",
            ];
            let is_about_room = looks.iter().chain(SENDS).any(|name| *name == found.call);
            found.way == Way::Moves && found.is_after_fill && is_about_room
        },
        words: "How much fits into a connection's buffers until its peer reads",
    },
];

/// The first call of a sequence whose result differs from the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way in which the sequence ran.
    pub way: Way,
    /// Name of the call, or `end` for the final check.
    pub call: String,
    /// Level and name of the option that the call reads or sets.
    pub option: Option<(i32, i32)>,
    /// Whether the sequence had filled a send buffer before this call.
    pub is_after_fill: bool,
    /// Whether an earlier call of the sequence has made an edge-triggered registration.
    pub has_edges: bool,
    /// Whether an earlier call of the sequence has marked data as belonging together (MSG_MORE, MSG_EOR).
    pub has_joined: bool,
    /// Whether an end had closed, shut down or reset the connection before this call.
    pub is_after_end: bool,
    /// Whether calls do not wait for moves that earlier calls have caused.
    pub is_hasty: bool,
    /// Result in the kernel.
    pub kernel: String,
    /// Result in the other way of running.
    pub here: String,
}

impl Difference {
    /// Returns the first difference between two transcripts.
    pub fn of(way: Way, sequence: &Sequence, kernel: &str, here: &str) -> Option<Self> {
        if kernel == here {
            return None;
        }
        let (mut ours, mut theirs) = (kernel.split("; "), here.split("; "));
        for at in 1.. {
            let (kernel, here) = (
                ours.next().unwrap_or_default(),
                theirs.next().unwrap_or_default(),
            );
            if kernel == here {
                continue;
            }
            let call = sequence.0.get(at);
            let value =
                |text: &str| String::from(text.split_once('=').map_or(text, |(_, value)| value));
            let before = |names: &[&str]| {
                let mut calls = sequence.0.iter().take(at);
                calls.any(|call| names.contains(&call.name))
            };
            let open = &sequence.0[0].operands;
            return Some(Self {
                way,
                call: String::from(call.map_or("end", |call| call.name)),
                option: call
                    .filter(|call| call.name.ends_with("sockopt"))
                    .map(|call| {
                        let (level, name, _) = play::OPTIONS[call.operands[1] as usize];
                        (level, name)
                    }),
                is_after_fill: before(&["fill"]),
                has_edges: sequence.0.iter().take(at).any(play::waits_for_edges),
                has_joined: sequence.0.iter().take(at).any(play::joins_data),
                is_after_end: before(ENDS),
                is_hasty: open[4] == 2,
                kernel: value(kernel),
                here: value(here),
            });
        }
        None
    }

    /// Returns the documented difference that this is, if any.
    pub fn documented(&self) -> Option<&'static Documented> {
        DOCUMENTED.iter().find(|it| (it.is_it)(self))
    }
}

/// A network namespace with an adapter to which connections over the loopback interface can move. Dropping it ends and removes everything.
pub struct Place {
    name: String,
    folder: TempDir,
    baton: PathBuf,
    program: PathBuf,
    processes: Vec<Child>,
}

fn run(command: &mut Command) -> io::Result<String> {
    let done = command.stdin(Stdio::null()).output()?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(io::Error::other(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        ))),
    }
}

fn wait_until(seconds: u64, mut holds: impl FnMut() -> bool) -> bool {
    let due = Instant::now() + Duration::from_secs(seconds);
    while !holds() {
        if Instant::now() > due {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

impl Place {
    /// Creates a namespace for the programs `baton` and `program`, this crate's.
    ///
    /// # Errors
    /// This user may not create namespaces, or a program does not start.
    pub fn make(baton: &Path, program: &Path) -> io::Result<Self> {
        let mut place = Self {
            name: format!("baton-seq-{}", std::process::id()),
            folder: tempfile::Builder::new()
                .prefix("baton-sequences-")
                .tempdir()?,
            baton: baton.to_path_buf(),
            program: program.to_path_buf(),
            processes: Vec::new(),
        };
        // The adapter gives up root, and creates its sockets in this folder.
        run(Command::new("chmod").arg("1777").arg(place.folder.path()))?;
        run(Command::new("ip").args(["netns", "add", &place.name]))?;
        run(Command::new("ip").args(["-n", &place.name, "link", "set", "lo", "up"]))?;
        place.start_adapter()?;
        let mut peer = place.inside();
        peer.arg(&place.program).arg("peer").arg(place.path("peer"));
        place.processes.push(peer.spawn()?);
        match wait_until(10, || place.path("peer").exists()) {
            true => Ok(place),
            false => Err(io::Error::other("the peer process did not start")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn inside(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]);
        command
    }

    fn start_adapter(&mut self) -> io::Result<()> {
        let log = self.path("log");
        let out = File::create(&log)?;
        let mut adapter = Command::new(&self.baton);
        adapter.args([
            "live",
            "adapter",
            "--iface",
            "lo",
            "--handoff",
            "never",
            "--netns",
            &self.name,
        ]);
        let mut broker = std::ffi::OsString::from("--broker=");
        broker.push(self.path("broker"));
        adapter.arg(broker);
        adapter.arg("--listen").arg(self.path("adapter"));
        adapter.arg("--control").arg(self.path("control"));
        adapter
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        self.processes.push(adapter.spawn()?);
        let told = || std::fs::read_to_string(&log).unwrap_or_default();
        match wait_until(20, || told().contains("taking over")) {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the adapter did not start: {}",
                told()
            ))),
        }
    }

    /// Returns the transcript of each sequence; `at_once` sequences run at the same time.
    ///
    /// # Errors
    /// A program does not start, or ends before it has printed all transcripts.
    pub fn play(
        &self,
        way: Way,
        sequences: &[&Sequence],
        at_once: usize,
    ) -> io::Result<Vec<String>> {
        let mut command = self.inside();
        let policy = match way {
            Way::Kernel => None,
            Way::Never => Some("never"),
            Way::Moves => Some("alternate:1"),
        };
        if let Some(policy) = policy {
            // Sets up the environment as `baton live run` does, with the library from the latest build.
            let set = |name: &str, path: PathBuf| format!("{name}={}", path.display());
            command.arg("env").args([
                set(
                    "LD_PRELOAD",
                    self.program.with_file_name("deps/libbaton_preload.so"),
                ),
                set("BATON_ADAPTER", self.path("adapter")),
                set("BATON_BROKER", self.path("broker")),
                format!("BATON_HANDOFF={policy}"),
                String::from("BATON_LEAST_STAY_MS=0"),
                String::from("BATON_LOOPBACK=1"),
            ]);
        }
        let mut input = tempfile::tempfile_in(self.folder.path())?;
        let lines: Vec<String> = sequences.iter().map(|it| format!("{it}\n")).collect();
        input.write_all(lines.concat().as_bytes())?;
        input.rewind()?;
        command
            .arg(&self.program)
            .arg("play")
            .arg(self.path("peer"))
            .arg(at_once.to_string());
        let done = command.stdin(input).stderr(Stdio::inherit()).output()?;
        let seen: Vec<String> = String::from_utf8_lossy(&done.stdout)
            .lines()
            .map(String::from)
            .collect();
        match done.status.success() && seen.len() == sequences.len() {
            true => Ok(seen),
            false => Err(io::Error::other(format!(
                "{way:?}: {} of {} sequences, {}",
                seen.len(),
                sequences.len(),
                done.status
            ))),
        }
    }

    /// Returns how often connections moved to the adapter, and back.
    ///
    /// # Errors
    /// The adapter does not answer.
    pub fn moves(&self) -> io::Result<(u64, u64)> {
        let mut stat = Command::new(&self.baton);
        let told = run(stat
            .args(["live", "stat", "--control"])
            .arg(self.path("control")))?;
        let counter = |name: &str| {
            let line = told
                .lines()
                .find(|line| line.split_whitespace().any(|word| word == name));
            let digits = line.map(|line| {
                line.chars()
                    .filter(char::is_ascii_digit)
                    .collect::<String>()
            });
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        Ok((counter("adapter.imported"), counter("adapter.exported")))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = Command::new("kill").arg(process.id().to_string()).status();
            let _ = process.wait();
        }
        // The broker outlives its adapter by two seconds.
        let left = || {
            run(Command::new("ip").args(["netns", "pids", &self.name]))
                .is_ok_and(|pids| pids.trim().is_empty())
        };
        wait_until(10, left);
        let _ = run(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}

/// Results of running sequences.
#[derive(Default)]
pub struct Report {
    /// Number of sequences that ran.
    pub count: usize,
    /// Number of sequences with a documented difference, by its name.
    pub documented: BTreeMap<&'static str, usize>,
    /// Number of sequences that differed once, but not when they were repeated.
    pub unsteady: usize,
    /// Number of sequences whose difference was already known.
    pub repeated: usize,
    /// Undocumented differences, each with the shortest sequence found.
    pub failures: Vec<(Sequence, Difference)>,
}

impl Report {
    /// Returns whether the failures already have an equal difference.
    fn knows(&self, difference: &Difference) -> bool {
        self.failures.iter().any(|(_, known)| known == difference)
    }
}

/// Number of sequences of each way that run at a time.
const AT_ONCE: usize = 48;
/// Number of sequences that run at a time when differences are confirmed. The fewer run, the fewer differ only because of timing.
const AT_ONCE_AGAIN: usize = 6;
/// Number of repetitions that must show a difference before it counts.
const AGAIN: usize = 6;
/// Number of candidates that a round of shrinking tries at a time.
const CANDIDATES: usize = 24;
const ROUNDS: usize = 12;
/// Number of failing sequences that are shrunk at the same time.
const SHRINKING: usize = 2;
/// Time after which shrinking begins no further round.
const LONGEST_SHRINKING: Duration = Duration::from_secs(10);
/// Number of failures after which the comparison ends.
pub const MOST_FAILURES: usize = 24;

/// Runs the sequences in all ways at the same time, and adds the differences to the report.
///
/// # Errors
/// As [`Place::play`].
pub fn compare(
    place: &Place,
    sequences: &[Sequence],
    ways: &[Way],
    report: &mut Report,
) -> io::Result<()> {
    let all: Vec<&Sequence> = sequences.iter().collect();
    let (kernel, others) = thread::scope(|scope| {
        let run = |&way| {
            let all = &all;
            (way, scope.spawn(move || place.play(way, all, AT_ONCE)))
        };
        let others: Vec<_> = ways.iter().map(run).collect();
        (
            place.play(Way::Kernel, &all, AT_ONCE),
            others
                .into_iter()
                .map(|(way, it)| (way, joined(it)))
                .collect::<Vec<_>>(),
        )
    });
    let kernel = kernel?;
    report.count += all.len();
    for (way, here) in others {
        let mut differ = Vec::new();
        for ((sequence, kernel), here) in sequences.iter().zip(&kernel).zip(&here?) {
            let Some(difference) = Difference::of(way, sequence, kernel, here) else {
                continue;
            };
            match difference.documented() {
                Some(documented) => *report.documented.entry(documented.name).or_default() += 1,
                None if report.knows(&difference) => report.repeated += 1,
                None => differ.push(sequence),
            }
        }
        let outcomes = confirmed(place, way, &differ)?;
        let mut to_shrink: Vec<(Sequence, Difference)> = Vec::new();
        for (sequence, difference) in differ.into_iter().zip(outcomes) {
            match difference {
                None => report.unsteady += 1,
                Some(difference) if to_shrink.iter().any(|(_, other)| *other == difference) => {
                    report.repeated += 1;
                }
                Some(difference) => to_shrink.push((sequence.clone(), difference)),
            }
        }
        to_shrink.truncate(MOST_FAILURES.saturating_sub(report.failures.len()));
        for some in to_shrink.chunks(SHRINKING) {
            let shrink = |(sequence, difference): &(Sequence, Difference)| {
                shrunk(place, sequence.clone(), difference.clone())
            };
            let shorter = thread::scope(|scope| {
                let start = |one| scope.spawn(move || shrink(one));
                let running: Vec<_> = some.iter().map(start).collect();
                running
                    .into_iter()
                    .map(joined)
                    .collect::<io::Result<Vec<_>>>()
            });
            report.failures.extend(shorter?);
        }
    }
    Ok(())
}

/// Runs the sequence that a fuzzer's bytes encode. The namespace and the adapter are created once. `BATON` names the program. A fuzzer
/// that is interrupted leaves the network namespace behind.
///
/// # Panics
/// The results differ from the kernel's, or the namespace or the adapter cannot be created.
pub fn check(bytes: &[u8]) {
    thread_local! {
        static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
    }
    let mut report = Report::default();
    let place = PLACE.take().unwrap_or_else(|| {
        let baton = PathBuf::from(std::env::var_os("BATON").expect("BATON names the program"));
        Place::make(&baton, &baton.with_file_name("baton-sequences")).expect("a place")
    });
    let sequence = Sequence::of_bytes(bytes);
    compare(&place, &[sequence], &WAYS, &mut report).expect("it runs");
    if report.failures.is_empty() {
        PLACE.set(Some(place));
        return;
    }
    drop(place);
    panic!("{:?}", report.failures);
}

/// Returns the result of a thread.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    let outcome = thread.join();
    outcome.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}

/// Transcripts of a sequence: in the kernel, and in another way.
#[derive(Clone, Default)]
struct Seen {
    kernel: Vec<String>,
    here: Vec<String>,
}

impl Seen {
    /// Returns whether the kernel has given one of the results, too.
    fn agrees(&self) -> bool {
        self.here.iter().any(|here| self.kernel.contains(here))
    }

    /// Returns the first difference, unless the kernel has given one of the results, too, or a repetition showed a documented difference.
    fn difference(&self, way: Way, sequence: &Sequence) -> Option<Difference> {
        let pairs = self.kernel.iter().zip(&self.here);
        let found = pairs.map(|(kernel, here)| Difference::of(way, sequence, kernel, here));
        let found: Option<Vec<Difference>> = found.collect();
        let is_documented = |found: &Difference| found.documented().is_some();
        let mut found = found.filter(|found| !self.agrees() && !found.iter().any(is_documented))?;
        Some(found.swap_remove(0))
    }
}

/// Repeats the sequences, and returns the difference that each still shows.
fn confirmed(
    place: &Place,
    way: Way,
    sequences: &[&Sequence],
) -> io::Result<Vec<Option<Difference>>> {
    let mut seen = vec![Seen::default(); sequences.len()];
    for _ in 0..AGAIN {
        let open: Vec<usize> = (0..seen.len()).filter(|&at| !seen[at].agrees()).collect();
        if open.is_empty() {
            break;
        }
        let some: Vec<&Sequence> = open.iter().map(|&at| sequences[at]).collect();
        let kernel = place.play(Way::Kernel, &some, AT_ONCE_AGAIN)?;
        let here = place.play(way, &some, AT_ONCE_AGAIN)?;
        for ((at, kernel), here) in open.into_iter().zip(kernel).zip(here) {
            seen[at].kernel.push(kernel);
            seen[at].here.push(here);
        }
    }
    let differences = sequences.iter().zip(seen);
    Ok(differences
        .map(|(sequence, seen)| seen.difference(way, sequence))
        .collect())
}

/// Shrinks a sequence: returns the shortest sequence found in which the same call differs.
fn shrunk(
    place: &Place,
    mut sequence: Sequence,
    mut difference: Difference,
) -> io::Result<(Sequence, Difference)> {
    let due = Instant::now() + LONGEST_SHRINKING;
    for _ in 0..ROUNDS {
        let smaller = sequence.smaller();
        let mut found = None;
        for candidates in smaller.chunks(CANDIDATES) {
            let refs: Vec<&Sequence> = candidates.iter().collect();
            let outcomes = confirmed(place, difference.way, &refs)?;
            found = candidates
                .iter()
                .zip(outcomes)
                .find_map(|(candidate, outcome)| {
                    let outcome = outcome.filter(|outcome| outcome.call == difference.call)?;
                    Some((candidate.clone(), outcome))
                });
            if found.is_some() || Instant::now() > due {
                break;
            }
        }
        match found {
            Some(one) => (sequence, difference) = one,
            None => break,
        }
    }
    Ok((sequence, difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_differences_are_in_the_documentation() {
        let text = include_str!("../../../docs/src/live/differences.md");
        for documented in DOCUMENTED {
            assert!(text.contains(documented.words), "{}", documented.name);
        }
    }
}
