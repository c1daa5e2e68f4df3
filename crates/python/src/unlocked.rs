//! Long work without the interpreter's lock, ended by its signals.

use crate::failure::RunError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a signal may go unseen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Does `work` on a thread of its own. When a signal's handler raises (Ctrl-C), what `work` is given becomes true; it is waited for.
///
/// # Errors
/// A handler raised.
pub fn unlocked<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    py.detach(|| {
        thread::scope(|scope| {
            let (done, result) = mpsc::channel();
            scope.spawn(|| {
                // Nobody waits any more after a signal.
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
