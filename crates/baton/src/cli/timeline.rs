//! Options for timelines.

use super::size::parse_size;
use baton_timeline::{Connections, LEAST_BYTES, Sampling};
use baton_wire::Time;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Options for a timeline and its content.
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// Write a timeline in Perfetto's format to this file, for its UI and its trace_processor: when processors, bus and chosen connections
    /// do what, and what waits; for a single run, or for a live adapter from its own events
    #[arg(id = "timeline", long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The part of the run in the timeline, in seconds from its start, as in 1.5..1.6 or 2.. [default: the measured part; live, all]
    #[arg(long = "timeline-window", value_name = "FROM..TO", requires = "timeline", value_parser = Sampling::parse_window)]
    window: Option<(Option<Time>, Option<Time>)>,
    /// Connections with a track each: every:N, all, none, moved (handed off, or meant to be), lossy (with a lost or repeated segment), or
    /// the connection of a client's ADDRESS:PORT
    #[arg(
        long = "timeline-connections",
        value_name = "WHICH",
        default_value = "every:100",
        requires = "timeline"
    )]
    connections: Connections,
    /// Maximum size of the timeline, as in 32M. If it is reached, the rest is left out: first pieces of work, then connections, samples
    /// last
    #[arg(long = "timeline-size", value_name = "SIZE", default_value = "32M", requires = "timeline", value_parser = parse_limit)]
    most_bytes: u32,
}

impl TimelineArgs {
    /// Returns what goes into the timeline.
    pub fn sampling(&self) -> Sampling {
        let (from, to) = self.window.unwrap_or_default();
        Sampling {
            from,
            to,
            connections: self.connections,
            most_bytes: self.most_bytes.into(),
        }
    }
}

fn parse_limit(text: &str) -> Result<u32, String> {
    let bytes = parse_size(text)?;
    match u64::from(bytes) < LEAST_BYTES {
        true => Err("expected at least 1M".to_owned()),
        false => Ok(bytes),
    }
}
