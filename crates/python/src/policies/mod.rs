//! Policies written in Python. Each call takes the interpreter's lock and some microseconds.
//!
//! The first exception ends the run. No policy is called between the exception and the end of the run.

/// Gives a Python class that wraps a value a getter for each of these parts of the value.
macro_rules! getters {
    ($class:ident $($(#[$doc:meta])* $name:ident: $type:ty = $part:ident $(.$rest:ident $(($($arg:tt)*))?)*;)*) => {
        #[pymethods]
        impl $class {
            $($(#[$doc])* #[getter] fn $name(&self) -> $type {
                self.0.$part $(.$rest $(($($arg)*))?)*
            })*
        }
    };
}

mod load_control;
mod replacement;
mod selection;

pub use load_control::{LoadControl, NicLoad};
pub use replacement::Replacement;
pub use selection::{ClosedConnection, Connection, Selection};

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception that a policy of the run raised.
#[derive(Clone, Debug, Default)]
pub struct Raised(Arc<(AtomicBool, Mutex<Option<PyErr>>)>);

impl Raised {
    /// Returns whether a policy has raised an exception.
    pub fn is_set(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        let mut first = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        first.take()
    }

    /// Records an exception, unless another one came first.
    pub fn set(&self, error: PyErr) {
        let mut first = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.0.0.store(true, Ordering::Relaxed);
    }

    /// Calls Python, unless a policy has already raised an exception; returns `None` if this call raises one.
    fn ask<T>(&self, question: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.is_set() {
            return None;
        }
        let answer = Python::attach(question);
        answer.map_err(|error| self.set(error)).ok()
    }
}
