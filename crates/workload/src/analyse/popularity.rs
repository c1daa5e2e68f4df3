//! Distribution of requests over files.

use super::ratio;
use crate::log::Log;
use serde::Serialize;

/// Numbers of most popular files whose share is reported.
const TOP: [usize; 7] = [1, 10, 30, 100, 300, 1000, 10_000];

/// Popularity of files.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Popularity {
    /// Shares of the most popular files.
    pub top: Vec<TopShare>,
    /// Number of files requested only once.
    pub once: u64,
    /// Estimate of the exponent `s` of Zipf's law, by which requests for the `k`-th most popular file are proportional to `k^-s`: a
    /// least-squares line through the logarithms, with one point for each octave of rank. 0 if there are fewer than two points.
    pub zipf_exponent: f64,
}

/// The share of the most popular files in all requests.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TopShare {
    /// Number of most popular files to which the shares belong.
    pub files: u64,
    /// Share of the requests that are for these files, 0 to 1.
    pub requests: f64,
    /// Share of the content bytes that these files have, 0 to 1.
    pub bytes: f64,
}

impl Popularity {
    /// Returns the number of files that were requested.
    pub fn files(&self) -> u64 {
        self.top.last().map_or(0, |all| all.files)
    }

    /// Returns the share of requests for the `files` most popular files, if it was computed.
    pub fn top_requests(&self, files: u64) -> Option<f64> {
        self.top
            .iter()
            .find(|t| t.files == files)
            .map(|t| t.requests)
    }

    /// Computes the popularity of the files of `log`.
    pub fn of(log: &Log) -> Self {
        let ranked = ranked(log);
        let requests: u64 = ranked.iter().map(|&(n, _)| n).sum();
        let bytes: u64 = ranked.iter().map(|&(_, b)| b).sum();
        let tops = TOP.into_iter().filter(|&k| k < ranked.len());
        let top = tops.chain([ranked.len()]).map(|k| TopShare {
            files: k as u64,
            requests: ratio(ranked[..k].iter().map(|&(n, _)| n).sum(), requests),
            bytes: ratio(ranked[..k].iter().map(|&(_, b)| b).sum(), bytes),
        });
        let top = top.collect();
        let once = ranked.iter().filter(|&&(n, _)| n == 1).count() as u64;
        let counts: Vec<u64> = ranked.iter().map(|&(n, _)| n).collect();
        Self {
            top,
            once,
            zipf_exponent: zipf_exponent(&counts),
        }
    }
}

/// Returns requests and content bytes of each file that was requested, by descending number of requests; ties are in order of first
/// request.
fn ranked(log: &Log) -> Vec<(u64, u64)> {
    let mut files = vec![(0, 0); log.files.len()];
    for request in &log.requests {
        let (requests, bytes) = &mut files[request.file as usize];
        *requests += 1;
        *bytes += request.bytes;
    }
    files.retain(|&(requests, _)| requests > 0);
    files.sort_by_key(|&(requests, _)| std::cmp::Reverse(requests));
    files
}

/// Returns the exponent of Zipf's law for these counts, which are in descending order.
///
/// Octaves of rank (1, 2-3, 4-7, ...) are one point each, at their geometric mean rank and mean count. A line through single files would be
/// dominated by the many files that were requested once, whose number depends on the log's length.
pub(crate) fn zipf_exponent(counts: &[u64]) -> f64 {
    let mut points = Vec::new();
    let mut first = 0;
    while 2 * first < counts.len() {
        // Ranks first + 1 to 2 * first + 1, counted from 1; the last octave is used only if it is complete.
        let octave = &counts[first..(2 * first + 1).min(counts.len())];
        if octave.len() < first + 1 {
            break;
        }
        let middle_rank = libm::sqrt((first + 1) as f64 * (2 * first + 1) as f64);
        let mean = ratio(octave.iter().sum(), octave.len() as u64);
        points.push((libm::log(middle_rank), libm::log(mean)));
        first = 2 * first + 1;
    }
    -slope(&points)
}

/// Returns the slope of the least-squares line, or 0 if it is undefined.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
    let covariance: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let variance: f64 = points.iter().map(|p| (p.0 - mean_x) * (p.0 - mean_x)).sum();
    if points.len() < 2 || variance == 0.0 {
        0.0
    } else {
        covariance / variance
    }
}
