//! The data cache: a region of on-board memory that the host fills and sends from (data-caching 4.1, 4.3).
//!
//! The NIC is a slave. It knows no files, no blocks and no keys; it copies to where it is told and sends what stands where it
//! is told.

pub(crate) mod assembly;
pub(crate) mod blocks;
pub(crate) mod references;
pub(crate) mod region;

use crate::config::CacheConfig;
use crate::stats::CacheRefusal;
use baton_bus::handoff::{CACHE_UNIT_BYTES, CacheReference};
use baton_wire::Pieces;
use region::{Region, Storable};

/// The data cache of a NIC.
#[derive(Debug)]
pub(crate) struct DataCache<P: Storable> {
    config: CacheConfig,
    region: P::Region,
    /// The host has asked for it ([`CacheCommand::Init`](baton_bus::handoff::CacheCommand::Init)) since the NIC was last reset.
    ready: bool,
    /// The insert that last filled each unit; 0: none.
    generations: Vec<u32>,
}

impl<P: Storable> DataCache<P> {
    pub(crate) fn new(config: CacheConfig) -> Self {
        let bytes = config.bytes();
        Self {
            region: P::Region::new(bytes),
            ready: false,
            generations: vec![0; bytes.div_ceil(CACHE_UNIT_BYTES) as usize],
            config,
        }
    }

    pub(crate) fn config(&self) -> &CacheConfig {
        &self.config
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(crate) fn region_mut(&mut self) -> &mut P::Region {
        &mut self.region
    }

    /// Starts it, empty.
    pub(crate) fn init(&mut self) {
        self.forget();
        self.ready = self.config.bytes() > 0;
    }

    /// Loses all of it, until the next [`DataCache::init`].
    pub(crate) fn forget(&mut self) {
        self.ready = false;
        self.region.clear();
        self.generations.fill(0);
    }

    /// Whether a range is cache memory.
    fn admit(&self, offset: u32, len: u32) -> Result<(), CacheRefusal> {
        if !self.ready {
            return Err(CacheRefusal::NoCache);
        }
        match is_inside(offset, len, self.config.bytes()) {
            true => Ok(()),
            false => Err(CacheRefusal::OutsideCache),
        }
    }

    /// nic_cache_insert.
    pub(crate) fn insert(
        &mut self,
        offset: u32,
        data: &P,
        generation: u32,
    ) -> Result<(), CacheRefusal> {
        let len = data.len() as u32;
        self.admit(offset, len)?;
        if len > 0 {
            self.region.store(offset, data);
            self.generations[units(offset, len)].fill(generation);
        }
        Ok(())
    }

    /// The body of nic_pkt_append_cache: appends the `len` bytes at `offset` to `out`.
    pub(crate) fn append(
        &mut self,
        offset: u32,
        len: u32,
        out: &mut Pieces<P>,
    ) -> Result<(), CacheRefusal> {
        self.admit(offset, len)?;
        if len > 0 {
            self.region.load(offset, len, out);
        }
        Ok(())
    }

    /// Whether `len` bytes still stand where `reference` says.
    pub(crate) fn holds(&self, reference: CacheReference, len: u32) -> bool {
        self.admit(reference.offset, len).is_ok()
            && len > 0
            && self.generations[units(reference.offset, len)]
                .iter()
                .all(|&generation| generation == reference.generation)
    }

    pub(crate) fn check(&self) {
        self.region.check();
        assert!(
            self.ready || self.generations.iter().all(|&generation| generation == 0),
            "a cache that was not started holds nothing"
        );
    }
}

/// Whether a range lies within a cache of so many bytes.
fn is_inside(offset: u32, len: u32, bytes: u32) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= bytes)
}

/// The units that a range lies in, which is not empty.
fn units(offset: u32, len: u32) -> std::ops::Range<usize> {
    let (first, last) = (
        offset / CACHE_UNIT_BYTES,
        (offset + len - 1) / CACHE_UNIT_BYTES,
    );
    first as usize..last as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_wire::Symbolic;

    fn data(source: u64, len: u32) -> Symbolic {
        Symbolic {
            source,
            offset: 0,
            len,
        }
    }

    fn cache(kib: u32) -> DataCache<Symbolic> {
        let mut cache = DataCache::new(CacheConfig {
            kib,
            ..CacheConfig::default()
        });
        cache.init();
        cache
    }

    #[test]
    fn ranges_outside_are_refused() {
        let mut cache = cache(8);
        let mut out = Pieces::new();
        assert_eq!(cache.insert(4096, &data(1, 4096), 1), Ok(()));
        assert_eq!(
            cache.insert(4097, &data(1, 4096), 1),
            Err(CacheRefusal::OutsideCache)
        );
        assert_eq!(
            cache.append(u32::MAX, 2, &mut out),
            Err(CacheRefusal::OutsideCache)
        );
        assert!(out.is_empty());
        cache.forget();
        assert_eq!(cache.append(0, 1, &mut out), Err(CacheRefusal::NoCache));
        cache.check();
        assert!(!super::DataCache::<Symbolic>::new(CacheConfig::default()).is_ready());
    }

    #[test]
    fn a_reference_holds_until_something_goes_over_it() {
        let mut cache = cache(8);
        cache.insert(0, &data(1, 4096), 7).expect("room");
        let reference = CacheReference {
            offset: 1000,
            generation: 7,
        };
        assert!(cache.holds(reference, 3096) && !cache.holds(reference, 3097));
        cache.insert(4095, &data(2, 1), 8).expect("room");
        assert!(cache.holds(reference, 2584), "units before the last");
        assert!(!cache.holds(reference, 2585));
        cache.init();
        assert!(!cache.holds(reference, 1), "a new start forgets all");
        cache.check();
    }
}
