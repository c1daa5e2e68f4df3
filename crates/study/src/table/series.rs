//! Time series of runs.

use super::{Cell, Column, Kind};
use baton_sim::results::Sample;

/// Returns the columns after the run's column.
pub fn columns() -> Vec<Column> {
    let names = [
        "time_us",
        "open_connections",
        "nic_connections",
        "nic_queue_packets",
        "soft_limit_connections",
        "responses",
        "unanswered_requests",
    ];
    names.map(|name| Column::new(name, Kind::Integer)).to_vec()
}

/// Returns the cells of a row after the run's cell.
pub fn cells(sample: &Sample) -> [Cell; 7] {
    [
        sample.time_us,
        sample.open.into(),
        sample.connections.into(),
        sample.qlen.into(),
        sample.soft_limit.into(),
        sample.responses,
        sample.unanswered,
    ]
    .map(Cell::count)
}
