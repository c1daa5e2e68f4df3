//! Parameters of the adapter process.

use baton_iolib::Limits;
use baton_nic::Config;
use baton_nic::adapter::{AdapterConfig, Ending};

/// What the adapter process offers to applications, and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterServiceConfig {
    /// The adapter's parameters. The addresses are replaced by those of the host that the adapter works with.
    pub adapter: AdapterConfig,
    /// Scheduler, queue lengths and segment burst of the firmware, for an adapter that does one piece of work at a time. With `None`, the
    /// adapter does all pending work at once. Everything else is in `adapter`.
    pub firmware: Option<Config>,
    /// Memory for connections and their data in bytes, or `None` for no limit.
    pub memory: Option<u64>,
    /// Limits on the rings and buffers of one application.
    pub limits: Limits,
    /// What happens to the connections of an application that has exited.
    pub on_exit: Ending,
}

/// By default, the connections of an application that has exited are reset.
impl Default for AdapterServiceConfig {
    fn default() -> Self {
        let limits = Limits::default();
        let adapter = AdapterConfig {
            most_sessions: limits.applications,
            most_sockets: baton_sockets::MOST_SOCKETS,
            ..AdapterConfig::default()
        };
        Self {
            limits: Limits {
                most_sends: adapter.most_sends,
                ..limits
            },
            adapter,
            firmware: None,
            memory: None,
            on_exit: Ending::Reset,
        }
    }
}
