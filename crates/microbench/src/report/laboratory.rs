//! The NICs that are compared, and the results of their tests.

use crate::Profiles;
use crate::measure::{Measurement, Settings, measure};
use crate::simulated::{SimulatedPort, SimulationError};
use crate::test::Test;
use baton_sim::config::{HostConfig, NicHardware};
use std::collections::BTreeMap;

/// The NIC under test and its partners, as indices into the list of compared NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pairing {
    /// The NIC under test.
    pub under_test: usize,
    /// The partner that sends to the NIC under test, or the only partner.
    pub partner: usize,
    /// The partner that the NIC under test sends to, in tests with two; otherwise equal to `partner`.
    pub receiver: usize,
}

impl Pairing {
    /// Returns the pairing of a NIC with a single partner.
    pub fn of(under_test: usize, partner: usize) -> Self {
        Self {
            under_test,
            partner,
            receiver: partner,
        }
    }
}

/// One test of one pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The test.
    pub test: Test,
    /// The NICs.
    pub pairing: Pairing,
}

impl Point {
    /// Returns the point of a test of a NIC with a partner.
    pub fn of(test: Test, under_test: usize, partner: usize) -> Self {
        let pairing = Pairing::of(under_test, partner);
        Self { test, pairing }
    }

    /// Returns the point whose measurement applies to this point. TCP results are the same for both ends: what one sends, the other
    /// receives.
    #[must_use]
    pub fn measured(self) -> Self {
        let Pairing {
            under_test,
            partner,
            ..
        } = self.pairing;
        match self.test {
            Test::TcpReceive => Self::of(Test::TcpSend, partner, under_test),
            Test::Accept => Self::of(Test::Initiate, partner, under_test),
            _ => self,
        }
    }
}

/// NICs, the hosts that they are in, and the parameters of the search.
#[derive(Clone, Debug)]
pub struct Laboratory {
    /// The NICs that are compared.
    pub nics: Vec<NicHardware>,
    /// The host of every machine.
    pub host: HostConfig,
    /// Parameters of the search for rates.
    pub settings: Settings,
}

impl Laboratory {
    /// Returns the six NICs of the report in the report's order, all in the same host.
    ///
    /// # Panics
    /// Never: the profiles ship with the program.
    pub fn of_report(profiles: &Profiles) -> Self {
        Self {
            nics: profiles.nics_of_report(),
            host: (profiles.host)("athlon-2000"),
            settings: Settings::simulated(),
        }
    }

    /// Searches for the best result of a point.
    ///
    /// # Errors
    /// A profile describes something that cannot be simulated.
    pub fn measure(&self, point: &Point) -> Result<Measurement, SimulationError> {
        let Pairing {
            under_test,
            partner,
            receiver,
        } = point.pairing;
        let [under_test, partner, receiver] =
            [under_test, partner, receiver].map(|nic| &self.nics[nic]);
        let mut port = SimulatedPort {
            receiver,
            ..SimulatedPort::with_partner(under_test, partner, &self.host)
        };
        measure(&mut port, point.test, &self.settings)
    }
}

/// All measurements, by point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results(BTreeMap<Point, Measurement>);

impl Results {
    /// Returns those of `points` that have no measurement yet, each once.
    pub fn missing(&self, points: impl IntoIterator<Item = Point>) -> Vec<Point> {
        let points = points.into_iter().map(Point::measured);
        let mut missing: Vec<Point> = points.filter(|point| !self.0.contains_key(point)).collect();
        missing.sort();
        missing.dedup();
        missing
    }

    /// Adds a measurement.
    pub fn insert(&mut self, point: Point, measurement: Measurement) {
        self.0.insert(point, measurement);
    }

    /// Returns the measurement of a point, or `None` if it was not measured.
    pub fn get(&self, point: &Point) -> Option<&Measurement> {
        self.0.get(&point.measured())
    }

    /// Returns the best result of a point, in its test's unit.
    ///
    /// # Panics
    /// When the point was not measured.
    pub fn best(&self, point: &Point) -> f64 {
        self.get(point).expect("the point was measured").best
    }

    /// Returns the number of trials made.
    pub fn trials(&self) -> usize {
        self.0.values().map(|one| one.trials.len()).sum()
    }
}
