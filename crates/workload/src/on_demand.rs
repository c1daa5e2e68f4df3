//! On-demand streaming: clients play titles at a constant rate, one chunk after the other (data-caching 6.4: "previously-recorded
//! on-demand content", short files such as songs and advertisements, and full-length videos).
//!
//! At any moment viewers are anywhere in their titles, so each begins at a random chunk and plays to the end. The popularity of the titles
//! of a class follows Zipf's law with exponent 1. Chunks are requested on one persistent connection, each when the previous one has been
//! played. The experiment specifies all sizes and shares.

use crate::source::{FileSet, RequestSpec, Throttle, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, weighted::WeightedAliasIndex};
use rand_pcg::Pcg64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of chunks of all titles together; each chunk is a file of its own.
const MOST_CHUNKS: u64 = 1 << 24;

/// Titles of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TitleClass {
    /// Share of the viewers, in any unit: what counts is the ratio to the other classes.
    #[schemars(range(min = 1))]
    pub viewers: u32,
    /// Number of titles.
    #[schemars(range(min = 1))]
    pub titles: u32,
    /// Length of each title, bytes.
    #[schemars(range(min = 1))]
    pub bytes: u64,
}

/// The parameters of [`OnDemand`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnDemandSpec {
    /// Classes of titles to play.
    pub classes: Vec<TitleClass>,
    /// Rate at which each client plays, kb/s of content.
    #[schemars(range(min = 1))]
    pub rate_kbps: u32,
    /// Size of the chunks that clients request, bytes; the last chunk of a title may be shorter.
    #[schemars(range(min = 1))]
    pub chunk_bytes: u32,
}

/// An invalid parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct OnDemandError {
    /// The parameter.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// Description of valid values.
    pub expected: &'static str,
}

impl OnDemandSpec {
    /// Checks the parameters.
    ///
    /// # Errors
    /// The first invalid parameter, with its value and what was expected.
    pub fn check(&self) -> Result<(), OnDemandError> {
        let positive = |field, value| match value {
            0 => Err(OnDemandError {
                field,
                value,
                expected: "1 or more",
            }),
            _ => Ok(()),
        };
        positive("classes", self.classes.len() as u64)?;
        positive("rate_kbps", self.rate_kbps.into())?;
        positive("chunk_bytes", self.chunk_bytes.into())?;
        for class in &self.classes {
            positive("classes.viewers", class.viewers.into())?;
            positive("classes.titles", class.titles.into())?;
            positive("classes.bytes", class.bytes)?;
        }
        let chunks = self.classes.iter().fold(0_u64, |chunks, class| {
            let of_class = u64::from(class.titles).saturating_mul(self.chunks(class));
            chunks.saturating_add(of_class)
        });
        if chunks > MOST_CHUNKS {
            return Err(OnDemandError {
                field: "classes",
                value: chunks,
                expected: "at most 2^24 chunks of all titles together",
            });
        }
        Ok(())
    }

    fn chunks(&self, class: &TitleClass) -> u64 {
        class.bytes.div_ceil(self.chunk_bytes.into())
    }
}

/// On-demand streaming. The same parameters and seed give the same load.
#[derive(Clone, Debug)]
pub struct OnDemand {
    spec: OnDemandSpec,
    files: FileSet,
    class: WeightedAliasIndex<u32>,
    title: Vec<WeightedAliasIndex<f64>>,
    /// The first file of each class.
    first_file: Vec<u32>,
    random: Pcg64,
}

impl OnDemand {
    /// Creates the load.
    ///
    /// # Panics
    /// If [`OnDemandSpec::check`] refuses them.
    pub fn new(spec: OnDemandSpec, seed: u64) -> Self {
        spec.check().expect("the parameters were checked");
        let mut sizes = Vec::new();
        let mut first_file = Vec::new();
        for class in &spec.classes {
            first_file.push(sizes.len() as u32);
            for _ in 0..class.titles {
                sizes.extend(chunk_sizes(class.bytes, spec.chunk_bytes.into()));
            }
        }
        let weights = "the weights are not empty and positive";
        let viewers = spec.classes.iter().map(|class| class.viewers).collect();
        let title = |class: &TitleClass| WeightedAliasIndex::new(zipf(class.titles));
        Self {
            files: FileSet::new(sizes),
            class: WeightedAliasIndex::new(viewers).expect(weights),
            title: spec
                .classes
                .iter()
                .map(|class| title(class).expect(weights))
                .collect(),
            first_file,
            random: Pcg64::seed_from_u64(seed),
            spec,
        }
    }
}

impl Workload for OnDemand {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        let class = self.class.sample(&mut self.random);
        let title = self.title[class].sample(&mut self.random) as u32;
        let chunks = self.spec.chunks(&self.spec.classes[class]) as u32;
        let start = self.random.random_range(0..chunks);
        let first = self.first_file[class] + title * chunks;
        script.clear();
        script.extend(
            (first + start..first + chunks)
                .map(|file| RequestSpec::fixed(file, self.files.size(file))),
        );
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        let viewers = |class: &TitleClass| f64::from(class.viewers);
        let all: f64 = self.spec.classes.iter().map(viewers).sum();
        // From a random chunk to the last.
        let requests = |class: &TitleClass| (self.spec.chunks(class) + 1) as f64 / 2.0;
        let of_viewers = |class| viewers(class) * requests(class);
        self.spec.classes.iter().map(of_viewers).sum::<f64>() / all
    }

    fn throttle(&self) -> Option<Throttle> {
        Some(Throttle {
            min_bps: 0,
            max_bps: u64::from(self.spec.rate_kbps) * 1000,
            read_bytes: 0,
        })
    }
}

/// Returns Zipf weights with exponent 1.
pub(crate) fn zipf(count: u32) -> Vec<f64> {
    (1..=count).map(|rank| 1.0 / f64::from(rank)).collect()
}

/// Returns the sizes of the chunks of a title of `bytes` bytes.
fn chunk_sizes(bytes: u64, chunk: u64) -> impl Iterator<Item = u64> {
    (0..bytes.div_ceil(chunk)).map(move |n| chunk.min(bytes - n * chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> OnDemandSpec {
        OnDemandSpec {
            classes: vec![
                TitleClass {
                    viewers: 3,
                    titles: 10,
                    bytes: 250,
                },
                TitleClass {
                    viewers: 1,
                    titles: 4,
                    bytes: 1_000,
                },
            ],
            rate_kbps: 8,
            chunk_bytes: 100,
        }
    }

    fn connections(seed: u64, count: usize) -> Vec<Vec<RequestSpec>> {
        let mut load = OnDemand::new(spec(), seed);
        let mut script = Vec::new();
        let mut next = || {
            load.next_connection(&mut script);
            script.clone()
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn titles_are_played_to_their_end() {
        let load = OnDemand::new(spec(), 1);
        assert_eq!(load.files().len(), 10 * 3 + 4 * 10);
        assert_eq!(load.files().footprint(), 10 * 250 + 4 * 1_000);
        for script in connections(1, 500) {
            let (first, last) = (script[0].file, script[script.len() - 1]);
            for (request, file) in script.iter().zip(first..) {
                assert_eq!(request.file, file, "chunks follow each other");
            }
            if last.file < 30 {
                assert_eq!(last.file % 3, 2);
                assert_eq!(last.bytes, 50, "the rest of 250");
            } else {
                assert_eq!((last.file - 30) % 10, 9);
                assert_eq!(last.bytes, 100);
            }
        }
    }

    #[test]
    fn viewers_and_titles_are_drawn_as_described() {
        let all = connections(2, 40_000);
        let long = all.iter().filter(|script| script[0].file >= 30).count();
        let share = long as f64 / all.len() as f64;
        assert!((share - 0.25).abs() < 0.01, "{share} of long titles");
        let first_title = all.iter().filter(|script| script[0].file < 3).count();
        // 1 / H(10) of the short titles.
        let share = first_title as f64 / (all.len() - long) as f64;
        assert!((share - 0.3414).abs() < 0.01, "{share} of the first title");
        let starts = all
            .iter()
            .filter(|script| script[0].file >= 30 && (script[0].file - 30) % 10 < 5)
            .count();
        let share = starts as f64 / long as f64;
        assert!(
            (share - 0.5).abs() < 0.02,
            "{share} begin in the first half"
        );
    }

    #[test]
    fn the_rate_limits_clients_and_the_seed_determines_everything() {
        let throttle = OnDemand::new(spec(), 1).throttle().unwrap();
        assert_eq!(throttle.time_ns(100), 100_000_000);
        assert_eq!(connections(3, 50), connections(3, 50));
        assert_ne!(connections(3, 50), connections(4, 50));
    }

    #[test]
    fn invalid_parameters_are_named() {
        let refused = |change: fn(&mut OnDemandSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check().unwrap_err().to_string()
        };
        assert_eq!(
            refused(|spec| spec.chunk_bytes = 0),
            "chunk_bytes = 0: expected 1 or more"
        );
        assert_eq!(
            refused(|spec| spec.classes.clear()),
            "classes = 0: expected 1 or more"
        );
        assert_eq!(
            refused(|spec| spec.classes[1].viewers = 0),
            "classes.viewers = 0: expected 1 or more"
        );
        assert!(refused(|spec| spec.classes[0].bytes = 1 << 40).contains("2^24"));
    }
}
