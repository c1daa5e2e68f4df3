//! Numbers in the results of each run that must not be 0, because the run would otherwise not exercise the feature that it tests.

/// Keys of these numbers by the name of the run or the beginning of the name. The first entry that matches counts.
const EXERCISED: &[(&str, &[&str])] = &[
    ("handoff/no handoff", &["handoff.not_offloaded.policy"]),
    (
        "handoff/t4",
        &["handoff.accepted", "handoff.not_offloaded.policy"],
    ),
    (
        "handoff/load control",
        &["handoff.accepted", "handoff.not_offloaded.soft_limit"],
    ),
    ("handoff/active relief", &["handoff.restored"]),
    (
        "handoff/small memory",
        &["handoff.not_offloaded.refused_memory"],
    ),
    (
        "handoff/faulty wire",
        &["handoff.accepted", "nic.retransmissions", "host.drops.paws"],
    ),
    ("handoff/pci", &["handoff.accepted", UTILISATION]),
    (
        "handoff/data cache",
        &["handoff.accepted", UTILISATION, HITS, EVICTIONS],
    ),
    (
        "handoff/overload, host first",
        &[
            "handoff.accepted",
            "handoff.not_offloaded.soft_limit",
            "nic.drops.nic_receive_queue",
        ],
    ),
    (
        "handoff/overload",
        &["handoff.accepted", "nic.drops.arrival_queue"],
    ),
    ("handoff/", &["handoff.accepted"]),
    (
        "today/",
        &["handoff.accepted", "host.timeouts", "nic.timeouts"],
    ),
    ("dcache/no cache", &[UTILISATION]),
    ("dcache/lru, ideal bus", &[HITS, EVICTIONS]),
    (
        "dcache/by file, handoff",
        &[HITS, "handoff.accepted", "handoff.not_offloaded.affinity"],
    ),
    ("dcache/disks", &[UTILISATION, HITS, "disk.reads"]),
    ("dcache/", &[UTILISATION, HITS, EVICTIONS]),
    ("dcache-modern/", &[UTILISATION, HITS]),
    (
        "live-stream/blocks leave",
        &[HITS, "nics.0.cache.delivered"],
    ),
    ("live-stream/blocks stay", &[HITS, "nics.0.cache.stale"]),
    ("on-demand/", &[HITS, EVICTIONS]),
    ("file-server/lazy", &[WRITTEN, HITS, "nics.0.cache.stale"]),
    (
        "file-server/eager",
        &[WRITTEN, HITS, "nics.0.cache.invalidated"],
    ),
    (
        "file-server/update, handoff",
        &[WRITTEN, HITS, "nics.0.cache.updated", "handoff.accepted"],
    ),
    (
        "file-server/update",
        &[WRITTEN, HITS, "nics.0.cache.updated"],
    ),
    (
        "nics/full offload, pci",
        &[
            UTILISATION,
            "offload.host_transfers.transfers",
            "nics.0.content_mbps",
            "nics.1.content_mbps",
        ],
    ),
    (
        "nics/two kinds, one with a data cache",
        &[HITS, "handoff.accepted", "nics.2.content_mbps"],
    ),
    (
        "nics/",
        &[
            "handoff.accepted",
            "nics.0.nic.tasks.handoff.count",
            "nics.1.nic.tasks.handoff.count",
        ],
    ),
    ("specweb/", &["handoff.accepted"]),
    (
        "batching/rate, faulty wire",
        &["clients.responses", "nic.retransmissions"],
    ),
    ("batching/", &["clients.responses"]),
    (
        "memory/full of packets",
        &["nic.drops.memory", "handoff.restored"],
    ),
    ("memory/full offload", &["clients.responses"]),
    ("memory/live stream", &[HITS, "nics.0.cache.delivered"]),
    (
        "files/live stream",
        &["clients.responses", "offload.host_transfers.transfers"],
    ),
    (
        "files/remote files",
        &[WRITTEN, "handoff.offloaded_packets_percent", "disk.reads"],
    ),
    (
        "files/handoff",
        &[
            "handoff.accepted",
            "file_cache.evictions",
            "disk.reads",
            UTILISATION,
        ],
    ),
    ("files/", &["disk.reads", UTILISATION]),
    (
        "processes/threshold 2, load control",
        &["handoff.accepted", "handoff.not_offloaded.soft_limit"],
    ),
    (
        "processes/faulty wire",
        &["handoff.accepted", "clients.retransmissions"],
    ),
    (
        "processes/",
        &["handoff.accepted", "offload.host_transfers.transfers"],
    ),
    (
        "offload-cache/full offload",
        &[HITS, EVICTIONS, "nic.tasks.append_cache.count"],
    ),
    (
        "offload-cache/handoff, pci",
        &[
            "handoff.accepted",
            UTILISATION,
            HITS,
            "nic.tasks.copy_line.count",
        ],
    ),
    (
        "offload-cache/small cache",
        &[
            "handoff.restored",
            "handoff.forwarded",
            "nic.retransmissions",
            HITS,
            EVICTIONS,
        ],
    ),
    ("offload-pcie/", &["clients.responses"]),
];

const UTILISATION: &str = "interconnect.utilisation_percent";
const HITS: &str = "nics.0.cache.hits";
const EVICTIONS: &str = "nics.0.cache.evictions";
/// Bytes of content that clients wrote.
const WRITTEN: &str = "bus.to_host.bytes.content";

/// Returns the keys of the numbers that must not be 0 in the run of this name.
pub fn of(name: &str) -> &'static [&'static str] {
    let found = EXERCISED.iter().find(|(of, _)| name.starts_with(of));
    let (_, keys) =
        found.unwrap_or_else(|| panic!("{name}: add the keys of its feature to EXERCISED"));
    keys
}
