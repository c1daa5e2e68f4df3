//! A machine's bus, with its NICs.

use super::event::{Context, Event};
use baton_bus::interconnect::{
    DeviceId, Interconnect, InterconnectConfig, InterconnectError, Operation, Transfer,
};
use baton_bus::{BytesByCategory, Category};
use baton_sim::hardware::nic::Tag;
use baton_wire::Time;
use slab::Slab;

/// The bus, and when it needs to be advanced next.
#[derive(Debug)]
pub(super) struct Bus {
    machine: u8,
    model: Box<dyn Interconnect>,
    /// Transfers whose completion is reported.
    under_way: Slab<Tag>,
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
            under_way: Slab::new(),
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
            reported: tag.is_some(),
            tag: tag.map_or(0, |tag| self.under_way.insert(tag) as u64),
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
        Some((done.device.0, self.under_way.remove(done.tag as usize)))
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
