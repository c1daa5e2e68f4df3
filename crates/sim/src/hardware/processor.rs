//! How long work takes on the host's processor and on the NIC's, and how busy the processors are.

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
    /// Instructions per cycle without stalls.
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
    /// Most instructions per cycle.
    pub const MOST_INSTRUCTIONS: u32 = 16;

    /// Checks that such a processor is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("clock_mhz", self.clock_mhz.into(), 1, Self::MOST_MHZ.into())?;
        check_range(
            "instructions_per_cycle",
            self.instructions_per_cycle.into(),
            1,
            Self::MOST_INSTRUCTIONS.into(),
        )
    }
}

/// Speed of the NIC's processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicProcessorConfig {
    /// Instruction rate, millions per second.
    pub mips: u32,
}

/// The slowest NIC of the handoff-policies paper, section 4.1.
impl Default for NicProcessorConfig {
    fn default() -> Self {
        Self { mips: 400 }
    }
}

impl NicProcessorConfig {
    /// Highest rate, millions per second.
    pub const MOST_MIPS: u32 = 1_000_000;

    /// Checks that such a processor is possible.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_range("mips", self.mips.into(), 1, Self::MOST_MIPS.into())
    }
}

/// The host's processor, which does one piece of work at a time.
#[derive(Clone, Debug)]
pub struct Processor {
    instructions_per_cycle: u64,
    /// Rate in units of a cycle divided by `instructions_per_cycle`, so that instructions and stalls add up exactly.
    pace: Pace,
    cycles: Pace,
    /// Its busy time.
    pub occupancy: Occupancy,
}

impl Processor {
    /// Creates an idle processor.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
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

    /// Does work of `instructions` instructions and `stall_cycles` stall cycles from `now` on, or as soon as earlier work is done. Returns
    /// when the work ends.
    pub fn run(&mut self, now: Time, instructions: u64, stall_cycles: u64) -> Time {
        let span = self
            .pace
            .span(instructions + stall_cycles * self.instructions_per_cycle);
        self.occupancy.occupy(now, span)
    }

    /// Returns the cycle that contains `now`, counted from the start of the run.
    pub fn cycle_at(&self, now: Time) -> u64 {
        self.cycles.units_in(now.as_ps())
    }
}

/// The NIC's processor. It executes one instruction per cycle from its own memory, without stalls.
#[derive(Clone, Debug)]
pub struct NicProcessor {
    pace: Pace,
    /// Its busy time.
    pub occupancy: Occupancy,
}

impl NicProcessor {
    /// Creates an idle processor.
    ///
    /// # Errors
    /// Returns the first invalid field and the expected value.
    pub fn new(config: &NicProcessorConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            pace: Pace::new(config.mips.into()),
            occupancy: Occupancy::default(),
        })
    }

    /// Does work of `instructions` instructions from `now` on, or as soon as earlier work is done. Returns when the work ends.
    pub fn run(&mut self, now: Time, instructions: u64) -> Time {
        let span = self.pace.span(instructions);
        self.occupancy.occupy(now, span)
    }
}

/// Busy time of a unit that does one piece of work at a time: a processor, a memory, a DMA engine.
#[derive(Clone, Debug, Default)]
pub struct Occupancy {
    free_at: Time,
    measured_from: Time,
    /// All work since `measured_from`, including work that ends in the future.
    occupied: Span,
}

impl Occupancy {
    /// Does work that takes `span` from `now` on, or as soon as earlier work is done. Returns when the work ends.
    pub fn occupy(&mut self, now: Time, span: Span) -> Time {
        self.free_at = self.free_at.max(now) + span;
        self.occupied += span;
        self.free_at
    }

    /// Returns when all work given so far is done.
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns when the measurement began.
    pub fn measured_from(&self) -> Time {
        self.measured_from
    }

    /// Starts measuring at `now` and resets the measurement.
    pub fn start_measurement(&mut self, now: Time) {
        self.measured_from = now;
        self.occupied = self.free_at.saturating_since(now);
    }

    /// Returns the busy time since the measurement began, at `now`.
    pub fn busy(&self, now: Time) -> Span {
        // Work is added at its start, and the work after `now` has no gaps, so the future part is one span at the end.
        self.occupied - self.free_at.saturating_since(now)
    }

    /// Returns the idle time since the measurement began, at `now`.
    pub fn idle(&self, now: Time) -> Span {
        (now - self.measured_from) - self.busy(now)
    }

    /// Returns the share of the time since the measurement began in which the unit was busy, 0 to 1.
    pub fn utilisation(&self, now: Time) -> f64 {
        let (busy, idle) = (self.busy(now), self.idle(now));
        busy.as_ps() as f64 / (busy + idle).as_ps().max(1) as f64
    }
}
