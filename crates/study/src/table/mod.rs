//! Tables of the runs of a study. The main table has one row per run; data with several values per run is in tables of its own.
//!
//! | table | a row for each | columns |
//! |---|---|---|
//! | `STUDY` | run | `study`, `run`, `variant`, `seed`; `config.KEY` of each study key; `ended`, `error`, `not_steady`; [`metrics`] |
//! | `STUDY.parts` | part of a quantity of a run | `run`, `quantity`, `part`, `value` |
//! | `STUDY.series` | sample of a run | `run`, `time_us` and what was counted then |
//!
//! The columns depend only on the study, not on what happened in its runs. Cells without a measured value are empty.

mod cell;
mod csv;
pub mod metrics;
#[cfg(feature = "parquet")]
mod parquet;
pub mod parts;
mod rows;
pub mod series;
mod visit;
mod write;

pub use self::csv::text as csv_text;
pub use cell::{Cell, Column, Kind};
pub use visit::{Table, Visitor, visit};
pub use write::{Written, write};

/// Version of the names and meanings of the columns. New columns may be added within a version; none is removed or changed.
pub const VERSION: u32 = 1;
