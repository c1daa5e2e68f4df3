//! Small computations on several threads, with a progress bar.

use crate::failure::Failure;
use crate::runner::Interrupt;
use crate::runner::progress::Progress;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does `work` for all tasks on at most `threads` threads; `unit` is the name of the tasks in the progress bar. Results are in the order of
/// the tasks.
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
        for _ in 0..threads {
            scope.spawn(worker);
        }
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
