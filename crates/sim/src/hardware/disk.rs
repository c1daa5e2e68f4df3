//! A disk: seek, rotation, transfer, and the order of requests.

use std::collections::VecDeque;

use baton_wire::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, check_range};

/// Which waiting request a disk serves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskQueue {
    /// First come, first served.
    Fcfs,
    /// The nearest request above the last one or, if there is none, the lowest (C-LOOK; `bufqdisksort` of the BSDs).
    #[default]
    Elevator,
}

/// The server's disks, all alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiskConfig {
    /// Number of disks.
    #[schemars(range(min = 1, max = 64))]
    pub disks: u32,
    /// Size of each disk, GB (10^9 bytes).
    #[schemars(range(min = 1, max = 100000))]
    pub capacity_gb: u32,
    /// Revolutions a minute.
    #[schemars(range(min = 1000, max = 100000), extend("x-unit" = "revolutions/min"))]
    pub rpm: u32,
    /// Sustained rate from the medium, MB/s (10^6 bytes).
    #[schemars(range(min = 1, max = 100000))]
    pub transfer_mb_per_s: u32,
    /// Number of surfaces: switching between their tracks needs no seek.
    #[schemars(range(min = 1, max = 256))]
    pub heads: u32,
    /// Time of a seek to the next cylinder, microseconds.
    #[schemars(range(max = 1000000))]
    pub seek_track_us: u32,
    /// Time of a seek over all cylinders, microseconds. Times in between grow with the square root of the distance, because the arm spends
    /// most of a seek speeding up and slowing down (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994).
    #[schemars(range(max = 10000000))]
    pub seek_full_us: u32,
    /// Command, controller and bus settling for each request, microseconds.
    #[schemars(range(max = 1000000))]
    pub overhead_us: u32,
    /// Which waiting request is served next.
    pub queue: DiskQueue,
}

/// A 36 GB disk with 10,000 revolutions per minute of about 2002, according to data sheets of the time (Seagate Cheetah 36ES: seeks of 0.6
/// ms to the next track, 5.2 ms on average and 11 ms at most, 4 surfaces; 50 MB/s is assumed).
impl Default for DiskConfig {
    fn default() -> Self {
        Self {
            disks: 2,
            capacity_gb: 36,
            rpm: 10_000,
            transfer_mb_per_s: 50,
            heads: 4,
            seek_track_us: 600,
            seek_full_us: 9_200,
            overhead_us: 200,
            queue: DiskQueue::Elevator,
        }
    }
}

impl DiskConfig {
    /// Checks that such a disk is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (field, value, least, most) in [
            ("disks", self.disks, 1, 64),
            ("capacity_gb", self.capacity_gb, 1, 100_000),
            ("rpm", self.rpm, 1_000, 100_000),
            ("transfer_mb_per_s", self.transfer_mb_per_s, 1, 100_000),
            ("heads", self.heads, 1, 256),
            ("seek_track_us", self.seek_track_us, 0, 1_000_000),
            ("seek_full_us", self.seek_full_us, 0, 10_000_000),
            ("overhead_us", self.overhead_us, 0, 1_000_000),
        ] {
            check_range(field, value.into(), least, most)?;
        }
        if self.seek_full_us < self.seek_track_us {
            let expected = format!("at least seek_track_us = {}", self.seek_track_us);
            return Err(ConfigError::new(
                "seek_full_us",
                self.seek_full_us,
                expected,
            ));
        }
        Ok(())
    }

    /// Returns the capacity of each disk in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        u64::from(self.capacity_gb) * 1_000_000_000
    }

    /// Returns the time of one revolution.
    fn revolution(&self) -> Span {
        Span::from_ns(60_000_000_000 / u64::from(self.rpm))
    }

    /// Returns the number of bytes that pass a head in one revolution.
    fn track_bytes(&self) -> u64 {
        u64::from(self.transfer_mb_per_s) * 1_000_000 * 60 / u64::from(self.rpm)
    }

    fn cylinder_bytes(&self) -> u64 {
        self.track_bytes() * u64::from(self.heads)
    }

    /// Returns the time of a seek over `cylinders` cylinders.
    fn seek(&self, cylinders: u64) -> Span {
        if cylinders == 0 {
            return Span::ZERO;
        }
        let all = (self.capacity_bytes() / self.cylinder_bytes()).max(2);
        let (track, full) = (u64::from(self.seek_track_us), u64::from(self.seek_full_us));
        // The square root of the fraction of the distance, in units of 1/1024.
        let root = ((cylinders - 1).min(all - 1) * (1 << 20) / (all - 1)).isqrt();
        Span::from_ns(track * 1000 + (full - track) * root * 1000 / 1024)
    }

    fn transfer(&self, bytes: u64) -> Span {
        Span::from_ns(bytes * 1_000 / u64::from(self.transfer_mb_per_s))
    }
}

/// A request for contiguous bytes of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// First byte.
    pub position: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Value that is returned when the request is done.
    pub token: u64,
}

/// One disk, which serves one request at a time.
#[derive(Clone, Debug)]
pub struct Disk {
    config: DiskConfig,
    waiting: VecDeque<DiskRequest>,
    current: Option<(Time, DiskRequest)>,
    /// End of the last request. The disk has read ahead, so a request that continues there needs neither seek nor rotation.
    next_position: u64,
    busy: Span,
    measured_from: Time,
    requests: u64,
}

impl Disk {
    /// Creates a disk with its arm at the first cylinder.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &DiskConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config: config.clone(),
            waiting: VecDeque::new(),
            current: None,
            next_position: 0,
            busy: Span::ZERO,
            measured_from: Time::ZERO,
            requests: 0,
        })
    }

    /// Queues a request.
    pub fn submit(&mut self, now: Time, request: DiskRequest) {
        self.waiting.push_back(request);
        self.start(now);
    }

    /// Returns when the current request is done.
    pub fn next_done(&self) -> Option<Time> {
        self.current.map(|(done, _)| done)
    }

    /// Returns the current request if it is done by `now`, and starts the next.
    pub fn poll_done(&mut self, now: Time) -> Option<DiskRequest> {
        let (_, request) = self.current.take_if(|(done, _)| *done <= now)?;
        self.requests += 1;
        self.start(now);
        Some(request)
    }

    /// Returns the number of requests that wait or are in progress.
    pub fn queued(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    /// Returns the number of requests done since the measurement began.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the time for which the disk was busy since the measurement began, at `now`.
    pub fn busy(&self, now: Time) -> Span {
        let ahead = self
            .next_done()
            .map_or(Span::ZERO, |done| done.saturating_since(now));
        self.busy.saturating_sub(ahead)
    }

    /// Resets all counters.
    pub fn start_measurement(&mut self, now: Time) {
        self.measured_from = now;
        self.requests = 0;
        self.busy = self
            .next_done()
            .map_or(Span::ZERO, |done| done.saturating_since(now));
    }

    fn start(&mut self, now: Time) {
        if self.current.is_some() {
            return;
        }
        let Some(request) = self.take_next() else {
            return;
        };
        let span = self.service(now, request);
        self.busy += span;
        self.next_position = request.position + request.bytes;
        self.current = Some((now + span, request));
    }

    fn take_next(&mut self) -> Option<DiskRequest> {
        let index = match self.config.queue {
            DiskQueue::Fcfs => 0,
            DiskQueue::Elevator => {
                let here = self.next_position;
                // Requests behind the arm come after all requests ahead of it.
                let order = |request: &DiskRequest| (request.position < here, request.position);
                let (index, _) = self
                    .waiting
                    .iter()
                    .enumerate()
                    .min_by_key(|(_, request)| order(request))?;
                index
            }
        };
        self.waiting.remove(index)
    }

    fn service(&self, now: Time, request: DiskRequest) -> Span {
        let config = &self.config;
        let overhead = Span::from_us(config.overhead_us.into());
        let transfer = config.transfer(request.bytes);
        if request.position == self.next_position {
            return overhead + transfer;
        }
        let cylinder = |position: u64| position / config.cylinder_bytes();
        let seek = config.seek(cylinder(request.position).abs_diff(cylinder(self.next_position)));
        let arrived = now + overhead + seek;
        // The angle of a position is the time at which it passes the head, counted from the start of each revolution.
        let revolution = config.revolution().as_ps();
        let angle = config
            .transfer(request.position % config.track_bytes())
            .as_ps()
            % revolution;
        let wait = (angle + revolution - arrived.as_ps() % revolution) % revolution;
        overhead + seek + Span::from_ps(wait) + transfer
    }
}
