//! Which NIC answers a connection (data-caching 6.3).
//!
//! A system with several NICs whose clients are reached by each of them may answer on another NIC than the one a connection came
//! on, to make better use of the NICs' caches. The source address stays, so that the client notices nothing; its packets still
//! arrive where they did. The choice is made once, at the first response, before any data is under way. A connection that is
//! answered elsewhere is not handed off: no one NIC sees both directions.

use crate::nic_cache::NicId;
use crate::sockets::FileId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// What a policy sees of a first response.
#[derive(Clone, Copy, Debug)]
pub struct AffinityView<'a> {
    /// The NIC on which the connection came.
    pub arrival: NicId,
    /// The file that is sent.
    pub file: FileId,
    /// Its first blocks that each NIC's cache holds.
    pub cached: &'a [u32],
}

/// A policy that chooses the NIC for a connection.
pub trait Affinity: Debug + Send {
    /// The NIC by which the connection is answered from now on.
    fn choose(&mut self, view: &AffinityView<'_>) -> NicId;
}

/// The NIC that has most of the file; the one the connection came on if no other has more.
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

/// Each file has a NIC of its own, so that no two caches hold the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByFile;

impl Affinity for ByFile {
    fn choose(&mut self, view: &AffinityView<'_>) -> NicId {
        let spread = u64::from(view.file.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        NicId((spread % view.cached.len() as u64) as u8)
    }
}

/// A policy as a configuration names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AffinityConfig {
    /// The NIC on which the connection came, whatever is cached.
    #[default]
    Arrival,
    /// The NIC that has most of the file: [`MostCached`].
    MostCached,
    /// Each file has a NIC of its own: [`ByFile`].
    ByFile,
}

impl AffinityConfig {
    /// As configurations name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Arrival => "arrival",
            Self::MostCached => "most-cached",
            Self::ByFile => "by-file",
        }
    }

    /// The policy itself; none where there is nothing to choose.
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
    fn most_cached_leaves_the_arrival_only_for_more() {
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
