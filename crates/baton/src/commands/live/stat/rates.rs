//! Rates per second, from two snapshots of a process.

use baton_live::{ConnectionRow, Snapshot};
use baton_report::grouped;
use baton_wire::Endpoint;
use std::collections::BTreeMap;

/// An earlier snapshot, and its age.
#[derive(Debug)]
pub struct Rates<'a> {
    before: &'a Snapshot,
    connections: BTreeMap<(Endpoint, Endpoint), &'a ConnectionRow>,
    seconds: f64,
}

impl<'a> Rates<'a> {
    /// Returns the rates since `before`, or `None` if it is from another process or not earlier.
    pub fn between(before: &'a Snapshot, after: &Snapshot) -> Option<Self> {
        let elapsed_ms = after.uptime_ms.checked_sub(before.uptime_ms)?;
        if before.pid != after.pid || elapsed_ms == 0 {
            return None;
        }
        let ends = |row: &'a ConnectionRow| ((row.local, row.remote), row);
        Some(Self {
            before,
            connections: before.connections.iter().map(ends).collect(),
            seconds: elapsed_ms as f64 / 1000.0,
        })
    }

    /// Returns the change of a counter per second. The change of a gauge may be negative.
    pub fn counter(&self, name: &str, value: u64) -> String {
        let before = self.before.counters.get(name).copied().unwrap_or_default();
        let change = value as f64 - before as f64;
        per_second(change / self.seconds)
    }

    /// Returns the Mbit/s that a connection sent and the peer acknowledged, and that it received, or `None` for a new connection.
    pub fn connection(&self, row: &ConnectionRow) -> Option<[f64; 2]> {
        let before = self.connections.get(&(row.local, row.remote))?;
        let (now, before) = (&row.info, &before.info);
        let acked = now.bytes_acked.checked_sub(before.bytes_acked)?;
        let received = now.bytes_received.checked_sub(before.bytes_received)?;
        Some([acked, received].map(|bytes| bytes as f64 * 8e-6 / self.seconds))
    }
}

fn per_second(rate: f64) -> String {
    let size = rate.abs();
    let sign = if rate < 0.0 { "-" } else { "" };
    match size {
        0.0 => String::new(),
        _ if size < 10.0 => format!("{sign}{size:.1}"),
        _ => format!("{sign}{}", grouped(size.round() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(uptime_ms: u64, responses: u64) -> Snapshot {
        let text = format!(
            r#"{{"pid":7,"uptime_ms":{uptime_ms},"interface":"tap","mac":"","mtu":0,"connections":[],"time_wait":0,
            "listeners":[],"neighbours":[],"counters":{{"web.responses":{responses}}}}}"#
        );
        serde_json::from_str(&text).expect("a snapshot")
    }

    #[test]
    fn a_counter_is_shown_per_second_of_the_process() {
        let before = snapshot(1000, 100);
        let rates = Rates::between(&before, &snapshot(3000, 0)).expect("the same process");
        assert_eq!(rates.counter("web.responses", 10_100), "5,000");
        assert_eq!(rates.counter("web.responses", 101), "0.5");
        assert_eq!(rates.counter("web.responses", 100), "", "nothing happened");
        assert_eq!(rates.counter("web.responses", 60), "-20", "no total");
        assert_eq!(rates.counter("web.lost", 40), "20", "one that is new");
    }

    #[test]
    fn there_are_no_rates_between_different_processes_or_equal_times() {
        let before = snapshot(1000, 100);
        let other = Snapshot {
            pid: 8,
            ..snapshot(2000, 100)
        };
        assert!(Rates::between(&before, &other).is_none());
        assert!(Rates::between(&before, &before).is_none());
    }
}
