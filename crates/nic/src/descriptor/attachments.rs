//! What descriptors refer to and does not fit into them.

use super::{CachedRun, ToHost, ToNic};
use baton_bus::link::Violation;
use baton_tcp::{Portable, Segment};
use slab::Slab;

/// Attachments of one ring, in host memory: a segment, a connection's state, or data. An attachment belongs to its descriptor: it goes
/// in when the descriptor is written, and comes out, once, when it is read.
#[derive(Debug)]
pub struct Attachments<P> {
    slots: Slab<Slot<P>>,
    most: usize,
    /// The number of the last attachment: the upper half of its address, so that the address of one that is gone is wrong, as is 0.
    last: u32,
}

#[derive(Debug)]
struct Slot<P> {
    number: u32,
    attachment: Attachment<P>,
}

/// What descriptors refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attachment<P> {
    Segment(Segment<P>),
    State {
        state: Box<Portable<P>>,
        cached: Vec<CachedRun>,
    },
    Data(P),
}

impl<P> Attachments<P> {
    /// Room for `most` attachments.
    pub fn new(most: usize) -> Self {
        Self {
            slots: Slab::new(),
            most,
            last: 0,
        }
    }

    /// Attachments that there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether there is no room for one more.
    pub fn is_full(&self) -> bool {
        self.slots.len() >= self.most
    }

    /// Whether there is room for so many more.
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        self.slots.len() + more <= self.most
    }

    /// Keeps an attachment; gives its address.
    pub(super) fn put(&mut self, attachment: Attachment<P>) -> u64 {
        debug_assert!(!self.is_full(), "whoever puts has looked for room");
        let number = self.last.checked_add(1).unwrap_or(1);
        self.last = number;
        let index = self.slots.insert(Slot { number, attachment });
        u64::from(number) << 32 | index as u64
    }

    /// Takes the attachment at `address`, if it is what the caller wants; otherwise it stays.
    pub(super) fn take<T>(
        &mut self,
        address: u64,
        len: u32,
        want: impl FnOnce(Attachment<P>) -> Result<T, Attachment<P>>,
    ) -> Result<T, Violation> {
        let wrong = Violation::Range { address, len };
        let (number, index) = (address >> 32, address as u32 as usize);
        let slot = self.slots.try_remove(index).ok_or(wrong)?;
        let wanted = match u64::from(slot.number) == number {
            true => want(slot.attachment),
            false => Err(slot.attachment),
        };
        let number = slot.number;
        wanted.map_err(|attachment| {
            // The slab gives the place that was freed last.
            let again = self.slots.insert(Slot { number, attachment });
            debug_assert_eq!(again, index);
            wrong
        })
    }
}

impl<P> ToNic<P> {
    /// How many attachments it takes.
    pub(super) fn attachments(&self) -> usize {
        use super::{CacheCommand, Command};
        match self {
            Self::Packet(_)
            | Self::Command(
                Command::Handoff { .. } | Command::Send { .. } | Command::Forward { .. },
            )
            | Self::Cache(CacheCommand::Insert { .. } | CacheCommand::AppendMemory { .. }) => 1,
            Self::Parts(packet) => 1 + packet.data().1.len(),
            Self::Command(_) | Self::Cache(_) => 0,
        }
    }
}

impl<P> ToHost<P> {
    /// Whether it takes an attachment.
    pub(super) fn is_long(&self) -> bool {
        use super::Event;
        matches!(
            self,
            Self::Packet(_)
                | Self::Event(
                    Event::Handoff { result: Err(_), .. }
                        | Event::Restored { .. }
                        | Event::Receive { .. }
                )
        )
    }
}
