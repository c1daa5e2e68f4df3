//! Generated stand-ins for packet traces that are not available.

use super::{LeftOut, MOST_BYTES, PacketTrace, TracePacket};
use rand::distr::Distribution as _;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::net::Ipv4Addr;

/// Number of hosts at either end (assumed: the same as in the public excerpt of an ATM link).
const HOSTS: u32 = 1_048;

/// Exponent by which the frequency of hosts falls with their rank (assumed).
const POPULARITY: f64 = 1.0;

/// TCP's share of packets (the public excerpt: 88 %); the rest is UDP.
const TCP_SHARE: f64 = 0.88;

/// Initial times to live of common systems; packets have passed 1 to [`MOST_ROUTERS`] routers (assumed).
const FIRST_HOPS: [u8; 2] = [64, 128];
const MOST_ROUTERS: u8 = 24;

/// A stand-in for a trace of the router study of Rice TR EE0401 (Figures 3 and 4), which is not public. Sizes are those published for the
/// site, or *assumed*: "largely bimodal between small and full-sized packets, with a much smaller fraction of medium-sized packets".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StandIn {
    /// Advanced Network Services. Sizes are assumed.
    Adv,
    /// NASA Ames to MAE-West. Sizes are fitted to those that CAIDA published for the same site in May 1999: mean 413 bytes, standard
    /// deviation 509, percentiles 25, 50, 75 and 95 at 40, 93, 576 and 1500.
    Aix,
    /// University of Memphis. Sizes are assumed.
    Mem,
    /// Another link of the same kind: the laboratory (NLANR) that provided the report's traces had more. Sizes are those of a public
    /// excerpt of an ATM link of January 2000 that resembles one of them.
    Nlanr,
}

/// Ranges of packet lengths: the share of packets, and the smallest and the largest length in bytes; lengths are uniform within a range.
type Sizes = &'static [(f64, u16, u16)];

impl StandIn {
    /// All stand-ins.
    pub const ALL: [Self; 4] = [Self::Adv, Self::Aix, Self::Mem, Self::Nlanr];

    /// Returns the site of the original trace.
    pub const fn site(self) -> &'static str {
        match self {
            Self::Adv => "ADV",
            Self::Aix => "AIX",
            Self::Mem => "MEM",
            Self::Nlanr => "NLANR",
        }
    }

    /// Returns the name, which identifies the trace as a stand-in.
    pub fn name(self) -> String {
        format!("{} stand-in", self.site())
    }

    const fn sizes(self) -> Sizes {
        match self {
            Self::Adv => &[
                (0.45, 40, 40),
                (0.10, 41, 100),
                (0.10, 101, 1_399),
                (0.05, 1_400, 1_499),
                (0.30, MOST_BYTES, MOST_BYTES),
            ],
            Self::Aix => &[
                (0.30, 40, 40),
                (0.20, 41, 93),
                (0.245, 94, 575),
                (0.02, 576, 576),
                (0.126, 577, 1_499),
                (0.109, MOST_BYTES, MOST_BYTES),
            ],
            Self::Mem => &[
                (0.35, 40, 40),
                (0.08, 41, 100),
                (0.12, 101, 1_399),
                (0.05, 1_400, 1_499),
                (0.40, MOST_BYTES, MOST_BYTES),
            ],
            Self::Nlanr => &[
                (0.418, 40, 40),
                (0.053, 44, 44),
                (0.035, 52, 52),
                (0.099, 41, 64),
                (0.133, 65, 128),
                (0.056, 129, 551),
                (0.019, 552, 552),
                (0.019, 553, 575),
                (0.043, 576, 576),
                (0.019, 800, 800),
                (0.027, 577, 1_400),
                (0.004, 1_401, 1_499),
                (0.075, MOST_BYTES, MOST_BYTES),
            ],
        }
    }

    /// Generates `packets` packets. The same seed and number always give the same packets.
    ///
    /// # Panics
    /// If `packets` is 0.
    pub fn generate(self, seed: u64, packets: u32) -> PacketTrace {
        assert!(packets > 0, "a trace has at least one packet");
        let mut random = Pcg64::seed_from_u64(seed);
        let ranks = rand_distr::Zipf::new(f64::from(HOSTS), POPULARITY);
        let ranks = ranks.expect("the number of hosts and the exponent are positive");
        let host = |random: &mut Pcg64| ranks.sample(random) as u32;
        let packet = |_| TracePacket {
            len: length(self.sizes(), &mut random),
            src: address(host(&mut random)),
            dst: address(host(&mut random)),
            protocol: if random.random_bool(TCP_SHARE) { 6 } else { 17 },
            ttl: FIRST_HOPS[random.random_range(0..2)] - random.random_range(1..=MOST_ROUTERS),
        };
        PacketTrace {
            name: self.name(),
            packets: (0..packets).map(packet).collect(),
            left_out: LeftOut::default(),
        }
    }
}

fn length(sizes: Sizes, random: &mut Pcg64) -> u16 {
    let mut left: f64 = random.random();
    for &(share, least, most) in sizes {
        if left < share {
            return random.random_range(least..=most);
        }
        left -= share;
    }
    MOST_BYTES
}

/// Returns the address of the host of a rank: one per network, with networks in scrambled order.
fn address(rank: u32) -> Ipv4Addr {
    const FIRST: u32 = 11 << 24;
    // The multiplier is odd, so that ranks map to different networks, which are within the range that is assigned to sites.
    let network = rank.wrapping_mul(0x9e37_79b1) >> 12 & 0xf_ffff;
    Ipv4Addr::from(FIRST + (network << 8) + 1 + rank % 254)
}
