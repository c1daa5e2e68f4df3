//! The experiments of the report on simulated NICs: microbenchmarks (Figures 5 to 11), applications (Figures 1 and 3), their correlation
//! (Table 2), and the report's statements about them.

mod applications;
mod correlation;
mod figures;
mod laboratory;
mod partners;
mod prediction;
mod statements;
#[cfg(test)]
mod tests;

pub use applications::{
    ApplicationLaboratory, ApplicationMeasurement, ApplicationPoint, ApplicationResults, WebLoad,
    Workload, WorkloadOf,
};
pub use correlation::{CORRELATED, correlation};
pub use figures::{Bar, Series, bars};
pub use laboratory::{Laboratory, Pairing, Point, Results};
pub use partners::{Partners, pairs};
pub use prediction::{Counts, Predicted, mean_error, predict};
pub use statements::{Part, Statement, Verdict, application_statements, statements};
