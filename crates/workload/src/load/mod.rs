//! Times at which requests are due, for loads with finite demand.
//!
//! A [`LoadSpec`] specifies the times, and [`Paced`] implements them by setting the waits of another load's requests. In an open loop,
//! requests come at their times whether earlier ones are done or not; in a closed loop, clients think between a response and their next
//! request.
//!
//! Random values belong to the connection, in the load's single order of connections: two servers that are compared receive the same
//! requests at the same times.

mod arrivals;
mod on_off;
mod paced;
mod pareto;
mod rate;
mod spec;
mod text;
mod think;

pub use arrivals::Arrivals;
pub use on_off::OnOffSpec;
pub use paced::{Pace, Paced};
pub use rate::Rate;
pub use spec::{LoadError, LoadSpec};
pub use think::Think;

use rand::RngExt;
use rand_pcg::Pcg64;

/// Draws from the uniform distribution over (0, 1].
fn unit(random: &mut Pcg64) -> f64 {
    1.0 - random.random::<f64>()
}

/// Draws from the exponential distribution with mean 1.
fn exponential(random: &mut Pcg64) -> f64 {
    -libm::log(unit(random))
}

/// Converts seconds to picoseconds, saturating.
fn picoseconds(seconds: f64) -> u64 {
    (seconds * crate::source::SECOND_PS as f64) as u64
}

#[cfg(test)]
mod tests;
