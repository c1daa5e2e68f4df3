//! Descriptors of one way, as the NIC sees them.

/// Descriptors on their way from the driver's ring to their use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    /// Those that the NIC knows of and has not read.
    posted: u32,
    /// Those on their way to it.
    coming: u32,
    /// Those that it has read and not used.
    held: u32,
}

impl Ring {
    /// The NIC hears of so many more.
    pub(super) fn post(&mut self, count: u32) {
        self.posted += count;
    }

    /// Those that it asked for are there.
    pub(super) fn arrive(&mut self, count: u32) {
        self.coming -= count;
        self.held += count;
    }

    /// How many to read now, if any: one read at a time.
    pub(super) fn ask(&mut self, batch: u32, most: u32) -> Option<u32> {
        if self.posted == 0 || self.coming > 0 || self.held + batch > most {
            return None;
        }
        let count = self.posted.min(batch);
        self.posted -= count;
        self.coming = count;
        Some(count)
    }

    /// Whether the NIC has one to use.
    pub(super) fn has_one(&self) -> bool {
        self.held > 0
    }

    /// Uses one.
    pub(super) fn take(&mut self) {
        self.held -= 1;
    }

    /// Whether the driver has given none that is not used.
    pub(super) fn is_exhausted(&self) -> bool {
        self.posted == 0 && self.coming == 0 && self.held == 0
    }
}
