//! `baton live stat`: what goes on in a running engine.

mod applications;

use crate::cli::StatArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::runner::Interrupt;
use baton_live::{ConnectionRow, Snapshot, ask};
use baton_report::{Column, Table, grouped};
use baton_wire::Span;
use std::fmt::Write;
use std::thread;
use std::time::Duration;

/// Moves to the top left corner and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";
/// Connections shown at most; `--json` has all.
const MOST_ROWS: usize = 200;

/// Runs the command.
///
/// # Errors
/// No engine answers.
pub fn execute(arguments: &StatArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    loop {
        let answer = ask(arguments.control())?;
        if arguments.json {
            return print(&String::from_utf8_lossy(&answer));
        }
        let snapshot: Snapshot = serde_json::from_slice(&answer).map_err(|error| {
            Failure::Failed(format!(
                "--control {}: the answer is no snapshot of this version of baton: {error}",
                arguments.control().display()
            ))
        })?;
        let text = render(&snapshot, arguments.all);
        if !arguments.watch {
            return print(&text);
        }
        print(&format!("{CLEAR}{text}"))?;
        for _ in 0..10 {
            if interrupt.requested() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn render(snapshot: &Snapshot, all: bool) -> String {
    let link = match snapshot.mac.as_str() {
        "" => String::new(),
        mac => format!(" ({mac}, MTU {})", snapshot.mtu),
    };
    let mut text = format!(
        "process {} for {:.1} s on {}{}: {} connections, {} in TIME-WAIT\n",
        snapshot.pid,
        snapshot.uptime_ms as f64 / 1000.0,
        snapshot.interface,
        link,
        grouped(snapshot.connections.len() as u64),
        grouped(snapshot.time_wait),
    );
    text.push_str(&sockets(snapshot));
    if snapshot.connections.len() > MOST_ROWS {
        let left = grouped((snapshot.connections.len() - MOST_ROWS) as u64);
        let _ = writeln!(text, "... and {left} more; --json shows all");
    }
    text.push_str(&places(snapshot));
    text.push_str(&applications::render(&snapshot.applications));
    text.push_str(&neighbours(snapshot));
    text.push_str(&counters(snapshot, all));
    text
}

/// Where each connection lives, and why, of a host with an adapter.
fn places(snapshot: &Snapshot) -> String {
    if snapshot.places.is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![
        Column::words("local"),
        Column::words("remote"),
        Column::words("is on the"),
        Column::numbers("for, s"),
        Column::words("not on the adapter because"),
        Column::numbers("handoffs"),
    ]);
    for row in snapshot.places.iter().take(MOST_ROWS) {
        let why = row.why.clone().unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            row.local.to_string(),
            row.remote.to_string(),
            row.place.replace('_', " "),
            format!("{:.1}", row.since_ms as f64 / 1000.0),
            why.replace('_', " "),
            grouped(row.handoffs.into()),
        ]);
    }
    table.render()
}

/// Listeners and connections, in the manner of `ss -ti`.
fn sockets(snapshot: &Snapshot) -> String {
    // Whose a connection is matters where there are several whose it could be.
    let of_adapter = !snapshot.applications.is_empty();
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
        Column::numbers("acked"),
        Column::numbers("received"),
    ];
    if of_adapter {
        columns.push(Column::numbers("application"));
    }
    let width = columns.len();
    let mut table = Table::new(columns);
    for listener in &snapshot.listeners {
        let mut row = vec!["LISTEN".to_owned(), grouped(listener.accept_queue)];
        row.extend([String::new(), listener.local.to_string()]);
        row.resize(width, String::new());
        table.row(row);
    }
    for connection in snapshot.connections.iter().take(MOST_ROWS) {
        let mut row = connection_row(connection);
        if of_adapter {
            row.push(
                connection
                    .application
                    .map_or_else(String::new, |number| number.to_string()),
            );
        }
        table.row(row);
    }
    table.render()
}

fn connection_row(connection: &ConnectionRow) -> Vec<String> {
    let info = &connection.info;
    let ms = |span: Span| format!("{:.1}", span.as_us_f64() / 1000.0);
    let window = info.congestion_window / info.send_mss.max(1);
    let control = format!("{} {:?}", connection.congestion, info.phase).to_lowercase();
    vec![
        state_name(&format!("{:?}", info.state)),
        grouped(connection.receive_queue),
        grouped(connection.send_queue),
        connection.local.to_string(),
        connection.remote.to_string(),
        control,
        grouped(window.into()),
        info.srtt.map_or_else(|| "-".to_owned(), ms),
        ms(info.rto),
        grouped(info.total_retransmissions.into()),
        grouped(info.bytes_acked),
        grouped(info.bytes_received),
    ]
}

/// As RFC 9293 writes it: `FinWait1` is `FIN-WAIT-1`.
fn state_name(variant: &str) -> String {
    let mut name = String::new();
    for letter in variant.chars() {
        if !name.is_empty() && (letter.is_ascii_uppercase() || letter.is_ascii_digit()) {
            name.push('-');
        }
        name.push(letter.to_ascii_uppercase());
    }
    match name.as_str() {
        "ESTABLISHED" => "ESTAB".to_owned(),
        _ => name,
    }
}

fn neighbours(snapshot: &Snapshot) -> String {
    let mut table = Table::new(vec![
        Column::words("neighbour"),
        Column::words("address"),
        Column::words("state"),
        Column::numbers("waiting"),
    ]);
    for neighbour in &snapshot.neighbours {
        let mac = neighbour.mac.clone();
        table.row(vec![
            neighbour.addr.clone(),
            mac.unwrap_or_else(|| "-".to_owned()),
            neighbour.state.clone(),
            grouped(neighbour.waiting),
        ]);
    }
    table.render()
}

fn counters(snapshot: &Snapshot, all: bool) -> String {
    let mut table = Table::new(vec![Column::words("counter"), Column::numbers("value")]);
    for (name, &value) in &snapshot.counters {
        if all || value > 0 {
            table.row(vec![name.clone(), grouped(value)]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_of_the_standard() {
        for (variant, name) in [
            ("Established", "ESTAB"),
            ("FinWait1", "FIN-WAIT-1"),
            ("SynReceived", "SYN-RECEIVED"),
            ("TimeWait", "TIME-WAIT"),
        ] {
            assert_eq!(state_name(variant), name);
        }
    }
}
