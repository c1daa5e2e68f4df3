//! Comparison of a generated log with its model.

use crate::analyse::{Analysis, BLOCK_BYTES, BlockString, BlocksError, lru_hit_bytes, ratio};
use crate::generate::PublishedTrace;
use crate::log::Log;
use crate::session::{SessionRule, Sessions};
use serde::Serialize;

/// Statistics of a log next to those of the log generated from its fit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FitError {
    /// One row for each statistic.
    pub rows: Vec<FitRow>,
}

/// One statistic of both logs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FitRow {
    /// Name of the statistic.
    pub metric: String,
    /// Unit of the statistic.
    pub unit: Unit,
    /// Value in the original log.
    pub original: f64,
    /// Value in the generated log.
    pub generated: f64,
}

/// Unit of a statistic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A share, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
}

impl FitRow {
    /// Returns the error of the generated value: the difference for shares, otherwise the difference relative to the original.
    pub fn error(&self) -> f64 {
        let difference = self.generated - self.original;
        match self.unit {
            Unit::Share => difference,
            Unit::Bytes | Unit::Count if self.original != 0.0 => difference / self.original,
            Unit::Bytes | Unit::Count => difference,
        }
    }
}

impl FitError {
    /// Compares the analyses of two logs under `rule`.
    pub fn between(original: &Log, generated: &Log, rule: SessionRule) -> Self {
        let original = numbers(&Analysis::of(original, rule));
        let generated = numbers(&Analysis::of(generated, rule));
        let row = |((metric, unit, original), (_, _, generated))| FitRow {
            metric,
            unit,
            original,
            generated,
        };
        Self {
            rows: original.into_iter().zip(generated).map(row).collect(),
        }
    }

    /// Compares a generated log with published properties of the trace that it imitates, which are `original` in the rows.
    ///
    /// # Errors
    /// The log's files are too large to be divided into blocks.
    pub fn against(published: &PublishedTrace, generated: &Log) -> Result<Self, BlocksError> {
        let sessions = Sessions::new(&generated.requests, SessionRule::PAPERS);
        let strings = BlockString::split(generated, &sessions, 2, BLOCK_BYTES)?;
        let mean = ratio(generated.content_bytes(), generated.requests.len() as u64);
        let mut rows = vec![FitRow {
            metric: "mean response".to_owned(),
            unit: Unit::Bytes,
            original: published.mean_bytes,
            generated: mean,
        }];
        let all: u64 = strings.iter().map(|string| string.bytes).sum();
        for (mib, original) in [4u64, 8, 16].into_iter().zip(published.hits_4_8_16_mib) {
            let slots = [((mib << 20) / BLOCK_BYTES) as u32];
            let hits = strings
                .iter()
                .map(|string| lru_hit_bytes(string, &slots)[0]);
            rows.push(FitRow {
                metric: format!("LRU byte hits, two caches of {mib} MB"),
                unit: Unit::Share,
                original,
                generated: ratio(hits.sum(), all),
            });
        }
        Ok(Self { rows })
    }

    /// Returns the row of a metric.
    pub fn row(&self, metric: &str) -> Option<&FitRow> {
        self.rows.iter().find(|row| row.metric == metric)
    }
}

/// A number with its name and unit.
type Number = (String, Unit, f64);

/// Returns the statistics to compare, always the same ones in the same order.
fn numbers(analysis: &Analysis) -> Vec<Number> {
    let mut numbers = popularity_and_sizes(analysis);
    for cache_mib in [1, 2, 4, 8, 16] {
        let hits = analysis.locality.byte_hits(cache_mib).unwrap_or(0.0);
        numbers.push((format!("LRU byte hits, {cache_mib} MB"), Unit::Share, hits));
    }
    let requests = &analysis.connections.requests;
    numbers.push((
        "requests per connection, mean".to_owned(),
        Unit::Count,
        requests.mean,
    ));
    for percent in [50, 90, 99] {
        let value = requests.percentile(percent).unwrap_or(0) as f64;
        numbers.push((
            format!("requests per connection, {percent} %"),
            Unit::Count,
            value,
        ));
    }
    if let Some(lifetimes) = &analysis.lifetimes {
        numbers.push((
            "packets per connection, mean".to_owned(),
            Unit::Count,
            lifetimes.packets.mean,
        ));
        let top = lifetimes.top_packets(10).unwrap_or(0.0);
        numbers.push((
            "packets of the top 10 % of connections".to_owned(),
            Unit::Share,
            top,
        ));
        let bottom = lifetimes.bottom_half_packets();
        numbers.push((
            "packets of the bottom 50 % of connections".to_owned(),
            Unit::Share,
            bottom,
        ));
    }
    numbers
}

fn popularity_and_sizes(analysis: &Analysis) -> Vec<Number> {
    let popularity = &analysis.popularity;
    let mut numbers = vec![(
        "files requested".to_owned(),
        Unit::Count,
        popularity.files() as f64,
    )];
    for files in [1, 10, 100, 1000] {
        let share = popularity.top_requests(files).unwrap_or(1.0);
        numbers.push((
            format!("requests for the top {files} files"),
            Unit::Share,
            share,
        ));
    }
    if let Some(sizes) = &analysis.sizes {
        let footprint = analysis.totals.footprint_bytes as f64;
        numbers.push(("footprint".to_owned(), Unit::Bytes, footprint));
        numbers.push((
            "response, mean".to_owned(),
            Unit::Bytes,
            sizes.responses.mean,
        ));
        for percent in [50, 75, 90, 99] {
            let value = sizes.responses.percentile(percent).unwrap_or(0) as f64;
            numbers.push((format!("response, {percent} %"), Unit::Bytes, value));
        }
    }
    numbers
}
