//! What a process may do beyond its user, of which it needs little once it is set up (capabilities(7)).

use crate::error::LiveError;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What a broker needs: repair mode and injected packets, ports below 1024 for connections that come back, packets with headers of its own, maps
/// and programs.
const OF_BROKER: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF);

/// This thread, and those that it starts from now on, may do what a broker needs, as far as they might before, and no more.
///
/// # Errors
/// The system does not take it away.
pub fn keep_capabilities_of_broker() -> Result<(), LiveError> {
    keep(OF_BROKER)
}

/// The same with nothing.
///
/// # Errors
/// The system does not take it away.
pub fn keep_no_capabilities() -> Result<(), LiveError> {
    keep(CapabilitySet::empty())
}

fn keep(kept: CapabilitySet) -> Result<(), LiveError> {
    let drop = || {
        let kept = capabilities(None)?.permitted & kept;
        let sets = CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, sets)
    };
    drop().map_err(|error| LiveError::failed("cannot drop capabilities")(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_dropped_is_gone_and_nothing_comes() {
        thread::spawn(|| {
            let before = capabilities(None).expect("it has some").permitted;
            keep_capabilities_of_broker().expect("it may");
            let now = capabilities(None).expect("it has some");
            assert_eq!(
                (now.permitted, now.effective),
                (before & OF_BROKER, before & OF_BROKER)
            );
            keep_no_capabilities().expect("it may");
            assert_eq!(
                capabilities(None).expect("none").permitted,
                CapabilitySet::empty()
            );
        })
        .join()
        .expect("no panic");
    }
}
