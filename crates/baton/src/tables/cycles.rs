//! Tables of host cycles and NIC instructions.

use super::number;
use baton_kernel::LAYERS;
use baton_report::{Column, Table, grouped, percent, width};
use baton_sim::results::{Cycles, PerPacket, Results, TaskResults};
use std::cmp::Reverse;

/// Returns the host's layers from the wire up.
fn layers(result: &Results) -> Vec<(&str, Cycles)> {
    let layers = result.host.layers.iter();
    let mut layers: Vec<(&str, Cycles)> = layers.map(|(name, cycles)| (&**name, *cycles)).collect();
    layers.sort_by_key(|(name, _)| height(name));
    layers
}

/// Returns the place of a layer of the host, counted from the wire up.
pub fn height(name: &str) -> Option<usize> {
    let is_it = |layer: &_| format!("{layer:?}").eq_ignore_ascii_case(name);
    LAYERS.iter().position(is_it)
}

/// Renders host cycles by layer and cause, as shares of all cycles including idle cycles.
pub(super) fn by_cause(result: &Results) -> String {
    let layers = layers(result);
    let sum = |of: fn(&Cycles) -> u64| layers.iter().map(|(_, cycles)| of(cycles)).sum();
    let busy = Cycles {
        execute: sum(|one| one.execute),
        l2: sum(|one| one.l2),
        memory: sum(|one| one.memory),
        ..Cycles::default()
    };
    let idle = result.host.idle_cycles;
    let all = busy.total() + idle;
    let share = |cycles| percent(share_percent(cycles, all));
    let mut table = Table::of("host cycles", &["execute", "L2 hit", "memory", "all"]);
    for (name, cycles) in layers.into_iter().chain([("busy", busy)]) {
        let causes = [cycles.execute, cycles.l2, cycles.memory, cycles.total()];
        let cells = std::iter::once(name.to_owned()).chain(causes.map(share));
        table.row(cells.collect());
    }
    let nothing = String::new;
    table.row(vec![
        "idle".to_owned(),
        nothing(),
        nothing(),
        nothing(),
        share(idle),
    ]);
    table.render()
}

/// A configuration, and the mean share of each layer in all cycles of its runs, per cent. All runs have the same layers in the same order.
type Shares<'a> = (&'a str, Vec<(&'a str, f64)>);

/// Renders the shares of host cycles by layer, for each configuration with all its seeds. `elsewhere` names the place of layers that do not
/// fit into the table.
pub(super) fn by_layer(results: &[Results], elsewhere: &str) -> String {
    let shares = |result| {
        let mut cycles: Vec<(&str, u64)> = (layers(result).into_iter())
            .map(|(name, cycles)| (name, cycles.total()))
            .collect();
        cycles.push(("idle", result.host.idle_cycles));
        let all = cycles.iter().map(|(_, cycles)| cycles).sum();
        let share = |(name, cycles)| (name, share_percent(cycles, all));
        cycles.into_iter().map(share).collect()
    };
    let mut runs: Vec<Shares<'_>> = Vec::new();
    for same in results.chunk_by(|one, other| one.experiment.name == other.experiment.name) {
        let each: Vec<Vec<(&str, f64)>> = same.iter().map(shares).collect();
        let mean = |layer: usize| {
            let sum: f64 = each.iter().map(|shares| shares[layer].1).sum();
            (each[0][layer].0, sum / each.len() as f64)
        };
        let name = &same[0].experiment.name;
        runs.push((name, (0..each[0].len()).map(mean).collect()));
    }
    shares_table(&runs, elsewhere)
}

/// Maximum number of runs with a column each.
const SIDE_BY_SIDE: usize = 6;
/// Width of the column of layers.
const LAYER_WIDTH: usize = "host cycles".len() + 2;

/// Lays out the table with a column for each run if the columns fit, and otherwise with a row for each run.
fn shares_table(runs: &[Shares<'_>], elsewhere: &str) -> String {
    let layers = runs.first().map_or(&[][..], |(_, shares)| shares);
    let names = runs.iter().map(|(run, _)| run.chars().count() + 3);
    if runs.len() <= SIDE_BY_SIDE && LAYER_WIDTH + names.sum::<usize>() <= width() {
        let heads: Vec<&str> = runs.iter().map(|(run, _)| *run).collect();
        let mut table = Table::of("host cycles", &heads);
        for (index, (layer, _)) in layers.iter().enumerate() {
            let share =
                |(_, shares): &Shares<'_>| shares.get(index).map(|(_, share)| percent(*share));
            let shares = runs.iter().map(|run| share(run).unwrap_or_default());
            table.row(std::iter::once((*layer).to_owned()).chain(shares).collect());
        }
        return table.render();
    }
    let largest = |layer: usize| {
        let shares = runs
            .iter()
            .filter_map(|(_, shares)| Some(shares.get(layer)?.1));
        shares.fold(0.0, f64::max)
    };
    let mut by_share: Vec<usize> = (0..layers.len()).collect();
    by_share.sort_by(|a, b| largest(*b).total_cmp(&largest(*a)));
    let rank = |layer| by_share.iter().position(|other| *other == layer);
    let head = |(index, (layer, _)): (usize, &(&str, f64))| {
        Column::numbers(*layer).ranked(rank(index).unwrap_or(0) as u8)
    };
    let mut columns = vec![Column::words("host cycles")];
    columns.extend(layers.iter().enumerate().map(head));
    let mut table = Table::new(columns).elsewhere(elsewhere);
    for (run, shares) in runs {
        let shares = shares.iter().map(|(_, share)| percent(*share));
        table.row(std::iter::once((*run).to_owned()).chain(shares).collect());
    }
    table.without_empty("0 %").render()
}

/// Renders NIC instructions by task.
pub(super) fn tasks(result: &Results) -> String {
    let done = result.nic.tasks.iter().filter(|(_, done)| done.count > 0);
    let mut tasks: Vec<(&String, &TaskResults)> = done.collect();
    tasks.sort_by_key(|(_, done)| Reverse(done.instructions));
    let all = tasks.iter().map(|(_, done)| done.instructions).sum();
    let mut table = Table::of("NIC task", &["count", "instructions", "share"]);
    for (task, done) in tasks {
        table.row(vec![
            task.replace('_', " "),
            grouped(done.count),
            grouped(done.instructions),
            percent(share_percent(done.instructions, all)),
        ]);
    }
    table.render()
}

/// Renders the costs of the network stack per packet, by kind of packet.
pub(super) fn per_packet(kinds: &[(&str, PerPacket)]) -> String {
    let heads = ["packets", "cycles", "instructions", "L2 misses"];
    let mut table = Table::of("network stack, per packet", &heads);
    for (kind, costs) in kinds {
        table.row(vec![
            (*kind).to_owned(),
            grouped(costs.packets),
            number(costs.cycles),
            number(costs.instructions),
            number(costs.l2_misses),
        ]);
    }
    table.render()
}

fn share_percent(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => 100.0 * part as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_measurements_do_not_divide_by_zero() {
        assert_eq!(share_percent(0, 0), 0.0);
        assert!(per_packet(&[("none", PerPacket::default())]).contains('-'));
    }

    #[test]
    fn each_run_has_a_column() {
        let run = |name, share| (name, vec![("tcp", share)]);
        let text = shares_table(&[run("a", 12.0), run("b", 40.0)], "");
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains("12 %") && last.contains("40 %"), "{text}");
    }

    #[test]
    fn many_runs_have_a_row_each() {
        let shares = vec![("tcp", 12.0), ("handoff", 0.0), ("idle", 88.0)];
        let text = shares_table(&vec![("variant", shares); 500], "");
        assert_eq!(text.lines().count(), 502);
        assert!(!text.contains("handoff"), "{text}");
    }
}
