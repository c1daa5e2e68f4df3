//! Tables 1 and 2 of the paper: one connection, normalised to the baseline.

use super::settings::Sides;

/// Response time, transfer time and crossings at one size; a transfer time of 0 means that there is none.
pub(super) type Cell = [f64; 3];

/// Table 1, maximal batching: 1, 64 and 512 KB.
const MAXIMAL: [(Sides, [Cell; 3]); 3] = [
    (
        Sides::Host,
        [[10.6, 0.0, 1.0], [5.7, 1.0, 1.0], [5.7, 1.0, 1.0]],
    ),
    (
        Sides::Adapter,
        [[8.17, 0.0, 0.77], [8.21, 1.0, 0.94], [8.03, 1.0, 1.0]],
    ),
    (
        Sides::Both,
        [[17.8, 0.0, 0.77], [12.93, 1.0, 0.94], [12.07, 1.0, 1.0]],
    ),
];

/// Table 2, the best settings. At 64 and 512 KB these are representative runs: no setting saved crossings without a penalty.
const BEST: [(Sides, [Cell; 3]); 3] = [
    (
        Sides::Host,
        [[1.81, 0.0, 1.0], [1.93, 1.0, 1.0], [1.09, 1.0, 1.0]],
    ),
    (
        Sides::Adapter,
        [[1.05, 0.0, 0.77], [1.0, 1.11, 1.0], [1.03, 1.0, 1.0]],
    ),
    (
        Sides::Both,
        [[1.82, 0.0, 0.77], [1.99, 1.0, 1.0], [1.17, 1.0, 1.0]],
    ),
];

/// Returns the values in Table 1 for these sides and the file number `file`.
pub(super) fn maximal(sides: Sides, file: usize) -> Cell {
    of(&MAXIMAL, sides, file)
}

/// Returns the values in Table 2.
pub(super) fn best(sides: Sides, file: usize) -> Cell {
    of(&BEST, sides, file)
}

fn of(table: &[(Sides, [Cell; 3]); 3], sides: Sides, file: usize) -> Cell {
    let row = table.iter().find(|(of, _)| *of == sides);
    row.expect("both published tables contain all sides").1[file]
}
