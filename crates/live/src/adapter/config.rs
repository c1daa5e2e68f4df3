//! Parameters of the adapter process.

use baton_iolib::Limits;
use baton_nic::Config;
use baton_nic::adapter::{AdapterConfig, Ending};

/// What the process does for applications, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterServiceConfig {
    /// The adapter's parameters; the addresses are those of the host that it works with.
    pub adapter: AdapterConfig,
    /// The firmware's scheduler, lengths of queues and burst of segments, for an adapter that does one piece of work at a time; none: it does
    /// all that is there at once. Everything else is in `adapter`.
    pub firmware: Option<Config>,
    /// The most that one application gets of rings and buffers.
    pub limits: Limits,
    /// What becomes of the connections of an application that is gone.
    pub on_exit: Ending,
}

/// Applications that are gone leave no connections.
impl Default for AdapterServiceConfig {
    fn default() -> Self {
        let limits = Limits::default();
        let adapter = AdapterConfig {
            most_sessions: limits.applications,
            ..AdapterConfig::default()
        };
        Self {
            limits: Limits {
                most_sends: adapter.most_sends,
                ..limits
            },
            adapter,
            firmware: None,
            on_exit: Ending::Reset,
        }
    }
}
