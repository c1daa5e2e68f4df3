//! Runs long work without the interpreter's lock, and checks for signals meanwhile.

use crate::failure::RunError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Maximum delay before a signal is handled.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Runs `work` on its own thread. When a signal handler raises (Ctrl-C), sets the flag that `work` receives, and waits for `work` to end.
///
/// # Errors
/// A signal handler raised an exception.
pub fn unlocked<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    py.detach(|| {
        thread::scope(|scope| {
            let (done, result) = mpsc::channel();
            scope.spawn(|| {
                // After a signal, nothing receives the result.
                let _ = done.send(work(&stop));
                drop(done);
            });
            loop {
                match result.recv_timeout(BETWEEN_LOOKS) {
                    Ok(result) => return Ok(result),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(raised) = Python::attach(|py| py.check_signals()) {
                            stop.store(true, Ordering::Relaxed);
                            return Err(raised);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(RunError::new_err("a thread of Baton panicked"));
                    }
                }
            }
        })
    })
}
