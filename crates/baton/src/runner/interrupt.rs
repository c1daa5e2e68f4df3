//! Ctrl-C.

use crate::failure::Failure;
use crate::output::remove_all_parts;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{panic, process, thread};

/// How long an interrupt may go unseen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Whether the user wants the program to end.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP. The first asks for an orderly end, the second ends at once.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn listen() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&requested);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                remove_all_parts();
                #[cfg(live)]
                baton_live::remove_all_namespaces();
                process::exit(130);
            }
        })
        .map_err(|error| Failure::Failed(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(Self(requested))
    }

    /// Whether the user asked for the end.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
