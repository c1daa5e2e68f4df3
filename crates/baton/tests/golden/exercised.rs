//! What runs are there for: numbers in their results that must not be 0, or the run would pin nothing of its feature.

/// By the name of the run or how it begins: the first that fits.
const EXERCISED: &[(&str, &[&str])] = &[
    ("handoff/no handoff", &["handoff.not_offloaded.policy"]),
    (
        "handoff/t4",
        &["handoff.accepted", "handoff.not_offloaded.policy"],
    ),
    (
        "handoff/load control",
        &[
            "handoff.accepted",
            "handoff.not_offloaded.refused_soft_limit",
        ],
    ),
    ("handoff/active relief", &["handoff.restored"]),
    (
        "handoff/small memory",
        &["handoff.not_offloaded.refused_memory"],
    ),
    (
        "handoff/faulty wire",
        &[
            "handoff.forwarded",
            "nic.retransmissions",
            "host.drops.paws",
        ],
    ),
    ("handoff/pci", &["handoff.accepted", UTILISATION]),
    (
        "handoff/data cache",
        &["handoff.accepted", UTILISATION, HITS, EVICTIONS],
    ),
    ("handoff/", &["handoff.accepted"]),
    (
        "today/",
        &["handoff.accepted", "host.timeouts", "nic.timeouts"],
    ),
    ("dcache/no cache", &[UTILISATION]),
    ("dcache/lru, ideal bus", &[HITS, EVICTIONS]),
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
        "nics/two kinds, handoff by descriptors",
        &[
            "handoff.not_offloaded.soft_limit",
            "nics.0.nic.tasks.handoff.count",
            "nics.1.nic.tasks.handoff.count",
        ],
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
        "descriptors-memory/handoff, small memory",
        &[
            "handoff.accepted",
            "handoff.not_offloaded.refused_memory",
            "handoff.not_offloaded.memory",
        ],
    ),
    (
        "descriptors-memory/one by one, full of packets",
        &["nic.drops.memory", "handoff.restored"],
    ),
    (
        "descriptors-memory/full offload, small memory",
        &["clients.responses"],
    ),
    (
        "descriptors-memory/live stream",
        &[HITS, "nics.0.cache.delivered"],
    ),
    (
        "descriptors-files/live stream",
        &["clients.responses", "offload.host_transfers.transfers"],
    ),
    (
        "descriptors-files/remote files",
        &[WRITTEN, "handoff.offloaded_packets_percent", "disk.reads"],
    ),
    (
        "descriptors-files/handoff",
        &[
            "handoff.accepted",
            "file_cache.evictions",
            "disk.reads",
            UTILISATION,
        ],
    ),
    ("descriptors-files/", &["disk.reads", UTILISATION]),
    (
        "descriptors/threshold 2, load control",
        &["handoff.accepted", "handoff.not_offloaded.soft_limit"],
    ),
    (
        "descriptors/one by one, fcfs",
        &[
            "handoff.accepted",
            "nic.drops.arrival_queue",
            "nic.receive_delay_us.p50",
        ],
    ),
    (
        "descriptors/one by one, host first",
        &[
            "handoff.accepted",
            "handoff.not_offloaded.soft_limit",
            "nic.drops.nic_receive_queue",
        ],
    ),
    (
        "descriptors/faulty wire",
        &["handoff.accepted", "clients.retransmissions"],
    ),
    (
        "descriptors/",
        &["handoff.accepted", "offload.host_transfers.transfers"],
    ),
    (
        "descriptors-cache/full offload",
        &[HITS, EVICTIONS, "nic.tasks.append_cache.count"],
    ),
    (
        "descriptors-cache/handoff, pci",
        &[
            "handoff.accepted",
            UTILISATION,
            HITS,
            "nic.tasks.copy_line.count",
        ],
    ),
    (
        "descriptors-cache/one by one",
        &["handoff.restored", "nic.retransmissions", HITS, EVICTIONS],
    ),
    ("offload-pcie/", &["clients.responses"]),
];

const UTILISATION: &str = "interconnect.utilisation_percent";
const HITS: &str = "nics.0.cache.hits";
const EVICTIONS: &str = "nics.0.cache.evictions";
/// Content that clients wrote.
const WRITTEN: &str = "bus.to_host.bytes.content";

/// The keys of what the run of this name must have done.
pub fn of(name: &str) -> &'static [&'static str] {
    let found = EXERCISED.iter().find(|(of, _)| name.starts_with(of));
    let (_, keys) = found.unwrap_or_else(|| panic!("{name}: what is this run there for?"));
    keys
}
