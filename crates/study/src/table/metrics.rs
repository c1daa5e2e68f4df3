//! Metrics that have one value per run.

use super::{Cell, Kind};
use baton_sim::results::{
    Cycles, DiskResults, HostResults, InterconnectResults, NicCacheResults, OpenLoopResults,
    PerPacket, Results,
};
use std::collections::BTreeMap;

/// A metric of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name of its column. It ends with `_` and the unit, unless the metric is a count; then it names what is counted.
    pub name: &'static str,
    /// Description of the metric.
    pub meaning: &'static str,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Count(fn(&Results) -> Option<u64>),
    Number(fn(&Results) -> Option<f64>),
}

const fn count(
    name: &'static str,
    meaning: &'static str,
    value: fn(&Results) -> Option<u64>,
) -> Metric {
    let value = Value::Count(value);
    Metric {
        name,
        meaning,
        value,
    }
}

const fn number(
    name: &'static str,
    meaning: &'static str,
    value: fn(&Results) -> Option<f64>,
) -> Metric {
    let value = Value::Number(value);
    Metric {
        name,
        meaning,
        value,
    }
}

impl Metric {
    /// Returns the type of its values.
    pub const fn kind(&self) -> Kind {
        match self.value {
            Value::Count(_) => Kind::Integer,
            Value::Number(_) => Kind::Number,
        }
    }

    /// Returns its name in words, with the unit as shown in figures: `request rate, 1/s`.
    pub fn label(&self) -> String {
        match self.unit() {
            Some((_, unit)) => format!("{}, {unit}", self.name_in_words()),
            None => self.name_in_words(),
        }
    }

    /// Returns its name in words, without the unit: `request rate`.
    pub fn name_in_words(&self) -> String {
        let name = self.unit().map_or(self.name, |(name, _)| name);
        name.replace('_', " ")
    }

    /// Returns its name without the unit, and the unit as shown in figures.
    fn unit(&self) -> Option<(&'static str, &'static str)> {
        const UNITS: [(&str, &str); 9] = [
            ("_ns_per_kb", "ns/KB"),
            ("_per_s", "1/s"),
            ("_mbps", "Mb/s"),
            ("_percent", "%"),
            ("_bytes", "bytes"),
            ("_cycles", "cycles"),
            ("_ms", "ms"),
            ("_us", "µs"),
            ("_s", "s"),
        ];
        let mut units = UNITS.into_iter();
        units.find_map(|(end, unit)| Some((self.name.strip_suffix(end)?, unit)))
    }

    fn of(&self, results: &Results) -> Cell {
        match self.value {
            Value::Count(value) => value(results).map_or(Cell::Nothing, Cell::count),
            Value::Number(value) => value(results).map_or(Cell::Nothing, Cell::number),
        }
    }
}

/// Returns all metrics of a run by name, and why the run was not steady.
pub fn of(results: &Results) -> BTreeMap<String, Cell> {
    let metric = |metric: &Metric| (metric.name.to_owned(), metric.of(results));
    let not_steady = baton_sim::results::NotSteady::texts(&results.long_run.not_steady);
    let not_steady = Some(not_steady).filter(|why| !why.is_empty());
    let mut all: BTreeMap<String, Cell> = ALL.iter().map(metric).collect();
    all.insert(NOT_STEADY.to_owned(), not_steady.into());
    all
}

/// Name of the column that explains why a run was not steady.
pub const NOT_STEADY: &str = "not_steady";

/// The metrics that pages and notebooks show first.
pub const MAIN: [&str; 7] = [
    "request_rate_per_s",
    "content_mbps",
    "response_mean_ms",
    "response_p99_ms",
    "host_idle_percent",
    "nic_idle_percent",
    "nic_connections",
];

/// Finds the metric with this name.
pub fn find(name: &str) -> Option<&'static Metric> {
    ALL.iter().find(|metric| metric.name == name)
}

/// Defines metrics, one per line: kind, name, meaning, value.
macro_rules! metrics {
    ($($kind:ident $name:ident $meaning:literal, $value:expr;)*) => {
        &[$($kind(stringify!($name), $meaning, $value)),*]
    };
}

/// Finds the metric that is half of the 95 % interval of another: `request_rate_ci95_per_s` for `request_rate_per_s`.
pub fn interval_of(name: &str) -> Option<String> {
    let mut ends = name.match_indices('_').map(|(at, _)| at);
    ends.find_map(|at| {
        let interval = format!("{}_ci95{}", &name[..at], &name[at..]);
        find(&interval).map(|_| interval)
    })
}

/// All metrics, in the order of their columns.
pub const ALL: &[Metric] = metrics! {
    number warm_up_s "simulated time before measurement", |r| Some(r.warmup_s);
    number measured_s "simulated time that was measured", |r| Some(r.measured_s);
    count packets "frames at the server's NICs, both directions", |r| Some(r.packets);
    number packet_rate_per_s "frames per second at the server's NICs, both directions", |r| ratio(r.packets as f64, r.measured_s);
    number request_rate_per_s "complete responses per second in the long run; if the run is too short for an estimate, as counted", |r| Some(r.request_rate().mean);
    number request_rate_ci95_per_s "half width of the 95 % interval of request_rate_per_s", |r| r.request_rate().half_width;
    number counted_request_rate_per_s "complete responses per second in the measured part, as counted", |r| Some(r.clients.request_rate);
    number content_mbps "content of complete responses per second, in the long run", |r| Some(r.content_mbps().mean);
    number content_ci95_mbps "half width of the 95 % interval of content_mbps", |r| r.content_mbps().half_width;
    number counted_content_mbps "content of complete responses per second in the measured part, as counted", |r| Some(r.clients.content_mbps);
    number host_time_per_request_us "working time of the host for a response, in the long run", |r| Some(r.long_run.host_us_per_request?.mean);
    number host_time_per_request_ci95_us "half width of the 95 % interval of host_time_per_request_us", |r| r.long_run.host_us_per_request?.half_width;
    number response_mean_ms "mean response time; in an open loop, since the request was due", |r| Some(r.mean_response_ms()?.mean);
    number response_mean_ci95_ms "half width of the 95 % interval of response_mean_ms", |r| r.mean_response_ms()?.half_width;
    number response_p50_ms "median of the response time", |r| Some(r.median_response_ms()?.mean);
    number response_p90_ms "90th percentile of the response time, as counted", |r| r.waited_ms().p90;
    number response_p99_ms "99th percentile of the response time", |r| Some(r.p99_response_ms()?.mean);
    number response_p99_ci95_ms "half width of the 95 % interval of response_p99_ms", |r| r.p99_response_ms()?.half_width;
    number response_p999_ms "99.9th percentile of the response time", |r| Some(r.p999_response_ms()?.mean);
    number response_max_ms "longest response time", |r| r.waited_ms().max;
    number first_byte_mean_ms "mean time from sending a request to the first byte of its response", |r| r.clients.first_byte_ms.mean;
    number transfer_mean_ms "mean time from the first byte of a response to its last byte", |r| r.clients.transfer_ms.mean;
    number content_kept_off_bus_percent "share of the content that did not cross a bus to a NIC, in the long run",
        |r| Some(r.content_kept_off_bus()?.mean);
    number content_kept_off_bus_ci95_percent "half width of the 95 % interval of content_kept_off_bus_percent", |r| r.content_kept_off_bus()?.half_width;
    number response_size_mean_bytes "mean size of the responses that the estimates for the long run refer to", |r| Some(r.long_run.mean_response_bytes);
    number passes "passes over the log, including the warm-up", |r| r.long_run.passes;
    number cut_percent "share of the measured part that is still warm-up and is excluded from the long run", |r| Some(r.long_run.cut_percent);
    count responses "complete responses", |r| Some(r.clients.responses);
    count connections "connections that completed", |r| Some(r.clients.connections);
    count failed_connections "connections that failed", |r| Some(sum(&r.clients.failed));
    count client_retransmitted_segments "segments that clients retransmitted", |r| Some(r.clients.retransmissions);
    count client_timeouts "retransmission timeouts at clients", |r| Some(r.clients.timeouts);
    number offered_rate_per_s "requests that were due per second, in an open loop", |r| Some(open(r)?.offered_rate);
    count lost_requests "requests that were due but whose connections failed, in an open loop", |r| Some(open(r)?.lost);
    count unanswered_requests "requests in progress at the end, in an open loop", |r| Some(open(r)?.unanswered);
    number wait_mean_ms "mean time from when a request was due until it was sent, in an open loop", |r| open(r)?.wait_ms.mean;
    number host_idle_percent "share of the host's cycles in which it was idle", |r| Some(r.host.idle_percent);
    number host_network_stack_percent "share of the host's cycles spent in the network stack", |r| Some(r.host.network_stack_percent);
    count host_execute_cycles "host cycles executing instructions", |r| Some(cycles(&r.host, |c| c.execute));
    count host_l2_cycles "host cycles waiting for the level-2 cache", |r| Some(cycles(&r.host, |c| c.l2));
    count host_memory_cycles "host cycles waiting for memory", |r| Some(cycles(&r.host, |c| c.memory));
    count host_idle_cycles "host cycles in which it was idle", |r| Some(r.host.idle_cycles);
    count host_l2_misses "cache lines that the host fetched from memory (level-2 misses)", |r| Some(cycles(&r.host, |c| c.l2_misses));
    number host_l2_misses_per_kb "host_l2_misses per 1,024 bytes of content", |r| {
        ratio(cycles(&r.host, |c| c.l2_misses) as f64, r.clients.content_mbps * 1e6 / 8.0 * r.measured_s / 1024.0)
    };
    number host_memory_stall_percent "share of the host's busy cycles in which it waited for memory", |r| {
        let share = ratio(cycles(&r.host, |c| c.memory) as f64, cycles(&r.host, Cycles::total) as f64);
        share.map(|share| 100.0 * share)
    };
    number stack_packet_cycles "cycles of the network stack per packet, on whichever processor TCP runs", |r| {
        stack(&r.host, |of| of.cycles)
    };
    number stack_packet_instructions "instructions of the network stack per packet", |r| stack(&r.host, |of| of.instructions);
    number stack_packet_l2_misses "level-2 misses of the network stack per packet", |r| stack(&r.host, |of| of.l2_misses);
    number tcp_packet_cycles "cycles of the host's TCP per packet", |r| Some(tcp(r)?.total() as f64 / r.packets as f64);
    number tcp_packet_l2_misses "level-2 misses of the host's TCP per packet", |r| Some(tcp(r)?.l2_misses as f64 / r.packets as f64);
    count host_interrupts "interrupts that the host handled", |r| Some(r.host.interrupts);
    count host_drops "packets and events that the kernel dropped", |r| Some(sum(&r.host.drops));
    count host_retransmitted_segments "segments that the host's stack retransmitted", |r| Some(r.host.retransmissions);
    count host_timeouts "retransmission timeouts of the host's stack", |r| Some(r.host.timeouts);
    count host_packets "packets of connections on the host", |r| Some(r.host.host_packets.packets);
    number host_packet_cycles "cycles of the network stack per packet of a connection on the host", |r| r.host.host_packets.cycles;
    number host_packet_instructions "instructions of the network stack per packet of a connection on the host", |r| r.host.host_packets.instructions;
    number host_packet_l2_misses "level-2 misses of the network stack per packet of a connection on the host", |r| r.host.host_packets.l2_misses;
    count nic_packets "packets of offloaded connections", |r| Some(r.host.nic_packets.packets);
    number nic_packet_cycles "cycles of the host's network stack per packet of an offloaded connection", |r| r.host.nic_packets.cycles;
    number nic_packet_instructions "instructions of the host's network stack per packet of an offloaded connection", |r| r.host.nic_packets.instructions;
    number nic_packet_l2_misses "level-2 misses of the host's network stack per packet of an offloaded connection", |r| r.host.nic_packets.l2_misses;
    number nic_idle_percent "share of the time in which the NICs' processors were idle", |r| Some(r.nic.idle_percent);
    count nic_tasks "tasks of the firmware", |r| Some(r.nic.tasks.values().map(|task| task.count).sum());
    count nic_instructions "instructions of the firmware", |r| Some(r.nic.tasks.values().map(|task| task.instructions).sum());
    number nic_send_delay_p50_us "median time on the NIC of a host packet that is sent", |r| r.nic.send_delay_us.p50;
    number nic_send_delay_p99_us "99th percentile of the time on the NIC of a host packet that is sent", |r| r.nic.send_delay_us.p99;
    number nic_receive_delay_p50_us "median time on the NIC of a host packet that is received", |r| r.nic.receive_delay_us.p50;
    number nic_receive_delay_p99_us "99th percentile of the time on the NIC of a host packet that is received", |r| r.nic.receive_delay_us.p99;
    count nic_drops "frames that NICs dropped", |r| Some(sum(&r.nic.drops));
    number nic_connections "mean number of connections on the NICs", |r| Some(r.nic.connections_mean);
    count nic_retransmitted_segments "segments that the NICs' stacks retransmitted", |r| Some(r.nic.retransmissions);
    count nic_timeouts "retransmission timeouts of the NICs' stacks", |r| Some(r.nic.timeouts);
    count attempted_handoffs "handoffs that the host requested", |r| Some(r.handoff.attempted);
    count accepted_handoffs "handoffs that a NIC accepted", |r| Some(r.handoff.accepted);
    count restored_connections "connections that the host took back", |r| Some(r.handoff.restored);
    count forwarded_packets "packets forwarded to the NIC because they crossed a handoff", |r| Some(r.handoff.forwarded);
    count not_offloaded_connections "connections that were not offloaded", |r| Some(sum(&r.handoff.not_offloaded));
    number offloaded_connections_percent "share of connections that were offloaded", |r| {
        let (offloaded, not) = (r.handoff.accepted as f64, sum(&r.handoff.not_offloaded) as f64);
        ratio(100.0 * offloaded, offloaded + not)
    };
    number offloaded_packets_percent "share of packets that belonged to offloaded connections", |r| Some(r.handoff.offloaded_packets_percent);
    count bus_to_nic_crossings "DMA operations from host memory to a NIC", |r| Some(r.bus.to_nic.crossings);
    count bus_to_nic_bytes "bytes of the DMA operations from host memory to a NIC", |r| Some(r.bus.to_nic.bytes.total());
    count bus_to_host_crossings "DMA operations from a NIC to host memory", |r| Some(r.bus.to_host.crossings);
    count bus_to_host_bytes "bytes of the DMA operations from a NIC to host memory", |r| Some(r.bus.to_host.bytes.total());
    number response_crossings "DMA operations per response", |r| Some(r.crossings_per_response());
    number bus_utilisation_percent "share of the time in which the busiest channel of the interconnect was in use",
        |r| Some(r.interconnect.as_ref()?.utilisation_percent);
    number bus_content_percent "share of the interconnect's time in which it transferred content", |r| bus_percent(r, CONTENT);
    number bus_overhead_percent "share of the interconnect's time that was overhead: arbitration, addresses, waits", |r| bus_percent(r, OVERHEAD);
    number bus_protocol_header_percent "share of the interconnect's time in which it transferred headers of Ethernet, IP and TCP", |r| bus_percent(r, PROTOCOL_HEADER);
    number bus_http_header_percent "share of the interconnect's time in which it transferred headers of HTTP", |r| bus_percent(r, HTTP_HEADER);
    number bus_other_percent "share of the interconnect's time in which it transferred descriptors, events and everything else", |r| bus_percent(r, OTHER);
    number bus_content_share_percent "content's share of the time in which the interconnect transferred anything", |r| bus_share(r, CONTENT);
    number bus_overhead_share_percent "overhead's share of the time in which the interconnect transferred anything", |r| bus_share(r, OVERHEAD);
    number bus_time_ns_per_kb "time of the interconnect per 1,024 bytes of content that clients received", |r| bus_time(r, ALL_PARTS);
    number bus_content_ns_per_kb "part of bus_time_ns_per_kb for content", |r| bus_time(r, CONTENT);
    number bus_overhead_ns_per_kb "part of bus_time_ns_per_kb for overhead", |r| bus_time(r, OVERHEAD);
    number bus_protocol_header_ns_per_kb "part of bus_time_ns_per_kb for headers of Ethernet, IP and TCP", |r| bus_time(r, PROTOCOL_HEADER);
    number bus_http_header_ns_per_kb "part of bus_time_ns_per_kb for headers of HTTP", |r| bus_time(r, HTTP_HEADER);
    number bus_other_ns_per_kb "part of bus_time_ns_per_kb for descriptors, events and everything else", |r| bus_time(r, OTHER);
    count host_transfers "transfers of descriptors by the host", |r| Some(r.offload.host_transfers.transfers);
    count host_transfer_descriptors "descriptors in the transfers by the host", |r| Some(r.offload.host_transfers.entries);
    count adapter_transfers "transfers of descriptors by adapters", |r| Some(r.offload.adapter_transfers.transfers);
    count adapter_transfer_descriptors "descriptors in the transfers by adapters", |r| Some(r.offload.adapter_transfers.entries);
    number adapter_response_descriptors "descriptors in the transfers by adapters, per response",
        |r| ratio(r.offload.adapter_transfers.entries as f64, r.clients.responses as f64);
    count file_cache_hits "pages that `sendfile` found in memory", |r| Some(r.file_cache?.hits);
    count file_cache_misses "times that `sendfile` needed a page that was not in memory", |r| Some(r.file_cache?.misses);
    count file_cache_pages_read "pages read from disks", |r| Some(r.file_cache?.pages_read);
    count file_cache_evictions "pages evicted from memory to make space for others", |r| Some(r.file_cache?.evictions);
    number disk_utilisation_percent "mean share of the time in which a disk was busy", |r| utilisation(r.disk.as_ref()?);
    count disk_reads "reads from disks", |r| Some(r.disk.as_ref()?.reads);
    count disk_bytes "bytes read from disks", |r| Some(r.disk.as_ref()?.bytes);
    number disk_service_ms "mean time for one read, without queueing", |r| r.disk.as_ref()?.service_ms;
    count nic_cache_lookups "parts of packets looked up in NICs' data caches", |r| caches(r, |c| c.lookups);
    count nic_cache_hits "parts of packets that were found in NICs' data caches", |r| caches(r, |c| c.hits);
    count nic_cache_hit_bytes "bytes of the parts that were found in NICs' data caches", |r| caches(r, |c| c.hit_bytes);
    count nic_cache_inserts "blocks inserted into NICs' data caches", |r| caches(r, |c| c.inserts);
    count nic_cache_insert_bytes "bytes of the blocks inserted into NICs' data caches", |r| caches(r, |c| c.inserted_bytes);
    count nic_cache_evictions "blocks evicted from NICs' data caches to make space for others", |r| caches(r, |c| c.evictions);
    count nic_cache_bypass_bytes "bytes of the parts that bypassed NICs' data caches", |r| caches(r, |c| c.bypassed_bytes);
};

/// Returns the percentage of an interconnect's time that a part of the traffic takes.
type Part = fn(&InterconnectResults) -> f64;

const CONTENT: Part = |bus| bus.time_percent.content;
const OVERHEAD: Part = |bus| bus.time_percent.overhead;
const PROTOCOL_HEADER: Part = |bus| bus.time_percent.protocol_header;
const HTTP_HEADER: Part = |bus| bus.time_percent.http_header;
const OTHER: Part =
    |bus| bus.time_percent.descriptor + bus.time_percent.event + bus.time_percent.other;
const ALL_PARTS: Part = |bus| bus.time_percent.total();

/// Returns a part's percentage of the interconnect's time; `None` if the run has no interconnect.
fn bus_percent(results: &Results, part: Part) -> Option<f64> {
    results.interconnect.as_ref().map(part)
}

/// Returns a part's percentage of the time in which the interconnect was used.
fn bus_share(results: &Results, part: Part) -> Option<f64> {
    ratio(
        100.0 * bus_percent(results, part)?,
        bus_percent(results, ALL_PARTS)?,
    )
}

/// Returns a part's time on the interconnect per 1,024 bytes of content that clients received, nanoseconds.
fn bus_time(results: &Results, part: Part) -> Option<f64> {
    let kb_per_s = results.clients.content_mbps * 1e6 / 8.0 / 1024.0;
    ratio(bus_percent(results, part)? / 100.0 * 1e9, kb_per_s)
}

fn sum(by_reason: &BTreeMap<String, u64>) -> u64 {
    by_reason.values().sum()
}

fn open(results: &Results) -> Option<&OpenLoopResults> {
    results.clients.open_loop.as_ref()
}

fn cycles(host: &HostResults, of: fn(&Cycles) -> u64) -> u64 {
    host.layers.values().map(of).sum()
}

/// Returns the cycles of the host's TCP.
fn tcp(results: &Results) -> Option<Cycles> {
    results.host.layers.get("tcp").copied()
}

/// Returns the mean cost of a packet in the host's network stack, over packets of both kinds.
fn stack(host: &HostResults, of: fn(&PerPacket) -> Option<f64>) -> Option<f64> {
    let kinds = [host.host_packets, host.nic_packets];
    let done = kinds
        .iter()
        .map(|kind| kind.packets as f64 * of(kind).unwrap_or_default());
    ratio(
        done.sum(),
        kinds.iter().map(|kind| kind.packets as f64).sum(),
    )
}

/// Returns the ratio, or `None` if `whole` is 0.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn utilisation(disks: &DiskResults) -> Option<f64> {
    let shares = &disks.utilisation_percent;
    Some(shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Returns a count summed over all data caches, or `None` if there are no caches.
fn caches(results: &Results, of: fn(&NicCacheResults) -> u64) -> Option<u64> {
    let caches = results.nics.iter().filter_map(|port| port.cache.as_ref());
    caches.map(of).reduce(|a, b| a + b)
}
