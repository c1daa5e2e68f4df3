//! Durations of bytes on a link.

use baton_wire::Span;

use super::config::PciExpressConfig;

/// Number of fractional bits of a time per byte, in picoseconds.
const FRACTION_BITS: u32 = 20;

/// Bytes on the link for one acknowledgment or flow-control update: six, and the framing (PCIe 3.4, 4.2).
const DLLP_BYTES: u128 = 8;

/// Maximum number of symbols between two skip ordered sets (PCIe 4.2.7.3), and the symbols of one set.
const SKIP_INTERVAL: u128 = 1_538;
const SKIP_SYMBOLS: u128 = 4;

/// A time per byte, exact to a millionth of a picosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PerByte(u64);

impl PerByte {
    /// Returns `numerator / denominator` picoseconds per byte.
    fn new(numerator: u128, denominator: u128) -> Self {
        Self(((numerator << FRACTION_BITS) / denominator) as u64)
    }

    /// Returns the duration of `bytes`, rounded to the nearest picosecond.
    pub(super) fn span(self, bytes: u64) -> Span {
        const HALF: u64 = 1 << (FRACTION_BITS - 1);
        // No link is slower than 2^33 units per byte, so this does not overflow for packets and most totals.
        if bytes < 1 << 30 {
            return Span::from_ps((bytes * self.0 + HALF) >> FRACTION_BITS);
        }
        let scaled = u128::from(bytes) * u128::from(self.0) + u128::from(HALF);
        Span::from_ps((scaled >> FRACTION_BITS) as u64)
    }

    /// Returns the number of whole bytes that fit in `span`.
    #[cfg(test)]
    pub(super) fn bytes_in(self, span: Span) -> u64 {
        ((u128::from(span.as_ps()) << FRACTION_BITS) / u128::from(self.0)) as u64
    }
}

/// Returns the megatransfers per second on a lane (PCIe 4.2; PCIe 6 doubles the rate by signalling with four levels).
fn megatransfers(generation: u32) -> u128 {
    match generation {
        1 => 2_500,
        2 => 5_000,
        other => 8_000 << (other - 3),
    }
}

/// Returns the bits on the lane and the packet bits among them: 8b/10b, 128b/130b (PCIe 4.2.1, 4.2.2), and no overhead outside the flits.
fn encoding(generation: u32) -> (u128, u128) {
    match generation {
        1 | 2 => (10, 8),
        3..=5 => (130, 128),
        _ => (1, 1),
    }
}

/// Bytes of a flit, and the bytes of these that carry packets (PCIe 6 4.2.3.4: the others are link-layer bytes, check sequence and error
/// correction).
const FLIT_BYTES: u128 = 256;
const FLIT_PACKET_BYTES: u128 = 236;

/// Returns whether packets travel in flits.
pub(super) fn has_flits(config: &PciExpressConfig) -> bool {
    config.generation >= 6
}

/// Returns the raw rate after encoding: the time of payload without any overhead.
pub(super) fn raw(config: &PciExpressConfig) -> PerByte {
    let (line, data) = encoding(config.generation);
    let denominator = megatransfers(config.generation) * u128::from(config.lanes) * data;
    PerByte::new(8_000_000 * line, denominator)
}

/// Returns the rate available to packets, after acknowledgments, flow-control updates and skip ordered sets as often as the specification
/// recommends. As in the model of pcie-bench, a DLLP counts against symbol times of the whole link. Flits include the bytes of the link
/// layer.
pub(super) fn packets(config: &PciExpressConfig) -> PerByte {
    let (line, data) = encoding(config.generation);
    let lanes = megatransfers(config.generation) * u128::from(config.lanes) * data;
    let (numerator, denominator) = if has_flits(config) {
        (FLIT_BYTES, FLIT_PACKET_BYTES)
    } else {
        let interval = u128::from(ack_interval(config));
        // 1 / (1 - two DLLPs in each interval - skips), over a common denominator.
        let left = interval * (SKIP_INTERVAL - SKIP_SYMBOLS) - 2 * DLLP_BYTES * SKIP_INTERVAL;
        (SKIP_INTERVAL * interval, left)
    };
    PerByte::new(8_000_000 * line * numerator, lanes * denominator)
}

/// Returns the symbol times between acknowledgments under load, and between flow-control updates: the guideline of PCIe 2.6.1.2 (table 2-46
/// to 2-48) and the limit of PCIe 3.6.3.1 (tables 3-7 to 3-9), which agree.
fn ack_interval(config: &PciExpressConfig) -> u32 {
    /// Header, sequence number and check sequence around a payload.
    const TLP_OVERHEAD: u32 = 28;
    let internal_delay = match config.generation {
        1 => 19,
        2 => 70,
        _ => 115,
    };
    let short = config.max_payload_bytes <= 256;
    let factor_tenths = match (config.lanes, short) {
        (1..=4, true) => 14,
        (8, true) => 25,
        (1..=8, _) => 10,
        (_, true) => 30,
        (_, false) => 20,
    };
    (config.max_payload_bytes + TLP_OVERHEAD) * factor_tenths / (10 * config.lanes) + internal_delay
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gbps(rate: PerByte) -> f64 {
        8.0 * 1e9 / rate.span(1_000_000_000_000).as_ps() as f64 * 1e6
    }

    fn link(generation: u32, lanes: u32) -> PciExpressConfig {
        PciExpressConfig {
            generation,
            lanes,
            ..PciExpressConfig::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_specification() {
        for (generation, lanes, expected) in [
            (1, 1, 2.0),
            (2, 4, 16.0),
            (3, 8, 63.015),
            (4, 16, 252.06),
            (5, 16, 504.12),
            (6, 32, 2_048.0),
        ] {
            let found = gbps(raw(&link(generation, lanes)));
            assert!(
                (found / expected - 1.0).abs() < 1e-4,
                "{generation} x{lanes}: {found}"
            );
        }
    }

    #[test]
    fn acknowledgments_are_as_frequent_as_specified() {
        for (generation, lanes, payload, expected) in [
            (1, 1, 128, 237),
            (1, 8, 256, 107),
            (1, 32, 4_096, 276),
            (2, 2, 512, 340),
            (2, 16, 1_024, 201),
            (3, 1, 256, 512),
            (3, 4, 128, 169),
            (3, 8, 256, 203),
            (4, 16, 256, 168),
            (5, 32, 512, 148),
        ] {
            let config = PciExpressConfig {
                max_payload_bytes: payload,
                ..link(generation, lanes)
            };
            assert_eq!(ack_interval(&config), expected, "{config:?}");
        }
    }

    #[test]
    fn packets_have_the_throughput_of_pcie_bench() {
        let found = gbps(packets(&link(3, 8)));
        assert!((found - 57.88).abs() < 0.01, "{found}");
        let flits = gbps(packets(&link(6, 16)));
        assert!((flits - 1_024.0 * 236.0 / 256.0).abs() < 0.01, "{flits}");
    }
}
