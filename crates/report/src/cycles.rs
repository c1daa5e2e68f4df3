//! Where host cycles and NIC instructions went.

use crate::number::{grouped, percent, significant};
use crate::table::{Column, Table};
use crate::width::width;

/// Host cycles of one layer by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CyclesRow {
    /// The layer.
    pub layer: String,
    /// Executing instructions.
    pub execute: u64,
    /// Waiting for the level-2 cache.
    pub l2: u64,
    /// Waiting for memory.
    pub memory: u64,
}

impl CyclesRow {
    const fn total(&self) -> u64 {
        self.execute + self.l2 + self.memory
    }
}

/// Host cycles by layer and cause, as shares of all cycles including the `idle` ones.
pub fn cycles_table(rows: &[CyclesRow], idle: u64) -> String {
    let all = rows.iter().map(CyclesRow::total).sum::<u64>() + idle;
    let share = |cycles| percent(share_percent(cycles, all));
    let mut table = Table::new(vec![
        Column::words("host cycles"),
        Column::numbers("execute"),
        Column::numbers("L2 hit"),
        Column::numbers("memory"),
        Column::numbers("all"),
    ]);
    let mut busy = CyclesRow {
        layer: "busy".to_owned(),
        ..CyclesRow::default()
    };
    for row in rows {
        table.row(vec![
            row.layer.clone(),
            share(row.execute),
            share(row.l2),
            share(row.memory),
            share(row.total()),
        ]);
        busy.execute += row.execute;
        busy.l2 += row.l2;
        busy.memory += row.memory;
    }
    table.row(vec![
        busy.layer.clone(),
        share(busy.execute),
        share(busy.l2),
        share(busy.memory),
        share(busy.total()),
    ]);
    table.row(vec![
        "idle".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        share(idle),
    ]);
    table.render()
}

/// One run's host cycles by layer, as a column of [`layer_shares_table`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerShares {
    /// What the run is called.
    pub run: String,
    /// Layer and its share of all cycles, per cent; the same layers in the same order in every run.
    pub percent: Vec<(String, f64)>,
}

/// The most runs that stand side by side.
const SIDE_BY_SIDE: usize = 6;

/// Shares of host cycles by layer: a column for each run if they are few and fit, else a row for each. `elsewhere` says where layers are to
/// be seen that do not fit.
pub fn layer_shares_table(runs: &[LayerShares], elsewhere: &str) -> String {
    let names = runs.iter().map(|run| run.run.chars().count() + 3);
    let fit = LAYER_WIDTH + names.sum::<usize>() <= width();
    if runs.len() <= SIDE_BY_SIDE && fit {
        return shares_side_by_side(runs);
    }
    let layers = runs.first().map_or(&[][..], |run| &run.percent);
    let largest = |layer: usize| {
        let shares = runs
            .iter()
            .filter_map(|run| Some(run.percent.get(layer)?.1));
        shares.fold(0.0, f64::max)
    };
    let mut by_share: Vec<usize> = (0..layers.len()).collect();
    by_share.sort_by(|a, b| largest(*b).total_cmp(&largest(*a)));
    let rank = |layer| by_share.iter().position(|other| *other == layer);
    let head = |(index, (layer, _)): (usize, &(String, f64))| {
        Column::numbers(layer.clone()).ranked(rank(index).unwrap_or(0) as u8)
    };
    let mut columns = vec![Column::words("host cycles")];
    columns.extend(layers.iter().enumerate().map(head));
    let mut table = Table::new(columns).elsewhere(elsewhere);
    for run in runs {
        let mut cells = vec![run.run.clone()];
        cells.extend(run.percent.iter().map(|(_, share)| percent(*share)));
        table.row(cells);
    }
    table.without_empty().render()
}

/// The width of the column of layers.
const LAYER_WIDTH: usize = "host cycles".len() + 2;

fn shares_side_by_side(runs: &[LayerShares]) -> String {
    let mut columns = vec![Column::words("host cycles")];
    columns.extend(runs.iter().map(|run| Column::numbers(run.run.clone())));
    let mut table = Table::new(columns);
    let layers = runs.first().map_or(&[][..], |run| &run.percent);
    for (index, (layer, _)) in layers.iter().enumerate() {
        let mut cells = vec![layer.clone()];
        cells.extend(runs.iter().map(|run| {
            run.percent
                .get(index)
                .map_or_else(String::new, |(_, p)| percent(*p))
        }));
        table.row(cells);
    }
    table.render()
}

/// One kind of firmware task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// The task.
    pub task: String,
    /// How often it was done.
    pub count: u64,
    /// Instructions, all together.
    pub instructions: u64,
}

/// NIC instructions by task.
pub fn tasks_table(rows: &[TaskRow]) -> String {
    let all = rows.iter().map(|row| row.instructions).sum();
    let mut table = Table::new(vec![
        Column::words("NIC task"),
        Column::numbers("count"),
        Column::numbers("instructions"),
        Column::numbers("share"),
    ]);
    for row in rows {
        let share = percent(share_percent(row.instructions, all));
        table.row(vec![
            row.task.clone(),
            grouped(row.count),
            grouped(row.instructions),
            share,
        ]);
    }
    table.render()
}

/// What the host's network stack does for one packet of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PacketCosts {
    /// The kind: packets of host connections or of offloaded ones.
    pub kind: String,
    /// How many there were.
    pub packets: u64,
    /// Cycles per packet; none of no packets, as the others.
    pub cycles: Option<f64>,
    /// Instructions per packet.
    pub instructions: Option<f64>,
    /// Level-2 misses per packet.
    pub l2_misses: Option<f64>,
}

/// Costs of the network stack per packet, by kind.
pub fn packet_costs_table(rows: &[PacketCosts]) -> String {
    let mut table = Table::new(vec![
        Column::words("network stack, per packet"),
        Column::numbers("packets"),
        Column::numbers("cycles"),
        Column::numbers("instructions"),
        Column::numbers("L2 misses"),
    ]);
    for row in rows {
        let per_packet = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), significant);
        table.row(vec![
            row.kind.clone(),
            grouped(row.packets),
            per_packet(row.cycles),
            per_packet(row.instructions),
            per_packet(row.l2_misses),
        ]);
    }
    table.render()
}

fn share_percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        0.0
    } else {
        100.0 * part as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_idle_cycles() {
        let tcp = CyclesRow {
            layer: "tcp".into(),
            execute: 30,
            l2: 0,
            memory: 20,
        };
        let text = cycles_table(&[tcp], 50);
        assert!(text.contains("busy"), "{text}");
        assert!(
            text.lines()
                .last()
                .is_some_and(|line| line.ends_with("50 %")),
            "{text}"
        );
    }

    #[test]
    fn nothing_measured_divides_by_nothing() {
        assert!(cycles_table(&[], 0).contains("idle"));
        assert_eq!(tasks_table(&[]).lines().count(), 2);
        assert!(packet_costs_table(&[PacketCosts::default()]).contains('-'));
    }

    #[test]
    fn each_run_has_a_column() {
        let run = |name: &str, share| LayerShares {
            run: name.into(),
            percent: vec![("tcp".into(), share)],
        };
        let text = layer_shares_table(&[run("a", 12.0), run("b", 40.0)], "");
        assert!(
            text.lines()
                .last()
                .is_some_and(|line| line.contains("12 %") && line.contains("40 %")),
            "{text}"
        );
    }

    #[test]
    fn many_runs_have_a_row_each() {
        let run = |number: u32| LayerShares {
            run: format!("variant {number}"),
            percent: vec![
                ("tcp".into(), 12.0),
                ("handoff".into(), 0.0),
                ("idle".into(), 88.0),
            ],
        };
        let runs: Vec<LayerShares> = (0..500).map(run).collect();
        let text = layer_shares_table(&runs, "");
        assert_eq!(text.lines().count(), 502);
        assert!(!text.contains("handoff"), "{text}");
    }
}
