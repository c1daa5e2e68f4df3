//! Chooses the NIC that answers a connection (data-caching 6.3).
//!
//! A system with several NICs, each of which reaches all clients, may answer a connection on another NIC than the one on which its packets
//! arrive, to make better use of the NICs' caches. The source address stays unchanged, so the client does not notice; its packets still
//! arrive on the original NIC. The choice is made once, at the first response, before any data is in flight. A connection that is answered
//! on another NIC is not handed off, because no single NIC sees both directions.

use crate::nic_cache::NicId;
use crate::sockets::FileId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// Information about a first response that a policy bases its choice on.
#[derive(Clone, Copy, Debug)]
pub struct AffinityView<'a> {
    /// The NIC on which the connection's packets arrive.
    pub arrival: NicId,
    /// The file to send.
    pub file: FileId,
    /// For each NIC, the number of the file's first blocks that its cache holds.
    pub cached: &'a [u32],
}

/// A policy that chooses the NIC for a connection.
pub trait Affinity: Debug + Send {
    /// Returns the NIC on which the connection is answered from now on.
    fn choose(&mut self, view: &AffinityView<'_>) -> NicId;
}

/// Chooses the NIC that caches most of the file, and the NIC of arrival if no other NIC caches more.
#[derive(Clone, Copy, Debug, Default)]
pub struct MostCached;

impl Affinity for MostCached {
    fn choose(&mut self, view: &AffinityView<'_>) -> NicId {
        let has = |nic: NicId| view.cached[nic.0 as usize];
        (0..view.cached.len())
            .map(|index| NicId(index as u8))
            .fold(
                view.arrival,
                |best, nic| {
                    if has(nic) > has(best) { nic } else { best }
                },
            )
    }
}

/// Assigns each file to one NIC, so that no two caches hold the same content.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByFile;

impl Affinity for ByFile {
    fn choose(&mut self, view: &AffinityView<'_>) -> NicId {
        let spread = u64::from(view.file.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        NicId((spread % view.cached.len() as u64) as u8)
    }
}

/// Configuration of an affinity policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AffinityConfig {
    /// The NIC on which the connection arrived, whatever is cached.
    #[default]
    Arrival,
    /// The NIC whose cache holds most of the file: [`MostCached`].
    MostCached,
    /// The NIC to which the file is assigned: [`ByFile`].
    ByFile,
}

impl AffinityConfig {
    /// Returns the policy's name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arrival => "arrival",
            Self::MostCached => "most-cached",
            Self::ByFile => "by-file",
        }
    }

    /// Creates the policy, or returns `None` if connections are always answered on the NIC of arrival.
    pub fn build(self) -> Option<Box<dyn Affinity>> {
        match self {
            Self::Arrival => None,
            Self::MostCached => Some(Box::new(MostCached)),
            Self::ByFile => Some(Box::new(ByFile)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(cached: &[u32], file: u32) -> AffinityView<'_> {
        AffinityView {
            arrival: NicId(1),
            file: FileId(file),
            cached,
        }
    }

    #[test]
    fn most_cached_changes_the_nic_only_for_more_cached_blocks() {
        assert_eq!(MostCached.choose(&view(&[3, 3, 3], 0)), NicId(1));
        assert_eq!(MostCached.choose(&view(&[3, 3, 4], 0)), NicId(2));
        assert_eq!(MostCached.choose(&view(&[0, 0, 0], 0)), NicId(1));
    }

    #[test]
    fn files_are_spread_over_all_nics() {
        let mut counts = [0; 3];
        for file in 0..3000 {
            counts[ByFile.choose(&view(&[0; 3], file)).0 as usize] += 1;
        }
        assert!(counts.iter().all(|&count| count > 800), "{counts:?}");
    }
}
