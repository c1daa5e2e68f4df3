//! Built-in generators.

use schemars::JsonSchema;

use super::{ConnectionSpec, Distribution, Files, GeneratorSpec, LocalitySpec};

/// A generator that ships with the project.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Preset {
    /// A small log for a first look.
    Demo,
    /// A stand-in for the trace of Berkeley's CS department, which is not public.
    Berkeley,
    /// A stand-in for the IBM trace of the papers, which is not public.
    Ibm,
    /// A stand-in for the whole NASA trace, of which excerpts are public.
    Nasa,
    /// A stand-in for the trace of Rice's CS department, which is not public.
    Rice,
    /// A stand-in for the World Cup trace as the data caching paper used it.
    #[schemars(rename = "worldcup")]
    WorldCup,
    /// World Cup sizes and locality, with the published connection lifetimes, which the public excerpt does not have.
    #[schemars(rename = "worldcup-lifetimes")]
    WorldCupLifetimes,
    /// Requests to a node of a content delivery network. Nothing is fitted.
    Cdn,
}

/// Published properties of a trace, to which a preset was fitted (network interface data caching paper).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishedTrace {
    /// Mean response size: uncached content throughput divided by request rate.
    pub mean_bytes: f64,
    /// Share of content bytes that LRU caches of 4, 8 and 16 MB keep off the bus, with one cache on each of two network interfaces.
    pub hits_4_8_16_mib: [f64; 3],
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 8] = [
        Self::Demo,
        Self::Berkeley,
        Self::Ibm,
        Self::Nasa,
        Self::Rice,
        Self::WorldCup,
        Self::WorldCupLifetimes,
        Self::Cdn,
    ];

    /// Presets for the traces of the data caching paper, in its order.
    pub const DATA_CACHING: [Self; 5] = [
        Self::Berkeley,
        Self::Ibm,
        Self::Nasa,
        Self::Rice,
        Self::WorldCup,
    ];

    /// Returns the name used on the command line and in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Berkeley => "berkeley",
            Self::Ibm => "ibm",
            Self::Nasa => "nasa",
            Self::Rice => "rice",
            Self::WorldCup => "worldcup",
            Self::WorldCupLifetimes => "worldcup-lifetimes",
            Self::Cdn => "cdn",
        }
    }

    /// Finds the preset with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Returns the number of requests at which the preset has the intended properties: cache hits depend on it.
    pub const fn requests(self) -> u32 {
        match self {
            Self::Demo => 20_000,
            Self::Nasa => 60_000,
            Self::Rice => 150_000,
            Self::Ibm | Self::WorldCup | Self::WorldCupLifetimes | Self::Cdn => 200_000,
            Self::Berkeley => 500_000,
        }
    }

    /// Returns the published properties that the preset was fitted to, or `None` if there are none.
    pub const fn published(self) -> Option<PublishedTrace> {
        let (mean_bytes, hits_4_8_16_mib) = match self {
            // Throughput in Mb/s over requests/s: 161/828, 502/22777, 1198/2755, 1126/4361, 794/15190.
            Self::Berkeley => (24_306.0, [0.04, 0.06, 0.09]),
            Self::Ibm => (2755.0, [0.44, 0.52, 0.60]),
            Self::Nasa => (54_356.0, [0.13, 0.51, 0.70]),
            Self::Rice => (32_275.0, [0.27, 0.40, 0.51]),
            Self::WorldCup => (6534.0, [0.49, 0.66, 0.83]),
            Self::Demo | Self::WorldCupLifetimes | Self::Cdn => return None,
        };
        Some(PublishedTrace {
            mean_bytes,
            hits_4_8_16_mib,
        })
    }

    /// Returns the parameters.
    pub fn spec(self) -> GeneratorSpec {
        match self {
            Self::Demo => demo(),
            Self::Berkeley => berkeley(),
            Self::Ibm => ibm(),
            Self::Nasa => nasa(),
            Self::Rice => rice(),
            Self::WorldCup => world_cup(),
            Self::WorldCupLifetimes => world_cup_lifetimes(),
            Self::Cdn => cdn(),
        }
    }
}

/// Small pages and images on a small site; nothing is fitted.
fn demo() -> GeneratorSpec {
    GeneratorSpec {
        locality: locality(0.2, 200.0),
        connections: ConnectionSpec::log_normal(4.0, 1.3),
        files: Files::Zipf {
            count: 2000,
            exponent: 0.9,
            not_modified: 0.1,
            size: Distribution::LogNormalPareto {
                median: 2500.0,
                sigma: 1.3,
                tail_share: 0.05,
                tail_exponent: 1.3,
                max: 1e6,
            },
        },
    }
}

/// Fitted to published properties of the IBM trace. The data caching paper gives a mean response of 2755 bytes (502 Mb/s at 22777
/// requests/s) and LRU byte hits of 44, 52 and 60 % at 4, 8 and 16 MB, in one cache or in two. According to the handoff policies paper,
/// half of the connections have under 10 % of the packets, and a tenth has over 45 %. The rest (share of 304s, spread of sizes, pauses) is
/// assumed.
fn ibm() -> GeneratorSpec {
    GeneratorSpec {
        locality: LocalitySpec::default(),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: Files::Zipf {
            count: 40_000,
            exponent: 1.0,
            not_modified: 0.15,
            size: Distribution::LogNormalPareto {
                median: 1530.0,
                sigma: 1.2,
                tail_share: 0.05,
                tail_exponent: 1.4,
                max: 1e6,
            },
        },
    }
}

/// Fitted to the World Cup trace. Mean response 7.5 KB and 13 % of status 304 as in the public excerpt of day 6; LRU byte hits of 49, 66
/// and 83 % at 4, 8 and 16 MB as published for the whole trace (data caching paper); lifetimes as published (handoff policies paper),
/// because connections are cut short in the excerpt, which has a sixth of a day's requests.
fn world_cup_lifetimes() -> GeneratorSpec {
    GeneratorSpec {
        locality: locality(0.38, 330.0),
        connections: ConnectionSpec::log_normal(6.0, 1.05),
        files: Files::Zipf {
            count: 2300,
            exponent: 0.8,
            not_modified: 0.13,
            size: Distribution::LogNormalPareto {
                median: 1800.0,
                sigma: 1.75,
                tail_share: 0.02,
                tail_exponent: 1.1,
                max: 3e6,
            },
        },
    }
}

/// Fitted to [`Preset::published`] of the Berkeley trace by a random search over share and gap of bursts and the Zipf exponent. Assumed:
/// 65,000 files of 1.7 GB, more than fits in 2 GB of main memory next to everything else, so that the disks are needed ("large working
/// set": paper, section 3); spread and tail of sizes; the share of 304s; connections as in the other presets. As with NASA, hits come from
/// bursts, because popularity alone gives too few: LFU does worse than published.
fn berkeley() -> GeneratorSpec {
    GeneratorSpec {
        locality: bursts(0.56, 1414.0, 2.0),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: zipf(
            65_000,
            0.413,
            0.05,
            Distribution::LogNormalPareto {
                median: 5366.0,
                sigma: 1.6,
                tail_share: 0.03,
                tail_exponent: 1.2,
                max: 2e7,
            },
        ),
    }
}

/// Fitted to [`Preset::published`] of the NASA trace by a random search over all parameters of locality and files. The steep rise between 4
/// and 8 MB comes from files that are requested in bursts and from a few files of some megabytes each. Recency is therefore a better
/// predictor than frequency here: LFU does worse than published ("slightly better" than LRU). Assumed: the share of 304s; connections as in
/// the other presets.
fn nasa() -> GeneratorSpec {
    GeneratorSpec {
        locality: bursts(0.853, 100.0, 1.075),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: zipf(
            1316,
            0.1,
            0.05,
            Distribution::LogNormalPareto {
                median: 1443.5,
                sigma: 1.944,
                tail_share: 0.0489,
                tail_exponent: 0.42,
                max: 5.275e6,
            },
        ),
    }
}

/// Fitted to [`Preset::published`] of the Rice trace by a random search over all parameters of locality and files. Assumed: the share of
/// 304s; connections as in the other presets.
fn rice() -> GeneratorSpec {
    GeneratorSpec {
        locality: bursts(0.167, 366.0, 1.174),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: zipf(
            2446,
            0.777,
            0.05,
            Distribution::LogNormalPareto {
                median: 22_800.0,
                sigma: 0.9,
                tail_share: 0.005,
                tail_exponent: 1.576,
                max: 9.7e6,
            },
        ),
    }
}

/// Fitted to [`Preset::published`] of the World Cup trace by a random search over all parameters of locality and files, such that LFU does
/// about as well as LRU, as published. 13 % of status 304 and about as many files as in the public excerpt of day 6. Assumed: connections
/// as in the other presets.
fn world_cup() -> GeneratorSpec {
    GeneratorSpec {
        locality: bursts(0.294, 634.0, 1.135),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: zipf(
            2855,
            0.802,
            0.13,
            Distribution::LogNormalPareto {
                median: 1655.0,
                sigma: 2.086,
                tail_share: 0.0617,
                tail_exponent: 1.296,
                max: 6.5e4,
            },
        ),
    }
}

/// All values are assumed, within the range of published measurements of content delivery networks. Objects have from under a kilobyte to
/// 64 MB, half of them under 50 KB, 190 KB on average. Popularity follows Zipf's law with exponent 0.9 (Breslau et al., INFOCOM 1999: 0.64
/// to 0.83 at proxies; later measurements of delivery networks: 0.8 to 1.0). About half of the requested objects are requested once (Maggs
/// and Sitaraman, Computer Communication Review 2015: three quarters at Akamai). There are no bursts beyond popularity and no 304s, because
/// the clients' own caches absorb them.
fn cdn() -> GeneratorSpec {
    GeneratorSpec {
        locality: LocalitySpec::default(),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: zipf(
            100_000,
            0.9,
            0.0,
            Distribution::LogNormalPareto {
                median: 50_000.0,
                sigma: 1.5,
                tail_share: 0.05,
                tail_exponent: 1.1,
                max: 64e6,
            },
        ),
    }
}

const fn zipf(count: u32, exponent: f64, not_modified: f64, size: Distribution) -> Files {
    Files::Zipf {
        count,
        exponent,
        not_modified,
        size,
    }
}

/// Returns bursts with the spread of the papers' older presets.
const fn locality(burst_share: f64, median_gap: f64) -> LocalitySpec {
    bursts(burst_share, median_gap, 1.4)
}

const fn bursts(burst_share: f64, median_gap: f64, sigma: f64) -> LocalitySpec {
    LocalitySpec {
        burst_share,
        gap: Distribution::LogNormal {
            median: median_gap,
            sigma,
            max: 200_000.0,
        },
    }
}
