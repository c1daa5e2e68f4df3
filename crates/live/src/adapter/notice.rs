//! What an operator is told of applications as it happens.

use super::application::About;
use crate::ending::Waiting;
use baton_bus::link::Violation;
use baton_nic::adapter::Ending;
use std::fmt::{self, Display};

/// One event in the life of an application, or the end of all.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// It has attached.
    Attached(About),
    /// It is gone; what was left of it is being ended.
    Left {
        /// Who.
        about: About,
        /// Its sockets.
        sockets: usize,
        /// What becomes of its connections.
        ending: Ending,
    },
    /// It has broken the rules, and its connections are reset.
    CutOff {
        /// Who.
        about: About,
        /// What it did.
        violation: Violation,
    },
    /// The broker is gone.
    Alone,
    /// There is another one.
    NotAlone,
    /// It is to end, and connections are left.
    Waiting(Waiting),
}

impl Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached(about) => write!(out, "{about} has attached"),
            Self::Left {
                about, sockets: 0, ..
            } => write!(out, "{about} is gone"),
            Self::Left {
                about,
                sockets,
                ending,
            } => {
                let fate = match ending {
                    Ending::Reset => "reset",
                    Ending::Drain => "drained",
                };
                let plural = if *sockets == 1 { "" } else { "s" };
                write!(
                    out,
                    "{about} is gone; what it had open ({sockets} socket{plural}) is {fate}"
                )
            }
            Self::Alone => write!(
                out,
                "the broker is gone: connections that are here stay, and no others come, until there is another (baton live broker)"
            ),
            Self::NotAlone => write!(
                out,
                "another broker is there: connections come and go again"
            ),
            Self::Waiting(waiting) => waiting.fmt(out),
            Self::CutOff { about, violation } => {
                write!(out, "{about} is cut off, it broke the rules: {violation}")
            }
        }
    }
}
