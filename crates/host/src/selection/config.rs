//! Selection policies in configurations.

use super::{
    Alternate, AtReceive, Benefit, Bulk, Fcfs, Foreseen, Learned, Never, PerPort, Rate, Retry,
    Selection, Survival, Threshold,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of a selection policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SelectionConfig {
    /// Attempts to hand off every connection as soon as it is established, and only then: [`Fcfs`].
    #[default]
    Fcfs,
    /// Attempts to hand off a connection at the n-th enqueue to its send buffer, and only then: [`Threshold`].
    Threshold {
        /// Number of the enqueue to the send buffer at which a connection is handed off; 0: when it is established.
        enqueues: u32,
    },
    /// Moves every connection to the NIC, or back, at each n-th enqueue to its send buffer: [`Alternate`].
    Alternate {
        /// Enqueues to the send buffer between two moves.
        enqueues: u32,
    },
    /// Attempts to hand off a connection when the application reads from it for the n-th time, and only then: [`AtReceive`].
    AtReceive {
        /// Number of the read at which a connection is handed off; 0: when it is established.
        receives: u32,
    },
    /// Attempts to hand off connections that send faster than others: [`Rate`].
    Rate {
        /// Rate from which a connection is handed off, in per cent of the mean of all connections: enqueues to the send buffer in a second
        /// of its life.
        percent: u32,
    },
    /// Attempts to hand off connections that, judging by earlier ones, still have enough to send.
    ///
    /// See [`Benefit`] and [`Survival`].
    Benefit {
        /// Remaining enqueues to the send buffer from which a handoff pays.
        enqueues: u32,
    },
    /// Like `benefit`, but knows what each connection will send. Only a simulator that replays a log can do that.
    ///
    /// See [`Benefit`] and [`Foreseen`].
    Oracle {
        /// Remaining enqueues to the send buffer from which a handoff pays.
        enqueues: u32,
    },
    /// Like another policy, but attempts again at each send request to hand off connections whose handoff failed or that came back: [`Retry`].
    Retry {
        /// The other policy.
        selection: Box<SelectionConfig>,
    },
    /// Like another policy, but takes connections back when they begin a large response, and hands them off again afterwards: [`Bulk`].
    Bulk {
        /// Minimum size of a response that the host sends, bytes.
        bytes: u64,
        /// The other policy.
        selection: Box<SelectionConfig>,
    },
    /// Hands off as many connections as measurements show to pay: [`Learned`].
    Learned,
    /// Hands off no connection: [`Never`].
    Never,
    /// Applies a policy to each local port: [`PerPort`].
    PerPort {
        /// Policies of single ports.
        ports: Vec<PortSelection>,
        /// Policy of all other ports.
        default: Box<SelectionConfig>,
    },
}

/// The policy of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSelection {
    /// Local TCP port.
    pub port: u16,
    /// Policy of this port.
    pub selection: SelectionConfig,
}

impl SelectionConfig {
    /// Creates the policy.
    pub fn build(&self) -> Box<dyn Selection> {
        match *self {
            Self::Fcfs => Box::new(Fcfs),
            Self::Threshold { enqueues } => Box::new(Threshold { enqueues }),
            Self::Alternate { enqueues } => Box::new(Alternate { enqueues }),
            Self::AtReceive { receives } => Box::new(AtReceive { receives }),
            Self::Rate { percent } => Box::new(Rate::new(percent)),
            Self::Benefit { enqueues } => Box::new(Benefit::new(Survival::default(), enqueues)),
            Self::Oracle { enqueues } => Box::new(Benefit::new(Foreseen, enqueues)),
            Self::Retry { ref selection } => Box::new(Retry::new(selection.build())),
            Self::Bulk {
                bytes,
                ref selection,
            } => Box::new(Bulk::new(bytes, selection.build())),
            Self::Learned => Box::new(Learned::default()),
            Self::Never => Box::new(Never),
            Self::PerPort {
                ref ports,
                ref default,
            } => {
                let ports = ports
                    .iter()
                    .map(|p| (p.port, p.selection.build()))
                    .collect();
                Box::new(PerPort::new(ports, default.build()))
            }
        }
    }
}
