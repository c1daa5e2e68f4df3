//! Compares the PCI Express model with the closed formulas of pcie-bench (Neugebauer et al., SIGCOMM 2018, section 3): bytes of packets
//! each way per frame of each size, for NICs that handle descriptors, doorbells and interrupts differently.

use super::*;
use baton_bus::interconnect::{CreditConfig, PciExpressConfig};

/// Data rate of a link of generation 3 with 8 lanes in the paper's model, in Gb/s.
const LINK_GBPS: f64 = 57.88;

/// Overhead in bytes of packets with 64-bit addresses: framing, sequence number, check sequence, header.
const WRITE: f64 = 24.0;
const READ: f64 = 24.0;
const COMPLETION: f64 = 20.0;

/// Maximum number of bytes of a packet, and of a read.
const PAYLOAD: f64 = 256.0;
const REQUEST: f64 = 512.0;

const DESCRIPTOR: f64 = 16.0;
const REGISTER: f64 = 4.0;

/// The paper's three ways in which NIC and driver interact.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Each descriptor and each frame separately.
    Simple,
    /// Batches of descriptors, as with an Intel 82599 and Linux's driver.
    Kernel,
    /// Batches of descriptors, with a driver that polls and rings the doorbell once for 32 frames.
    Dpdk,
}

/// Bytes to the NIC and from it.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    to: f64,
    from: f64,
}

impl Bytes {
    /// Adds `what` once per `frames` frames.
    fn each(mut self, frames: f64, what: Self) -> Self {
        self.to += what.to / frames;
        self.from += what.from / frames;
        self
    }

    fn read(len: f64) -> Self {
        Self {
            to: (len / PAYLOAD).ceil() * COMPLETION + len,
            from: (len / REQUEST).ceil() * READ,
        }
    }

    fn written(len: f64) -> Self {
        let from = (len / PAYLOAD).ceil() * WRITE + len;
        Self { to: 0.0, from }
    }

    const BELL: Self = Self {
        to: REGISTER + WRITE,
        from: 0.0,
    };
    const ASK: Self = Self {
        to: READ,
        from: REGISTER + COMPLETION,
    };

    /// Returns the data rate in one direction, in Gb/s, for frames of `len` bytes.
    fn gbps(self, len: f64) -> f64 {
        LINK_GBPS * len / self.to.max(self.from)
    }
}

impl Kind {
    /// Returns the cost of a frame to send.
    fn send(self, len: f64) -> Bytes {
        let of_data = Bytes::default().each(1.0, Bytes::read(len));
        match self {
            Self::Simple => of_data
                .each(1.0, Bytes::BELL)
                .each(1.0, Bytes::read(DESCRIPTOR))
                .each(1.0, Bytes::written(REGISTER))
                .each(1.0, Bytes::ASK),
            Self::Kernel | Self::Dpdk => {
                let of_both = of_data
                    .each(40.0, Bytes::read(40.0 * DESCRIPTOR))
                    .each(8.0, Bytes::written(8.0 * DESCRIPTOR));
                match self {
                    Self::Dpdk => of_both.each(32.0, Bytes::BELL),
                    _ => of_both
                        .each(1.0, Bytes::BELL)
                        .each(32.0, Bytes::written(REGISTER))
                        .each(1.0, Bytes::ASK),
                }
            }
        }
    }

    /// Returns the cost of a received frame. The published program omits the request that reads a descriptor.
    fn receive(self, len: f64) -> Bytes {
        let of_all = Bytes::default()
            .each(1.0, Bytes::written(len))
            .each(1.0, Bytes::read(DESCRIPTOR))
            .each(1.0, Bytes::written(DESCRIPTOR));
        match self {
            Self::Simple => of_all
                .each(1.0, Bytes::BELL)
                .each(1.0, Bytes::written(REGISTER))
                .each(1.0, Bytes::ASK),
            Self::Kernel => of_all
                .each(32.0, Bytes::BELL)
                .each(32.0, Bytes::written(REGISTER))
                .each(8.0, Bytes::ASK),
            Self::Dpdk => of_all.each(32.0, Bytes::BELL),
        }
    }

    /// Returns a NIC of this kind, on a link that only its rate limits.
    fn nic(self) -> NicHardware {
        let link = PciExpressConfig {
            generation: 3,
            lanes: 8,
            tags: 15_360,
            credits: CreditConfig {
                posted_headers: 0,
                posted_data: 0,
                non_posted_headers: 0,
                ..CreditConfig::default()
            },
            credit_return_ns: 0,
            link_latency_ns: 0,
            read_latency_ns: 0,
            write_latency_ns: 0,
            register_read_latency_ns: 0,
            ..PciExpressConfig::default()
        };
        let mut nic = NicHardware {
            bus: InterconnectConfig::PciExpress(link),
            link: LinkRate { mbps: 400_000 },
            messages: true,
            ..NicHardware::default()
        };
        nic.memory.send_bytes = 1 << 20;
        nic.memory.receive_bytes = 1 << 20;
        nic.dma.frames = 1_024;
        let (rings, driver) = (&mut nic.descriptors, &mut nic.driver);
        driver.reads_cause = false;
        rings.held = 1_024;
        rings.receive_batch = Some(1);
        match self {
            Self::Simple => {
                rings.batch = 1;
                rings.written_back = Some(u32::MAX);
                (driver.send_reads, driver.receive_reads) = (Some(1), Some(1));
            }
            Self::Kernel => {
                (rings.batch, rings.written_back) = (40, Some(8));
                (driver.send_reads, driver.receive_reads) = (Some(1), Some(8));
            }
            Self::Dpdk => {
                (rings.batch, rings.written_back) = (40, Some(8));
                (driver.polls, driver.doorbell_frames) = (Some(32), 32);
            }
        }
        let frames = if self == Self::Simple { 1 } else { 32 };
        for rule in [&mut nic.send_interrupts, &mut nic.receive_interrupts] {
            rule.frames = Some(frames);
        }
        nic
    }
}

/// The paper's numbers for sending: frame length with check sequence, and Gb/s of data for the three kinds, computed with the published
/// program.
const PUBLISHED: [(u16, [f64; 3]); 5] = [
    (64, [20.67, 23.23, 35.30]),
    (128, [30.94, 33.62, 44.20]),
    (256, [40.52, 42.71, 50.23]),
    (512, [46.24, 47.62, 51.92]),
    (1_024, [49.70, 50.49, 52.79]),
];

#[test]
fn the_formulas_are_those_of_the_paper() {
    for (frame, numbers) in PUBLISHED {
        let len = f64::from(frame) - 4.0;
        let found = [Kind::Simple, Kind::Kernel, Kind::Dpdk].map(|kind| kind.send(len).gbps(len));
        for (found, expected) in found.into_iter().zip(numbers) {
            assert!(
                (found - expected).abs() < 0.02,
                "{frame}: {found} and {expected}"
            );
        }
    }
}

#[test]
fn simulated_nics_agree_with_the_formulas() {
    for kind in [Kind::Simple, Kind::Kernel, Kind::Dpdk] {
        let nic = kind.nic();
        for (test, len) in [
            (Test::UdpSend18, 60.0),
            (Test::UdpSend1472, 1_514.0),
            (Test::UdpReceive18, 60.0),
            (Test::UdpReceive1472, 1_514.0),
        ] {
            let host = fast_host();
            let expected = if test.sends_datagrams() {
                kind.send(len)
            } else {
                kind.receive(len)
            };
            let rate = LINK_GBPS * 1e9 / 8.0 / expected.to.max(expected.from);
            // Offer more than the NIC can handle. The partner's bus never limits.
            let partner = NicHardware {
                link: nic.link,
                ..NicHardware::default()
            };
            let mut port = SimulatedPort::with_partner(&nic, &partner, &host);
            let request = Request {
                test,
                load: Load::Rate(2.0 * rate),
                warm_up: Span::from_us(500),
                duration: Span::from_ms(1),
            };
            let trial = port.trial(&request).expect("it can be simulated");
            let found = trial.counted() as f64 / trial.seconds;
            let ratio = found / rate;
            let expected = match (kind, test) {
                // Under load, an interrupt finds more than one frame, and one register read covers all of them.
                (Kind::Simple, Test::UdpReceive18 | Test::UdpReceive1472) => 1.0..1.25,
                // The processor waits for each register read, and becomes the bottleneck.
                (Kind::Kernel, Test::UdpSend18) => 0.75..1.0,
                _ => 0.98..1.01,
            };
            let resource = match (kind, test) {
                (Kind::Kernel, Test::UdpSend18) | (Kind::Simple, Test::UdpReceive18) => {
                    Resource::Host
                }
                _ => Resource::Bus,
            };
            let case = format!("{kind:?} {test:?}: {ratio:.4}, {:?}", trial.full());
            assert!(expected.contains(&ratio), "{case}");
            assert!(is_full(&trial, Role::UnderTest, resource), "{case}");
        }
    }
}
