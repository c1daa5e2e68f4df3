//! Counters of the whole process, without single connections, in the text format of OpenMetrics, which Prometheus reads.

use super::glossary;
use super::sockets::state_name;
use baton_live::Snapshot;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counters that may fall (gauges); all others only rise while the process lives.
const GAUGES: [&str; 17] = [
    "adapter.cache_bytes",
    "adapter.cached_bytes",
    "adapter.orphans",
    "adapter.waiting.*",
    "applications.attached_now",
    "applications.shared_bytes",
    "capture.running",
    "captured.flows",
    "handoff.on_adapter",
    "handoff.soft_limit",
    "nic_cache.blocks",
    "nic_cache.capacity",
    "port.xdp.native",
    "port.xdp.queues",
    "port.xdp.zero_copy",
    "sockets.open",
    "tcp.stalled",
];

/// Renders all counters.
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for connection in &snapshot.connections {
        *states.entry(state_name(connection.info.state)).or_default() += 1;
    }
    states.insert("TIME-WAIT", snapshot.time_wait);
    let _ = writeln!(
        text,
        "# TYPE baton_connections gauge\n# HELP baton_connections connections by state"
    );
    for (state, count) in states {
        let _ = writeln!(text, "baton_connections{{state=\"{state}\"}} {count}");
    }
    let seconds = snapshot.uptime_ms as f64 / 1000.0;
    let _ = writeln!(
        text,
        "# TYPE baton_uptime_seconds gauge\n# UNIT baton_uptime_seconds seconds\n\
         # HELP baton_uptime_seconds time since the process was started\nbaton_uptime_seconds {seconds}"
    );
    // OpenMetrics requires that all samples of a metric are together.
    let mut families: BTreeMap<&str, Vec<(String, u64)>> = BTreeMap::new();
    for (name, &value) in &snapshot.counters {
        let pattern = glossary::entry_of(name).map_or(name.as_str(), |(pattern, _)| pattern);
        let kind = kind_of(pattern, name);
        families.entry(pattern).or_default().push((kind, value));
    }
    for (pattern, values) in &families {
        // A total is left out where its parts are listed.
        if !families.contains_key(format!("{pattern}.*").as_str()) {
            family(&mut text, pattern, values);
        }
    }
    text.push_str("# EOF\n");
    text
}

fn family(text: &mut String, pattern: &str, values: &[(String, u64)]) {
    let parts = pattern.split('.').filter(|part| *part != "*");
    let name = format!("baton_{}", parts.collect::<Vec<_>>().join("_"));
    let (kind, suffix) = match GAUGES.contains(&pattern) {
        true => ("gauge", ""),
        false => ("counter", "_total"),
    };
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let Some((_, meaning)) = glossary::entry_of(pattern) {
        let meaning = meaning.replace('\\', r"\\").replace('"', "\\\"");
        let _ = writeln!(text, "# HELP {name} {meaning}");
    }
    for (label, value) in values {
        let _ = writeln!(text, "{name}{suffix}{label} {value}");
    }
}

/// Returns the part of `name` that the wildcards of `pattern` match, as a label; empty if the pattern has no wildcard.
fn kind_of(pattern: &str, name: &str) -> String {
    let parts = pattern.split('.').zip(name.split('.'));
    let kinds: Vec<_> = parts
        .filter(|(part, _)| *part == "*")
        .map(|(_, is)| is)
        .collect();
    match kinds.is_empty() {
        true => String::new(),
        false => format!("{{kind=\"{}\"}}", kinds.join(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_are_told_apart_and_kinds_are_labels() {
        let text = r#"{"pid":7,"uptime_ms":1500,"interface":"tap","mac":"","mtu":0,"connections":[],"time_wait":3,"listeners":[],
            "neighbours":[],"counters":{"applications.cut_off":2,"applications.cut_off.bad_index":2,"faults.rx.lost":1,
            "tcp.retransmissions":5,"tcp.refused.bad_ack":4,"tcp.refused.old":0,"tcp.stalled":1}}"#;
        let text = render(&serde_json::from_str(text).expect("a snapshot"));
        let expected = "# TYPE baton_connections gauge\n\
            # HELP baton_connections connections by state\n\
            baton_connections{state=\"TIME-WAIT\"} 3\n\
            # TYPE baton_uptime_seconds gauge\n\
            # UNIT baton_uptime_seconds seconds\n\
            # HELP baton_uptime_seconds time since the process was started\n\
            baton_uptime_seconds 1.5\n";
        assert!(text.starts_with(expected), "{text}");
        for line in [
            "baton_applications_cut_off_total{kind=\"bad_index\"} 2",
            "baton_faults_lost_total{kind=\"rx\"} 1",
            "# TYPE baton_tcp_refused counter",
            "baton_tcp_refused_total{kind=\"bad_ack\"} 4",
            "baton_tcp_refused_total{kind=\"old\"} 0",
            "baton_tcp_retransmissions_total 5",
            "# TYPE baton_tcp_stalled gauge",
            "baton_tcp_stalled 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(
            !text.contains("baton_applications_cut_off_total 2"),
            "{text}"
        );
        let families: Vec<_> = (text.lines())
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        let unlike: std::collections::BTreeSet<_> = families.iter().collect();
        assert_eq!(families.len(), unlike.len(), "each stands together: {text}");
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn gauges_are_in_the_glossary() {
        for gauge in GAUGES {
            assert!(glossary::entry_of(gauge).is_some(), "{gauge}");
        }
    }
}
