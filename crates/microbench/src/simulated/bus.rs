//! A machine's bus, with its NICs.

use super::event::{Context, Event};
use baton_bus::interconnect::{
    DeviceId, Interconnect, InterconnectConfig, InterconnectError, Operation, Transfer,
};
use baton_bus::{BytesByCategory, Category};
use baton_sim::hardware::nic::Tag;
use baton_wire::Time;

fn encode(tag: Tag) -> u64 {
    let (kind, queue, count) = match tag {
        Tag::Doorbell(queue, count) => (0, queue, count),
        Tag::Refill(queue, count) => (1, queue, count),
        Tag::Register(queue) => (2, queue, 0),
        Tag::SendDescriptors(queue, count) => (3, queue, count),
        Tag::ReceiveDescriptors(queue, count) => (4, queue, count),
        Tag::SendFrame => (5, 0, 0),
        Tag::ReceiveFrame => (6, 0, 0),
        Tag::Interrupt(queue) => (7, queue, 0),
    };
    u64::from(count) << 16 | u64::from(queue) << 8 | kind
}

fn decode(tag: u64) -> Tag {
    let (queue, count) = ((tag >> 8) as u8, (tag >> 16) as u32);
    match tag & 0xff {
        0 => Tag::Doorbell(queue, count),
        1 => Tag::Refill(queue, count),
        2 => Tag::Register(queue),
        3 => Tag::SendDescriptors(queue, count),
        4 => Tag::ReceiveDescriptors(queue, count),
        5 => Tag::SendFrame,
        6 => Tag::ReceiveFrame,
        _ => Tag::Interrupt(queue),
    }
}

/// The bus, and when it needs to be advanced next.
#[derive(Debug)]
pub(super) struct Bus {
    machine: u8,
    model: Box<dyn Interconnect>,
    armed: Time,
}

impl Bus {
    pub(super) fn new(
        machine: u8,
        config: &InterconnectConfig,
        nics: usize,
    ) -> Result<Self, InterconnectError> {
        Ok(Self {
            machine,
            model: config.build(nics)?,
            armed: Time::NEVER,
        })
    }

    /// Begins a transfer with a NIC. Its completion is reported if there is a tag.
    pub(super) fn submit(
        &mut self,
        cx: &mut Context<'_>,
        nic: u8,
        operation: Operation,
        category: Category,
        bytes: u32,
        tag: Option<Tag>,
    ) {
        let transfer = Transfer {
            device: DeviceId(nic),
            operation,
            bytes: BytesByCategory::of(category, bytes.into()),
            tag: tag.map_or(0, encode),
            reported: tag.is_some(),
        };
        self.model.submit(cx.now, transfer);
        self.arm(cx);
    }

    /// Advances the bus to the current time.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        if self.armed <= cx.now {
            self.armed = Time::NEVER;
        }
        self.model.handle_timeout(cx.now);
    }

    /// Returns the NIC and the tag of the next completed transfer.
    pub(super) fn poll_done(&mut self) -> Option<(u8, Tag)> {
        let done = self.model.poll_done()?;
        Some((done.device.0, decode(done.tag)))
    }

    /// Schedules an event for when the bus needs to be advanced.
    #[inline]
    pub(super) fn arm(&mut self, cx: &mut Context<'_>) {
        if let Some(at) = self.model.poll_timeout() {
            let at = at.max(cx.now);
            if at < self.armed {
                self.armed = at;
                cx.at(at, Event::Bus(self.machine));
            }
        }
    }

    pub(super) fn restart_counts(&mut self, now: Time) {
        self.model.restart_counts(now);
    }

    /// Returns the share of the time since the start of the measurement in which the bus was busy, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        self.model.usage(now).utilisation()
    }
}
