//! Estimates from a run that is divided into batches.

use crate::is_correlated;
use crate::per_request::{Mix, PerRequest, per_request};
use crate::sections::LEAST_PARTS;

/// Totals of a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of requests that were served.
    pub requests: f64,
    /// Number of bytes that were delivered, for these requests or for others.
    pub bytes: f64,
    /// Number of connections; each counts half where it was opened and half where it ended.
    pub connections: f64,
    /// Amount of the estimated quantity, for example seconds that passed or bytes that crossed a bus.
    pub value: f64,
}

impl Batch {
    /// Returns the sum of all parts.
    pub fn sum(parts: &[Self]) -> Self {
        parts.iter().fold(Self::default(), |sum, part| Self {
            requests: sum.requests + part.requests,
            bytes: sum.bytes + part.bytes,
            connections: sum.connections + part.connections,
            value: sum.value + part.value,
        })
    }
}

/// Number of batches that a run is first divided into. If they depend on each other, fewer and larger batches are used.
const MOST_BATCHES: usize = 32;

/// Estimates the quantity per request from consecutive `parts` of a run that have about the same number of requests each. `mix` describes
/// the requests of the long run. The returned flag is false if even few large batches depend on each other; the interval is then too
/// narrow. Returns `None` if there are too few parts for an estimate.
pub fn batches(parts: &[Batch], mix: Mix) -> Option<(PerRequest, bool)> {
    let mut count = MOST_BATCHES.min(parts.len());
    loop {
        if count < LEAST_PARTS {
            return None;
        }
        let edge = |n: usize| n * parts.len() / count;
        let joined: Vec<Batch> = (0..count)
            .map(|n| Batch::sum(&parts[edge(n)..edge(n + 1)]))
            .collect();
        let fitted = per_request(&joined, mix)?;
        let independent = !is_correlated(&fitted.residuals);
        if independent || count / 2 < LEAST_PARTS {
            return Some((fitted, independent));
        }
        count /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, Normal, Pareto};
    use rand_pcg::Pcg64;

    const MEAN_BYTES: f64 = 30_000.0;
    const MIX: Mix = Mix {
        bytes: MEAN_BYTES,
        connections: 0.0,
    };

    /// Simulates a link that serves one request after the other; each takes 20 us and 2 ns a byte.
    fn run(seed: u64, parts: usize) -> Vec<Batch> {
        let mut random = Pcg64::seed_from_u64(seed);
        let sizes = Pareto::new(MEAN_BYTES / 6.0, 1.2).unwrap();
        let noise = Normal::new(0.0, 2e-6).unwrap();
        let part = |_| {
            let sizes = (0..50).map(|_| f64::min(sizes.sample(&mut random), 1e8));
            let bytes: f64 = sizes.sum();
            let noise: f64 = noise.sample(&mut random) * random.random::<f64>();
            Batch {
                requests: 50.0,
                bytes,
                connections: 0.0,
                value: 50.0 * (20e-6 + noise) + 2e-9 * bytes,
            }
        };
        (0..parts).map(part).collect()
    }

    #[test]
    fn the_mean_size_is_known_so_that_rare_giants_need_not_have_been_seen() {
        let truth = 20e-6 + 2e-9 * MEAN_BYTES;
        let covered = (0..400).filter(|&seed| {
            let (fitted, _) = batches(&run(seed, 128), MIX).unwrap();
            assert!((fitted.mean.mean / truth - 1.0).abs() < 0.05);
            fitted.mean.covers(truth)
        });
        let covered = covered.count();
        assert!(covered >= 372, "{covered} of 400");
    }

    #[test]
    fn correlated_batches_are_merged() {
        // A slow wave, so that adjacent parts have similar values.
        let parts: Vec<Batch> = (0..256_u32)
            .map(|n| Batch {
                requests: 10.0,
                bytes: 1000.0 + f64::from(n * 7 % 13),
                connections: 0.0,
                value: 5.0 + (f64::from(n) / 20.0).sin(),
            })
            .collect();
        let (fitted, _) = batches(&parts, MIX).unwrap();
        assert!(fitted.residuals.len() < MOST_BATCHES);
    }

    #[test]
    fn too_few_parts_give_no_interval() {
        assert!(batches(&run(1, 7), MIX).is_none());
        assert!(batches(&[], MIX).is_none());
    }
}
