//! When requests are due: loads that are not infinite.
//!
//! [`LoadSpec`] says it, [`Paced`] does it: it sets the waits of another load's requests. In an open loop requests come at their times whether
//! earlier ones are done or not; in a closed one clients think between a response and their next request.
//!
//! What is drawn belongs to the connection, in the one order of the load: two servers that are compared see the same requests at the same
//! times.

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

/// Drawn evenly: more than 0, at most 1.
fn unit(random: &mut Pcg64) -> f64 {
    1.0 - random.random::<f64>()
}

/// Drawn from the exponential distribution with mean 1.
fn exponential(random: &mut Pcg64) -> f64 {
    -libm::log(unit(random))
}

/// Seconds as picoseconds, as many as there can be.
fn picoseconds(seconds: f64) -> u64 {
    (seconds * crate::source::SECOND_PS as f64) as u64
}

#[cfg(test)]
mod tests;
