//! Order of the references to files.

use super::{Distribution, FileTable, SpecError};
use rand::RngExt;
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Temporal locality beyond what popularity alone makes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalitySpec {
    /// Share of a file's references that come shortly after its previous one, 0 (none) to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub burst_share: f64,
    /// Number of requests (for any file) between a reference of a burst and the previous one of its file.
    pub gap: Distribution,
}

impl Default for LocalitySpec {
    /// Independent references, without bursts.
    fn default() -> Self {
        Self {
            burst_share: 0.0,
            gap: Distribution::Constant(0.0),
        }
    }
}

impl LocalitySpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let ok = (0.0..=1.0).contains(&self.burst_share);
        SpecError::unless(
            ok,
            || "locality.burst_share".into(),
            self.burst_share,
            "a share from 0 to 1",
        )?;
        self.gap.check("locality.gap")
    }
}

/// Positions in the log are fractions of a request, so that references can be placed between others.
const POSITION_BITS: u32 = 20;

/// Returns the file of each of `count` requests.
pub(crate) fn references(
    files: &FileTable,
    locality: &LocalitySpec,
    count: u32,
    random: &mut Pcg64,
) -> Vec<u32> {
    let end = u64::from(count) << POSITION_BITS;
    let mut placed: Vec<(u64, u32)> = Vec::with_capacity(count as usize);
    for (file, references) in (0u32..).zip(counts(&files.weights, count)) {
        let mut position = 0;
        for i in 0..references {
            position = if i > 0 && random.random_bool(locality.burst_share) {
                let gap = locality.gap.quantile(random.random());
                // Wrap around at the end of the log.
                (position + (gap * f64::from(1 << POSITION_BITS)) as u64) % end
            } else {
                random.random_range(0..end)
            };
            placed.push((position, file));
        }
    }
    placed.sort_unstable();
    placed.into_iter().map(|(_, file)| file).collect()
}

/// Returns how many of `count` references each file gets: its share, rounded such that the sum is exact and no file is off by more than
/// one.
fn counts(weights: &[f64], count: u32) -> impl Iterator<Item = u32> {
    let scale = f64::from(count) / weights.iter().sum::<f64>();
    let last = weights.len() - 1;
    let (mut sum, mut given) = (0.0, 0u32);
    weights.iter().enumerate().map(move |(i, weight)| {
        sum += weight * scale;
        let upto = if i == last {
            count
        } else {
            (libm::round(sum) as u32).min(count)
        };
        let references = upto - given;
        given = upto;
        references
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_add_up_and_are_at_most_one_off(
            weights in prop::collection::vec(0.01f64..100.0, 1..200),
            count in 0u32..10_000,
        ) {
            let got: Vec<u32> = counts(&weights, count).collect();
            prop_assert_eq!(got.iter().sum::<u32>(), count);
            let sum: f64 = weights.iter().sum();
            for (references, weight) in got.iter().zip(&weights) {
                let exact = weight / sum * f64::from(count);
                prop_assert!((f64::from(*references) - exact).abs() <= 1.0 + 1e-6, "{} for {}", references, exact);
            }
        }
    }
}
