//! Plays scenarios, which are lines of calls and packets with times, against the shared object. The player loads the object and uses its C interface
//! as tools do: a second thread waits for its time itself, TCP_INFO is read by the C library's function, and descriptors are also closed by the C
//! library's function before the instance is freed.
//!
//! A line is `+SECONDS ACTION`. The time is relative to the previous line. `#` starts a comment. Actions:
//!
//! - `CALL ARGS = RESULT [ERRNO]`: a call that returns at once, for example `read 4 1000 = -1 EAGAIN`;
//! - `...SECONDS CALL ARGS = RESULT [ERRNO]`: a call on a second thread, which blocks and returns after this time;
//! - `< SEGMENT`: a packet from the peer, as in packet dialogues (`CONTRIBUTING.md`);
//! - `> SEGMENT [tos N]`: the next packet to the peer, which must be sent at this time and must have every given field;
//! - `icmp ERROR`: an ICMP error from a router;
//! - `change KEY=VALUE,...`: changes settings from now on;
//! - `skipped N`: N bytes from the peer are not read in sequence, because one of them was urgent;
//! - `quiet SECONDS`: no packet is sent for this time;
//! - `flags KEY=VALUE,...`: settings of the object, on the first line; `v6` is written there too;
//! - `serve`, `serve-stamped`, `connect`: common beginnings, after which descriptor 4 or 3 has a connection with a
//!   round-trip time of 100 ms and segments of 1000 bytes.
//!
//! Descriptors are counted from 3, whatever numbers the object returns. Sequence numbers are relative: the SYN of each
//! end is 0. Data is a pattern that depends on the number of each byte, and is checked.

mod calls;
mod descriptors;
mod object;
mod packets;

use baton_packetdrill::Interface;
use baton_testkit::SegmentText;
use descriptors::Descriptors;
use std::ffi::CString;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Tolerance of virtual times in microseconds. Linux's timers tick in milliseconds.
const TOLERANCE_US: i64 = 2000;

/// Longer than any operation takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

/// The table of the C interface, which the object allows all threads to use.
#[derive(Clone, Copy)]
pub struct Table(pub Interface);

// SAFETY: the instance supports calls from several threads.
unsafe impl Send for Table {}
// SAFETY: the instance supports calls from several threads.
unsafe impl Sync for Table {}

const SERVE: [&str; 7] = [
    "+0 socket v4 = 3",
    "+0 bind 3 8080 = 0",
    "+0 listen 3 4 = 0",
    "+0 < S 0:0(0) win 32792 <mss 1000,sackOK,wscale 7>",
    "+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,wscale 8>",
    "+0.1 < . 1:1(0) ack 1 win 257",
    "+0 accept 3 = 4",
];

const SERVE_STAMPED: [&str; 7] = [
    "+0 socket v4 = 3",
    "+0 bind 3 8080 = 0",
    "+0 listen 3 4 = 0",
    "+0 < S 0:0(0) win 32792 <mss 1012,sackOK,TS val 100 ecr 0,wscale 7>",
    "+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 0 ecr 100,wscale 8>",
    "+0.1 < . 1:1(0) ack 1 win 257 <TS val 200 ecr 0>",
    "+0 accept 3 = 4",
];

const CONNECT: [&str; 5] = [
    "+0 socket v4 nonblock = 3",
    "+0 connect 3 = -1 EINPROGRESS",
    "+0 > S 0:0(0) <mss 1460,sackOK,TS val 0 ecr 0,wscale 8>",
    "+0.1 < S. 0:0(0) ack 1 win 32792 <mss 1000,sackOK,wscale 7>",
    "+0 > . 1:1(0) ack 1",
];

/// A blocking call on the second thread.
struct Blocked {
    line: String,
    thread: JoinHandle<(String, i64)>,
    expected: String,
    due_us: i64,
}

/// One run of one scenario.
pub struct Player {
    table: Arc<Table>,
    wire: packets::Wire,
    /// Shared with the second thread, whose call may return a new descriptor.
    descriptors: Arc<Mutex<Descriptors>>,
    /// Time of the previous line.
    at_us: i64,
    blocked: Option<Blocked>,
    /// File from which the object reads changes of its settings.
    changes: tempfile::NamedTempFile,
}

impl Drop for Player {
    fn drop(&mut self) {
        if self.blocked.is_none() {
            self.descriptors.lock().expect("no panic").close();
            // SAFETY: no other thread uses the instance, and it is not used again.
            unsafe { (self.table.0.free)(self.table.0.userdata) };
        }
    }
}

/// Plays all scenarios of one file. Each starts with `== TITLE`.
///
/// # Panics
/// If any scenario fails, with the failures of all.
pub fn play_file(name: &str, text: &str) {
    let mut failures = Vec::new();
    let mut count = 0;
    for scenario in text.split("\n== ").skip(1) {
        let (title, body) = scenario.split_once('\n').unwrap_or((scenario, ""));
        count += 1;
        if let Err(failure) = play(body) {
            failures.push(format!("{name}: {title}: {failure}"));
        }
    }
    assert!(count > 0, "{name} has scenarios");
    assert!(
        failures.is_empty(),
        "{} of {count} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn play(body: &str) -> Result<(), String> {
    let lines = body
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty());
    let mut flags = String::new();
    let mut v6 = false;
    let mut actions = Vec::new();
    for line in lines {
        match line.split_once(' ') {
            Some(("flags", value)) => flags = value.to_owned(),
            None if line == "v6" => v6 = true,
            None if line == "serve" => actions.extend(SERVE),
            None if line == "serve-stamped" => actions.extend(SERVE_STAMPED),
            None if line == "connect" => actions.extend(CONNECT),
            _ => actions.push(line),
        }
    }
    let mut player = Player::new(&flags, v6)?;
    for line in actions {
        player
            .line(line)
            .map_err(|what| format!("\n    {line}\n        {what}"))?;
    }
    player.join()
}

impl Player {
    /// Starts an instance.
    fn new(flags: &str, v6: bool) -> Result<Self, String> {
        let changes = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let flags = format!("{flags},changes={}", changes.path().display());
        let flags = CString::new(flags).map_err(|error| error.to_string())?;
        let (outcome, table) = object::table(&flags);
        if outcome != 0 {
            return Err("the flags are refused".to_owned());
        }
        let table = Arc::new(Table(table));
        let start_us = calls::clock_us(&table);
        Ok(Self {
            table,
            wire: packets::Wire::new(v6),
            descriptors: Arc::default(),
            at_us: start_us,
            blocked: None,
            changes,
        })
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (time, action) = line.split_once(' ').ok_or("no action")?;
        let after = time.strip_prefix('+').ok_or("a line starts with a time")?;
        let due_us = self.at_us + micros(after)?;
        let action = action.trim();
        match action.split_once(' ') {
            Some((">", rest)) => self.expect_packet(due_us, rest)?,
            Some(("quiet", rest)) => self.expect_quiet(due_us, micros(rest)?)?,
            Some((after, call)) if after.starts_with("...") => {
                self.start_blocked(due_us, micros(&after[3..])?, call)?;
            }
            _ => {
                self.wait_until(due_us);
                self.act(action)?;
            }
        }
        self.at_us = due_us;
        if let Some((_, rest)) = action
            .split_once("quiet ")
            .filter(|(before, _)| before.is_empty())
        {
            self.at_us += micros(rest)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &str) -> Result<(), String> {
        if let Some(rest) = action.strip_prefix("< ") {
            let bytes = self.wire.encode(&rest.parse()?);
            return calls::inject(&self.table, &bytes);
        }
        if let Some(rest) = action.strip_prefix("icmp ") {
            let bytes = self.wire.encode_icmp(rest)?;
            return calls::inject(&self.table, &bytes);
        }
        if let Some(rest) = action.strip_prefix("skipped ") {
            let count: u32 = rest
                .parse()
                .map_err(|_| format!("{rest} is not a number"))?;
            self.wire.read += count;
            return Ok(());
        }
        if let Some(rest) = action.strip_prefix("change ") {
            let written = writeln!(self.changes, "{rest}");
            return written.map_err(|error| error.to_string());
        }
        let (call, expected) = split_result(action)?;
        let got = run(
            &self.table,
            &self.descriptors,
            &mut self.wire,
            call,
            &expected,
        )?;
        same(&expected, &got)
    }

    /// Starts a thread that waits until `due_us` and then makes the call. Returns once the thread sleeps in the kernel.
    fn start_blocked(&mut self, due_us: i64, after_us: i64, action: &str) -> Result<(), String> {
        self.join()?;
        let (call, expected) = split_result(action)?;
        let (table, descriptors) = (self.table.clone(), self.descriptors.clone());
        let (call, awaited) = (call.to_owned(), expected.clone());
        let mut wire = self.wire.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // SAFETY: gettid has no arguments and cannot fail.
            let _ = tell.send(unsafe { libc::gettid() });
            calls::sleep_until(&table, due_us);
            let got = run(&table, &descriptors, &mut wire, &call, &awaited);
            let got = got.unwrap_or_else(|error| error);
            (got, calls::clock_us(&table))
        });
        let id = told.recv().map_err(|error| error.to_string())?;
        wait_for_sleep(id, &thread);
        self.blocked = Some(Blocked {
            line: action.to_owned(),
            thread,
            expected,
            due_us: due_us + after_us,
        });
        Ok(())
    }

    /// Checks that the call on the second thread returns at the expected time and with the expected result.
    fn join(&mut self) -> Result<(), String> {
        let Some(blocked) = self.blocked.take() else {
            return Ok(());
        };
        self.wait_until(blocked.due_us + 1000);
        let begun = Instant::now();
        while !blocked.thread.is_finished() {
            if begun.elapsed() > LONG {
                let line = blocked.line.clone();
                self.blocked = Some(blocked);
                return Err(format!("`{line}` does not return"));
            }
            std::thread::yield_now();
        }
        let (got, at_us) = blocked.thread.join().map_err(|_| "its thread panicked")?;
        same(&blocked.expected, &got).map_err(|what| format!("`{}`: {what}", blocked.line))?;
        on_time(at_us, blocked.due_us).map_err(|what| format!("`{}`: {what}", blocked.line))
    }

    fn expect_packet(&mut self, due_us: i64, expected: &str) -> Result<(), String> {
        let (segment, service) = match expected.rsplit_once(" tos ") {
            Some((segment, service)) => (segment, Some(service)),
            None => (expected, None),
        };
        let segment: SegmentText = segment.parse()?;
        let (bytes, at_us) = calls::fetch(&self.table)?;
        let (got, got_service) = self.wire.decode(&bytes)?;
        let same_service = service.is_none_or(|service| service == got_service.to_string());
        if !segment.says(&got) || !same_service {
            return Err(format!("sent {got} tos {got_service}"));
        }
        on_time(at_us, due_us).map_err(|what| format!("{what} ({got})"))
    }

    /// Checks that no packet is sent for this time: then the answer to a probe is the next packet.
    fn expect_quiet(&mut self, from_us: i64, for_us: i64) -> Result<(), String> {
        self.wait_until(from_us + for_us);
        let stranger = self.wire.stranger();
        calls::inject(&self.table, &stranger)?;
        let (bytes, at_us) = calls::fetch(&self.table)?;
        if self.wire.answers_stranger(&bytes) {
            return Ok(());
        }
        let (what, _) = self.wire.decode(&bytes)?;
        Err(format!(
            "at {:+} us the packet {what} is sent",
            at_us - from_us
        ))
    }

    fn wait_until(&self, until_us: i64) {
        calls::sleep_until(&self.table, until_us);
    }
}

/// Makes a call and returns its result, both with the scenario's descriptors.
fn run(
    table: &Table,
    descriptors: &Mutex<Descriptors>,
    wire: &mut packets::Wire,
    call: &str,
    expected: &str,
) -> Result<String, String> {
    let live = descriptors.lock().expect("no panic").translate(call);
    let got = calls::run(table, &live, wire)?;
    let mut descriptors = descriptors.lock().expect("no panic");
    Ok(descriptors.name(call, expected, &got))
}

/// Splits a line into the call and its expected result.
fn split_result(action: &str) -> Result<(&str, String), String> {
    let (call, result) = action.rsplit_once(" = ").ok_or("a call has a result")?;
    Ok((call.trim(), result.trim().to_owned()))
}

fn same(expected: &str, got: &str) -> Result<(), String> {
    match expected == got || expected == "*" {
        true => Ok(()),
        false => Err(format!("gives {got}")),
    }
}

fn on_time(at_us: i64, due_us: i64) -> Result<(), String> {
    match (at_us - due_us).abs() <= TOLERANCE_US {
        true => Ok(()),
        false => Err(format!("{} us off", at_us - due_us)),
    }
}

fn micros(seconds: &str) -> Result<i64, String> {
    let seconds: f64 = seconds
        .parse()
        .map_err(|_| format!("{seconds} is not a time"))?;
    Ok((seconds * 1e6).round() as i64)
}

/// Waits until the thread sleeps in the kernel or has ended.
fn wait_for_sleep(id: i32, thread: &JoinHandle<(String, i64)>) {
    let path = format!("/proc/self/task/{id}/stat");
    let begun = Instant::now();
    while !thread.is_finished() && begun.elapsed() < LONG {
        let stat = std::fs::read_to_string(&path).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
        if state == Some(Some('S')) {
            return;
        }
        std::thread::yield_now();
    }
}
