//! Table 2: how microbenchmarks correlate with applications, over the NICs.

use super::{ApplicationResults, Partners, Results, Series, Workload};
use baton_stats::Correlation;

/// The microbenchmarks of the table: those with the best partners, since only their figures distinguish between sending and receiving by
/// TCP (Figures 6, 8, 9, 10 and 11).
pub const CORRELATED: [Series; 10] = [
    Series::LargeSendBest,
    Series::LargeReceiveBest,
    Series::TcpSendBest,
    Series::TcpReceiveBest,
    Series::SmallSendBest,
    Series::SmallReceiveBest,
    Series::LargeThreeWay,
    Series::SmallThreeWay,
    Series::AcceptBest,
    Series::InitiateBest,
];

/// Returns the best result of a microbenchmark on the NIC of index `nic`.
pub(super) fn value(results: &Results, partners: &Partners, series: Series, nic: usize) -> f64 {
    results.best(&series.point(nic, partners))
}

/// Returns the correlation between a microbenchmark and a workload, over the workload's NICs.
///
/// # Panics
/// When one of the two was not measured.
pub fn correlation(
    (results, partners): (&Results, &Partners),
    series: Series,
    applications: &ApplicationResults,
    workload: &Workload,
) -> Correlation {
    let nics = workload.nics.iter();
    let x: Vec<f64> = nics
        .map(|nic| value(results, partners, series, *nic))
        .collect();
    Correlation::of(&x, &applications.values(workload))
}
