//! Load of a remote file system: clients read and write ranges of files over persistent connections (data-caching 6.4: "files may be
//! updated remotely").
//!
//! The popularity of ranges follows Zipf's law with exponent 1, and all ranges have the same size. Each range is a file of its own here, so
//! that it is written as a whole. The experiment specifies sizes and shares.

use crate::on_demand::zipf;
use crate::source::{FileSet, RequestSpec, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, weighted::WeightedAliasIndex};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of [`RemoteFiles`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RemoteFilesSpec {
    /// Number of ranges; at least 1.
    #[schemars(range(min = 1, max = Self::MOST_RANGES))]
    pub ranges: u32,
    /// Length of each range, bytes; at least 1. Usual sizes of NFS are 8 KiB (version 2) and 32 KiB (version 3).
    #[schemars(range(min = 1, max = Self::MOST_BYTES))]
    pub bytes: u32,
    /// Share of writes in all operations, per cent: 0 to 100.
    #[schemars(range(max = 100))]
    pub write_percent: u32,
    /// Operations on a connection before the client opens another; at least 1.
    #[schemars(range(min = 1, max = Self::MOST_OPERATIONS))]
    pub operations: u32,
}

impl RemoteFilesSpec {
    /// Maximum number of ranges; each range is a file.
    pub const MOST_RANGES: u32 = 1 << 24;
    /// Length of the longest range, bytes; a client writes a range into its send buffer as a whole.
    pub const MOST_BYTES: u32 = 32 * 1024;
    /// Maximum number of operations on a connection.
    pub const MOST_OPERATIONS: u32 = 1_000_000;
}

impl Default for RemoteFilesSpec {
    fn default() -> Self {
        Self {
            ranges: 10_000,
            bytes: 8_192,
            write_percent: 10,
            operations: 1_000,
        }
    }
}

/// Reads and writes of ranges. The same parameters and seed give the same load.
#[derive(Clone, Debug)]
pub struct RemoteFiles {
    spec: RemoteFilesSpec,
    files: FileSet,
    range: WeightedAliasIndex<f64>,
    random: Pcg64,
}

impl RemoteFiles {
    /// Creates the load.
    ///
    /// # Panics
    /// If a parameter is outside the range in its description.
    pub fn new(spec: RemoteFilesSpec, seed: u64) -> Self {
        assert!(
            spec.ranges > 0 && spec.operations > 0 && spec.bytes > 0 && spec.write_percent <= 100,
            "{spec:?} describes no load"
        );
        Self {
            spec,
            files: FileSet::new(vec![spec.bytes.into(); spec.ranges as usize]),
            range: WeightedAliasIndex::new(zipf(spec.ranges))
                .expect("the weights are not empty and positive"),
            random: Pcg64::seed_from_u64(seed),
        }
    }
}

impl Workload for RemoteFiles {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        script.clear();
        for _ in 0..self.spec.operations {
            let range = self.range.sample(&mut self.random) as u32;
            script.push(RequestSpec {
                write: self.random.random_ratio(self.spec.write_percent, 100),
                ..RequestSpec::fixed(range, self.spec.bytes.into())
            });
        }
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        self.spec.operations.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(write_percent: u32, seed: u64) -> Vec<RequestSpec> {
        let spec = RemoteFilesSpec {
            ranges: 100,
            write_percent,
            operations: 20_000,
            ..RemoteFilesSpec::default()
        };
        let mut script = Vec::new();
        RemoteFiles::new(spec, seed).next_connection(&mut script);
        script
    }

    #[test]
    fn reads_and_writes_are_mixed_as_described() {
        for percent in [0, 30, 100] {
            let operations = sample(percent, 1);
            let writes = operations
                .iter()
                .filter(|operation| operation.write)
                .count();
            let share = writes as f64 / operations.len() as f64;
            assert!((share - f64::from(percent) / 100.0).abs() < 0.01);
        }
        let operations = sample(30, 1);
        assert!(operations.iter().all(|operation| operation.bytes == 8_192));
        // 1 / H(100).
        let first = operations
            .iter()
            .filter(|operation| operation.file == 0)
            .count();
        let share = first as f64 / operations.len() as f64;
        assert!((share - 0.1928).abs() < 0.01, "{share} of the first range");
    }

    #[test]
    fn the_seed_determines_everything() {
        assert_eq!(sample(10, 1), sample(10, 1));
        assert_ne!(sample(10, 1), sample(10, 2));
    }
}
