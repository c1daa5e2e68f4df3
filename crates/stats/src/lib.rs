//! Estimates the long run from the output of a run, with confidence intervals.
//!
//! The methods are those of textbooks on simulation (Law, *Simulation Modeling and Analysis*). Known properties of a workload (the mean size
//! of its responses, the mean length of its connections) are control variates; without them, a heavy-tailed workload needs millions of
//! requests to show its mean.
//!
//! | to find | look in |
//! |---|---|
//! | where warm-up is cut (MSER) | [`warm_up()`] |
//! | means with intervals, from batch means | [`batches()`], [`Estimate`] |
//! | means of the long run, by control variates | [`per_request()`], [`Mix`] |
//! | intervals of percentiles | [`sectioned`] |
//! | whether parts of a run depend on each other or on time | [`is_correlated`], [`is_trending`], [`is_drifting`] |
//! | whether two configurations differ | [`paired_p_value`], [`holm`] |
//! | correlation of two measures | [`Correlation`] |
//! | the next step of a fit | [`damped_step`] |

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
pub use series::{is_correlated, is_drifting, is_trending};
pub use warm_up::warm_up;
