//! Listeners and connections, in the manner of `ss -ti`.

use super::rates::Rates;
use baton_live::{ConnectionRow, Snapshot};
use baton_report::{Column, Table, grouped};
use baton_tcp::State;
use baton_wire::Span;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns the numbers of connections by state, the most frequent first; empty if there are none.
pub fn summary(snapshot: &Snapshot) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for connection in &snapshot.connections {
        *counts.entry(state_name(connection.info.state)).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let texts: Vec<String> = counts
        .iter()
        .map(|&(name, count)| format!("{} {name}", grouped(count)))
        .collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("{}\n", texts.join(", ")),
    }
}

/// Renders the table of at most `most` connections. Half-open connections are only counted, unless `half_open`.
pub fn table(
    snapshot: &Snapshot,
    most: usize,
    half_open: bool,
    rates: Option<&Rates<'_>>,
) -> String {
    // The owner is shown only if there are several possible owners.
    let of_adapter = !snapshot.applications.is_empty();
    let mut table = Table::new(columns(of_adapter, rates.is_some()));
    let width = columns(of_adapter, rates.is_some()).len();
    for listener in &snapshot.listeners {
        let mut row = vec!["LISTEN".to_owned(), grouped(listener.accept_queue)];
        row.extend([String::new(), listener.local.to_string()]);
        row.resize(width, String::new());
        table.row(row);
    }
    let is_shown = |row: &&ConnectionRow| half_open || row.info.state != State::SynReceived;
    let shown: Vec<&ConnectionRow> = snapshot.connections.iter().filter(is_shown).collect();
    for connection in shown.iter().take(most) {
        let mut row = connection_row(connection, rates);
        if of_adapter {
            let number = connection.application;
            row.push(number.map_or_else(String::new, |number| number.to_string()));
        }
        table.row(row);
    }
    let mut text = table.render();
    if shown.len() > most {
        let left = grouped((shown.len() - most) as u64);
        let _ = writeln!(text, "... and {left} more; --rows N shows more, --json all");
    }
    let hidden = snapshot.connections.len() - shown.len();
    if hidden > 0 {
        let hidden = grouped(hidden as u64);
        let _ = writeln!(
            text,
            "... and {hidden} half open; --state syn-received shows them"
        );
    }
    text
}

fn columns(of_adapter: bool, rates: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::words("state"),
        Column::numbers("recv-q"),
        Column::numbers("send-q"),
        Column::words("local"),
        Column::words("remote"),
        Column::words("congestion"),
        Column::numbers("cwnd"),
        Column::numbers("rtt, ms"),
        Column::numbers("rto, ms"),
        Column::numbers("retrans"),
    ];
    columns.extend(match rates {
        true => ["acked, Mb/s", "received, Mb/s"].map(Column::numbers),
        false => ["acked", "received"].map(Column::numbers),
    });
    columns.push(Column::words("limited by"));
    if of_adapter {
        columns.push(Column::numbers("application"));
    }
    columns
}

fn connection_row(connection: &ConnectionRow, rates: Option<&Rates<'_>>) -> Vec<String> {
    let info = &connection.info;
    let ms = |span: Span| format!("{:.1}", span.as_us_f64() / 1000.0);
    let window = info.congestion_window / info.send_mss.max(1);
    let control = format!("{} {}", connection.congestion, info.phase.name());
    let nothing = || "-".to_owned();
    let mut row = vec![
        state_name(info.state).to_owned(),
        grouped(connection.receive_queue),
        grouped(connection.send_queue),
        connection.local.to_string(),
        connection.remote.to_string(),
        control,
        grouped(window.into()),
        info.srtt.map_or_else(nothing, ms),
        ms(info.rto),
        grouped(info.total_retransmissions.into()),
    ];
    row.extend(match rates {
        None => [info.bytes_acked, info.bytes_received].map(grouped),
        Some(rates) => match rates.connection(connection) {
            Some(mbits) => mbits.map(|rate| format!("{rate:.1}")),
            None => [nothing(), nothing()],
        },
    });
    row.push(
        info.limited_by
            .map_or_else(nothing, |limit| limit.name().to_owned()),
    );
    row
}

/// Returns the name of a state in `ss` and RFC 9293.
pub const fn state_name(state: State) -> &'static str {
    match state {
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTAB",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_inet::{Host, InterfaceConfig};
    use baton_wire::{Endpoint, Flow, Time};

    /// Returns a snapshot with this many connections in each state.
    fn snapshot(states: &[(State, usize)]) -> Snapshot {
        let text = r#"{"pid":7,"uptime_ms":1000,"interface":"tap","mac":"","mtu":0,"connections":[],"time_wait":0,
            "listeners":[],"neighbours":[],"counters":{}}"#;
        let mut snapshot: Snapshot = serde_json::from_str(text).expect("a snapshot");
        let address = "10.9.0.2/24".parse().expect("an address");
        let interface = InterfaceConfig::new([2, 0, 0, 0, 0, 1], vec![address]);
        let mut host = Host::new(interface, baton_tcp::Config::default(), 1).expect("a host");
        let end = |port| Endpoint::new([10, 9, 0, 2].into(), port);
        let states = states.iter();
        let states = states.flat_map(|&(state, count)| std::iter::repeat_n(state, count));
        for (port, state) in (1..).zip(states) {
            let (local, remote) = (end(port), Endpoint::new([10, 9, 0, 1].into(), 80));
            let stack = host.stack_mut();
            let opened = stack.connect(Time::ZERO, Flow { local, remote });
            let mut info = stack.info(Time::ZERO, opened.expect("a port that is free"));
            info.state = state;
            snapshot.connections.push(ConnectionRow {
                local,
                remote,
                receive_queue: 0,
                send_queue: 0,
                congestion: "cubic".to_owned(),
                application: None,
                info,
            });
        }
        snapshot
    }

    #[test]
    fn connections_are_counted_by_state() {
        let states = [(State::Established, 2), (State::SynReceived, 1500)];
        let text = summary(&snapshot(&states));
        assert_eq!(text, "1,500 SYN-RECEIVED, 2 ESTAB\n");
        assert_eq!(summary(&snapshot(&[])), "");
    }

    #[test]
    fn half_open_connections_are_shown_on_demand_and_others_up_to_the_limit() {
        // The width of a terminal in which each row fits on one line.
        baton_report::set_width(200);
        let states = [(State::SynReceived, 40), (State::Established, 30)];
        let snapshot = snapshot(&states);
        let lines = |text: &str, word| text.lines().filter(|line| line.contains(word)).count();
        let text = table(&snapshot, 20, false, None);
        assert_eq!(lines(&text, "ESTAB"), 20, "{text}");
        assert_eq!(lines(&text, "SYN-RECEIVED"), 0, "{text}");
        let rest = "... and 10 more; --rows N shows more, --json all\n\
                    ... and 40 half open; --state syn-received shows them\n";
        assert!(text.ends_with(rest), "{text}");
        let text = table(&snapshot, 100, true, None);
        assert_eq!(lines(&text, "SYN-RECEIVED"), 40, "{text}");
        assert!(!text.contains("..."), "{text}");
    }

    #[test]
    fn the_limit_of_a_connection_is_shown() {
        let text = table(&snapshot(&[(State::Established, 1)]), 20, false, None);
        assert!(text.contains("limited by"), "{text}");
        assert!(text.contains("cubic open"), "{text}");
        assert!(text.contains("application"), "{text}");
    }
}
