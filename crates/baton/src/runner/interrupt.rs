//! Ctrl-C.

use crate::failure::Failure;
use crate::output::remove_all_parts;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{panic, process, thread};

/// Maximum time until an interrupt is noticed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Requests of the user to end the program.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<Signals>);

#[derive(Debug)]
struct Signals {
    /// Number of signals received.
    count: AtomicU32,
    /// Number of the signal that ends the program immediately.
    last: AtomicU32,
}

impl Interrupt {
    /// Creates an instance without signals. Until [`Interrupt::listen`], the first signal ends the program.
    pub fn new() -> Self {
        Self(Arc::new(Signals {
            count: AtomicU32::new(0),
            last: AtomicU32::new(2),
        }))
    }

    /// Listens for SIGINT, SIGTERM and SIGHUP, in a thread that has the privileges of the calling thread. The first signal asks for an
    /// orderly end, the second ends the program immediately, unless [`Interrupt::handle_second`] leaves that to the third.
    ///
    /// # Errors
    /// Fails if the system refuses it.
    pub fn listen(&self) -> Result<(), Failure> {
        let seen = Arc::clone(&self.0);
        ctrlc::set_handler(move || {
            let before = seen.count.fetch_add(1, Ordering::Relaxed);
            if before + 1 >= seen.last.load(Ordering::Relaxed) {
                remove_all_parts();
                #[cfg(live)]
                baton_live::remove_all_namespaces();
                process::exit(130);
            }
        })
        .map_err(|error| Failure::Failed(format!("cannot listen for Ctrl-C: {error}")))
    }

    /// Declares that the command ends quickly at the second signal, so that only the third ends the program immediately.
    #[cfg(live)]
    pub fn handle_second(&self) {
        self.0.last.store(3, Ordering::Relaxed);
    }

    /// Returns how often the user asked for the end.
    pub fn count(&self) -> u32 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Returns whether the user asked for the end.
    pub fn requested(&self) -> bool {
        self.count() > 0
    }

    /// Does `work` on a thread of its own, for work that cannot check for interrupts or waits for input. After an interrupt, the thread is
    /// left behind and ends with the program.
    ///
    /// # Errors
    /// Fails if the user asks for the end.
    pub fn during<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Failure> {
        let (done, result) = mpsc::channel();
        let worker = thread::spawn(move || {
            // After an interrupt, nothing receives the result.
            let _ = done.send(work());
        });
        loop {
            match result.recv_timeout(BETWEEN_LOOKS) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = worker
                        .join()
                        .expect_err("a worker that did not panic has sent its result");
                    panic::resume_unwind(panic);
                }
            }
        }
    }

    /// Checks for an interrupt between two steps of a command.
    ///
    /// # Errors
    /// Fails if the user asked for the end.
    pub fn check(&self) -> Result<(), Failure> {
        if self.requested() {
            Err(Failure::Interrupted)
        } else {
            Ok(())
        }
    }
}
