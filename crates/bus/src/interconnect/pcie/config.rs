//! Configuration of PCI Express.
//!
//! Sources: "PCIe" is the PCI Express Base Specification 5.0, "PCIe 6" its version 6.0; *assumed* is what they leave to implementations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interconnect::InterconnectError;
use crate::interconnect::error::{check_power_of_two, check_range};

/// Bytes per flow-control credit for data (PCIe 2.6.1).
pub(super) const CREDIT_BYTES: u32 = 16;

/// A millisecond, longer than the latency of any link or memory.
const MOST_NS: u32 = 1_000_000;

/// Links between the root complex and devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PciExpressConfig {
    /// Generation: 1 to 6 (2.5, 5, 8, 16, 32, 64 GT/s).
    #[schemars(range(min = 1, max = 6))]
    pub generation: u32,
    /// Lanes of a link: 1, 2, 4, 8, 16 or 32.
    #[schemars(range(min = 1, max = 32), extend("x-power-of-two" = true))]
    pub lanes: u32,
    /// Whether all devices share one link, as ports of one card do; if not, each has its own.
    pub shared_link: bool,
    /// Maximum payload size, bytes: 128 to 4096 (PCIe 7.5.3.4).
    #[schemars(range(min = 128, max = 4096), extend("x-power-of-two" = true))]
    pub max_payload_bytes: u32,
    /// Maximum read request size, bytes: 128 to 4096 (PCIe 7.5.3.4).
    #[schemars(range(min = 128, max = 4096), extend("x-power-of-two" = true))]
    pub max_read_request_bytes: u32,
    /// Read completion boundary, bytes: 64 or 128 (PCIe 2.3.1.1). Every completion but the last ends on a multiple of it.
    #[schemars(range(min = 64, max = 128), extend("x-power-of-two" = true))]
    pub read_completion_boundary_bytes: u32,
    /// Maximum number of bytes that the root complex puts into one completion: a multiple of the boundary, at most the payload size. On
    /// older chipsets it is the boundary itself (assumed).
    #[schemars(range(min = 64, max = 4096), extend("x-power-of-two" = true))]
    pub completion_bytes: u32,
    /// Distance of each read request from a completion boundary, bytes: the first completion is shorter by this (PCIe 2.3.1.1).
    #[schemars(range(max = 127))]
    pub misaligned_bytes: u32,
    /// Use addresses of 64 bits: requests have a header of four words instead of three (PCIe 2.2.4.1).
    pub long_addresses: bool,
    /// Append an end-to-end check sequence of one word to every packet (PCIe 2.7.1).
    pub ecrc: bool,
    /// Read requests of one device that may wait for their data (PCIe 2.2.6.2: 32, 256, 768; PCIe 6: 15,360).
    #[schemars(range(min = 1, max = 15360))]
    pub tags: u32,
    /// Credits that the root complex gives each link; nothing is ever sent without credit (PCIe 2.6.1).
    pub credits: CreditConfig,
    /// Time from the end of a packet until its credits are back at the sender, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub credit_return_ns: u32,
    /// Time from one end of a link to the other, through both physical layers, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub link_latency_ns: u32,
    /// Time from the arrival of a read request at the root complex to its first completion, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub read_latency_ns: u32,
    /// Time from the arrival of a write at the root complex until it is in memory, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub write_latency_ns: u32,
    /// Time from the arrival of a register read at the device to its answer, nanoseconds (assumed).
    #[schemars(range(max = MOST_NS))]
    pub register_read_latency_ns: u32,
}

/// Flow-control credits; 0: infinite. Credits for data are for 16 bytes each (PCIe 2.6.1). All numbers are assumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CreditConfig {
    /// Credits for writes and messages of devices.
    #[schemars(extend("x-unit" = "credits"))]
    pub posted_headers: u32,
    /// Credits for the data of writes and messages of devices.
    #[schemars(extend("x-unit" = "credits"))]
    pub posted_data: u32,
    /// Credits for read requests of devices.
    #[schemars(extend("x-unit" = "credits"))]
    pub non_posted_headers: u32,
    /// Credits for completions to devices. Endpoints must give infinite credits (PCIe 2.6.1), so a device that has fewer limits its own
    /// requests.
    #[schemars(extend("x-unit" = "credits"))]
    pub completion_headers: u32,
    /// Credits for the data of completions to devices.
    #[schemars(extend("x-unit" = "credits"))]
    pub completion_data: u32,
}

impl Default for CreditConfig {
    fn default() -> Self {
        Self {
            posted_headers: 256,
            posted_data: 4_096,
            non_posted_headers: 256,
            completion_headers: 0,
            completion_data: 0,
        }
    }
}

/// Generation 4, 16 lanes. A read of 64 bytes takes about half a microsecond (pcie-bench, figure 6).
impl Default for PciExpressConfig {
    fn default() -> Self {
        Self {
            generation: 4,
            lanes: 16,
            shared_link: false,
            max_payload_bytes: 256,
            max_read_request_bytes: 512,
            read_completion_boundary_bytes: 64,
            completion_bytes: 256,
            misaligned_bytes: 0,
            long_addresses: true,
            ecrc: false,
            tags: 256,
            credits: CreditConfig::default(),
            credit_return_ns: 300,
            link_latency_ns: 120,
            read_latency_ns: 260,
            write_latency_ns: 100,
            register_read_latency_ns: 200,
        }
    }
}

impl PciExpressConfig {
    /// Checks whether such links can exist.
    ///
    /// # Errors
    /// Names the invalid field, its value and the accepted values.
    pub fn validate(&self) -> Result<(), InterconnectError> {
        check_range("generation", self.generation, 1, 6)?;
        check_power_of_two("lanes", self.lanes, 1, 32)?;
        check_power_of_two("max_payload_bytes", self.max_payload_bytes, 128, 4_096)?;
        let request = self.max_read_request_bytes;
        check_power_of_two("max_read_request_bytes", request, 128, 4_096)?;
        let boundary = self.read_completion_boundary_bytes;
        check_power_of_two("read_completion_boundary_bytes", boundary, 64, 128)?;
        let payload = self.max_payload_bytes;
        check_power_of_two("completion_bytes", self.completion_bytes, 64, 4_096)?;
        if !(boundary..=payload).contains(&self.completion_bytes) {
            let expected = format!(
                "read_completion_boundary_bytes = {boundary} to max_payload_bytes = {payload}"
            );
            let found = self.completion_bytes;
            return Err(InterconnectError::new("completion_bytes", found, expected));
        }
        if self.misaligned_bytes >= boundary {
            let expected = format!("less than read_completion_boundary_bytes = {boundary}");
            let found = self.misaligned_bytes;
            return Err(InterconnectError::new("misaligned_bytes", found, expected));
        }
        check_range("tags", self.tags, 1, 15_360)?;
        let credits = &self.credits;
        check_credits("credits.posted_data", credits.posted_data, payload)?;
        check_credits("credits.completion_data", credits.completion_data, request)?;
        let completions = self.completions_of_largest_read();
        if (1..completions).contains(&credits.completion_headers) {
            let expected = format!("0 or at least {completions}, for max_read_request_bytes");
            let (field, value) = ("credits.completion_headers", credits.completion_headers);
            return Err(InterconnectError::new(field, value, expected));
        }
        for (field, value) in [
            ("credit_return_ns", self.credit_return_ns),
            ("link_latency_ns", self.link_latency_ns),
            ("read_latency_ns", self.read_latency_ns),
            ("write_latency_ns", self.write_latency_ns),
            ("register_read_latency_ns", self.register_read_latency_ns),
        ] {
            check_range(field, value, 0, MOST_NS)?;
        }
        Ok(())
    }

    fn completions_of_largest_read(&self) -> u32 {
        (self.max_read_request_bytes + self.misaligned_bytes).div_ceil(self.completion_bytes)
    }
}

/// Checks that the credits for data suffice for the largest packet, which could otherwise never be sent.
fn check_credits(field: &'static str, credits: u32, bytes: u32) -> Result<(), InterconnectError> {
    let least = bytes / CREDIT_BYTES;
    if credits == 0 || credits >= least {
        return Ok(());
    }
    let expected = format!("0 or at least {least}, for {bytes} bytes");
    Err(InterconnectError::new(field, credits, expected))
}
