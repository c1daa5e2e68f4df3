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
    /// So many notices of a kind, by its name, came too soon one after another to be told one by one: of a user, or of nobody.
    Hidden(&'static str, Option<u32>, u64),
    /// It is to end, and connections are left.
    Waiting(Waiting),
}

impl Notice {
    /// What it is about, and which user: of each so many are told.
    pub(super) fn key(&self) -> (&'static str, Option<u32>) {
        match self {
            Self::Attached(about) => ("applications attach", about.uid),
            Self::Left { about, .. } => ("applications are gone", about.uid),
            Self::CutOff { about, .. } => ("applications are cut off", about.uid),
            Self::Alone | Self::NotAlone => ("the broker", None),
            Self::Waiting(_) => ("the end", None),
            Self::Hidden(kind, user, _) => (kind, *user),
        }
    }
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
            Self::Hidden(kind, user, count) => {
                write!(out, "{count} more lines like these were not shown: {kind}")?;
                match user {
                    Some(user) => write!(out, " (user {user})"),
                    None => Ok(()),
                }
            }
            Self::CutOff { about, violation } => {
                write!(out, "{about} is cut off, it broke the rules: {violation}")
            }
        }
    }
}
