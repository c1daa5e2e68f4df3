//! The rings between host and NIC: everything crosses them as descriptors of 32 bytes, by a queue that batches them.

use baton_bus::{Batching, Descriptor, DescriptorQueue, Urgency};
use baton_nic::{Attachments, ToHost, ToNic};
use baton_tcp::Payload;
use baton_wire::Time;
use std::collections::VecDeque;
use std::fmt::Debug;

/// Long enough that no test fills it.
const DEPTH: u32 = 1 << 15;

/// An entry of a ring.
pub trait Entry<P>: Sized + Debug {
    /// Appends its descriptors to `ring`.
    fn encode(self, attachments: &mut Attachments<P>, ring: &mut Vec<Descriptor>);
    fn decode(descriptor: &Descriptor, attachments: &mut Attachments<P>) -> Self;
}

impl<P: Payload> Entry<P> for ToNic<P> {
    fn encode(self, attachments: &mut Attachments<P>, ring: &mut Vec<Descriptor>) {
        self.encode(attachments, ring)
            .expect("room for its attachments");
    }

    fn decode(descriptor: &Descriptor, attachments: &mut Attachments<P>) -> Self {
        Self::decode(descriptor, attachments).expect("what the host has written")
    }
}

impl<P: Payload> Entry<P> for ToHost<P> {
    fn encode(self, attachments: &mut Attachments<P>, ring: &mut Vec<Descriptor>) {
        ring.push(self.encode(attachments).expect("room for an attachment"));
    }

    fn decode(descriptor: &Descriptor, attachments: &mut Attachments<P>) -> Self {
        Self::decode(descriptor, attachments).expect("what the NIC has written")
    }
}

/// A ring: entries wait in a queue of descriptors, cross in transfers, and wait on the other side to be looked at.
pub struct EncodedRing<P> {
    queue: DescriptorQueue,
    attachments: Attachments<P>,
    arrived: VecDeque<Descriptor>,
    transfer: Vec<Descriptor>,
}

impl<P: Payload> EncodedRing<P> {
    pub fn new() -> Self {
        let batching = Batching::default();
        Self {
            queue: DescriptorQueue::new(&batching, DEPTH).expect("batching that works"),
            attachments: Attachments::new(DEPTH as usize),
            arrived: VecDeque::new(),
            transfer: Vec::new(),
        }
    }

    pub fn push<E: Entry<P>>(&mut self, now: Time, entry: E) {
        let mut descriptors = Vec::new();
        entry.encode(&mut self.attachments, &mut descriptors);
        for descriptor in descriptors {
            let pushed = self.queue.push(now, &[descriptor], 0, Urgency::Awaited);
            assert!(pushed, "the ring is long enough for this test");
        }
    }

    pub fn pop<E: Entry<P>>(&mut self, now: Time) -> Option<E> {
        while self.queue.next_transfer(now, &mut self.transfer) {
            self.arrived.extend(&self.transfer);
            let taken = self.transfer.len();
            self.queue.transferred(taken, taken);
        }
        let descriptor = self.arrived.pop_front()?;
        let entry = E::decode(&descriptor, &mut self.attachments);
        assert!(
            !self.is_empty() || self.attachments.is_empty(),
            "an attachment without a descriptor"
        );
        Some(entry)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.arrived.is_empty()
    }
}
