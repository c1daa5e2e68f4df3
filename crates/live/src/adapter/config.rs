//! Parameters of the adapter process.

use baton_iolib::Limits;
use baton_nic::offload::{AdapterConfig, Ending};

/// What the process does for applications, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterServiceConfig {
    /// The adapter's parameters; the addresses are those of the host that it works with.
    pub adapter: AdapterConfig,
    /// The most that one application gets of rings and buffers.
    pub limits: Limits,
    /// What becomes of the connections of an application that is gone.
    pub on_exit: Ending,
}

/// Applications that are gone leave no connections.
impl Default for AdapterServiceConfig {
    fn default() -> Self {
        let adapter = AdapterConfig::default();
        Self {
            limits: Limits {
                most_sends: adapter.most_sends,
                ..Limits::default()
            },
            adapter,
            on_exit: Ending::Reset,
        }
    }
}
