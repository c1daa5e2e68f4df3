//! The search for the temporal locality: burst share and gap such that LRU caches hit as they do in the log.

use super::files::Usage;
use crate::analyse::{BLOCK_BYTES, Blocks, BlocksError, CachePoint, byte_hits};
use crate::generate::{Distribution, FileTable, LocalitySpec, references};
use crate::log::Log;
use rand::SeedableRng;
use rand_pcg::Pcg64;

/// Requests looked at in the coarse search, which generates and measures 17 logs of this length...
const COARSE_REQUESTS: usize = 40_000;
/// ...and in the fine one, which takes 13 times [`SEEDS`].
const SAMPLE_REQUESTS: usize = 200_000;
/// The caches to match, in bytes.
const CACHE_BYTES: [u64; 6] = [512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20];
/// Seeds of the fine search: a few popular large files make one log's hits differ from another's by two points.
const SEEDS: u64 = 3;
/// Spread of gaps: from a quarter to four times the median for two of three.
const SIGMA: f64 = 1.4;

/// A point of the search.
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

    /// This point with `add` more bursts and the gap multiplied by `factor`, kept inside of what makes sense.
    fn moved(self, add: f64, factor: f64) -> Self {
        Self {
            burst_share: (self.burst_share + add).clamp(0.0, 0.95),
            median_gap: (self.median_gap * factor).clamp(1.0, SAMPLE_REQUESTS as f64),
        }
    }
}

/// What a generated order of references is compared with: the start of a log.
struct Target {
    requests: u32,
    table: FileTable,
    blocks: Blocks,
    hits: Vec<CachePoint>,
}

impl Target {
    /// The first `limit` requests of `log`, or all.
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

    /// How far the hits of generated orders are off, squared, for this many seeds.
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

/// Finds the locality of `log`: the best of a coarse grid over a short sample, then ever smaller steps around the best
/// so far over a long one, averaged over seeds.
///
/// # Errors
/// The files are too large to be cut into blocks.
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

/// The point of least distance so far.
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
