//! Policies written in Python. Each question takes the interpreter's lock, and some microseconds.
//!
//! The first exception ends the run; until then, and where there is no answer, the policy leaves things as they are.

mod load_control;
mod replacement;
mod selection;

pub use load_control::{LoadControl, NicLoad};
pub use replacement::Replacement;
pub use selection::{ClosedConnection, Connection, Selection};

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run's policies.
#[derive(Clone, Debug, Default)]
pub struct Raised(Arc<(AtomicBool, Mutex<Option<PyErr>>)>);

impl Raised {
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Takes it out.
    pub fn take(&self) -> Option<PyErr> {
        let mut first = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        first.take()
    }

    fn set(&self, error: PyErr) {
        let mut first = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.0.0.store(true, Ordering::Relaxed);
    }

    /// Asks Python, unless it has raised; none if it raises now.
    fn ask<T>(&self, question: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.is_set() {
            return None;
        }
        let answer = Python::attach(question);
        answer.map_err(|error| self.set(error)).ok()
    }
}
