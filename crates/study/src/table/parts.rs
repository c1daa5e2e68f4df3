//! Quantities of a run that are broken down by layer, task, reason or size.

use super::{Cell, Column, Kind};
use baton_sim::results::Results;
use std::collections::BTreeMap;

/// Returns the columns after the run's column.
pub fn columns() -> Vec<Column> {
    vec![
        Column::new("quantity", Kind::Text),
        Column::new("part", Kind::Text),
        Column::new("value", Kind::Integer),
    ]
}

/// Calls `row` for each part of each quantity.
pub fn rows(results: &Results, mut row: impl FnMut(&str, &str, u64)) {
    for (layer, cycles) in &results.host.layers {
        row("host_execute_cycles", layer, cycles.execute);
        row("host_l2_cycles", layer, cycles.l2);
        row("host_memory_cycles", layer, cycles.memory);
        row("host_l2_misses", layer, cycles.l2_misses);
    }
    for (task, done) in &results.nic.tasks {
        row("nic_tasks", task, done.count);
        row("nic_instructions", task, done.instructions);
    }
    let mut reasons = |quantity: &str, counts: &BTreeMap<String, u64>| {
        for (reason, count) in counts {
            row(quantity, reason, *count);
        }
    };
    reasons("failed_connections", &results.clients.failed);
    reasons("host_drops", &results.host.drops);
    reasons("nic_drops", &results.nic.drops);
    reasons("not_offloaded_connections", &results.handoff.not_offloaded);
    for (quantity, direction) in [
        ("bus_to_nic_bytes", &results.bus.to_nic),
        ("bus_to_host_bytes", &results.bus.to_host),
    ] {
        let bytes = direction.bytes;
        row(quantity, "content", bytes.content);
        row(quantity, "protocol_header", bytes.protocol_header);
        row(quantity, "http_header", bytes.http_header);
        row(quantity, "descriptor", bytes.descriptor);
        row(quantity, "event", bytes.event);
        row(quantity, "other", bytes.other);
        row(quantity, "overhead", bytes.overhead);
    }
    for (quantity, transfers) in [
        ("host_transfers", &results.offload.host_transfers),
        ("adapter_transfers", &results.offload.adapter_transfers),
    ] {
        for (power, count) in transfers.buckets.iter().enumerate() {
            // Transfers of at most this number of descriptors, and of more than half of it.
            row(quantity, &(1u64 << power).to_string(), *count);
        }
    }
}

/// Returns the cells of a row after the run's cell.
pub fn cells(quantity: &str, part: &str, value: u64) -> [Cell; 3] {
    [Cell::text(quantity), Cell::text(part), Cell::count(value)]
}
