//! Tables of the runs of a study: one row a run, and what has more than one number a run in tables of their own.
//!
//! | table | a row for each | columns |
//! |---|---|---|
//! | `STUDY` | run | `study`, `run`, `variant`, `seed`; `config.` and the path of each key that the study sets; `ended`, `error`, `not_steady`; all [`metrics`] |
//! | `STUDY.parts` | part of a quantity of a run | `run`, `quantity`, `part`, `value` |
//! | `STUDY.series` | sample of a run | `run`, `time_us` and what was counted then |
//!
//! Which columns there are depends on the study alone, whatever happened in its runs. What was not measured is empty.

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

/// Version of what the tables' columns are called and mean. A column may come without a new one; none goes or changes.
pub const VERSION: u32 = 1;
