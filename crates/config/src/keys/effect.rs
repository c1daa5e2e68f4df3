//! Keys that have an effect only if another key has a certain value.
//!
//! A test checks [`NEEDS`]: it violates each condition, changes every key that needs the condition, and verifies that results do not
//! change.

use serde::{Serialize, Serializer};
use std::fmt;
use toml::Value;

/// Keys, and the conditions under which they have an effect.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The keys, or tables that stand for all keys in them.
    pub keys: &'static [&'static str],
    /// Conditions that must all hold.
    pub conditions: &'static [Condition],
}

/// A condition on another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The other key.
    pub path: &'static str,
    /// The required value.
    pub test: Test,
}

/// Required value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The value is `true`.
    On,
    /// The value is this name.
    Is(&'static str),
    /// The value is any name but this.
    Not(&'static str),
    /// The value is a number above this, or a list of more than this many tables.
    Above(u32),
    /// The key is absent.
    Absent,
    /// The key is present.
    Given,
}

const fn on(path: &'static str) -> Condition {
    let test = Test::On;
    Condition { path, test }
}

const fn is(path: &'static str, name: &'static str) -> Condition {
    let test = Test::Is(name);
    Condition { path, test }
}

const fn not(path: &'static str, name: &'static str) -> Condition {
    let test = Test::Not(name);
    Condition { path, test }
}

const fn above(path: &'static str, number: u32) -> Condition {
    let test = Test::Above(number);
    Condition { path, test }
}

const fn absent(path: &'static str) -> Condition {
    let test = Test::Absent;
    Condition { path, test }
}

const fn given(path: &'static str) -> Condition {
    let test = Test::Given;
    Condition { path, test }
}

const fn needs(keys: &'static [&'static str], conditions: &'static [Condition]) -> Needs {
    Needs { keys, conditions }
}

/// The conditions under which keys have an effect. For tables that exist only for one `kind` or `policy`, the schema has this information.
pub const NEEDS: &[Needs] = &[
    needs(
        &["nic.firmware.cache"],
        &[on("host.kernel.nic_cache.enabled")],
    ),
    needs(
        &["host.kernel.nic_cache", "nic.firmware.cache.transmit"],
        &[above("nic.firmware.cache.kib", 0)],
    ),
    needs(
        &[
            "host.kernel.nic_cache.admission",
            "host.kernel.nic_cache.block_bytes",
            "host.kernel.nic_cache.coherence",
            "host.kernel.nic_cache.replacement",
        ],
        &[on("host.kernel.nic_cache.enabled")],
    ),
    needs(
        &[
            "nic.firmware.load_control.decrease_percent",
            "nic.firmware.load_control.high_water_packets",
            "nic.firmware.load_control.increase_percent",
            "nic.firmware.load_control.low_water_packets",
            "nic.firmware.load_control.measure",
            "nic.firmware.load_control.measure_us",
            "nic.firmware.load_control.relief",
        ],
        &[on("nic.firmware.load_control.enabled")],
    ),
    needs(
        &["nic.firmware.load_control.measure_us"],
        &[not("nic.firmware.load_control.measure.kind", "queue")],
    ),
    needs(
        &["nic.firmware.load_control", "host.kernel.selection"],
        &[
            is("offload.established_by", "host"),
            above("nic.firmware.hard_limit", 0),
        ],
    ),
    needs(
        &["nic.firmware.load_control"],
        &[
            is("offload.established_by", "host"),
            not("host.kernel.selection.policy", "never"),
        ],
    ),
    needs(
        &[
            "disk",
            "host.kernel.file_cache.blocking",
            "host.kernel.file_cache.read_pages",
            "host.kernel.file_cache.reads",
            "host.kernel.file_cache.replacement",
            "run.preload",
        ],
        &[above("host.kernel.file_cache.kib", 0)],
    ),
    needs(&["nic.dma"], &[not("interconnect.kind", "ideal")]),
    needs(
        &[
            "nic.dma",
            "offload.host.interface.packet_buffers",
            "offload.host.interface.packet_sends",
            "wire.rate_mbps",
        ],
        &[absent("nic.hardware")],
    ),
    needs(
        &[
            "offload.host.interface.batching.level",
            "offload.host.interface.batching.tick_us",
            "offload.host.interface.batching.timer_us",
        ],
        &[is("offload.host.interface.batching.policy", "fixed")],
    ),
    needs(
        &[
            "offload.adapter.interface.batching.level",
            "offload.adapter.interface.batching.tick_us",
            "offload.adapter.interface.batching.timer_us",
        ],
        &[is("offload.adapter.interface.batching.policy", "fixed")],
    ),
    needs(
        &["offload.host.interface.accept_timeout_us"],
        &[above("offload.host.interface.bulk_accept", 1)],
    ),
    needs(&["wire.reorder_delay_us"], &[above("wire.reorder", 0)]),
    needs(
        &["wire.burst.leave", "wire.burst.loss"],
        &[above("wire.burst.enter", 0)],
    ),
    needs(
        &[
            "offload.host.interface.batching.tick_us",
            "offload.host.interface.batching.timer_us",
        ],
        &[above("offload.host.interface.batching.level", 1)],
    ),
    needs(
        &[
            "offload.adapter.interface.batching.tick_us",
            "offload.adapter.interface.batching.timer_us",
        ],
        &[above("offload.adapter.interface.batching.level", 1)],
    ),
    needs(
        &[
            "offload.adapter.interface.most_accepts",
            "offload.adapter.interface.most_backlog",
            "offload.host.interface.accept_timeout_us",
            "offload.host.interface.accepts_posted",
            "offload.host.interface.half_close",
        ],
        &[is("offload.established_by", "adapter")],
    ),
    needs(
        &["offload.host.wake_up.jitter_percent"],
        &[above("offload.host.wake_up.ns", 0)],
    ),
    needs(
        &["offload.adapter.wake_up.jitter_percent"],
        &[above("offload.adapter.wake_up.ns", 0)],
    ),
    needs(
        &["nic.instructions.copy_line"],
        &[is("nic.firmware.cache.transmit", "copy")],
    ),
    needs(
        &[
            "host.instructions.cache_insert",
            "host.instructions.cache_lookup",
            "host.instructions.cache_remove",
            "nic.instructions.append_cache",
            "nic.instructions.cache_insert",
        ],
        &[
            above("nic.firmware.cache.kib", 0),
            on("host.kernel.nic_cache.enabled"),
        ],
    ),
    needs(
        &[
            "host.instructions.disk_done",
            "host.instructions.disk_read",
            "host.instructions.file_page_enter",
            "host.instructions.file_page_lookup",
        ],
        &[above("host.kernel.file_cache.kib", 0)],
    ),
    needs(
        &[
            "nic.firmware.arrival_queue_packets",
            "nic.firmware.receive_queue_packets",
            "nic.firmware.scheduler",
        ],
        &[is("offload.adapter.piece", "one")],
    ),
    needs(
        &[
            "host.clock_mhz",
            "host.dma",
            "host.dram",
            "host.instructions",
            "host.l1",
            "host.l2",
            "host.prefetch_next_line",
            "host.scale",
            "host.tlb",
            "nic.mips",
        ],
        &[on("run.cost_models")],
    ),
    needs(
        &[
            "host.tlb.second_entries",
            "host.tlb.second_latency_cycles",
            "host.tlb.second_ways",
            "host.tlb.ways",
        ],
        &[above("host.tlb.entries", 0)],
    ),
    needs(
        &["run.measured_packets"],
        &[
            absent("run.measured_responses"),
            absent("run.measured_seconds"),
            absent("run.measured_passes"),
        ],
    ),
    needs(&["run.most_lengths"], &[given("run.until_ci_percent")]),
    needs(&["load.on_off"], &[is("load.arrivals", "on-off")]),
    needs(
        &["tcp.duplicate_sack", "tcp.rack_tlp", "tcp.rate_reduction"],
        &[on("tcp.sack"), on("clients.tcp.sack")],
    ),
    needs(
        &[
            "clients.tcp.duplicate_sack",
            "clients.tcp.rack_tlp",
            "clients.tcp.rate_reduction",
        ],
        &[on("tcp.sack"), on("clients.tcp.sack")],
    ),
    needs(
        &[
            "interconnect.retry_clocks",
            "interconnect.retry_interval_clocks",
        ],
        &[on("interconnect.delayed_reads")],
    ),
    needs(&["tcp.nagle_rule"], &[on("tcp.nagle")]),
    needs(&["clients.tcp.nagle_rule"], &[on("clients.tcp.nagle")]),
];

/// Returns whether `path` is this key, or is in this table.
fn is_in(path: &str, table: &str) -> bool {
    let rest = path.strip_prefix(table);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the conditions under which the key at `path` has an effect.
pub fn needs_of(path: &str) -> impl Iterator<Item = &'static Condition> {
    let matching = NEEDS
        .iter()
        .filter(move |needs| needs.keys.iter().any(|table| is_in(path, table)));
    matching.flat_map(|needs| needs.conditions)
}

/// Returns a condition of the key at `path` that `experiment` does not meet, if there is one.
pub fn without_effect(experiment: &Value, path: &str) -> Option<&'static Condition> {
    needs_of(path).find(|condition| condition.path != path && !condition.is_met(experiment))
}

impl Condition {
    fn is_met(&self, experiment: &Value) -> bool {
        let general = find(experiment, self.path);
        // A kind of NIC in `nics` may override the value for all NICs.
        let own = self.path.strip_prefix("nic.").into_iter().flat_map(|rest| {
            let kinds = experiment.get("nics").and_then(Value::as_array);
            let kinds = kinds.into_iter().flatten();
            kinds.filter_map(move |kind| find(kind, rest))
        });
        match self.test {
            Test::Absent => general.is_none(),
            _ => general
                .into_iter()
                .chain(own)
                .any(|value| self.test.is_met(value)),
        }
    }
}

impl Test {
    fn is_met(self, value: &Value) -> bool {
        match self {
            Self::On => value.as_bool() == Some(true),
            Self::Is(name) => value.as_str() == Some(name),
            Self::Not(name) => value.as_str() != Some(name),
            Self::Above(least) => match value {
                Value::Integer(number) => *number > i64::from(least),
                Value::Float(number) => *number > f64::from(least),
                Value::Array(items) => items.len() > least as usize,
                _ => false,
            },
            Self::Absent => false,
            Self::Given => true,
        }
    }
}

fn find<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(tree, |table, name| table.get(name))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, test } = self;
        match test {
            Test::On => write!(f, "{path} = true"),
            Test::Is(name) => write!(f, "{path} = {name:?}"),
            Test::Not(name) => write!(f, "{path} other than {name:?}"),
            Test::Above(number) => write!(f, "{path} above {number}"),
            Test::Absent => write!(f, "no {path}"),
            Test::Given => write!(f, "{path}"),
        }
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
