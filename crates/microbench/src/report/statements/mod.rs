//! The report's statements about its microbenchmarks, and whether they hold for the simulated NICs.
//!
//! The report's text does not give the heights of its bars. Where it gives no number, its words are read as follows: *near* is within 3 %,
//! *substantially* more than 10 %, *slightly* up to 5 %; *improves* means by at least 1 %; *equal* or *hardly changes* is within 1 %.

mod applications;
mod large;
mod small;

pub use applications::application_statements;

use super::{Partners, Results, Series};
use serde::Serialize;

/// Indices of the NICs, in the order of the report.
mod nic {
    pub(super) const SERVER: usize = 0;
    pub(super) const DESKTOP: usize = 1;
    pub(super) const ACE_OPTIMIZED: usize = 2;
    pub(super) const NETGEAR: usize = 3;
    pub(super) const THREE_COM: usize = 4;
    pub(super) const ACE: usize = 5;
    pub(super) const ALL: [usize; 6] = [SERVER, DESKTOP, ACE_OPTIMIZED, NETGEAR, THREE_COM, ACE];
}

/// Whether a statement holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of its parts hold.
    Holds,
    /// Some of its parts hold.
    Partly,
    /// None of its parts holds.
    Fails,
}

/// A statement of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The statement's number, in the order of the report: C1 to C17.
    pub id: &'static str,
    /// Text of the statement.
    pub says: &'static str,
    /// Whether the statement holds.
    pub verdict: Verdict,
    /// Parts of the statement, with the values that decide.
    pub parts: Vec<Part>,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Text of the part.
    pub says: &'static str,
    /// Whether the part holds.
    pub holds: bool,
    /// The values that decide.
    pub values: Vec<f64>,
}

/// Six values, one for each NIC.
type Six = [f64; 6];

/// The results that statements are checked against.
struct Evidence<'a> {
    results: &'a Results,
    partners: Partners,
}

impl Evidence<'_> {
    /// Returns the values of a series.
    fn of(&self, series: Series) -> Six {
        nic::ALL.map(|nic| self.results.best(&series.point(nic, &self.partners)))
    }
}

fn is_near(value: f64, limit: f64) -> bool {
    value >= 0.97 * limit
}

fn is_equal(value: f64, other: f64) -> bool {
    (value / other - 1.0).abs() < 0.01
}

fn improves(better: f64, value: f64) -> bool {
    better >= 1.01 * value
}

fn is_substantially_below(value: f64, limit: f64) -> bool {
    value < 0.9 * limit
}

fn is_slightly_below(value: f64, limit: f64) -> bool {
    (0.95 * limit..0.995 * limit).contains(&value)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the values of one series divided by those of another.
fn ratios(values: &Six, others: &Six) -> Six {
    nic::ALL.map(|nic| values[nic] / others[nic])
}

/// Returns whether a condition holds for this NIC and for no other.
fn only(nic: usize, condition: impl Fn(usize) -> bool) -> bool {
    nic::ALL.iter().all(|one| condition(*one) == (*one == nic))
}

fn at<const N: usize>(values: &Six, nics: [usize; N]) -> Vec<f64> {
    nics.map(|nic| values[nic]).to_vec()
}

/// Returns the number of a NIC in the report's order, from 1.
fn number(place: usize) -> f64 {
    place as f64 + 1.0
}

fn part(says: &'static str, holds: bool, values: impl Into<Vec<f64>>) -> Part {
    Part {
        says,
        holds,
        values: values.into(),
    }
}

fn statement(id: &'static str, says: &'static str, parts: Vec<Part>) -> Statement {
    let held = parts.iter().filter(|part| part.holds).count();
    let verdict = match held {
        0 => Verdict::Fails,
        _ if held == parts.len() => Verdict::Holds,
        _ => Verdict::Partly,
    };
    Statement {
        id,
        says,
        verdict,
        parts,
    }
}

/// Returns the verdicts on all statements about the microbenchmarks, C1 to C14, from the results of all [bars](super::bars) of the report's
/// NICs.
///
/// # Panics
/// When a bar was not measured.
pub fn statements(results: &Results, partners: &Partners) -> Vec<Statement> {
    let evidence = Evidence {
        results,
        partners: *partners,
    };
    let rules: [fn(&Evidence<'_>) -> Statement; 14] = [
        large::c1,
        large::c2,
        large::c3,
        large::c4,
        large::c5,
        small::c6,
        small::c7,
        small::c8,
        small::c9,
        small::c10,
        large::c11,
        small::c12,
        small::c13,
        small::c14,
    ];
    rules.map(|rule| rule(&evidence)).into()
}
