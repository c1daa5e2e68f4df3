//! Waiting times of clients.

use super::number;
use baton_report as report;
use baton_sim::results::{Distribution, Results};

/// Returns facts about response times; for an open loop also about the offered load, and about response times from when requests were due.
pub(super) fn facts(result: &Results) -> Vec<(&'static str, String)> {
    let clients = &result.clients;
    let mut facts = Vec::new();
    if let Some(open) = &clients.open_loop {
        let offered = format!(
            "{} requests/s, of which {} were served; {} were in progress at the end, {} were lost",
            report::significant(open.offered_rate),
            report::significant(clients.request_rate),
            report::grouped(open.unanswered),
            report::grouped(open.lost),
        );
        facts.push(("offered", offered));
        facts.push(("response time since due, ms", text(&open.response_ms)));
        facts.push(("of which before it was sent, ms", text(&open.wait_ms)));
    }
    facts.push(("response time, ms", text(&clients.response_ms)));
    facts.push(("to its first byte, ms", text(&clients.first_byte_ms)));
    facts
}

fn text(ms: &Distribution) -> String {
    format!(
        "mean {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, longest {}",
        number(ms.mean),
        number(ms.p50),
        number(ms.p90),
        number(ms.p99),
        number(ms.p999),
        number(ms.max)
    )
}
