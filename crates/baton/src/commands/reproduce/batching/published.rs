//! The three tables of the paper, normalised to the baseline.

use super::settings::Sides;

/// Response time, transfer time and crossings at one size; `None` for what the paper does not say. A transfer time of 0 means that there is
/// none.
pub(super) type Cell = [Option<f64>; 3];

/// Values of a table: 1, 64 and 512 KB, by sides in the order of [`Sides::ALL`].
type Values = [[[f64; 3]; 3]; 3];

/// Table 1, maximal batching, one connection.
const MAXIMAL: Values = [
    [[10.6, 0.0, 1.0], [5.7, 1.0, 1.0], [5.7, 1.0, 1.0]],
    [[8.17, 0.0, 0.77], [8.21, 1.0, 0.94], [8.03, 1.0, 1.0]],
    [[17.8, 0.0, 0.77], [12.93, 1.0, 0.94], [12.07, 1.0, 1.0]],
];

/// Table 2, the best settings, one connection. At 64 and 512 KB these are representative runs: no setting saved crossings without a penalty.
const BEST: Values = [
    [[1.81, 0.0, 1.0], [1.93, 1.0, 1.0], [1.09, 1.0, 1.0]],
    [[1.05, 0.0, 0.77], [1.0, 1.11, 1.0], [1.03, 1.0, 1.0]],
    [[1.82, 0.0, 0.77], [1.99, 1.0, 1.0], [1.17, 1.0, 1.0]],
];

/// Response time and crossings of the third table, five connections, "to optimize bus crossings while minimizing response time".
const FIVE: [[[f64; 2]; 3]; 3] = [
    [[2.27, 0.67], [2.05, 0.95], [1.54, 0.97]],
    [[1.05, 0.77], [1.06, 1.0], [0.89, 1.0]],
    [[2.44, 0.48], [2.11, 0.9], [1.64, 0.97]],
];

/// Returns the values in Table 1 for these sides and the file number `file`.
pub(super) fn maximal(sides: Sides, file: usize) -> Cell {
    MAXIMAL[sides as usize][file].map(Some)
}

/// Returns the values in Table 2.
pub(super) fn best(sides: Sides, file: usize) -> Cell {
    BEST[sides as usize][file].map(Some)
}

/// Returns the values in the third table.
pub(super) fn five(sides: Sides, file: usize) -> Cell {
    let [response, crossings] = FIVE[sides as usize][file];
    [Some(response), None, Some(crossings)]
}
