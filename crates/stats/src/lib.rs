//! Estimates the long run from the output of a run, with confidence intervals.
//!
//! The methods are those of textbooks on simulation (Law, *Simulation Modeling and Analysis*). MSER decides where warm-up is cut, and
//! intervals come from batch means. Known properties of a workload (the mean size of its responses, the mean length of its connections) are
//! control variates; without them, a heavy-tailed workload needs millions of requests to show its mean.

mod batches;
mod correlation;
mod damped;
mod estimate;
mod least_squares;
mod paired;
mod per_request;
mod sections;
mod series;
mod warm_up;

pub use batches::{Batch, batches};
pub use correlation::{Correlation, LEAST_SPREAD, spread};
pub use damped::damped_step;
pub use estimate::Estimate;
pub use paired::{holm, paired_p_value};
pub use per_request::{Mix, PerRequest, per_request};
pub use sections::{LEAST_PARTS, sectioned};
pub use series::{is_correlated, is_trending};
pub use warm_up::warm_up;
