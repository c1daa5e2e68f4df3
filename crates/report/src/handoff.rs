//! Handoffs and why the others stayed.

use crate::facts::{Count, counts_table};
use crate::number::{grouped, percent, significant};
use crate::text::wrapped;
use crate::width::width;

/// Handoffs of one run and their fate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handoffs {
    /// Handoffs that the host asked for.
    pub attempted: u64,
    /// Handoffs that the NIC accepted.
    pub accepted: u64,
    /// Connections taken back.
    pub restored: u64,
    /// Packets forwarded to the NIC because they crossed a handoff.
    pub forwarded: u64,
    /// Share of packets that belong to offloaded connections, per cent.
    pub offloaded_percent: f64,
    /// Connections on the NIC, mean.
    pub connections_mean: f64,
    /// Connections not offloaded, by reason.
    pub not_offloaded: Vec<Count>,
}

/// What became of handoffs, and why other connections were not offloaded.
pub fn handoffs_text(handoffs: &Handoffs) -> String {
    let text = format!(
        "Handoffs: {} attempted, {} accepted, {} restored, {} packets forwarded.\n\
         On the NIC: {} connections on average, with {} of all packets.\n",
        grouped(handoffs.attempted),
        grouped(handoffs.accepted),
        grouped(handoffs.restored),
        grouped(handoffs.forwarded),
        significant(handoffs.connections_mean),
        percent(handoffs.offloaded_percent),
    );
    let lines = text.lines().map(|line| wrapped(line, width(), 0));
    lines.collect::<String>() + &counts_table("not offloaded because", &handoffs.not_offloaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_follow_only_if_there_are_any() {
        let mut handoffs = Handoffs {
            attempted: 5,
            accepted: 5,
            ..Handoffs::default()
        };
        assert_eq!(handoffs_text(&handoffs).lines().count(), 2);
        handoffs.not_offloaded.push(Count {
            name: "hard limit".into(),
            count: 7,
        });
        assert!(handoffs_text(&handoffs).contains("hard limit"));
    }
}
