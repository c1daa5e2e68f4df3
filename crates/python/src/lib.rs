//! The extension module behind the Python package `baton` (`python/baton`): the simulator, studies and access logs, in process.
//!
//! Long operations release the interpreter's lock and run on their own thread, while the caller's thread checks for signals. Tables are
//! exported by the Arrow C data interface, so that nothing is copied.
//!
//! | to find | look in |
//! |---|---|
//! | a run: its request, its results | `src/request.rs`, `src/run.rs`, `src/result.rs` |
//! | studies of many runs | `src/study.rs` |
//! | access logs, hit ratios of caches | `src/log.rs`, `src/locality.rs` |
//! | policies that are written in Python | `src/policies/` |
//! | tables for other libraries | `src/table.rs` |
//! | errors, signals, the interpreter's lock | `src/failure.rs`, `src/unlocked.rs` |

mod failure;
mod locality;
mod log;
mod policies;
mod request;
mod result;
mod run;
mod study;
mod table;
mod unlocked;

use pyo3::prelude::*;

/// The functions and classes that the package is made of.
#[pymodule]
mod _baton {
    #[pymodule_export]
    use crate::failure::{InputError, RunError};
    #[pymodule_export]
    use crate::log::{Log, generate_log, presets, read_log};
    #[pymodule_export]
    use crate::policies::{ClosedConnection, Connection, NicLoad};
    #[pymodule_export]
    use crate::result::Result;
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::study::{Study, StudyTables, metrics, work};
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "this is the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "this is the name in Python")]
    const sources: &str = baton_config::SOURCES;
}
