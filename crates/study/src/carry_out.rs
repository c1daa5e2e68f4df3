//! Executes the runs that have not been done yet.

use crate::error::StoreError;
use crate::key::Key;
use crate::record::{Head, Outcome};
use crate::store::{Claim, Lease, Store};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time to wait before checking again for runs that other processes are doing.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Why not all runs were done.
#[derive(Debug)]
pub enum Ended<E> {
    /// The caller asked to stop.
    Stopped,
    /// A run could not be started, or its result could not be stored.
    Failed(E),
}

/// Executes every run of `keys` that has not been done: on `threads` threads of this process by `run`, which receives the run's index in
/// `keys`, or by other processes that use the same store and that this function waits for. When all runs have been done, returns the number
/// of those that this process did; returns earlier if `stopped` returns true or a run fails.
///
/// # Errors
/// The first failure; no further runs are started then. Or `stopped` returned true.
pub fn carry_out<E: From<StoreError> + Send>(
    store: &Store,
    keys: &[Key],
    program: &str,
    threads: usize,
    stopped: &(dyn Fn() -> bool + Sync),
    run: &(dyn Fn(usize) -> Result<Outcome, E> + Sync),
) -> Result<usize, Ended<E>> {
    let work = Work {
        store,
        keys,
        program,
        next: AtomicUsize::new(0),
        later: Mutex::new(Vec::new()),
        done: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        failure: Mutex::new(None),
        stopped,
        run,
    };
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, keys.len().max(1)) {
            scope.spawn(|| work.work());
        }
    });
    let failure = work
        .failure
        .into_inner()
        .expect("no thread panics while it holds this");
    match failure {
        Some(failure) => Err(Ended::Failed(failure)),
        None if stopped() => Err(Ended::Stopped),
        None => Ok(work.done.into_inner()),
    }
}

struct Work<'a, E> {
    store: &'a Store,
    keys: &'a [Key],
    program: &'a str,
    /// Index of the first run that no thread of this process has looked at.
    next: AtomicUsize,
    /// Runs that other processes were doing.
    later: Mutex<Vec<usize>>,
    /// Number of runs that this process has done.
    done: AtomicUsize,
    is_over: AtomicBool,
    failure: Mutex<Option<E>>,
    stopped: &'a (dyn Fn() -> bool + Sync),
    run: &'a (dyn Fn(usize) -> Result<Outcome, E> + Sync),
}

impl<E: From<StoreError>> Work<'_, E> {
    fn work(&self) {
        if let Err(failure) = self.work_on() {
            self.is_over.store(true, Ordering::Relaxed);
            let mut first = self
                .failure
                .lock()
                .expect("no thread panics while it holds this");
            first.get_or_insert(failure);
        }
    }

    fn work_on(&self) -> Result<(), E> {
        while let Some(index) = self.first_look().or_else(|| self.look_again()) {
            match self.store.claim(self.keys[index])? {
                Claim::Mine(lease) => self.do_run(index, lease)?,
                Claim::Held(_) => self.later().push(index),
                Claim::Done => {}
            }
        }
        Ok(())
    }

    fn do_run(&self, index: usize, lease: Lease) -> Result<(), E> {
        let begun = Instant::now();
        let outcome = (self.run)(index)?;
        let took_s = begun.elapsed().as_secs_f64();
        let head = Head::new(self.keys[index], self.program, took_s, &outcome);
        self.store.put(&head, &outcome)?;
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(lease.end()?)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || (self.stopped)()
    }

    /// Returns the next run that no thread of this process has looked at.
    fn first_look(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.keys.len() && !self.is_over()).then_some(index)
    }

    /// Returns a run that another process was doing, after some time has passed or its result has appeared.
    fn look_again(&self) -> Option<usize> {
        let index = self.later().pop()?;
        let until = Instant::now() + LOOK_AGAIN;
        while !self.store.has(self.keys[index]) && Instant::now() < until {
            if self.is_over() {
                return None;
            }
            thread::sleep(LOOK_AGAIN / 10);
        }
        Some(index)
    }

    fn later(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.later
            .lock()
            .expect("no thread panics while it holds this")
    }
}
