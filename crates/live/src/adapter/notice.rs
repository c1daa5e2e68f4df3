//! Notices about applications for the operator.

use super::application::About;
use crate::ending::Waiting;
use baton_bus::link::Violation;
use baton_iolib::log::Level;
use baton_nic::adapter::Ending;
use std::fmt::{self, Display};

/// An event in the life of an application, or a notice about the adapter itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// An application has attached.
    Attached(About),
    /// An application has exited, and its connections are being ended.
    Left {
        /// The application.
        about: About,
        /// Number of sockets that the application had.
        sockets: usize,
        /// What happens to its connections.
        ending: Ending,
    },
    /// An application has broken the rules, and its connections are reset.
    CutOff {
        /// The application.
        about: About,
        /// The rule that it broke.
        violation: Violation,
    },
    /// The broker has gone away.
    Alone,
    /// Another broker has taken over.
    NotAlone,
    /// Number of notices of one kind (its name) about one user (or none) that were suppressed because they came too fast.
    Hidden(&'static str, Option<u32>, u64),
    /// The adapter is shutting down, and connections remain.
    Waiting(Waiting),
}

impl Notice {
    /// Returns the severity of the notice.
    pub fn level(&self) -> Level {
        match self {
            Self::CutOff { .. } | Self::Alone => Level::Warn,
            _ => Level::Info,
        }
    }

    /// Returns the kind of the notice and its user. The rate of notices is limited per such pair.
    pub(super) fn key(&self) -> (&'static str, Option<u32>) {
        match self {
            Self::Attached(about) => ("applications attached", about.uid),
            Self::Left { about, .. } => ("applications detached", about.uid),
            Self::CutOff { about, .. } => ("applications disconnected", about.uid),
            Self::Alone | Self::NotAlone => ("state of the broker", None),
            Self::Waiting(_) => ("shutdown", None),
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
            } => write!(out, "{about} has detached"),
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
                    "{about} has detached; {sockets} open socket{plural} will be {fate}"
                )
            }
            Self::Alone => write!(
                out,
                "the broker is gone: until another broker starts (baton live broker), connections stay on the adapter and no others move to it"
            ),
            Self::NotAlone => write!(out, "a new broker has taken over: connections move again"),
            Self::Waiting(waiting) => waiting.fmt(out),
            Self::Hidden(kind, user, count) => {
                write!(out, "{count} more lines like these were not shown: {kind}")?;
                match user {
                    Some(user) => write!(out, " (user {user})"),
                    None => Ok(()),
                }
            }
            Self::CutOff { about, violation } => {
                write!(
                    out,
                    "{about} was disconnected because it violated the protocol: {violation}"
                )
            }
        }
    }
}
