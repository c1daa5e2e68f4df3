//! Descriptors of one direction, as the NIC sees them.

/// Descriptors on their way from the driver's ring to their use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    /// Descriptors that the driver has posted and the NIC has not read.
    posted: u32,
    /// Descriptors being read.
    coming: u32,
    /// Descriptors that the NIC has read and not used.
    held: u32,
}

impl Ring {
    /// Adds this many posted descriptors.
    pub(super) fn post(&mut self, count: u32) {
        self.posted += count;
    }

    /// Handles the arrival of descriptors that the NIC requested.
    pub(super) fn arrive(&mut self, count: u32) {
        self.coming -= count;
        self.held += count;
    }

    /// Returns how many descriptors to read now, if any. Only one read is in progress at a time.
    pub(super) fn ask(&mut self, batch: u32, most: u32) -> Option<u32> {
        if self.posted == 0 || self.coming > 0 || self.held + batch > most {
            return None;
        }
        let count = self.posted.min(batch);
        self.posted -= count;
        self.coming = count;
        Some(count)
    }

    /// Returns whether the NIC has a descriptor to use.
    pub(super) fn has_one(&self) -> bool {
        self.held > 0
    }

    /// Uses a descriptor.
    pub(super) fn take(&mut self) {
        self.held -= 1;
    }

    /// Returns whether all descriptors that the driver has posted are used.
    pub(super) fn is_exhausted(&self) -> bool {
        self.posted == 0 && self.coming == 0 && self.held == 0
    }
}
