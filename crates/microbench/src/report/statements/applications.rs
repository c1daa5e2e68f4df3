//! Statements about applications: C15 to C17. The results are predictions: nothing was fitted to them.

use super::{Part, Statement, least, most, part, statement};
use crate::report::{ApplicationLaboratory, ApplicationResults, Workload};

/// The range that counts as *about ten times*.
const ABOUT_TEN: std::ops::RangeInclusive<f64> = 5.0..=15.0;

/// Returns whether no NIC exceeds the one before it, in the report's order, by more than 1 %.
fn falls(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[1] <= 1.01 * pair[0])
}

/// Returns the number of pairs of NICs that differ by more than 1 % in opposite directions for two workloads.
fn contradictions(workloads: &[Vec<f64>]) -> usize {
    let nics = workloads.first().map_or(0, Vec::len);
    let pairs = (0..nics).flat_map(|a| (0..a).map(move |b| (a, b)));
    let is_more = |values: &Vec<f64>, a: usize, b: usize| values[a] > 1.01 * values[b];
    let both_ways = |(a, b): &(usize, usize)| {
        workloads.iter().any(|values| is_more(values, *a, *b))
            && workloads.iter().any(|values| is_more(values, *b, *a))
    };
    pairs.filter(both_ways).count()
}

/// Compares, for each workload, the ratio of best to worst with the report's range, and the order of the NICs with the report's.
fn spread(
    results: &ApplicationResults,
    workloads: &[&Workload],
    [from, to]: [f64; 2],
    says_spread: &'static str,
) -> Vec<Part> {
    let values = workloads.iter().map(|workload| results.values(workload));
    let values: Vec<Vec<f64>> = values.collect();
    let ratios = values.iter().map(|values| most(values) / least(values));
    let ratios: Vec<f64> = ratios.collect();
    let within = ratios.iter().all(|ratio| (from..=to).contains(ratio));
    let in_order = values.iter().filter(|values| falls(values)).count();
    let contradictions = contradictions(&values);
    vec![
        part(says_spread, within, ratios),
        part(
            "no two NICs change places: pairs that do",
            contradictions == 0,
            [contradictions as f64],
        ),
        part(
            "the report's order: workloads that have it",
            in_order == values.len(),
            [in_order as f64],
        ),
    ]
}

/// Returns the verdicts on the statements about applications, C15 to C17, from the results of all
/// [workloads](ApplicationLaboratory::workloads)
/// and the connections per millisecond that each NIC accepts from the best partner.
pub fn application_statements(
    laboratory: &ApplicationLaboratory,
    results: &ApplicationResults,
    accepted: &[f64],
) -> Vec<Statement> {
    let workloads = laboratory.workloads();
    let (web, router): (Vec<_>, Vec<_>) = workloads.iter().partition(|one| one.is_web());
    let c15 = spread(
        results,
        &web,
        [1.4, 1.6],
        "best to worst from 1.4 to 1.6, each log",
    );
    let c16 = spread(
        results,
        &router,
        [1.6, 2.5],
        "best to worst from 1.6 to 2.5, each trace and kind of driver",
    );
    let of_nic = |(nic, accepted): (usize, &f64)| accepted / results.connections_per_ms(nic);
    let times: Vec<f64> = accepted.iter().enumerate().map(of_nic).collect();
    let about_ten = times.iter().all(|times| ABOUT_TEN.contains(times));
    let c17 = vec![
        part(
            "each NIC accepts more than the web server opens",
            least(&times) > 1.0,
            times.clone(),
        ),
        part("5 to 15 times as many, each NIC", about_ten, times),
    ];
    vec![
        statement(
            "C15",
            "Web server: the best NIC gives 40 to 60 % more than the worst, in the same order with all logs",
            c15,
        ),
        statement(
            "C16",
            "Router: the best NIC forwards 60 to 150 % more than the worst",
            c16,
        ),
        statement(
            "C17",
            "NICs accept almost ten times the connections that the web server needs",
            c17,
        ),
    ]
}
