//! Configuration of PCI and PCI-X buses.
//!
//! Sources: "PCI" is the PCI Local Bus Specification 2.2 or 3.0, "PCI-X" the PCI-X Addendum 1.0; *assumed* is what they leave to chipsets
//! and devices. Clocks are bus clocks.

use baton_wire::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interconnect::InterconnectError;
use crate::interconnect::error::{check_power_of_two, check_range};

/// Maximum number of clocks of any phase of a transaction.
const MOST_CLOCKS: u32 = 4_096;

/// A millisecond, longer than the latency of any memory.
const MOST_NS: u32 = 1_000_000;

/// A conventional PCI bus, between a host bridge and its devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PciConfig {
    /// Data lines: 32 or 64 (PCI 3.8).
    #[schemars(extend("enum" = [32, 64]))]
    pub width_bits: u32,
    /// Clock, MHz: 33 or 66 (PCI 7), which stand for 33 1/3 and 66 2/3.
    #[schemars(extend("enum" = [33, 66]))]
    pub clock_mhz: u32,
    /// Use addresses above 4 GiB: transactions have a second address phase (PCI 3.9).
    pub dual_address_cycle: bool,
    /// Time from a request on an idle bus to the transaction, clocks (PCI 3.4; the number is assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub arbitration_clocks: u32,
    /// Whether the next master is chosen while the bus is busy (PCI 3.4 permits it). If not, arbitration adds to each transaction.
    pub hidden_arbitration: bool,
    /// Idle clocks after each transaction, in which the drivers change (PCI 3.3.1, 3.4.3 without fast back-to-back).
    #[schemars(range(max = MOST_CLOCKS))]
    pub idle_clocks: u32,
    /// Clocks between the address phase and the data of a read, in which the drivers of the address lines change (PCI 3.3.1).
    #[schemars(range(max = MOST_CLOCKS))]
    pub read_turnaround_clocks: u32,
    /// Wait states of the bridge before the first word of a write into its buffer (medium decoding; assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub write_wait_clocks: u32,
    /// Wait states before the first word of a read of memory (PCI 3.5.1.1: at most 16, for a host bridge 32; the number is assumed). With
    /// delayed reads: the time from the first attempt until the bridge has the data.
    #[schemars(range(max = MOST_CLOCKS))]
    pub read_wait_clocks: u32,
    /// Wait states before the first word of each further burst of one read, which a bridge may have read ahead (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub read_next_wait_clocks: u32,
    /// Wait states in each data phase (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub data_wait_clocks: u32,
    /// Bytes after which the bridge disconnects a write (PCI 3.3.3.2; the number is assumed).
    #[schemars(range(min = 16, max = 1 << 20), extend("x-power-of-two" = true))]
    pub write_burst_bytes: u32,
    /// Bytes that the bridge fetches for a read, and after which it disconnects (assumed).
    #[schemars(range(min = 16, max = 1 << 20), extend("x-power-of-two" = true))]
    pub read_burst_bytes: u32,
    /// Clocks after which the master of a transaction must leave the bus to another that wants it (PCI 3.5.4; assumed: firmware sets 64 for
    /// network cards).
    #[schemars(range(max = MOST_CLOCKS))]
    pub latency_timer_clocks: u32,
    /// Whether the bridge answers a read with retry and meanwhile fetches the data (PCI 3.3.3.3), instead of adding wait states.
    pub delayed_reads: bool,
    /// Length of an attempt that is answered with retry: address, decoding, stop (PCI 3.3.3.2).
    #[schemars(range(min = 1, max = MOST_CLOCKS))]
    pub retry_clocks: u32,
    /// Clocks from an attempt that is answered with retry to the next attempt of this master (assumed).
    #[schemars(range(min = 1, max = MOST_CLOCKS))]
    pub retry_interval_clocks: u32,
    /// Wait states of a device whose register the processor writes (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub register_write_wait_clocks: u32,
    /// Wait states of a device whose register the processor reads (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub register_read_wait_clocks: u32,
    /// Time that a write takes from the bridge's buffer to memory after its last data phase, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub posted_write_ns: u32,
}

/// 64 bits at 33 MHz behind a server chipset of about 2002.
impl Default for PciConfig {
    fn default() -> Self {
        Self {
            width_bits: 64,
            clock_mhz: 33,
            dual_address_cycle: false,
            arbitration_clocks: 2,
            hidden_arbitration: true,
            idle_clocks: 1,
            read_turnaround_clocks: 1,
            write_wait_clocks: 1,
            read_wait_clocks: 10,
            read_next_wait_clocks: 10,
            data_wait_clocks: 0,
            write_burst_bytes: 4_096,
            read_burst_bytes: 512,
            latency_timer_clocks: 64,
            delayed_reads: false,
            retry_clocks: 3,
            retry_interval_clocks: 4,
            register_write_wait_clocks: 1,
            register_read_wait_clocks: 8,
            posted_write_ns: 100,
        }
    }
}

impl PciConfig {
    /// Checks whether such a bus can exist.
    ///
    /// # Errors
    /// Names the invalid field, its value and the accepted values.
    pub fn validate(&self) -> Result<(), InterconnectError> {
        check_width(self.width_bits)?;
        check_one_of("clock_mhz", self.clock_mhz, &[33, 66])?;
        check_clocks(&[
            ("arbitration_clocks", self.arbitration_clocks, 0),
            ("idle_clocks", self.idle_clocks, 0),
            ("read_turnaround_clocks", self.read_turnaround_clocks, 0),
            ("write_wait_clocks", self.write_wait_clocks, 0),
            ("read_wait_clocks", self.read_wait_clocks, 0),
            ("read_next_wait_clocks", self.read_next_wait_clocks, 0),
            ("data_wait_clocks", self.data_wait_clocks, 0),
            ("latency_timer_clocks", self.latency_timer_clocks, 0),
            ("retry_clocks", self.retry_clocks, 1),
            ("retry_interval_clocks", self.retry_interval_clocks, 1),
            (
                "register_write_wait_clocks",
                self.register_write_wait_clocks,
                0,
            ),
            (
                "register_read_wait_clocks",
                self.register_read_wait_clocks,
                0,
            ),
        ])?;
        check_power_of_two("write_burst_bytes", self.write_burst_bytes, 16, 1 << 20)?;
        check_power_of_two("read_burst_bytes", self.read_burst_bytes, 16, 1 << 20)?;
        check_range("posted_write_ns", self.posted_write_ns, 0, MOST_NS)
    }
}

/// A PCI-X bus: split transactions instead of retries, and bursts that end where the address is a multiple of 128.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PciXConfig {
    /// Data lines: 32 or 64.
    #[schemars(extend("enum" = [32, 64]))]
    pub width_bits: u32,
    /// Clock, MHz: 66, 100 or 133. 66 and 133 stand for 66 2/3 and 133 1/3.
    #[schemars(extend("enum" = [66, 100, 133]))]
    pub clock_mhz: u32,
    /// Use addresses above 4 GiB: transactions have a second address phase.
    pub dual_address_cycle: bool,
    /// Time from a request on an idle bus to the transaction, clocks (assumed; signals are registered, so one more than on PCI).
    #[schemars(range(max = MOST_CLOCKS))]
    pub arbitration_clocks: u32,
    /// Whether the next master is chosen while the bus is busy.
    pub hidden_arbitration: bool,
    /// Idle clocks after each transaction, in which the drivers change (PCI-X 2.2).
    #[schemars(range(max = MOST_CLOCKS))]
    pub idle_clocks: u32,
    /// Clocks of the attribute phase, which names the requester and the number of bytes (PCI-X 2.3).
    #[schemars(range(min = 1, max = MOST_CLOCKS))]
    pub attribute_clocks: u32,
    /// Clocks from the attribute phase to the first word of a write or completion, or to the split response (PCI-X 2.9: decoding takes one
    /// to three clocks, the response one).
    #[schemars(range(min = 1, max = MOST_CLOCKS))]
    pub response_clocks: u32,
    /// Wait states before the first word of a write or completion, always an even number on PCI-X (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub initial_wait_clocks: u32,
    /// Clocks after which the master of a transaction must leave the bus at the next multiple of 128 bytes (PCI-X 4.4: 64).
    #[schemars(range(max = MOST_CLOCKS))]
    pub latency_timer_clocks: u32,
    /// Bytes after which a target disconnects: a multiple of 128 (assumed).
    #[schemars(range(min = 128, max = 1 << 20), extend("x-power-of-two" = true))]
    pub burst_bytes: u32,
    /// Maximum number of bytes in one read request (PCI-X 7.2.3: 512 to 4096).
    #[schemars(range(min = 512, max = 4096), extend("x-power-of-two" = true))]
    pub max_read_bytes: u32,
    /// Reads of one device that may wait for their data (PCI-X 7.2.3: 1 to 32).
    #[schemars(range(min = 1, max = 32))]
    pub outstanding_splits: u32,
    /// From the end of the request until the bridge has the data, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub memory_latency_ns: u32,
    /// Wait states of a device whose register the processor reads (assumed).
    #[schemars(range(max = MOST_CLOCKS))]
    pub register_read_wait_clocks: u32,
    /// From the bridge's buffer to memory, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub posted_write_ns: u32,
}

/// 64 bits at 133 MHz.
impl Default for PciXConfig {
    fn default() -> Self {
        Self {
            width_bits: 64,
            clock_mhz: 133,
            dual_address_cycle: false,
            arbitration_clocks: 3,
            hidden_arbitration: true,
            idle_clocks: 1,
            attribute_clocks: 1,
            response_clocks: 2,
            initial_wait_clocks: 0,
            latency_timer_clocks: 64,
            burst_bytes: 4_096,
            max_read_bytes: 2_048,
            outstanding_splits: 4,
            memory_latency_ns: 400,
            register_read_wait_clocks: 12,
            posted_write_ns: 100,
        }
    }
}

impl PciXConfig {
    /// Checks whether such a bus can exist.
    ///
    /// # Errors
    /// Names the invalid field, its value and the accepted values.
    pub fn validate(&self) -> Result<(), InterconnectError> {
        check_width(self.width_bits)?;
        check_one_of("clock_mhz", self.clock_mhz, &[66, 100, 133])?;
        check_clocks(&[
            ("arbitration_clocks", self.arbitration_clocks, 0),
            ("idle_clocks", self.idle_clocks, 0),
            ("attribute_clocks", self.attribute_clocks, 1),
            ("response_clocks", self.response_clocks, 1),
            ("initial_wait_clocks", self.initial_wait_clocks, 0),
            ("latency_timer_clocks", self.latency_timer_clocks, 0),
            (
                "register_read_wait_clocks",
                self.register_read_wait_clocks,
                0,
            ),
        ])?;
        check_power_of_two("burst_bytes", self.burst_bytes, 128, 1 << 20)?;
        check_power_of_two("max_read_bytes", self.max_read_bytes, 512, 4_096)?;
        check_range("outstanding_splits", self.outstanding_splits, 1, 32)?;
        check_range("memory_latency_ns", self.memory_latency_ns, 0, MOST_NS)?;
        check_range("posted_write_ns", self.posted_write_ns, 0, MOST_NS)
    }
}

fn check_width(width_bits: u32) -> Result<(), InterconnectError> {
    check_one_of("width_bits", width_bits, &[32, 64])
}

/// Checks the clocks of each field, given by its name, value and minimum.
fn check_clocks(fields: &[(&'static str, u32, u32)]) -> Result<(), InterconnectError> {
    fields
        .iter()
        .try_for_each(|&(field, clocks, least)| check_range(field, clocks, least, MOST_CLOCKS))
}

fn check_one_of(field: &'static str, value: u32, known: &[u32]) -> Result<(), InterconnectError> {
    if known.contains(&value) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(u32::to_string).collect();
    Err(InterconnectError::new(field, value, known.join(" or ")))
}

/// Returns the period of a clock, whose name omits the thirds.
pub(super) fn clock_period(clock_mhz: u32) -> Span {
    Span::from_ps(match clock_mhz {
        33 => 30_000,
        66 => 15_000,
        133 => 7_500,
        other => 1_000_000 / u64::from(other),
    })
}
