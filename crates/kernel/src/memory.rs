//! Models of the kernel's allocators. The slot of a pool that a structure gets determines which cache lines it touches.

/// An allocator of slots that reuses the most recently freed slot first, like a kernel's per-processor free lists, because that slot is
/// most likely to be in the cache.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Vec<u32>,
    next: u32,
    limit: u32,
}

impl Slots {
    /// Creates an allocator with at most `limit` slots.
    pub fn new(limit: u32) -> Self {
        Self {
            free: Vec::new(),
            next: 0,
            limit,
        }
    }

    /// Takes a slot, or returns `None` if `limit` slots are in use.
    pub fn allocate(&mut self) -> Option<u32> {
        if self.in_use() < self.limit {
            Some(self.allocate_reserved())
        } else {
            None
        }
    }

    /// Takes a slot even beyond the limit, for a structure whose memory was reserved in advance.
    pub fn allocate_reserved(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: u32) {
        debug_assert!(slot < self.next, "slot {slot} was allocated");
        debug_assert!(self.in_use() > 0, "a slot is in use");
        self.free.push(slot);
    }

    /// Returns the number of slots in use.
    pub fn in_use(&self) -> u32 {
        self.next - self.free.len() as u32
    }

    /// Returns the number of slots that may still be taken.
    pub fn available(&self) -> u32 {
        self.limit.saturating_sub(self.in_use())
    }

    /// Asserts that no slot is in the free list twice. Takes time proportional to the length of the list.
    pub fn check(&self) {
        let mut seen = vec![false; self.next as usize];
        for &slot in &self.free {
            assert!(
                !std::mem::replace(&mut seen[slot as usize], true),
                "slot {slot} is free once"
            );
        }
    }
}

/// Buffers of each kind that writers must leave free. Without this reserve, writers could take the last buffers, and the host could no
/// longer receive the acknowledgments that free some.
const RESERVE: u32 = 16;

/// The mbuf and the mapping with which `sendfile` wraps a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageBuffer {
    pub(crate) mbuf: u32,
    pub(crate) sf_buf: u32,
}

/// The kernel's network buffers.
#[derive(Debug)]
pub struct Buffers {
    /// 256-byte buffers.
    pub(crate) mbufs: Slots,
    /// 2 KiB buffers.
    pub(crate) clusters: Slots,
    /// Addresses at which pages are mapped for `sendfile`, at most one per mbuf.
    pub(crate) sf_bufs: Slots,
}

impl Buffers {
    /// Creates pools with at most `mbufs` mbufs and `clusters` clusters.
    pub fn new(mbufs: u32, clusters: u32) -> Self {
        Self {
            mbufs: Slots::new(mbufs),
            clusters: Slots::new(clusters),
            sf_bufs: Slots::new(mbufs),
        }
    }

    /// Returns the numbers of free mbufs and free clusters.
    pub fn free(&self) -> (u32, u32) {
        (self.mbufs.available(), self.clusters.available())
    }

    /// Takes an mbuf together with a cluster, or neither.
    pub(crate) fn allocate_pair(&mut self) -> Option<(u32, u32)> {
        let mbuf = self.mbufs.allocate()?;
        let Some(cluster) = self.clusters.allocate() else {
            self.mbufs.release(mbuf);
            return None;
        };
        Some((mbuf, cluster))
    }

    /// Reports whether writers may take buffers.
    pub(crate) fn has_some_for_writers(&self) -> bool {
        self.mbufs.available() > RESERVE && self.clusters.available() > RESERVE
    }

    /// Takes an mbuf for a writer, unless only the reserve is free.
    pub(crate) fn allocate_mbuf_for_writer(&mut self) -> Option<u32> {
        if self.mbufs.available() > RESERVE {
            self.mbufs.allocate()
        } else {
            None
        }
    }

    /// Takes an mbuf with a cluster for a writer, unless only the reserve is free.
    pub(crate) fn allocate_pair_for_writer(&mut self) -> Option<(u32, u32)> {
        if self.has_some_for_writers() {
            self.allocate_pair()
        } else {
            None
        }
    }

    /// Takes an mbuf and a mapping for a page for a writer, unless only the reserve is free.
    pub(crate) fn allocate_page_for_writer(&mut self) -> Option<PageBuffer> {
        let mbuf = self.allocate_mbuf_for_writer()?;
        let sf_buf = self.sf_bufs.allocate_reserved();
        Some(PageBuffer { mbuf, sf_buf })
    }

    /// Frees the mbuf and the mapping of a page.
    pub(crate) fn release_page(&mut self, PageBuffer { mbuf, sf_buf }: PageBuffer) {
        self.sf_bufs.release(sf_buf);
        self.mbufs.release(mbuf);
    }

    /// Frees an mbuf, and its cluster if it has one.
    pub(crate) fn release(&mut self, mbuf: u32, cluster: Option<u32>) {
        if let Some(cluster) = cluster {
            self.clusters.release(cluster);
        }
        self.mbufs.release(mbuf);
    }

    /// Asserts that no buffer is in a free list twice.
    pub(crate) fn check(&self) {
        self.mbufs.check();
        self.clusters.check();
        self.sf_bufs.check();
    }

    /// Takes an mbuf with a cluster that was reserved in advance.
    pub(crate) fn allocate_reserved_pair(&mut self) -> (u32, u32) {
        (
            self.mbufs.allocate_reserved(),
            self.clusters.allocate_reserved(),
        )
    }

    /// Frees an mbuf and its cluster.
    pub(crate) fn release_pair(&mut self, (mbuf, cluster): (u32, u32)) {
        self.clusters.release(cluster);
        self.mbufs.release(mbuf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_freed_last_is_used_first() {
        let mut slots = Slots::new(3);
        assert_eq!(
            [slots.allocate(), slots.allocate(), slots.allocate()],
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!((slots.allocate(), slots.available()), (None, 0));
        slots.release(0);
        slots.release(2);
        slots.check();
        assert_eq!([slots.allocate(), slots.allocate()], [Some(2), Some(0)]);
        assert_eq!(slots.allocate_reserved(), 3, "a reserved slot is available");
        assert_eq!((slots.in_use(), slots.available()), (4, 0));
    }

    #[test]
    fn writers_leave_some_buffers_for_others() {
        let mut buffers = Buffers::new(RESERVE + 2, RESERVE + 1);
        assert!(buffers.allocate_pair_for_writer().is_some());
        assert!(buffers.allocate_pair_for_writer().is_none() && !buffers.has_some_for_writers());
        assert!(buffers.allocate_mbuf_for_writer().is_some());
        assert!(buffers.allocate_mbuf_for_writer().is_none());
        assert!(buffers.allocate_pair().is_some(), "the reserve is left");
    }

    #[test]
    fn an_mbuf_and_its_cluster_are_allocated_together() {
        let mut buffers = Buffers::new(9, 1);
        let pair = buffers.allocate_pair().expect("there is one");
        assert_eq!(buffers.allocate_pair(), None);
        assert_eq!(buffers.mbufs.in_use(), 1, "no mbuf without its cluster");
        buffers.release_pair(pair);
        assert!(buffers.allocate_pair().is_some());
    }
}
