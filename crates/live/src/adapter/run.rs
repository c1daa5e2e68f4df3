//! The loop of the adapter process.

use super::notice::Notice;
use super::service::AdapterService;
use crate::capture::CaptureSpec;
use crate::control::{self, Asker, ControlSocket, Question, Refused};
use crate::ending::Stop;
use crate::engine::{Application, Engine};
use crate::error::LiveError;
use crate::port::Port;
use crate::snapshot::Snapshot;
use crate::throttle::Throttle;
use baton_iolib::Spin;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest time to spin before sleeping: about the cost of sleeping, being woken and getting going again.
const LONGEST_SPIN: Duration = Duration::from_micros(50);

/// Maximum time that an answer waits for the state of other engines.
const LONGEST_ANSWER: Duration = Duration::from_millis(500);

/// Serves applications until `stop` requests the end, then shuts down. Meanwhile answers questions at `control`, which only the first of
/// several engines has, and passes notices about applications to `operator`.
///
/// # Errors
/// The port has failed.
pub fn run_adapter<T: Port>(
    engine: &mut Engine<T>,
    service: &mut AdapterService,
    mut control: Option<&mut ControlSocket>,
    stop: impl Fn() -> Stop,
    mut operator: impl FnMut(&Notice),
) -> Result<(), LiveError> {
    let gone = || LiveError::failed("the interface can no longer be used");
    let mut spin = Spin::new(LONGEST_SPIN);
    let mut throttle = Throttle::default();
    loop {
        let more = turn(engine, service).map_err(gone())?;
        let now = engine.now();
        while let Some(notice) = service.poll_notice() {
            operator(&notice);
        }
        if service.handle_stop(now, engine.host_mut(), stop()) {
            continue;
        }
        if service.has_ended(now, engine.host()) {
            return finish(engine, service);
        }
        while let Some(asker) = service.poll_question() {
            // The asker waits for a limited time only.
            let _ = asker.send(Snapshot::take(engine, service));
        }
        if let Some(control) = control.as_deref_mut()
            && throttle.is_due(now)
        {
            let limits = control.stats();
            control.serve_questions(|asker, question, stream| match question {
                Question::Stat => {
                    let snapshot = take_of_all(engine, service).with_control(limits);
                    Some(snapshot.seen_by(asker).to_line())
                }
                Question::Capture(_) if service.siblings.is_some() => {
                    let why = "an adapter with several engines cannot capture; expected --engines 1, or a capture of the interface by tcpdump";
                    Some(Refused::line(why))
                }
                Question::Capture(spec) => begin_capture(engine, asker, spec, stream).err(),
            });
        }
        if more || service.was_busy() || engine.was_busy() {
            spin.came();
        } else if service.take_rang() || spin.goes_on(Instant::now(), None) {
            // Let threads that share the core run, such as that of the application that the adapter has just woken.
            rustix::thread::sched_yield();
        } else if service.prepare_to_sleep() {
            sleep(engine, service, control.as_deref(), &mut throttle)
                .map_err(LiveError::failed("cannot wait for frames and applications"))?;
        }
    }
}

/// Takes a snapshot of all engines. An engine that does not answer in time is missing from it.
fn take_of_all<T: Port>(engine: &Engine<T>, service: &mut AdapterService) -> Snapshot {
    let answers = service.ask_siblings();
    let own = Snapshot::take(engine, service);
    let Some(answers) = answers else {
        return own;
    };
    let until = Instant::now() + LONGEST_ANSWER;
    let next = || {
        let left = until.saturating_duration_since(Instant::now());
        answers.recv_timeout(left).ok()
    };
    std::iter::from_fn(next).fold(own, Snapshot::joined)
}

/// Starts sending captured frames through a duplicate of `stream`.
///
/// # Errors
/// The line to answer with: `asker` lacks permission, or no further capture is possible.
fn begin_capture<T: Port>(
    engine: &mut Engine<T>,
    asker: Asker,
    spec: CaptureSpec,
    stream: &UnixStream,
) -> Result<(), Vec<u8>> {
    if !asker.is_operator {
        let why = "only root and the adapter's user may capture frames";
        return Err(Refused::line(why));
    }
    let interface = engine.port().link().name.clone();
    let stream = stream.try_clone().map_err(|error| error.to_string());
    stream
        .and_then(|stream| engine.captures_mut().send_to(stream, spec, &interface))
        .map_err(Refused::line)
}

/// Runs one turn of the engine and records it in the timeline.
pub(super) fn turn<T: Port>(
    engine: &mut Engine<T>,
    service: &mut AdapterService,
) -> io::Result<bool> {
    let began = engine.now();
    let more = engine.turn_at(began, service)?;
    if let Some(mut timeline) = service.take_timeline() {
        timeline.turn((began, engine.now()), engine, service);
        service.put_timeline(timeline);
    }
    Ok(more)
}

/// Sleeps until something may have happened.
fn sleep<T: Port>(
    engine: &mut Engine<T>,
    service: &mut AdapterService,
    control: Option<&ControlSocket>,
    throttle: &mut Throttle,
) -> io::Result<()> {
    let due = service.poll_timeout();
    let ready = control::wait(engine, due, service.fds(), control, throttle)?;
    service.awake(engine.now(), &ready)
}

/// Resets the remaining connections and flushes the captures.
fn finish<T: Port>(engine: &mut Engine<T>, service: &mut AdapterService) -> Result<(), LiveError> {
    engine
        .reset_all(service)
        .map_err(LiveError::failed("the interface can no longer be used"))?;
    engine
        .captures_mut()
        .flush()
        .map_err(LiveError::failed("the capture file cannot be written"))
}
