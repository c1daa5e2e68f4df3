//! Interconnects that are selected by name.

use super::config::InterconnectConfig;
use super::{CreditConfig, PciConfig, PciExpressConfig, PciXConfig};

impl InterconnectConfig {
    /// Format of the names of presets.
    pub const PRESETS: &'static str = "ideal, pci-WIDTH-CLOCK (pci-64-33), pci-x-CLOCK (pci-x-133), pcie-GENERATION-xLANES (pcie-4-x16)";

    /// Returns the interconnect with a name such as `pci-64-33`, `pci-x-133` or `pcie-4-x16`, or `None` if there is none.
    pub fn preset(name: &str) -> Option<Self> {
        let config = preset(name)?;
        config.validate().is_ok().then_some(config)
    }
}

fn preset(name: &str) -> Option<InterconnectConfig> {
    if name == "ideal" {
        return Some(InterconnectConfig::Ideal);
    }
    if let Some(clock) = name.strip_prefix("pci-x-") {
        return Some(InterconnectConfig::PciX(PciXConfig {
            clock_mhz: clock.parse().ok()?,
            ..PciXConfig::default()
        }));
    }
    if let Some(rest) = name.strip_prefix("pcie-") {
        let (generation, lanes) = rest.split_once("-x")?;
        return Some(InterconnectConfig::PciExpress(pci_express(
            generation.parse().ok()?,
            lanes.parse().ok()?,
        )));
    }
    let (width, clock) = name.strip_prefix("pci-")?.split_once('-')?;
    Some(InterconnectConfig::Pci(PciConfig {
        width_bits: width.parse().ok()?,
        clock_mhz: clock.parse().ok()?,
        ..PciConfig::default()
    }))
}

/// Faster links have more in flight: the largest have tags and credits for their rate times their latency (assumed).
fn pci_express(generation: u32, lanes: u32) -> PciExpressConfig {
    let defaults = PciExpressConfig::default();
    let fast = generation >= 5;
    PciExpressConfig {
        generation,
        lanes,
        max_payload_bytes: if fast { 512 } else { 256 },
        completion_bytes: if fast { 512 } else { 256 },
        max_read_request_bytes: if fast { 4_096 } else { 512 },
        tags: if fast { 768 } else { 256 },
        credits: CreditConfig {
            posted_headers: if fast { 1_024 } else { 256 },
            posted_data: if fast { 16_384 } else { 4_096 },
            non_posted_headers: if fast { 1_024 } else { 256 },
            ..CreditConfig::default()
        },
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preset_names_give_their_interconnect() {
        let Some(InterconnectConfig::Pci(pci)) = InterconnectConfig::preset("pci-32-66") else {
            panic!("a PCI bus");
        };
        assert_eq!((pci.width_bits, pci.clock_mhz), (32, 66));
        let Some(InterconnectConfig::PciX(pci_x)) = InterconnectConfig::preset("pci-x-100") else {
            panic!("a PCI-X bus");
        };
        assert_eq!(pci_x.clock_mhz, 100);
        for generation in 1..=6 {
            for lanes in [1, 2, 4, 8, 16, 32] {
                let name = format!("pcie-{generation}-x{lanes}");
                let Some(InterconnectConfig::PciExpress(link)) = InterconnectConfig::preset(&name)
                else {
                    panic!("{name}");
                };
                assert_eq!((link.generation, link.lanes), (generation, lanes));
            }
        }
        assert_eq!(
            InterconnectConfig::preset("ideal"),
            Some(InterconnectConfig::Ideal)
        );
    }

    #[test]
    fn other_names_are_not_presets() {
        for name in [
            "",
            "pci",
            "pci-48-33",
            "pci-64-100",
            "pci-x-33",
            "pcie-7-x16",
            "pcie-4-x3",
            "pcie-4",
            "agp",
        ] {
            assert_eq!(InterconnectConfig::preset(name), None, "{name}");
        }
    }
}
