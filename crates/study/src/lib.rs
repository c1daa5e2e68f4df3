//! Studies of many runs.
//!
//! A [`Store`] is a folder that keeps the result of every run under a [`Key`], the digest of all that determines it. Any number of
//! processes may work on one folder: one of them does each run, and others take over the runs of a process that dies. A [`Study`] lists the
//! runs that belong together.
//!
//! | to find | look in |
//! |---|---|
//! | the folder, and which process does which run | [`Store`], [`Claim`], [`Lease`] |
//! | what determines a result | [`identify`], [`Key`], [`Inputs`] |
//! | runs that are not done yet, and progress | [`carry_out()`], [`StudyStatus`] |
//! | the format of a stored run | `src/record.rs` |
//! | a metric, which is a column | [`table::metrics`] |
//! | tables, as CSV and Parquet | [`table`] |
//! | comparing, merging, cleaning up | [`Comparison`], [`merge()`], [`collect_garbage`] |

mod carry_out;
mod collect;
mod compare;
mod error;
mod file;
mod identity;
mod inputs;
mod key;
mod merge;
mod record;
mod status;
mod store;
mod study;
pub mod table;

pub use carry_out::{Ended, carry_out};
pub use collect::{Leftovers, collect_garbage};
pub use compare::{Comparison, KeyDifference, MetricDifference};
pub use error::StoreError;
pub use identity::identify;
pub use inputs::Inputs;
pub use key::{Digest, Key};
pub use merge::{Merged, merge};
pub use record::{Head, Outcome, Stored, read_run};
pub use status::{Status, StudyStatus, WorkerStatus};
pub use store::{Claim, Lease, Note, Patience, Store};
pub use study::{ConfigColumn, Study, StudyRun};
