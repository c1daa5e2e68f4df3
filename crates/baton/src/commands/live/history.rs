//! `baton live history`: shows when and why connections moved between the kernel and an adapter.

use super::ask_broker;
use super::ss::{duration, plain, user_text};
use crate::cli::{EndFilter, HistoryArgs};
use crate::failure::Failure;
use crate::output::print;
use crate::runner::Interrupt;
use baton_live::Places;
use baton_report::{counted, grouped};
use baton_sockets::broker::{ConnectionHistory, HistoryAnswer, HistoryQuery, MoveRow};
use baton_wire::Span;
use jiff::Timestamp;
use std::fmt::Write;

/// Runs the command.
///
/// # Errors
/// Fails if no broker answers.
pub fn execute(arguments: &HistoryArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let broker = arguments.broker.clone();
    let broker = broker.unwrap_or_else(|| Places::here().broker());
    let EndFilter { addr, port } = arguments.of.unwrap_or_default();
    let query = HistoryQuery {
        addr,
        port,
        away: arguments.away,
        // JSON has all connections that the broker knows.
        most: (!arguments.json).then_some(arguments.rows),
    };
    let answer = ask_broker(&broker, interrupt, move |broker| broker.history(&query))?;
    if arguments.json {
        let text = serde_json::to_string(&answer);
        let text = text.map_err(|error| Failure::Failed(error.to_string()))?;
        return print(&format!("{text}\n"));
    }
    print(&render(&answer))
}

/// Renders a line for each connection, with its moves below.
fn render(answer: &HistoryAnswer) -> String {
    let mut text = String::new();
    for connection in &answer.connections {
        let ConnectionHistory {
            local,
            remote,
            uid,
            pid,
            program,
            moves,
            earlier_moves,
        } = connection;
        let process = match pid {
            0 => "an unknown process (from before this broker started)".to_owned(),
            pid => format!("{} ({pid})", plain(program)),
        };
        let user = user_text(*uid);
        let _ = writeln!(text, "{local} to {remote}, {process}, user {user}");
        if *earlier_moves > 0 {
            let _ = writeln!(text, "  {} before", counted(*earlier_moves, "move"));
        }
        for one in moves {
            let _ = writeln!(text, "  {} {}", time_text(one.at_ms), move_text(one));
        }
    }
    if answer.connections.is_empty() {
        text.push_str("no connection that matches has moved\n");
    }
    if answer.left_out > 0 {
        let left = grouped(answer.left_out);
        let _ = writeln!(text, "... and {left} more; --rows N shows more");
    }
    if answer.forgotten > 0 {
        let forgotten = grouped(answer.forgotten);
        let _ = writeln!(
            text,
            "the broker has discarded the histories of {forgotten} others to limit its memory"
        );
    }
    text
}

/// Describes a move without its time.
pub fn move_text(one: &MoveRow) -> String {
    let mut text = format!("{} ({})", one.to.name(), plain(&one.why).replace('_', " "));
    if let Some(took_us) = one.took_us {
        let _ = write!(text, ", in {}", duration(Span::from_us(took_us.into())));
    }
    if one.times > 1 {
        let _ = write!(text, ", the last of {} times", one.times);
    }
    text
}

/// Formats a time, in UTC.
fn time_text(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok();
    let at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map_or_else(|| "-".to_owned(), |at| format!("{at:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_sockets::broker::Destination;
    use baton_wire::Endpoint;

    #[test]
    fn a_connection_is_shown_with_its_moves() {
        let one = |to, why: &str, took_us, times| MoveRow {
            at_ms: 1_700_000_000_123,
            to,
            why: why.to_owned().into(),
            took_us,
            times,
        };
        let connection = ConnectionHistory {
            local: Endpoint::new([10, 0, 0, 1].into(), 443),
            remote: Endpoint::new([10, 0, 0, 2].into(), 5000),
            uid: 4_000_000_000,
            pid: 12,
            program: "nginx\x1b[2J".to_owned(),
            moves: vec![
                one(Destination::Adapter, "policy", Some(310), 1),
                one(Destination::Kernel, "adapter_ends", Some(12_000), 1),
                one(Destination::Stayed, "the adapter takes no more", None, 3),
            ],
            earlier_moves: 1,
        };
        let mut answer = HistoryAnswer {
            connections: vec![connection],
            left_out: 2,
            forgotten: 1000,
        };
        let expected = "10.0.0.1:443 to 10.0.0.2:5000, nginx?[2J (12), user 4000000000\n\
            \x20 1 move before\n\
            \x20 2023-11-14T22:13:20.123Z to the adapter (policy), in 0.31 ms\n\
            \x20 2023-11-14T22:13:20.123Z back to the kernel (adapter ends), in 12 ms\n\
            \x20 2023-11-14T22:13:20.123Z stayed in the kernel (the adapter takes no more), the last of 3 times\n\
            ... and 2 more; --rows N shows more\n\
            the broker has discarded the histories of 1,000 others to limit its memory\n";
        assert_eq!(render(&answer), expected);
        answer = HistoryAnswer::default();
        assert_eq!(render(&answer), "no connection that matches has moved\n");
    }
}
