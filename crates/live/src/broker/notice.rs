//! What a broker tells its operator.

use baton_wire::Flow;
use std::fmt::{self, Display};

/// What happened to an adapter, or to connections of one that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerNotice {
    /// An adapter has come: its process.
    Attached(u32),
    /// One has come whose broker was killed.
    Adopted {
        /// Its process.
        pid: u32,
        /// Connections that it has, or its applications on their way.
        connections: usize,
    },
    /// It has ended, and left nothing behind.
    Left(u32),
    /// It is gone without a word, as one that is killed.
    Killed {
        /// Its process.
        pid: u32,
        /// Connections whose state is complete: their applications take them back.
        complete: usize,
        /// Connections that are on their way between an application and the adapter.
        moving: usize,
        /// Connections that are reset.
        reset: usize,
    },
    /// A connection is lost: its peer is to be told by a reset.
    Lost(Flow, Loss),
    /// So many notices of a kind, by its name, came too soon one after another to be told one by one.
    Hidden(&'static str, u64),
}

/// Why a connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Data was under way.
    Incomplete,
    /// The application is gone, too, or has let go of it.
    Abandoned,
    /// What the application has sent and received is not what the adapter has: one had more than the other.
    Mismatch,
    /// The kernel has not taken it.
    NotTaken,
}

impl Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Incomplete => "data was under way",
            Self::Abandoned => "no application has asked for it",
            Self::Mismatch => "data was under way between the adapter and the application",
            Self::NotTaken => "the kernel has not taken it",
        })
    }
}

impl BrokerNotice {
    /// What it is about: each kind has its share of what is told.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Attached(_) | Self::Adopted { .. } => "an adapter has come",
            Self::Left(_) | Self::Killed { .. } => "an adapter has gone",
            Self::Lost(..) => "a connection is reset",
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
                "the adapter is process {pid}, with {connections} connections from the broker before this one"
            ),
            Self::Left(pid) => write!(out, "the adapter, process {pid}, has ended"),
            Self::Killed {
                pid,
                complete,
                moving,
                reset,
            } => write!(
                out,
                "the adapter, process {pid}, was killed: {complete} of its connections can go on, {moving} are with their applications, \
                 {reset} are reset"
            ),
            Self::Lost(Flow { local, remote }, loss) => {
                write!(out, "reset: {local} to {remote}: {loss}")
            }
            Self::Hidden(kind, count) => {
                write!(out, "{count} more lines like these were not shown: {kind}")
            }
        }
    }
}
