//! Selection policies as experiments name them.

use super::{
    Alternate, AtReceive, Benefit, Fcfs, Foreseen, Never, PerPort, Rate, Retry, Selection,
    Survival, Threshold,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A policy as a configuration names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SelectionConfig {
    /// Every connection is attempted as soon as it is established, and only then: [`Fcfs`].
    #[default]
    Fcfs,
    /// A connection is attempted at the n-th enqueue to its send buffer, and only then: [`Threshold`].
    Threshold {
        /// Which enqueue to the send buffer of a connection makes it be handed off; 0: when it is established.
        enqueues: u32,
    },
    /// Every connection changes sides at each n-th enqueue to its send buffer: [`Alternate`].
    Alternate {
        /// Enqueues to the send buffer from one change of sides to the next.
        enqueues: u32,
    },
    /// A connection is attempted when the application reads from it for the n-th time, and only then: [`AtReceive`].
    AtReceive {
        /// Which read makes a connection be handed off; 0: when it is established.
        receives: u32,
    },
    /// Connections are attempted that send faster than others: [`Rate`].
    Rate {
        /// Enqueues to the send buffer in a second of its life, per cent of the mean of all connections, from which one is handed off.
        percent: u32,
    },
    /// Connections are attempted that, going by those before, have enough left to send: [`Benefit`] of what [`Survival`] tells.
    Benefit {
        /// Enqueues to the send buffer that pay for a handoff.
        enqueues: u32,
    },
    /// The same, knowing what each will send. Only a simulator that replays a log does: [`Benefit`] of what is [`Foreseen`].
    Oracle {
        /// Enqueues to the send buffer that pay for a handoff.
        enqueues: u32,
    },
    /// As another policy, and what could not be handed off, or came back, is attempted again at each send request: [`Retry`].
    Retry {
        /// The other policy.
        selection: Box<SelectionConfig>,
    },
    /// No connection is handed off: [`Never`].
    Never,
    /// Policies by local port: [`PerPort`].
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
    /// Its policy.
    pub selection: SelectionConfig,
}

impl SelectionConfig {
    /// The policy itself.
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
