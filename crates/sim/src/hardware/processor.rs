//! How long work takes on the host's processor and on the NIC's, and how busy it keeps them.

use baton_wire::{Span, Time};
use serde::{Deserialize, Serialize};

use super::config_error::{ConfigError, check_range};
use super::pace::Pace;

/// Speed of the host's processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessorConfig {
    /// Clock, MHz.
    pub clock_mhz: u32,
    /// Instructions completed in a cycle without a stall.
    pub instructions_per_cycle: u32,
}

/// Table 2 of the handoff-policies paper.
impl Default for ProcessorConfig {
    fn default() -> Self {
        Self {
            clock_mhz: 2_000,
            instructions_per_cycle: 1,
        }
    }
}

impl ProcessorConfig {
    /// Fastest clock, MHz.
    pub const MOST_MHZ: u32 = 100_000;

    /// Whether such a processor can be built.
    ///
    /// # Errors
    /// Says which field no such processor can have, and what was expected.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("clock_mhz", self.clock_mhz.into(), 1, Self::MOST_MHZ.into())?;
        check_range(
            "instructions_per_cycle",
            self.instructions_per_cycle.into(),
            1,
            16,
        )
    }
}

/// Speed of the NIC's processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicProcessorConfig {
    /// Instruction rate, millions a second.
    pub mips: u32,
}

/// The slowest of the handoff-policies paper, section 4.1.
impl Default for NicProcessorConfig {
    fn default() -> Self {
        Self { mips: 400 }
    }
}

impl NicProcessorConfig {
    /// Highest rate, millions a second.
    pub const MOST_MIPS: u32 = 1_000_000;

    /// Whether such a processor can be built.
    ///
    /// # Errors
    /// Says which field no such processor can have, and what was expected.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("mips", self.mips.into(), 1, Self::MOST_MIPS.into())
    }
}

/// The host's processor: does one piece of work after the other.
#[derive(Clone, Debug)]
pub struct Processor {
    instructions_per_cycle: u64,
    /// Unit: a cycle divided by `instructions_per_cycle`, so that instructions and stalls add up exactly.
    pace: Pace,
    cycles: Pace,
    occupancy: Occupancy,
}

impl Processor {
    /// An idle processor.
    ///
    /// # Errors
    /// Says which field no such processor can have, and what was expected.
    pub fn new(config: &ProcessorConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let instructions_per_cycle = u64::from(config.instructions_per_cycle);
        Ok(Self {
            instructions_per_cycle,
            pace: Pace::new(u64::from(config.clock_mhz) * instructions_per_cycle),
            cycles: Pace::new(config.clock_mhz.into()),
            occupancy: Occupancy::default(),
        })
    }

    /// Does work of so many instructions and stall cycles from `now` on, or as soon as earlier work is done: when it ends.
    pub fn run(&mut self, now: Time, instructions: u64, stall_cycles: u64) -> Time {
        let span = self
            .pace
            .span(instructions + stall_cycles * self.instructions_per_cycle);
        self.occupancy.occupy(now, span)
    }

    /// The cycle that `now` falls into, counted from the start of the run.
    pub fn cycle_at(&self, now: Time) -> u64 {
        self.cycles.units_in(now.as_ps())
    }

    /// When the work given so far is done.
    pub fn free_at(&self) -> Time {
        self.occupancy.free_at
    }

    /// Starts measuring at `now`: what was done before is forgotten.
    pub fn start_measurement(&mut self, now: Time) {
        self.occupancy.start_measurement(now);
    }

    /// Time worked since the measurement began, at `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.occupancy.busy(now)
    }

    /// Time not worked since the measurement began, at `now`.
    pub fn idle(&self, now: Time) -> Span {
        self.occupancy.idle(now)
    }
}

/// The NIC's processor: one instruction a cycle from its own memory, so no stalls.
#[derive(Clone, Debug)]
pub struct NicProcessor {
    pace: Pace,
    occupancy: Occupancy,
}

impl NicProcessor {
    /// An idle processor.
    ///
    /// # Errors
    /// Says which field no such processor can have, and what was expected.
    pub fn new(config: &NicProcessorConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            pace: Pace::new(config.mips.into()),
            occupancy: Occupancy::default(),
        })
    }

    /// Does work of so many instructions from `now` on, or as soon as earlier work is done: when it ends.
    pub fn run(&mut self, now: Time, instructions: u64) -> Time {
        let span = self.pace.span(instructions);
        self.occupancy.occupy(now, span)
    }

    /// When the work given so far is done.
    pub fn free_at(&self) -> Time {
        self.occupancy.free_at
    }

    /// Starts measuring at `now`: what was done before is forgotten.
    pub fn start_measurement(&mut self, now: Time) {
        self.occupancy.start_measurement(now);
    }

    /// Time worked since the measurement began, at `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.occupancy.busy(now)
    }

    /// Time not worked since the measurement began, at `now`.
    pub fn idle(&self, now: Time) -> Span {
        self.occupancy.idle(now)
    }
}

/// What does one piece of work after the other, and how much of the time they fill: a processor, a memory, a DMA engine.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    free_at: Time,
    measured_from: Time,
    /// Work since `measured_from`, all of it, even what ends in the future.
    occupied: Span,
}

impl Occupancy {
    /// Does work that takes `span` from `now` on, or as soon as earlier work is done: when it ends.
    pub fn occupy(&mut self, now: Time, span: Span) -> Time {
        self.free_at = self.free_at.max(now) + span;
        self.occupied += span;
        self.free_at
    }

    /// When the work given so far is done.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Starts measuring at `now`: what was done before is forgotten.
    pub fn start_measurement(&mut self, now: Time) {
        self.measured_from = now;
        self.occupied = self.free_at.saturating_since(now);
    }

    /// Time worked since the measurement began, at `now`.
    pub fn busy(&self, now: Time) -> Span {
        // Work is given at its start, without gaps behind `now`: what lies in the future is one piece at the end.
        self.occupied - self.free_at.saturating_since(now)
    }

    /// Time not worked since the measurement began, at `now`.
    pub fn idle(&self, now: Time) -> Span {
        (now - self.measured_from) - self.busy(now)
    }
}
