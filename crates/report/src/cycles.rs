//! Where host cycles and NIC instructions went.

use crate::number::{grouped, percent, significant};
use crate::table::{Column, Table};

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

/// Shares of host cycles by layer, one column per run.
pub fn layer_shares_table(runs: &[LayerShares]) -> String {
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
    /// Cycles per packet.
    pub cycles: f64,
    /// Instructions per packet.
    pub instructions: f64,
    /// Level-2 misses per packet.
    pub l2_misses: f64,
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
        let per_packet = |value| {
            if row.packets == 0 {
                "-".to_owned()
            } else {
                significant(value)
            }
        };
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
        let text = layer_shares_table(&[run("a", 12.0), run("b", 40.0)]);
        assert!(
            text.lines()
                .last()
                .is_some_and(|line| line.contains("12 %") && line.contains("40 %")),
            "{text}"
        );
    }
}
