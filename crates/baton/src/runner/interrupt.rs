//! Ctrl-C.

use crate::failure::Failure;
use crate::output::remove_all_parts;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
