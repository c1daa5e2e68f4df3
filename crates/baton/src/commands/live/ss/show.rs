//! The table.

use super::{Place, Row, duration, user_text};
use crate::cli::SsArgs;
use crate::commands::live::history::move_text;
use crate::commands::live::stat::state_name;
use baton_report::{Column, Table, counted, grouped};
use baton_tcp::{CongestionPhase, Info, State};
use baton_wire::Span;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// A width larger than any row, so that rows are not broken.
const UNBROKEN: usize = 10_000;

/// Renders a line that identifies each connection, with details below.
pub fn render(rows: &[Row], arguments: &SsArgs) -> String {
    let is_asked_for = !arguments.filter.state.is_empty();
    let is_shown = |row: &&Row| {
        let is_short_lived = matches!(row.state, Some(State::TimeWait | State::SynReceived));
        is_asked_for || !is_short_lived
    };
    let shown: Vec<&Row> = rows.iter().filter(is_shown).collect();
    let mut table = Table::new(vec![
        Column::words("state"),
        Column::numbers("recv-q"),
        Column::numbers("send-q"),
        Column::words("local"),
        Column::words("remote"),
        Column::words("is in the"),
        Column::words("user"),
        Column::words("process"),
    ]);
    let first: Vec<&&Row> = shown.iter().take(arguments.rows).collect();
    for row in &first {
        table.row(cells(row));
    }
    let table = table.fit(UNBROKEN);
    let mut lines = table.lines();
    let mut text = String::new();
    for line in lines.by_ref().take(2) {
        let _ = writeln!(text, "{line}");
    }
    for (line, row) in lines.zip(first) {
        let _ = writeln!(text, "{line}");
        details(&mut text, row);
    }
    if shown.len() > arguments.rows {
        let left = grouped((shown.len() - arguments.rows) as u64);
        let _ = writeln!(text, "... and {left} more; --rows N shows more, --json all");
    }
    let hidden = |state| {
        let of_state = rows.iter().filter(|row| row.state == Some(state)).count();
        (!is_asked_for && of_state > 0).then(|| grouped(of_state as u64))
    };
    if let Some(count) = hidden(State::SynReceived) {
        let _ = writeln!(
            text,
            "... and {count} half open; --state syn-received shows them"
        );
    }
    if let Some(count) = hidden(State::TimeWait) {
        let _ = writeln!(text, "... and {count} in TIME-WAIT; --json shows them");
    }
    if rows.is_empty() {
        text = "no connections\n".to_owned();
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let processes: Vec<_> = (row.processes.iter())
        .map(|process| format!("{} ({})", process.name, process.pid))
        .collect();
    vec![
        row.state.map_or("LISTEN", state_name).to_owned(),
        grouped(row.receive_queue),
        grouped(row.send_queue),
        row.local.to_string(),
        row.remote.map_or_else(String::new, |end| end.to_string()),
        match row.place {
            Place::Adapter => "adapter",
            Place::Kernel => "kernel",
        }
        .to_owned(),
        row.uid.map_or_else(String::new, user_text),
        processes.join(", "),
    ]
}

fn details(text: &mut String, row: &Row) {
    let Some(info) = &row.info else {
        return;
    };
    let waits = match row.waits_for.is_empty() {
        true => "nothing".to_owned(),
        false => row.waits_for.join("; "),
    };
    let _ = writeln!(text, "      waits for: {waits}");
    if let Some(moved) = &row.moved {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.unwrap_or_default().as_millis() as u64;
        let ago = duration(Span::from_ms(now_ms.saturating_sub(moved.at_ms)));
        let count = counted(row.moves, "move");
        let _ = writeln!(text, "      last: {}, {ago} ago; {count}", move_text(moved));
    }
    let _ = writeln!(text, "      {}", options(row, info));
    let _ = writeln!(text, "      {}", path(info));
    let _ = writeln!(text, "      {}", totals(info));
}

/// Describes negotiated options, the current state and the timer.
fn options(row: &Row, info: &Info) -> String {
    let mut words = vec![row.congestion.clone(), info.phase.name().to_owned()];
    for (is_on, name) in [
        (info.timestamps, "ts"),
        (info.sack, "sack"),
        (info.ecn, "ecn"),
        (info.syn_data, "fastopen"),
    ] {
        words.extend(is_on.then(|| name.to_owned()));
    }
    if info.window_scaling {
        words.push(format!("wscale:{},{}", info.send_shift, info.receive_shift));
    }
    if let Some(timer) = row.timer {
        words.push(format!(
            "timer:{},{}",
            timer.kind.name().replace(' ', "-"),
            duration(timer.after)
        ));
    }
    if info.backoff > 0 {
        words.push(format!("backoff:{}", info.backoff));
    }
    if info.probes > 0 {
        words.push(format!("probes:{}", info.probes));
    }
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

/// Describes the path: times in ms, sizes in bytes, windows in segments.
fn path(info: &Info) -> String {
    let ms = |span: Span| span.as_us_f64() / 1000.0;
    let mss = info.send_mss.max(1);
    let mut text = String::new();
    if let (Some(srtt), Some(rttvar)) = (info.srtt, info.rttvar) {
        let _ = write!(text, "rtt:{:.3}/{:.3} ", ms(srtt), ms(rttvar));
    }
    if let Some(least) = info.min_rtt {
        let _ = write!(text, "minrtt:{:.3} ", ms(least));
    }
    let _ = write!(
        text,
        "rto:{:.0} ato:{:.0} mss:{} pmtu:{} rcvmss:{} advmss:{} cwnd:{}",
        ms(info.rto),
        ms(info.ato),
        info.send_mss,
        info.path_mtu,
        info.receive_mss,
        info.advertised_mss,
        info.congestion_window / mss,
    );
    if info.slow_start_threshold < u32::MAX {
        let _ = write!(text, " ssthresh:{}", info.slow_start_threshold / mss);
    }
    let _ = write!(
        text,
        " snd_wnd:{} rcv_wnd:{}",
        info.send_window, info.receive_window
    );
    if info.delivery_rate > 0 {
        let _ = write!(
            text,
            " delivery_rate:{:.1}Mb/s",
            info.delivery_rate as f64 * 8e-6
        );
    }
    text
}

fn totals(info: &Info) -> String {
    let ms = |span: Span| span.as_us() / 1000;
    let mut text = format!(
        "bytes_sent:{} bytes_acked:{} bytes_received:{} segs_out:{} segs_in:{}",
        info.bytes_sent, info.bytes_acked, info.bytes_received, info.segments_out, info.segments_in,
    );
    let again = info.retransmitted.div_ceil(info.send_mss.max(1));
    for (name, value) in [
        ("unacked", u64::from(info.unacked_segments)),
        ("notsent", info.not_sent.into()),
        ("bytes_retrans", info.bytes_retransmitted),
        ("rcv_ooopack", info.out_of_order_segments.into()),
        ("dsack_dups", info.duplicate_sacks.into()),
        ("reord_seen", info.reordering_seen.into()),
        ("sacked", info.sacked.into()),
        ("lost", info.lost.into()),
    ] {
        if value > 0 {
            let _ = write!(text, " {name}:{value}");
        }
    }
    if info.total_retransmissions > 0 || info.phase == CongestionPhase::Loss {
        let _ = write!(text, " retrans:{again}/{}", info.total_retransmissions);
    }
    let _ = write!(
        text,
        " lastsnd:{} lastrcv:{} lastack:{}",
        ms(info.last_data_sent),
        ms(info.last_data_received),
        ms(info.last_ack_received)
    );
    text
}
