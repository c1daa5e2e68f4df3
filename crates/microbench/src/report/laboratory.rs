//! NICs that are compared, and what was measured of them.

use crate::measure::{Measurement, Settings, measure};
use crate::profile::{HostProfile, NicProfile};
use crate::simulated::{SimulatedPort, SimulationError};
use crate::test::Test;
use std::collections::BTreeMap;

/// The NIC under test and its partners, by their places among those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pairing {
    /// The NIC under test.
    pub under_test: usize,
    /// The partner that sends to it, or the only one.
    pub partner: usize,
    /// The partner that it sends to where there are two; the same as `partner` elsewhere.
    pub receiver: usize,
}

impl Pairing {
    /// A NIC with a partner.
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
    /// A test of a NIC with a partner.
    pub fn of(test: Test, under_test: usize, partner: usize) -> Self {
        let pairing = Pairing::of(under_test, partner);
        Self { test, pairing }
    }

    /// The point that is measured for this one. TCP's data and connections are the same for both ends: what one sends the other receives.
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

/// NICs on hosts of one kind, with the way of searching.
#[derive(Clone, Debug)]
pub struct Laboratory {
    /// The NICs that are compared.
    pub nics: Vec<NicProfile>,
    /// All hosts.
    pub host: HostProfile,
    /// How rates are searched.
    pub settings: Settings,
}

impl Laboratory {
    /// The six NICs of the report, in its order, on its hosts.
    ///
    /// # Panics
    /// Never: its profiles ship with the program.
    pub fn of_report() -> Self {
        let host = HostProfile::shipped("athlon-2000");
        Self {
            nics: NicProfile::of_report(),
            host: host.expect("it ships with the program"),
            settings: Settings::simulated(),
        }
    }

    /// Searches the best result of a point.
    ///
    /// # Errors
    /// A profile describes what cannot be simulated.
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

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results(BTreeMap<Point, Measurement>);

impl Results {
    /// Of `points`, those that are to be measured: each once, and none that was.
    pub fn missing(&self, points: impl IntoIterator<Item = Point>) -> Vec<Point> {
        let points = points.into_iter().map(Point::measured);
        let mut missing: Vec<Point> = points.filter(|point| !self.0.contains_key(point)).collect();
        missing.sort();
        missing.dedup();
        missing
    }

    /// Takes in what was measured.
    pub fn insert(&mut self, point: Point, measurement: Measurement) {
        self.0.insert(point, measurement);
    }

    /// What was measured of a point, if it was.
    pub fn get(&self, point: &Point) -> Option<&Measurement> {
        self.0.get(&point.measured())
    }

    /// The best result of a point that was measured, in its test's unit.
    ///
    /// # Panics
    /// When it was not.
    pub fn best(&self, point: &Point) -> f64 {
        self.get(point).expect("it was measured").best
    }

    /// Trials that were made.
    pub fn trials(&self) -> usize {
        self.0.values().map(|one| one.trials.len()).sum()
    }
}
