//! Ctrl-C.

use crate::failure::Failure;
use crate::output::remove_all_parts;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{panic, process, thread};

/// How long an interrupt may go unseen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Whether the user wants the program to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<Signals>);

#[derive(Debug)]
struct Signals {
    /// How many have come.
    count: AtomicU32,
    /// The one that ends the program wherever it is.
    last: AtomicU32,
}

impl Interrupt {
    /// None has come, and until [`Interrupt::listen`] the first ends the program.
    pub fn new() -> Self {
        Self(Arc::new(Signals {
            count: AtomicU32::new(0),
            last: AtomicU32::new(2),
        }))
    }

    /// Listens for SIGINT, SIGTERM and SIGHUP, in a thread that has the privileges of this one. The first asks for an orderly end, the second
    /// ends at once, unless [`Interrupt::handle_second`] leaves that to the third.
    ///
    /// # Errors
    /// The system refuses it.
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

    /// The command itself ends quickly when it is asked a second time; only the third ends it wherever it is.
    #[cfg(live)]
    pub fn handle_second(&self) {
        self.0.last.store(3, Ordering::Relaxed);
    }

    /// How often the user asked for the end.
    pub fn count(&self) -> u32 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Whether the user asked for the end.
    pub fn requested(&self) -> bool {
        self.count() > 0
    }

    /// Does `work` on a thread of its own. An interrupt leaves that behind, to end with the program: for what has no place to ask in
    /// between, or waits for input.
    ///
    /// # Errors
    /// The user asked for the end.
    pub fn during<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Failure> {
        let (done, result) = mpsc::channel();
        let worker = thread::spawn(move || {
            // Nobody waits any more after an interrupt.
            let _ = done.send(work());
        });
        loop {
            match result.recv_timeout(BETWEEN_LOOKS) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = worker.join().expect_err("it would have sent its result");
                    panic::resume_unwind(panic);
                }
            }
        }
    }

    /// Ends a command between two of its steps.
    ///
    /// # Errors
    /// The user asked for the end.
    pub fn check(&self) -> Result<(), Failure> {
        if self.requested() {
            Err(Failure::Interrupted)
        } else {
            Ok(())
        }
    }
}
