//! Tables of a server's parts besides processor and NIC: interconnect, several NICs, caches, disks.

use super::CATEGORIES;
use baton_report as report;
use baton_sim::results::{InterconnectResults, NicCacheResults, PortResults, Results};

/// Renders the use of the interconnect; empty if the interconnect is ideal.
pub(super) fn interconnect(result: &Results) -> String {
    let Some(used) = &result.interconnect else {
        return String::new();
    };
    let mut table = report::Table::of("interconnect", &["of its time", "of the traffic", "bytes"])
        .titled(title(used));
    let bytes = used.usage.total().bytes;
    for (name, category) in CATEGORIES {
        table.row(vec![
            name.to_owned(),
            report::percent(used.time_percent.get(category)),
            report::percent(used.share_percent(category)),
            report::bytes(bytes.get(category)),
        ]);
    }
    table.render()
}

fn title(used: &InterconnectResults) -> String {
    let transfers = used.usage.total().transfers;
    format!(
        "Interconnect: {} in use; {} DMA reads, {} writes, {} register writes",
        report::percent(used.utilisation_percent),
        report::grouped(transfers.dma_read),
        report::grouped(transfers.dma_write),
        report::grouped(transfers.register_write),
    )
}

/// Renders the transfers of descriptors.
pub(super) fn descriptors(result: &Results) -> String {
    let crossed = &result.offload;
    let title = format!(
        "Between host and NICs: {} crossings for each response",
        report::significant(result.crossings_per_response())
    );
    let mut table = report::Table::of(
        "transfers of descriptors",
        &["transfers", "descriptors", "in each", "at most"],
    )
    .titled(title);
    for (side, transfers) in [
        ("host", &crossed.host_transfers),
        ("adapter", &crossed.adapter_transfers),
    ] {
        let mean = transfers.entries as f64 / transfers.transfers as f64;
        table.row(vec![
            side.to_owned(),
            report::grouped(transfers.transfers),
            report::grouped(transfers.entries),
            report::significant(mean),
            report::grouped(transfers.largest),
        ]);
    }
    table.render()
}

/// Renders a row for each NIC; empty for a single NIC without a cache.
pub(super) fn nics(result: &Results) -> String {
    if result.nics.is_empty() {
        return String::new();
    }
    let heads = "Mb/s|idle|cache hits|bytes hit|bytes inserted|blocks|evictions|stale";
    let heads: Vec<&str> = heads.split('|').collect();
    let mut table = report::Table::of("NIC", &heads);
    for (number, port) in result.nics.iter().enumerate() {
        table.row(nic_row(number, port));
    }
    table.render()
}

fn nic_row(number: usize, port: &PortResults) -> Vec<String> {
    let mut row = vec![
        format!("{number} {}", port.name).trim_end().to_owned(),
        report::significant(port.content_mbps),
        report::percent(port.nic.idle_percent),
    ];
    let of_cache = |cache: &NicCacheResults| {
        let (held, most) = cache.blocks;
        [
            report::percent(cache.hit_percent()),
            report::bytes(cache.hit_bytes),
            report::bytes(cache.inserted_bytes),
            format!(
                "{} of {}",
                report::grouped(held.into()),
                report::grouped(most.into())
            ),
            report::grouped(cache.evictions),
            report::grouped(cache.stale),
        ]
    };
    let none = || std::array::from_fn(|_| "-".to_owned());
    row.extend(port.cache.as_ref().map_or_else(none, of_cache));
    row
}

/// Returns facts about the caches and disks that exist.
pub(super) fn facts(result: &Results) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if result.nics.iter().any(|port| port.cache.is_some()) {
        let kept = result.content_kept_off_bus();
        let kept = kept.map_or_else(|| "-".to_owned(), report::estimated_percent);
        facts.push(("content kept off the bus".to_owned(), kept));
    }
    if let Some(cache) = &result.file_cache {
        let looked_up = (cache.hits + cache.misses) as f64;
        let text = format!(
            "{} of pages were in memory, {} were read",
            report::percent(100.0 * cache.hits as f64 / looked_up),
            report::grouped(cache.pages_read)
        );
        facts.push(("file cache".to_owned(), text));
    }
    if let Some(disk) = &result.disk {
        let busy: Vec<String> = disk
            .utilisation_percent
            .iter()
            .map(|&percent| report::percent(percent))
            .collect();
        let text = format!(
            "busy {}; {} reads of {} in all, {} ms each",
            busy.join(", "),
            report::grouped(disk.reads),
            report::bytes(disk.bytes),
            super::number(disk.service_ms)
        );
        facts.push(("disks".to_owned(), text));
    }
    facts
}
