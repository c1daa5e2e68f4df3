//! The loop of the adapter process.

use super::notice::Notice;
use super::service::AdapterService;
use crate::control::ControlSocket;
use crate::ending::Stop;
use crate::engine::{Application, Engine};
use crate::error::LiveError;
use crate::port::Port;
use crate::snapshot::Snapshot;
use crate::throttle::Throttle;
use baton_iolib::Spin;
use std::io;
use std::time::{Duration, Instant};

/// Longest time to spin before sleeping: about the cost of sleeping, being woken and getting going again.
const LONGEST_SPIN: Duration = Duration::from_micros(50);

/// Serves applications until `stop` says otherwise, then ends what is in progress. Meanwhile answers questions at `control` and passes
/// notices about applications to `operator`.
///
/// # Errors
/// The port has failed.
pub fn run_adapter<T: Port>(
    engine: &mut Engine<T>,
    service: &mut AdapterService,
    control: &mut ControlSocket,
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
        if throttle.is_due(now) {
            control.serve(|| Snapshot::take(engine, service).to_line());
        }
        if more || service.was_busy() || engine.was_busy() {
            spin.came();
        } else if service.take_rang() {
            // If the adapter shares its core with the application that it just woke, the application can answer now without a doorbell.
            rustix::thread::sched_yield();
        } else if !spin.goes_on(Instant::now(), None) && service.prepare_to_sleep() {
            let asked = sleep(engine, service, control)
                .map_err(LiveError::failed("cannot wait for frames and applications"))?;
            throttle.handle_wait(engine.now(), asked);
        }
    }
}

/// A turn of the engine, of which the timeline is told.
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
    control: &ControlSocket,
) -> io::Result<bool> {
    let mut fds = service.fds();
    let of_service = fds.len();
    fds.extend(control.fds());
    let ready = engine.wait(service.poll_timeout(), &fds)?;
    drop(fds);
    let (of_service, of_control) = ready.split_at(of_service);
    service.awake(engine.now(), of_service)?;
    Ok(of_control.contains(&true))
}

/// Resets the remaining connections and flushes the captures.
fn finish<T: Port>(engine: &mut Engine<T>, service: &mut AdapterService) -> Result<(), LiveError> {
    engine
        .reset_all(service)
        .map_err(LiveError::failed("the interface can no longer be used"))?;
    engine
        .port_mut()
        .flush()
        .map_err(LiveError::failed("the capture file cannot be written"))
}
