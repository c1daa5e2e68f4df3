//! The connections that have changed since the owner last asked.

/// A set of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Changed {
    slots: Vec<u32>,
    /// Whether a slot is in the set.
    has: Vec<bool>,
}

impl Changed {
    #[inline]
    pub(super) fn push(&mut self, slot: u32) {
        let index = slot as usize;
        if index >= self.has.len() {
            self.has.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.has[index], true) {
            self.slots.push(slot);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        let slot = self.slots.pop()?;
        self.has[slot as usize] = false;
        Some(slot)
    }
}
