//! Notices of a broker for its operator.

use baton_iolib::log::Level;
use baton_sockets::broker::Destination;
use baton_wire::Flow;
use std::borrow::Cow;
use std::fmt::{self, Display};

/// An event in the life of an adapter or of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerNotice {
    /// An adapter with this process ID has attached.
    Attached(u32),
    /// An adapter has attached whose previous broker was killed.
    Adopted {
        /// Process ID of the adapter.
        pid: u32,
        /// Number of connections that the adapter has, or that are on their way between it and its applications.
        connections: usize,
    },
    /// The adapter with this process ID has ended and left nothing behind.
    Left(u32),
    /// The adapter has disappeared without detaching, for example because it was killed.
    Killed {
        /// Process ID of the adapter.
        pid: u32,
        /// Number of connections whose state is complete: their applications take them back.
        complete: usize,
        /// Number of connections that are on their way between an application and the adapter.
        moving: usize,
        /// Number of connections that are reset.
        reset: usize,
    },
    /// A connection has moved, or has failed to move.
    Moved {
        /// The connection.
        flow: Flow,
        /// Where the connection is now.
        to: Destination,
        /// Name of the reason.
        why: Cow<'static, str>,
        /// Time in microseconds during which neither side had the connection, if known.
        took_us: Option<u32>,
    },
    /// Number of connections that have moved since the last such notice, by destination and reason.
    Moves(Vec<((Destination, Cow<'static, str>), u64)>),
    /// A connection is lost, and its peer is made to receive a reset.
    Lost(Flow, Loss),
    /// Number of notices of a kind (its name) that were suppressed because they came too fast.
    Hidden(&'static str, u64),
}

/// Reason why a connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Data was in flight.
    Incomplete,
    /// The application has exited, too, or has abandoned the connection.
    Abandoned,
    /// The adapter and the application disagree on how much was sent and received.
    Mismatch,
    /// The kernel has refused the connection.
    NotTaken,
}

impl Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Incomplete => "data was in flight",
            Self::Abandoned => "no application has claimed it",
            Self::Mismatch => "data was in flight between the adapter and the application",
            Self::NotTaken => "the kernel has refused it",
        })
    }
}

impl BrokerNotice {
    /// Returns the severity of the notice.
    pub fn level(&self) -> Level {
        match self {
            Self::Killed { .. } | Self::Lost(..) => Level::Warn,
            Self::Moved { .. } => Level::Debug,
            _ => Level::Info,
        }
    }

    /// Returns the kind of the notice. The rate of notices is limited per kind.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Attached(_) | Self::Adopted { .. } => "adapters attached",
            Self::Left(_) | Self::Killed { .. } => "adapters detached",
            Self::Lost(..) => "connections reset",
            Self::Moved { .. } => "moves of single connections",
            Self::Moves(_) => "summaries of moves",
            Self::Hidden(kind, _) => kind,
        }
    }
}

impl Display for BrokerNotice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached(pid) => write!(out, "the adapter is process {pid}"),
            Self::Adopted { pid, connections } => write!(
                out,
                "the adapter is process {pid}; it has {connections} connections from the previous broker"
            ),
            Self::Left(pid) => write!(out, "the adapter, process {pid}, has ended"),
            Self::Killed {
                pid,
                complete,
                moving,
                reset,
            } => write!(
                out,
                "the adapter, process {pid}, was killed: {complete} of its connections can continue in the kernel, {moving} were moving, \
                 {reset} are reset"
            ),
            Self::Lost(Flow { local, remote }, loss) => {
                write!(out, "reset: {local} to {remote}: {loss}")
            }
            Self::Moved {
                flow: Flow { local, remote },
                to,
                why,
                took_us,
            } => {
                write!(out, "{local} to {remote}: {}, {why}", to.name())?;
                match took_us {
                    Some(took_us) => write!(out, ", in {:.2} ms", f64::from(*took_us) / 1000.0),
                    None => Ok(()),
                }
            }
            Self::Moves(moved) => {
                out.write_str("connections moved recently:")?;
                for (index, ((to, why), count)) in moved.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "," };
                    write!(out, "{separator} {count} {} ({why})", to.name())?;
                }
                Ok(())
            }
            Self::Hidden(kind, count) => {
                write!(out, "{count} more lines like these were not shown: {kind}")
            }
        }
    }
}
