//! Generated stand-ins for the access logs of the report.

use baton_workload::generate::{ConnectionSpec, Distribution, Files, GeneratorSpec, LocalitySpec};
use baton_workload::{Log, Preset};

/// Number of requests of a generated log.
const REQUESTS: u32 = 40_000;

/// A stand-in for a log of the web study of Rice TR EE0401 (Figures 1 and 2). The stand-ins match what the report says about response
/// sizes: less than 3 % are over 200 KB; over 70 % (World Cup: less than half) are over 1460 bytes; and the size of the largest response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StandInLog {
    /// The log of a computer science department; its largest response is over 17 MB.
    Cs,
    /// The log of the World Cup of 1998; its largest response is almost 3 MB.
    WorldCup,
    /// NASA's log; its largest response is almost 7 MB.
    Nasa,
}

impl StandInLog {
    /// All stand-ins, in the order of Figure 1.
    pub const ALL: [Self; 3] = [Self::Cs, Self::WorldCup, Self::Nasa];

    /// Returns the name of the site whose log this one stands for.
    pub const fn site(self) -> &'static str {
        match self {
            Self::Cs => "CS",
            Self::WorldCup => "World Cup",
            Self::Nasa => "NASA",
        }
    }

    /// Returns the log's name, which says that it is a stand-in.
    pub fn name(self) -> String {
        format!("{} stand-in", self.site())
    }

    /// Generates the log. The same seed gives the same log.
    ///
    /// # Panics
    /// Never: the parameters are valid.
    pub fn generate(self, seed: u64) -> Log {
        let log = self.spec().generate(seed, REQUESTS);
        log.expect("the parameters are valid, which a test checks")
    }

    /// Returns the parameters of the generator. Except for the World Cup, everything that the type's description does not mention is
    /// *assumed*: the number of files and their popularity, the spread of sizes, the share of empty responses, pauses and connection
    /// lengths.
    fn spec(self) -> GeneratorSpec {
        match self {
            Self::Cs => spec(8_000, 4_800.0, 1.6, (0.02, 1.0), 1.75e7),
            Self::Nasa => spec(1_300, 4_800.0, 1.6, (0.02, 1.0), 6.9e6),
            Self::WorldCup => Preset::WorldCupLifetimes.spec(),
        }
    }
}

fn spec(
    count: u32,
    median: f64,
    sigma: f64,
    (tail_share, tail_exponent): (f64, f64),
    max: f64,
) -> GeneratorSpec {
    let size = Distribution::LogNormalPareto {
        median,
        sigma,
        tail_share,
        tail_exponent,
        max,
    };
    GeneratorSpec {
        locality: LocalitySpec::default(),
        connections: ConnectionSpec::log_normal(5.0, 1.4),
        files: Files::Zipf {
            count,
            exponent: 0.7,
            not_modified: 0.05,
            size,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections 2.3 and 5 of the report.
    #[test]
    fn sizes_are_as_the_report_says() {
        for (one, largest) in [
            (StandInLog::Cs, 17_000_000..18_000_000),
            (StandInLog::WorldCup, 2_500_000..3_000_001),
            (StandInLog::Nasa, 6_000_000..7_000_000),
        ] {
            for seed in [1, 2, 3] {
                let log = one.generate(seed);
                let share = |least: u64| {
                    let over = log.requests.iter().filter(|one| one.bytes > least);
                    over.count() as f64 / log.requests.len() as f64
                };
                assert!(share(200_000) < 0.03, "{one:?}: {}", share(200_000));
                let over_a_segment = share(1_460);
                match one {
                    StandInLog::WorldCup => assert!(over_a_segment < 0.5, "{over_a_segment}"),
                    _ => assert!(over_a_segment > 0.7, "{one:?}: {over_a_segment}"),
                }
                let most = log.requests.iter().map(|one| one.bytes).max();
                assert!(
                    most.is_some_and(|most| largest.contains(&most)),
                    "{one:?}, seed {seed}: {most:?}"
                );
            }
        }
    }
}
