//! The code that both sides of the link share.

use super::doorbell::{Bell, Button};
use super::mapping::Mapping;
use crate::arena::Arena;
use crate::counters::LinkCounters;
use crate::handshake::Geometry;
use baton_bus::Descriptor;
use baton_bus::link::{LinkError, Violation};
use baton_bus::shared::{End, Put, Side};
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::os::fd::{AsFd, BorrowedFd};

/// Interval at which a side that never sleeps checks whether the other side is alive.
const LOOK_INTERVAL: Span = Span::from_ms(10);

/// A side's end of the rings, with its bell and the other side's button.
#[derive(Debug)]
pub(super) struct ShmEnd {
    end: End<Mapping>,
    bell: Bell,
    button: Button,
    pub geometry: Geometry,
    pub counters: LinkCounters,
    arena: Arena,
    /// Whether this side has announced that it sleeps, and not yet that it is awake.
    asleep: bool,
    /// Number of rings by the other side that have not reached this side's bell yet: the other side rings a moment after it decides to.
    due: u32,
    gone: bool,
    look_at: Time,
}

impl ShmEnd {
    pub fn new(
        mapping: Mapping,
        side: Side,
        geometry: Geometry,
        bell: Bell,
        button: Button,
    ) -> Self {
        Self {
            end: End::new(mapping, side),
            bell,
            button,
            geometry,
            counters: LinkCounters::default(),
            arena: Arena::default(),
            asleep: false,
            due: 0,
            gone: false,
            look_at: Time::ZERO,
        }
    }

    pub fn put(&mut self, now: Time, descriptors: &[Descriptor]) -> Result<usize, LinkError> {
        self.put_by(now, descriptors, End::put)
    }

    /// Puts descriptors as [`End::put_lazily`] does.
    pub fn put_lazily(
        &mut self,
        now: Time,
        descriptors: &[Descriptor],
    ) -> Result<usize, LinkError> {
        self.put_by(now, descriptors, End::put_lazily)
    }

    fn put_by(
        &mut self,
        now: Time,
        descriptors: &[Descriptor],
        put: impl FnOnce(&mut End<Mapping>, &[Descriptor]) -> Result<Put, Violation>,
    ) -> Result<usize, LinkError> {
        self.wake_up();
        if self.gone {
            return Err(LinkError::Gone);
        }
        let put = put(&mut self.end, descriptors)?;
        if put.taken > 0 {
            self.counters.transfers += 1;
            self.counters.doorbells_saved += u64::from(!put.ring);
        }
        if put.ring {
            self.ring();
        }
        if put.taken < descriptors.len() {
            self.look(now);
        }
        Ok(put.taken)
    }

    pub fn get(
        &mut self,
        now: Time,
        most: usize,
        descriptors: &mut Vec<Descriptor>,
    ) -> Result<(), LinkError> {
        self.wake_up();
        let before = descriptors.len();
        let mut ring = self.end.get(most, descriptors)?;
        if descriptors.len() == before {
            self.look(now);
            if self.gone {
                // The other side may have put its last descriptors between the two checks.
                ring = self.end.get(most, descriptors)?;
                if descriptors.len() == before {
                    return Err(LinkError::Gone);
                }
            }
        }
        if ring {
            self.ring();
        }
        Ok(())
    }

    /// Copies `data` into the pool.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        self.end.memory().write(offset, data);
        self.counters.bytes_out += data.len() as u64;
    }

    /// Copies data out of the pool.
    pub fn read(&mut self, offset: usize, len: u32) -> Bytes {
        let memory = self.end.memory();
        let copied = self
            .arena
            .fill(len as usize, |place| Ok(memory.read(offset, place)));
        self.counters.bytes_in += u64::from(len);
        copied.expect("copying does not fail")
    }

    /// Calls [`End::mask_lazy`].
    pub fn mask_lazy(&mut self, masked: bool) {
        self.end.mask_lazy(masked);
    }

    /// Calls [`End::has_news`]. The other side's death is news, too.
    pub fn has_news(&mut self) -> Result<bool, LinkError> {
        Ok(self.gone || self.end.has_news()?)
    }

    /// Calls [`End::prepare_to_sleep`].
    pub fn prepare_to_sleep(&mut self) -> Result<bool, LinkError> {
        if self.gone {
            return Ok(false);
        }
        let sleeps = self.end.prepare_to_sleep()?;
        Ok(self.fall_asleep(sleeps))
    }

    /// Calls [`End::prepare_to_sleep_for_room`].
    pub fn prepare_to_sleep_for_room(&mut self) -> Result<bool, LinkError> {
        if self.gone {
            return Ok(false);
        }
        let sleeps = self.end.prepare_to_sleep_for_room()?;
        Ok(self.fall_asleep(sleeps))
    }

    fn fall_asleep(&mut self, sleeps: bool) -> bool {
        self.asleep = sleeps;
        if sleeps {
            self.counters.sleeps += 1;
        } else {
            self.counters.sleeps_saved += 1;
        }
        sleeps
    }

    /// Announces that this side is awake, if it has announced that it sleeps.
    fn wake_up(&mut self) {
        let slept = std::mem::take(&mut self.asleep);
        if slept {
            self.end.awake();
        }
        let rings = self.end.take_rings();
        self.due = self.due.saturating_add(rings);
        // A bell that was not rung need not be silenced: something else woke this side up.
        if self.due > 0 && (slept || rings > 0) {
            self.hear();
        }
    }

    /// Checks at intervals whether the other side is alive, because a side that never sleeps does not wait for its bell.
    fn look(&mut self, now: Time) {
        if now >= self.look_at {
            self.look_at = now + LOOK_INTERVAL;
            self.hear();
        }
    }

    fn hear(&mut self) {
        match self.bell.silence() {
            Some(rings) => self.due = self.due.saturating_sub(rings),
            None => self.gone = true,
        }
    }

    fn ring(&mut self) {
        self.counters.doorbells_rung += 1;
        self.button.ring();
    }
}

/// The descriptor becomes readable when this side is woken up, and when the other side is gone.
impl AsFd for ShmEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
