//! Usage of the interconnect by device and category.

use std::ops::AddAssign;

use baton_wire::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeviceId, Operation};
use crate::{ByCategory, BytesByCategory, Category, TimeByCategory};

/// Number of transfers by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transfers {
    /// See [`Operation::DmaRead`].
    pub dma_read: u64,
    /// See [`Operation::DmaWrite`].
    pub dma_write: u64,
    /// See [`Operation::RegisterWrite`].
    pub register_write: u64,
    /// See [`Operation::RegisterRead`].
    pub register_read: u64,
    /// See [`Operation::Interrupt`].
    pub interrupt: u64,
}

impl Transfers {
    /// Returns the crossings of the bus in the papers' sense: DMA operations.
    pub fn crossings(&self) -> u64 {
        self.dma_read + self.dma_write
    }

    /// Returns the number of transfers of all kinds.
    pub fn total(&self) -> u64 {
        self.crossings() + self.register_write + self.register_read + self.interrupt
    }
}

impl AddAssign for Transfers {
    fn add_assign(&mut self, other: Self) {
        self.dma_read += other.dma_read;
        self.dma_write += other.dma_write;
        self.register_write += other.register_write;
        self.register_read += other.register_read;
        self.interrupt += other.interrupt;
    }
}

/// Traffic of one device on one channel, or a sum of such traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Completed transfers.
    pub transfers: Transfers,
    /// Bytes moved for these transfers, without overhead, which is counted only as time.
    pub bytes: BytesByCategory,
    /// Time on the channel. The time of bytes is what they would take on an interconnect that moves only data; the rest is overhead.
    #[schemars(with = "BytesByCategory")]
    pub time: TimeByCategory,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.transfers += other.transfers;
        self.bytes += other.bytes;
        self.time += other.time;
    }
}

/// Direction of a channel, which carries one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A bus: both directions in turn.
    Both,
    /// The direction of a link from the host to the device.
    ToDevice,
    /// The direction of a link from the device to the host.
    ToHost,
}

/// Usage of one channel: a shared bus, or one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelUsage {
    /// Number of the link, counted from 0. A bus is link 0.
    pub link: u8,
    /// Direction of the channel.
    pub way: Way,
    /// Traffic of each device, by [`DeviceId`]. Accesses of the processor count for the accessed device.
    pub devices: Vec<Traffic>,
}

impl ChannelUsage {
    /// Returns the traffic of all devices.
    pub fn total(&self) -> Traffic {
        sum(self.devices.iter())
    }

    /// Returns the time during which the channel was busy.
    pub fn busy(&self) -> Span {
        self.total().time.total()
    }
}

/// Usage of an interconnect since counting started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Time since counting started.
    #[schemars(with = "u64")]
    pub elapsed: Span,
    /// One channel for a bus, two for each link of PCI Express.
    pub channels: Vec<ChannelUsage>,
}

impl Usage {
    /// Returns the traffic of all devices on all channels.
    pub fn total(&self) -> Traffic {
        sum(self.channels.iter().flat_map(|channel| &channel.devices))
    }

    /// Returns the traffic of one device on all channels.
    pub fn device(&self, device: DeviceId) -> Traffic {
        sum(self
            .channels
            .iter()
            .filter_map(|channel| channel.devices.get(device.index())))
    }

    /// Returns the fraction of the time during which `channel` was busy, 0 to 1.
    pub fn utilisation_of(&self, channel: &ChannelUsage) -> f64 {
        share(channel.busy(), self.elapsed)
    }

    /// Returns the utilisation of the busiest channel.
    pub fn utilisation(&self) -> f64 {
        self.channels
            .iter()
            .map(|channel| self.utilisation_of(channel))
            .fold(0.0, f64::max)
    }

    /// Returns the fraction of the channels' time that each category took, 0 to 1. The sum is the mean utilisation of the channels.
    pub fn shares(&self) -> ByCategory<f64> {
        let (time, channels) = (self.total().time, self.channels.len().max(1) as u64);
        Category::ALL
            .into_iter()
            .fold(ByCategory::default(), |shares, category| {
                shares.with(category, share(time.get(category), self.elapsed * channels))
            })
    }
}

fn share(part: Span, whole: Span) -> f64 {
    if whole == Span::ZERO {
        return 0.0;
    }
    part.as_ps() as f64 / whole.as_ps() as f64
}

fn sum<'a>(traffic: impl Iterator<Item = &'a Traffic>) -> Traffic {
    traffic.fold(Traffic::default(), |mut total, &part| {
        total += part;
        total
    })
}

/// Counters of one channel.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    since: Time,
    devices: Box<[DeviceMeter]>,
    /// The device that has the channel until `until`. Counted time may end later than now, but then the channel is busy until its end.
    latest: DeviceId,
    /// Start of the current busy period.
    from: Time,
    until: Time,
}

/// Counters of one device on a channel.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceMeter {
    /// Number of transfers by [`Operation`].
    transfers: [u64; Operation::ALL.len()],
    bytes: BytesByCategory,
    busy: Span,
}

impl Meter {
    pub(super) fn new(devices: usize) -> Self {
        Self {
            since: Time::ZERO,
            devices: vec![DeviceMeter::default(); devices].into(),
            latest: DeviceId(0),
            from: Time::ZERO,
            until: Time::ZERO,
        }
    }

    /// Counts `bytes` of a device that are on the channel from `start` to `end`. The channel must carry nothing else at that time.
    #[inline]
    pub(super) fn moved(
        &mut self,
        device: DeviceId,
        bytes: &BytesByCategory,
        start: Time,
        end: Time,
    ) {
        self.devices[device.index()].bytes += *bytes;
        self.occupied(device, start, end);
    }

    /// Counts time that moves no data.
    #[inline]
    pub(super) fn occupied(&mut self, device: DeviceId, start: Time, end: Time) {
        debug_assert!(self.until <= start, "two transfers on the channel");
        if start > self.until {
            self.from = start;
        }
        (self.latest, self.until) = (device, end);
        self.devices[device.index()].busy += end - start;
    }

    /// Counts completed transfers.
    #[inline]
    pub(super) fn done(&mut self, device: DeviceId, operation: Operation, transfers: u32) {
        self.devices[device.index()].transfers[operation as usize] += u64::from(transfers);
    }

    pub(super) fn restart(&mut self, now: Time) {
        let later = self.later(now);
        self.since = now;
        self.devices.fill(DeviceMeter::default());
        self.devices[self.latest.index()].busy = later;
    }

    /// Returns how much of the counted time is later than `now`.
    fn later(&self, now: Time) -> Span {
        self.until.saturating_since(now.max(self.from))
    }

    /// Returns the time since counting started.
    pub(super) fn elapsed(&self, now: Time) -> Span {
        now.saturating_since(self.since)
    }

    /// Returns the usage at `now`. `data` computes how long bytes take on a channel without overhead.
    pub(super) fn channel(
        &self,
        now: Time,
        link: u8,
        way: Way,
        data: impl Fn(u64) -> Span,
    ) -> ChannelUsage {
        let traffic = |(device, mut meter): (usize, DeviceMeter)| {
            if device == self.latest.index() {
                meter.busy = meter.busy.saturating_sub(self.later(now));
            }
            meter.traffic(&data)
        };
        ChannelUsage {
            link,
            way,
            devices: self
                .devices
                .iter()
                .copied()
                .enumerate()
                .map(traffic)
                .collect(),
        }
    }
}

impl DeviceMeter {
    fn traffic(&self, data: impl Fn(u64) -> Span) -> Traffic {
        let mut time = Category::ALL
            .into_iter()
            .fold(TimeByCategory::default(), |time, category| {
                time.with(category, data(self.bytes.get(category)))
            });
        time.overhead = self.busy.saturating_sub(time.total());
        let transfers = |operation| self.transfers[operation as usize];
        Traffic {
            transfers: Transfers {
                dma_read: transfers(Operation::DmaRead),
                dma_write: transfers(Operation::DmaWrite),
                register_write: transfers(Operation::RegisterWrite),
                register_read: transfers(Operation::RegisterRead),
                interrupt: transfers(Operation::Interrupt),
            },
            bytes: self.bytes,
            time,
        }
    }
}
