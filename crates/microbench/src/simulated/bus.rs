//! A machine's bus, with its NICs.

use super::event::{Context, Event};
use baton_bus::interconnect::{
    DeviceId, Interconnect, InterconnectConfig, InterconnectError, Operation, Transfer,
};
use baton_bus::{BytesByCategory, Category};
use baton_wire::Time;

/// What a transfer was for, where somebody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// The NIC hears of so many frames to send.
    Doorbell(u32),
    /// The NIC hears of so many new descriptors for frames to receive.
    Refill(u32),
    /// The processor has read a register.
    Register,
    /// The NIC has so many descriptors of frames to send.
    SendDescriptors(u32),
    /// The NIC has so many descriptors for frames to receive.
    ReceiveDescriptors(u32),
    /// The NIC has a frame to send.
    SendFrame,
    /// A frame that was received, and its descriptor, are in host memory.
    ReceiveFrame,
}

impl Tag {
    fn encode(self) -> u64 {
        let (kind, count) = match self {
            Self::Doorbell(count) => (0, count),
            Self::Refill(count) => (1, count),
            Self::Register => (2, 0),
            Self::SendDescriptors(count) => (3, count),
            Self::ReceiveDescriptors(count) => (4, count),
            Self::SendFrame => (5, 0),
            Self::ReceiveFrame => (6, 0),
        };
        u64::from(count) << 8 | kind
    }

    fn decode(tag: u64) -> Self {
        let count = (tag >> 8) as u32;
        match tag & 0xff {
            0 => Self::Doorbell(count),
            1 => Self::Refill(count),
            2 => Self::Register,
            3 => Self::SendDescriptors(count),
            4 => Self::ReceiveDescriptors(count),
            5 => Self::SendFrame,
            _ => Self::ReceiveFrame,
        }
    }
}

/// The bus, and when it is looked at next.
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

    /// Begins a transfer with a NIC. That it is done is told if there is a tag.
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
            tag: tag.map_or(0, Tag::encode),
            reported: tag.is_some(),
        };
        self.model.submit(cx.now, transfer);
        self.arm(cx);
    }

    /// Goes on to now.
    pub(super) fn advance(&mut self, cx: &mut Context<'_>) {
        if self.armed <= cx.now {
            self.armed = Time::NEVER;
        }
        self.model.handle_timeout(cx.now);
    }

    /// The next transfer that is done, and whose it was.
    pub(super) fn poll_done(&mut self) -> Option<(u8, Tag)> {
        let done = self.model.poll_done()?;
        Some((done.device.0, Tag::decode(done.tag)))
    }

    /// Sees to it that it is looked at in time.
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

    /// Share of the time since then in which it was not free, 0 to 1.
    pub(super) fn utilisation(&self, now: Time) -> f64 {
        self.model.usage(now).utilisation()
    }
}
