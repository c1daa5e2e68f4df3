//! Popularity and sizes of files.

use super::{Distribution, SpecError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of files of one kind, so that a mistyped number does not use up the memory.
const MAX_FILES: u32 = 10_000_000;

/// Popularity and sizes of all files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Files {
    /// The `k`-th most popular file gets requests in proportion to `k^-exponent`; its size does not depend on `k`.
    Zipf {
        /// Number of files.
        #[schemars(range(min = 1, max = MAX_FILES))]
        count: u32,
        /// Exponent.
        #[schemars(range(min = 0.0))]
        exponent: f64,
        /// Share of requests answered with status 304 and no content, 0 to 1.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        not_modified: f64,
        /// Sizes in bytes.
        size: Distribution,
    },
    /// Classes of files, the most popular first; within a class, all files are equally popular.
    Classes(Vec<FileClass>),
}

/// Files of about the same popularity.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileClass {
    /// Number of files.
    #[schemars(range(min = 1, max = MAX_FILES))]
    pub count: u32,
    /// Number of requests for all files of the class together, relative to those of other classes.
    pub requests: f64,
    /// Share of requests answered with status 304 and no content, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub not_modified: f64,
    /// Sizes of the files in bytes.
    pub size: Distribution,
}

impl Files {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let check_count = |name: &'static str, count: u32| {
            let ok = (1..=MAX_FILES).contains(&count);
            SpecError::unless(ok, || name.into(), f64::from(count), "1 to 10,000,000")
        };
        match self {
            Self::Zipf {
                count,
                exponent,
                not_modified,
                size,
            } => {
                check_count("files.zipf.count", *count)?;
                let ok = exponent.is_finite() && *exponent >= 0.0;
                SpecError::unless(
                    ok,
                    || "files.zipf.exponent".into(),
                    *exponent,
                    "a number of at least 0",
                )?;
                check_share("files.zipf.not_modified", *not_modified)?;
                size.check("files.zipf.size")
            }
            Self::Classes(classes) => {
                let n = classes.len();
                SpecError::unless(
                    n > 0,
                    || "number of files.classes".into(),
                    0.0,
                    "at least 1",
                )?;
                for class in classes {
                    check_count("files.classes.count", class.count)?;
                    let ok = class.requests.is_finite() && class.requests > 0.0;
                    let name = || "files.classes.requests".into();
                    SpecError::unless(ok, name, class.requests, "a number above 0")?;
                    check_share("files.classes.not_modified", class.not_modified)?;
                    class.size.check("files.classes.size")?;
                }
                Ok(())
            }
        }
    }
}

fn check_share(field: &'static str, value: f64) -> Result<(), SpecError> {
    SpecError::unless(
        (0.0..=1.0).contains(&value),
        || field.into(),
        value,
        "a share from 0 to 1",
    )
}

/// Share of requests and size of every file, the most popular first.
pub(crate) struct FileTable {
    /// Relative shares of requests.
    pub weights: Vec<f64>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// Shares of requests that are answered without content.
    pub not_modified: Vec<f64>,
}

impl FileTable {
    pub(crate) fn new(files: &Files) -> Self {
        let mut table = Self {
            weights: Vec::new(),
            sizes: Vec::new(),
            not_modified: Vec::new(),
        };
        match files {
            Files::Zipf {
                count,
                exponent,
                not_modified,
                size,
            } => {
                let weight = |index: u32| libm::pow(f64::from(index) + 1.0, -exponent);
                table.add((0..*count).map(weight), *not_modified, size);
            }
            Files::Classes(classes) => {
                for FileClass {
                    count,
                    requests,
                    not_modified,
                    size,
                } in classes
                {
                    let weight = requests / f64::from(*count);
                    table.add((0..*count).map(|_| weight), *not_modified, size);
                }
            }
        }
        table
    }

    /// Adds files with these weights. Their sizes follow the distribution as closely as their number allows, and are spread evenly over the
    /// ranks, so that small classes and the few most popular files do not depend on chance.
    fn add(
        &mut self,
        weights: impl ExactSizeIterator<Item = f64>,
        not_modified: f64,
        size: &Distribution,
    ) {
        let count = weights.len() as u32;
        let share = |rank: u32| (f64::from(rank) + 0.5) / f64::from(count);
        self.weights.extend(weights);
        self.not_modified.extend((0..count).map(|_| not_modified));
        self.sizes.extend(
            spread(count)
                .into_iter()
                .map(|rank| libm::round(size.quantile(share(rank))) as u64),
        );
    }
}

/// Returns the numbers 0 to `count - 1` in an order in which every stretch is spread evenly over the whole range, by the fractional parts
/// of multiples of the golden ratio.
fn spread(count: u32) -> Vec<u32> {
    /// The golden ratio's fractional part, in units of 2^-64.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let key = |i: u32| u64::from(i + 1).wrapping_mul(GOLDEN);
    let mut sorted: Vec<u32> = (0..count).collect();
    sorted.sort_unstable_by_key(|&i| key(i));
    let mut rank_of = vec![0; count as usize];
    for (rank, &i) in (0..).zip(&sorted) {
        rank_of[i as usize] = rank;
    }
    rank_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_a_permutation_that_covers_the_range_early() {
        for count in [1, 2, 7, 100, 1000] {
            let mut order = spread(count);
            if count >= 100 {
                let low = order[..10].iter().filter(|&&r| r < count / 2).count();
                assert!(
                    (4..=6).contains(&low),
                    "{low} of the first 10 in the lower half"
                );
            }
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn classes_become_files() {
        let class = |count, requests, bytes| FileClass {
            count,
            requests,
            not_modified: 0.0,
            size: Distribution::Constant(bytes),
        };
        let table = FileTable::new(&Files::Classes(vec![
            class(1, 3.0, 10.0),
            class(4, 1.0, 20.0),
        ]));
        assert_eq!(table.sizes, [10, 20, 20, 20, 20]);
        assert_eq!(table.weights, [3.0, 0.25, 0.25, 0.25, 0.25]);
    }
}
