//! Search for the temporal locality: the share and gap of bursts for which LRU caches have the same hits as in the log.

use super::files::Usage;
use crate::analyse::{BLOCK_BYTES, Blocks, BlocksError, CachePoint, byte_hits};
use crate::generate::{Distribution, FileTable, LocalitySpec, references};
use crate::log::Log;
use rand::SeedableRng;
use rand_pcg::Pcg64;

/// Number of requests in the coarse search, which generates and measures 17 logs of this length.
const COARSE_REQUESTS: usize = 40_000;
/// Number of requests in the fine search, which generates and measures 13 logs of this length for each of [`SEEDS`] seeds.
const SAMPLE_REQUESTS: usize = 200_000;
/// Sizes of the caches whose hits are compared, in bytes.
const CACHE_BYTES: [u64; 6] = [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
/// Seeds of the fine search. A few popular large files make the hits of two generated logs differ by two percentage points.
const SEEDS: u64 = 3;
/// Spread of gaps: two of three are between a quarter and four times the median.
const SIGMA: f64 = 1.4;

/// Parameters that the search evaluates.
#[derive(Clone, Copy)]
struct Point {
    burst_share: f64,
    median_gap: f64,
}

impl Point {
    /// Independent references.
    const NONE: Self = Self {
        burst_share: 0.0,
        median_gap: 100.0,
    };

    fn spec(self) -> LocalitySpec {
        let max = SAMPLE_REQUESTS as f64;
        let gap = Distribution::LogNormal {
            median: self.median_gap,
            sigma: SIGMA,
            max,
        };
        LocalitySpec {
            burst_share: self.burst_share,
            gap,
        }
    }

    /// Returns this point with `add` more bursts and the gap multiplied by `factor`, limited to valid values.
    fn moved(self, add: f64, factor: f64) -> Self {
        Self {
            burst_share: (self.burst_share + add).clamp(0.0, 0.95),
            median_gap: (self.median_gap * factor).clamp(1.0, SAMPLE_REQUESTS as f64),
        }
    }
}

/// The start of a log, with which generated orders of references are compared.
struct Target {
    requests: u32,
    table: FileTable,
    blocks: Blocks,
    hits: Vec<CachePoint>,
}

impl Target {
    /// Takes the first `limit` requests of `log`, or all if there are fewer.
    fn of(log: &Log, limit: usize) -> Result<Self, BlocksError> {
        let sample = &log.requests[..log.requests.len().min(limit)];
        let usage = Usage::of(sample.iter(), log.files.len());
        let table = FileTable::new(&usage.classes());
        let blocks = Blocks::new(log.files.sizes(), BLOCK_BYTES)?;
        let requests = sample.iter().map(|r| (r.file, r.bytes));
        Ok(Self {
            requests: sample.len() as u32,
            blocks: Blocks::new(&table.sizes, BLOCK_BYTES)?,
            hits: byte_hits(&blocks, requests, &CACHE_BYTES),
            table,
        })
    }

    /// Returns the squared errors of the hits of generated orders, summed over this many seeds.
    fn distance(&self, point: Point, seeds: u64) -> f64 {
        (0..seeds)
            .map(|seed| self.distance_of_one(point, seed))
            .sum()
    }

    fn distance_of_one(&self, point: Point, seed: u64) -> f64 {
        let mut random = Pcg64::seed_from_u64(seed);
        let order = references(&self.table, &point.spec(), self.requests, &mut random);
        let requests = order
            .iter()
            .map(|&file| (file, self.table.sizes[file as usize]));
        let got = byte_hits(&self.blocks, requests, &CACHE_BYTES);
        let square = |(got, wanted): (&CachePoint, &CachePoint)| {
            let difference = got.byte_hits - wanted.byte_hits;
            difference * difference
        };
        got.iter().zip(&self.hits).map(square).sum()
    }
}

/// Finds the locality of `log`: first the best point of a coarse grid for a short sample, then, with ever smaller steps around the best
/// point, for a long sample and several seeds.
///
/// # Errors
/// The files are too large to be divided into blocks.
pub(super) fn fit(log: &Log) -> Result<LocalitySpec, BlocksError> {
    let coarse = Target::of(log, COARSE_REQUESTS)?;
    let mut search = Search::from(Point::NONE, |point| coarse.distance(point, 1));
    for burst_share in [0.15, 0.35, 0.55, 0.75] {
        for median_gap in [10.0, 100.0, 1000.0, 10_000.0] {
            search.consider(Point {
                burst_share,
                median_gap,
            });
        }
    }
    let fine = Target::of(log, SAMPLE_REQUESTS)?;
    let mut search = Search::from(search.best, |point| fine.distance(point, SEEDS));
    for (add, factor) in [(0.1, 3.0), (0.05, 1.7), (0.025, 1.3)] {
        for (add, factor) in [(add, 1.0), (-add, 1.0), (0.0, factor), (0.0, 1.0 / factor)] {
            search.consider(search.best.moved(add, factor));
        }
    }
    Ok(search.best.spec())
}

/// The point with the smallest distance so far.
struct Search<F> {
    distance: F,
    best: Point,
    least: f64,
}

impl<F: Fn(Point) -> f64> Search<F> {
    fn from(best: Point, distance: F) -> Self {
        Self {
            least: distance(best),
            distance,
            best,
        }
    }

    fn consider(&mut self, point: Point) {
        let distance = (self.distance)(point);
        if distance < self.least {
            (self.best, self.least) = (point, distance);
        }
    }
}
