//! Ready-made generators.

use super::{ConnectionSpec, Distribution, Files, GeneratorSpec, LocalitySpec};

/// A generator that ships with the project.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// A small log for a first look.
    Demo,
    /// A stand-in for the IBM trace of the papers, which is not public.
    Ibm,
    /// World Cup sizes and locality, with the published connection lifetimes, which the public excerpt does not have.
    WorldCupLifetimes,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 3] = [Self::Demo, Self::Ibm, Self::WorldCupLifetimes];

    /// The name used on the command line and in experiment files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Ibm => "ibm",
            Self::WorldCupLifetimes => "worldcup-lifetimes",
        }
    }

    /// The preset of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// The number of requests at which the preset has the properties it was made for: cache hits depend on it.
    pub const fn requests(self) -> u32 {
        match self {
            Self::Demo => 20_000,
            Self::Ibm | Self::WorldCupLifetimes => 200_000,
        }
    }

    /// The parameters.
    pub fn spec(self) -> GeneratorSpec {
        match self {
            Self::Demo => demo(),
            Self::Ibm => ibm(),
            Self::WorldCupLifetimes => world_cup_lifetimes(),
        }
    }
}

/// Small pages and images on a small site; nothing is fitted.
fn demo() -> GeneratorSpec {
    GeneratorSpec {
        locality: locality(0.2, 200.0),
        connections: connections(4.0, 1.3),
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

/// Fitted to what is published of the IBM trace. Mean response 2755 bytes (502 Mb/s at 22777 requests/s) and LRU byte
/// hits of 44, 52 and 60 % at 4, 8 and 16 MB: data caching paper. Half of the connections with under 10 % of the
/// packets, a tenth with over 45 %: handoff policies paper. The rest (share of 304s, spread of sizes, pauses) is
/// assumed.
fn ibm() -> GeneratorSpec {
    GeneratorSpec {
        locality: LocalitySpec::default(),
        connections: connections(5.0, 1.4),
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

/// Fitted to the World Cup trace. Mean response 7.5 KB and 13 % of status 304 as in the public excerpt of day 6; LRU
/// byte hits of 49, 66 and 83 % at 4, 8 and 16 MB as published for the whole trace (data caching paper); lifetimes as
/// published (handoff policies paper), where the excerpt, a sixth of a day's requests, has cut connections short.
fn world_cup_lifetimes() -> GeneratorSpec {
    GeneratorSpec {
        locality: locality(0.38, 330.0),
        connections: connections(6.0, 1.05),
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

const fn locality(burst_share: f64, median_gap: f64) -> LocalitySpec {
    LocalitySpec {
        burst_share,
        gap: Distribution::LogNormal {
            median: median_gap,
            sigma: 1.4,
            max: 200_000.0,
        },
    }
}

/// Connections with log-normally many requests. Pauses and rate only decide how many clients there are at a time in
/// the log; a replay knows neither.
const fn connections(median: f64, sigma: f64) -> ConnectionSpec {
    ConnectionSpec {
        requests: Distribution::LogNormal {
            median,
            sigma,
            max: 500.0,
        },
        pause_s: Distribution::LogNormal {
            median: 1.0,
            sigma: 1.2,
            max: 13.0,
        },
        per_client: 2.0,
        requests_per_s: 50.0,
    }
}
