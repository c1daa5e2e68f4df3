//! Selects the part of a run that is in its timeline.

use baton_wire::{Endpoint, Span, Time};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Selects the part of a run that is in its timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Start of the timeline; `None`: the start of the measurement, or of the run if nothing is measured.
    pub from: Option<Time>,
    /// End of the timeline; `None`: the end of the run.
    pub to: Option<Time>,
    /// The connections that have a track.
    pub connections: Connections,
    /// Maximum size of the timeline, bytes.
    pub most_bytes: u64,
}

/// Every hundredth connection, and 32 MiB.
impl Default for Sampling {
    fn default() -> Self {
        Self {
            from: None,
            to: None,
            connections: Connections::Every(100),
            most_bytes: 32 << 20,
        }
    }
}

impl Sampling {
    /// Parses a window, FROM..TO, in seconds; an omitted end is `None`.
    ///
    /// # Errors
    /// Returns a text that says what was expected.
    pub fn parse_window(text: &str) -> Result<(Option<Time>, Option<Time>), String> {
        let expected = || "expected FROM..TO in seconds, as in 1.5..1.6, 1.5.. or ..0.5".to_owned();
        let (from, to) = text.split_once("..").ok_or_else(expected)?;
        let end = |text: &str| match text {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(seconds) if (0.0..1e6).contains(&seconds) => {
                    Ok(Some(Time::ZERO + Span::from_ps((seconds * 1e12) as u64)))
                }
                _ => Err(expected()),
            },
        };
        let (from, to) = (end(from)?, end(to)?);
        match to.is_some_and(|to| to <= from.unwrap_or(Time::ZERO)) {
            true => Err(format!("{}; it ends before it begins", expected())),
            false => Ok((from, to)),
        }
    }
}

/// Rule that chooses the connections that have a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// None.
    None,
    /// The first of every n connections, in the order in which they are opened.
    Every(u64),
    /// Connections that were handed off to a NIC, or whose handoff was attempted.
    Moved,
    /// Connections that lost or retransmitted a packet.
    Lossy,
    /// Connections of the client with this address and port.
    Of(SocketAddr),
}

impl Connections {
    /// Returns whether a connection is chosen as soon as it is opened, from the number of connections opened before it and its client.
    pub fn chooses(self, number: u64, client: Endpoint) -> bool {
        match self {
            Self::None | Self::Moved | Self::Lossy => false,
            Self::Every(step) => number.is_multiple_of(step),
            Self::Of(socket) => socket == SocketAddr::new(client.addr, client.port),
        }
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Every(step) => write!(f, "every:{step}"),
            Self::Moved => f.write_str("moved"),
            Self::Lossy => f.write_str("lossy"),
            Self::Of(client) => client.fmt(f),
        }
    }
}

impl FromStr for Connections {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let every = |text: &str| text.strip_prefix("every:")?.parse().ok();
        match text {
            "none" => Ok(Self::None),
            "all" => Ok(Self::Every(1)),
            "moved" => Ok(Self::Moved),
            "lossy" => Ok(Self::Lossy),
            text => match (every(text), text.parse()) {
                (Some(step), _) if step > 0 => Ok(Self::Every(step)),
                (None, Ok(client)) => Ok(Self::Of(client)),
                _ => Err(
                    "expected every:N, all, none, moved (to a NIC, or attempted), lossy, or a client's ADDRESS:PORT"
                        .to_owned(),
                ),
            },
        }
    }
}
