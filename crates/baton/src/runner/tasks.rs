//! Small computations on several threads, with a progress bar.

use crate::failure::Failure;
use crate::output::{remove_all_parts, tell};
use crate::runner::Interrupt;
use crate::runner::progress::Progress;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use std::{process, thread};

/// Time between two looks for an interrupt.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// Time that tasks get to end after an interrupt.
const GRACE: Duration = Duration::from_millis(200);

/// Does `work` for all tasks on at most `threads` threads; `unit` is the name of the tasks in the progress bar. Results are in the order of
/// the tasks. After an interrupt, the program does not wait for tasks that take long: it ends.
///
/// # Errors
/// Fails if the user interrupts.
pub fn for_all<T: Sync, R: Send>(
    tasks: &[T],
    unit: &'static str,
    threads: usize,
    interrupt: &Interrupt,
    work: impl Fn(&T) -> R + Sync,
) -> Result<Vec<R>, Failure> {
    let threads = threads.clamp(1, tasks.len().max(1));
    let progress = Progress::new(unit, tasks.len(), threads);
    let results: Vec<Mutex<Option<R>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while !interrupt.requested() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { break };
            progress.begin(index);
            let result = work(task);
            *results[index]
                .lock()
                .expect("no thread panics while it holds this") = Some(result);
            progress.end(index);
        }
    };
    thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        for _ in 0..threads {
            let working = working.clone();
            let worker = &worker;
            scope.spawn(move || {
                worker();
                drop(working);
            });
        }
        drop(working);
        end_soon(&ended, interrupt);
    });
    progress.finish();
    let results = results.into_iter().map(|result| {
        let result = result.into_inner();
        result.expect("no thread panics while it holds this")
    });
    results
        .collect::<Option<Vec<R>>>()
        .ok_or(Failure::Interrupted)
}

/// Waits until all workers have ended. After an interrupt, ends the program if the workers take longer than `GRACE`.
fn end_soon(ended: &Receiver<()>, interrupt: &Interrupt) {
    let have_ended = |within| ended.recv_timeout(within) == Err(RecvTimeoutError::Disconnected);
    while !have_ended(BETWEEN_LOOKS) {
        if interrupt.requested() && !have_ended(GRACE) {
            remove_all_parts();
            tell(&format!("{}\n", Failure::Interrupted));
            process::exit(130);
        }
    }
}
