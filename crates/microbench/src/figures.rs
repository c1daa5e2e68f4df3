//! The experiments of the report: Figures 5 to 11, on simulated NICs.

use crate::measure::{Measurement, Settings, measure};
use crate::profile::{HostProfile, NicProfile};
use crate::simulated::{SimulatedPort, SimulationError};
use crate::test::Test;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A pair of NICs, by their places among those that are compared: the one under test, and its partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pairing {
    /// The NIC under test.
    pub under_test: usize,
    /// The partner that sends to it, or the only one.
    pub partner: usize,
    /// The partner that it sends to where there are two.
    pub receiver: usize,
}

/// One test of one pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// The test.
    pub test: Test,
    /// The NICs.
    pub pairing: Pairing,
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
    /// Threads that search.
    pub threads: usize,
}

impl Laboratory {
    /// Searches each point. `done` is told after each; results come in the order of the points and do not depend on the threads.
    ///
    /// # Errors
    /// A profile describes what cannot be simulated.
    pub fn search(
        &self,
        points: &[Point],
        done: &(dyn Fn(&Point) + Sync),
    ) -> Result<Vec<Measurement>, SimulationError> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![None; points.len()]);
        let work = || {
            while let Some(place) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|place| *place < points.len())
            {
                let found = self.point(&points[place]);
                results.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(found);
                done(&points[place]);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results
            .into_iter()
            .map(|found| found.expect("each point was searched"))
            .collect()
    }

    fn point(&self, point: &Point) -> Result<Measurement, SimulationError> {
        let Pairing {
            under_test,
            partner,
            receiver,
        } = point.pairing;
        let mut port = SimulatedPort {
            under_test: &self.nics[under_test],
            partner: &self.nics[partner],
            receiver: &self.nics[receiver],
            host: &self.host,
        };
        measure(&mut port, point.test, &self.settings)
    }
}
