//! `baton live get`: fetches a file over the engine.

use super::engine;
use crate::cli::GetArgs;
use crate::failure::Failure;
use crate::output::{Pending, tell};
use crate::runner::Interrupt;
use baton_live::port::Port;
use baton_live::{Engine, Fetch, FetchError};
use baton_report::grouped;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};

/// Maximum time for an orderly end of the connection after all data has arrived.
const CLOSING_TIME: Duration = Duration::from_millis(500);

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if the server does not send the file, if an output cannot be written, or if the user interrupts.
pub fn execute(arguments: &GetArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let output = match &arguments.output {
        None => None,
        Some(path) => Some(Pending::new("--output", path)?),
    };
    let mut running = engine::start(&arguments.link, engine::tcp_config(&arguments.link))?;
    let out: Box<dyn Write> = match &output {
        None => Box::new(io::stdout().lock()),
        Some(pending) => {
            let file = OpenOptions::new().write(true).open(pending.path());
            let file = file.map_err(|error| {
                Failure::Failed(format!("--output {}: {error}", pending.target().display()))
            })?;
            Box::new(BufWriter::with_capacity(1 << 18, file))
        }
    };
    let engine = &mut running.engine;
    let now = engine.now();
    let url = arguments.url.clone();
    let shown = format!("{}{}", url.authority, url.target);
    let failed = |error: FetchError| match error {
        FetchError::NoRoute(_) => Failure::BadInput(error.to_string()),
        _ => Failure::Failed(format!("http://{shown}: {error}")),
    };
    let mut fetch = Fetch::start(url, out, running.seed, now, engine.host_mut()).map_err(failed)?;
    let started = Instant::now();
    run(engine, &mut fetch, interrupt)?.map_err(failed)?;
    let received = fetch.received();
    let mut out = fetch.into_inner();
    out.flush()
        .map_err(|error| Failure::Failed(format!("cannot write the content: {error}")))?;
    drop(out);
    if let Some(pending) = output {
        let target = pending.target().display().to_string();
        pending.commit()?;
        let seconds = started.elapsed().as_secs_f64();
        tell(&format!(
            "{target}: {} bytes in {seconds:.2} s, {:.0} Mbit/s\n",
            grouped(received),
            received as f64 * 8e-6 / seconds
        ));
    }
    Ok(())
}

/// Runs the engine until the fetch has ended and the connection is closed.
fn run<T: Port, W: Write>(
    engine: &mut Engine<T>,
    fetch: &mut Fetch<W>,
    interrupt: &Interrupt,
) -> Result<Result<(), FetchError>, Failure> {
    let gone = |error| Failure::Failed(format!("the interface has failed: {error}"));
    let bar = ProgressBar::new_spinner();
    let mut outcome = None;
    let mut until = None;
    loop {
        let more = engine.turn(fetch).map_err(gone)?;
        show(&bar, fetch);
        if let Some(end) = fetch.outcome() {
            outcome = Some(end);
            until = Some(Instant::now() + CLOSING_TIME);
        }
        let closed = engine.host().stack().is_empty();
        if let Some(end) = outcome.take_if(|_| closed || until.is_some_and(|u| u < Instant::now()))
        {
            bar.finish_and_clear();
            engine
                .captures_mut()
                .flush()
                .map_err(|error| Failure::Failed(format!("--pcap: cannot write: {error}")))?;
            return Ok(end);
        }
        if interrupt.requested() {
            engine.reset_all(fetch).map_err(gone)?;
            return Err(Failure::Interrupted);
        }
        if !more {
            engine.wait(None, &[]).map_err(gone)?;
        }
    }
}

fn show<W: Write>(bar: &ProgressBar, fetch: &Fetch<W>) {
    if bar.length().is_none()
        && let Some(expected) = fetch.expected()
    {
        bar.set_length(expected);
        let style = "{bar:40} {percent:>3} % of {binary_total_bytes}, {binary_bytes_per_sec}";
        bar.set_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
    }
    bar.set_position(fetch.received());
}
