//! The server's disks behind one controller, and the placement of files on them.

use crate::config::Experiment;
use crate::hardware::{ConfigError, Disk, DiskConfig, DiskRequest};
use crate::results::DiskResults;
use baton_bus::{BytesByCategory, Category};
use baton_host::FileId;
use baton_kernel::DiskRead;
use baton_wire::Time;

/// Bytes of a page of a file.
const PAGE_BYTES: u64 = baton_kernel::footprint::PAGE_BYTES as u64;

/// Number of low bits of a request's token that hold the number of pages; the read's token is above.
const PAGES_BITS: u32 = 24;

/// A read that a disk has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) token: u64,
    bytes: u64,
}

impl Fetched {
    /// Returns the traffic of the read's data on the interconnect.
    pub(super) fn traffic(&self) -> BytesByCategory {
        BytesByCategory::of(Category::Other, self.bytes)
    }
}

/// The disks.
pub(super) struct Storage {
    config: DiskConfig,
    disks: Vec<Disk>,
    bytes: u64,
    measured_from: Time,
}

impl Storage {
    pub(super) fn new(experiment: &Experiment) -> Result<Self, ConfigError> {
        let config = &experiment.disk;
        let disks = (0..config.disks)
            .map(|_| Disk::new(config))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            config: config.clone(),
            disks,
            bytes: 0,
            measured_from: Time::ZERO,
        })
    }

    /// Submits a read of pages of a file.
    pub(super) fn submit(&mut self, now: Time, read: DiskRead) {
        let (disk, start) = self.place(read.file);
        debug_assert!(
            read.pages < 1 << PAGES_BITS,
            "a read has fewer pages than the counter can hold"
        );
        let request = DiskRequest {
            position: start + u64::from(read.first_page) * PAGE_BYTES,
            bytes: u64::from(read.pages) * PAGE_BYTES,
            token: read.token << PAGES_BITS | u64::from(read.pages),
        };
        self.disks[disk].submit(now, request);
    }

    /// Returns when a disk completes its next request.
    pub(super) fn next_done(&self) -> Option<Time> {
        self.disks.iter().filter_map(Disk::next_done).min()
    }

    /// Returns the next read that the disks have completed by `now`.
    pub(super) fn poll_read(&mut self, now: Time) -> Option<Fetched> {
        let request = self.disks.iter_mut().find_map(|disk| disk.poll_done(now))?;
        self.bytes += request.bytes;
        Some(Fetched {
            token: request.token >> PAGES_BITS,
            bytes: request.bytes,
        })
    }

    /// Returns the disk and position of a file. The file system (FFS) spreads directories over the whole disk and keeps a file in one
    /// piece, so a file's position is effectively random, and its pages are consecutive.
    fn place(&self, file: FileId) -> (usize, u64) {
        let hash = (u64::from(file.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let pages = self.config.capacity_bytes() / PAGE_BYTES;
        let disk = (hash >> 40) % u64::from(self.config.disks);
        (disk as usize, (hash & 0xff_ffff_ffff) % pages * PAGE_BYTES)
    }

    /// Resets the counters.
    pub(super) fn restart_counts(&mut self, now: Time) {
        self.measured_from = now;
        self.bytes = 0;
        for disk in &mut self.disks {
            disk.start_measurement(now);
        }
    }

    pub(super) fn results(&self, now: Time) -> DiskResults {
        let elapsed = now.saturating_since(self.measured_from).as_ps().max(1) as f64;
        let busy = |disk: &Disk| 100.0 * disk.busy(now).as_ps() as f64 / elapsed;
        let requests: u64 = self.disks.iter().map(Disk::requests).sum();
        let total: f64 = self
            .disks
            .iter()
            .map(|disk| disk.busy(now).as_ps() as f64)
            .sum();
        DiskResults {
            utilisation_percent: self.disks.iter().map(busy).collect(),
            reads: requests,
            bytes: self.bytes,
            service_ms: (requests > 0).then(|| total * 1e-9 / requests as f64),
        }
    }
}
