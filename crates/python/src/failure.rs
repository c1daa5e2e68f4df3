//! Converts failures to exceptions.

use baton_config::Failure;
use baton_study::StoreError;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

create_exception!(
    baton,
    InputError,
    PyValueError,
    "The input cannot be used; the message says what is wrong, where, and what was expected."
);
create_exception!(
    baton,
    RunError,
    PyRuntimeError,
    "An operation failed: an internal check of the simulator, or writing a file."
);

/// Returns the exception for a failure.
pub fn raise(failure: Failure) -> PyErr {
    match failure {
        Failure::BadInput(message) => InputError::new_err(message),
        Failure::Failed(message) => RunError::new_err(message),
        Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// Returns the exception for an error of the store.
pub fn raise_of_store(error: StoreError) -> PyErr {
    raise(error.into())
}

/// Returns the exception for invalid input.
pub fn bad_input(message: impl Display) -> PyErr {
    InputError::new_err(message.to_string())
}
