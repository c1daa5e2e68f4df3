//! The applications of the report on its NICs: Figures 1 and 3.

use crate::applications::{
    Drivers, Machines, RouterMeasurement, RouterSettings, RouterTraffic, WebMeasurement,
    WebSettings, measure_router, measure_web,
};
use crate::profile::{HostProfile, NicProfile};
use crate::simulated::SimulationError;
use baton_workload::Replay;
use std::collections::BTreeMap;

/// The NIC of the report whose driver does not run with its router.
const WITHOUT_ROUTER: &str = "Netgear";

/// A log that a web server's clients replay.
#[derive(Clone, Debug)]
pub struct WebLoad {
    /// Its name.
    pub name: String,
    /// What is replayed.
    pub replay: Replay,
}

/// NICs, machines and loads of the applications.
#[derive(Clone, Debug)]
pub struct ApplicationLaboratory {
    /// The NICs that are compared.
    pub nics: Vec<NicProfile>,
    /// The host of server and router.
    pub host: HostProfile,
    /// The NIC of all clients.
    pub client_nic: NicProfile,
    /// The host of all clients.
    pub client_host: HostProfile,
    /// What web servers answer.
    pub logs: Vec<WebLoad>,
    /// What routers forward.
    pub traces: Vec<RouterTraffic>,
    /// How web servers are measured.
    pub web: WebSettings,
    /// How routers are.
    pub router: RouterSettings,
}

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationPoint {
    /// A web server with a NIC answers a log, by their places.
    Web {
        /// The log.
        log: usize,
        /// The NIC.
        nic: usize,
    },
    /// A router with NICs of a kind forwards a trace, by their places.
    Router {
        /// How its drivers hear of frames.
        drivers: Drivers,
        /// The trace.
        trace: usize,
        /// The NIC.
        nic: usize,
    },
}

/// What was measured of one.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplicationMeasurement {
    /// Of a web server.
    Web(WebMeasurement),
    /// Of a router.
    Router(RouterMeasurement),
}

impl ApplicationMeasurement {
    /// Content in Mb/s, or thousand packets a second.
    pub fn value(&self) -> f64 {
        match self {
            Self::Web(web) => web.best.mbps(),
            Self::Router(router) => router.kpps,
        }
    }
}

impl ApplicationLaboratory {
    /// The six NICs of the report and its machines.
    ///
    /// # Panics
    /// Never: its profiles ship with the program.
    pub fn of_report(logs: Vec<WebLoad>, traces: Vec<RouterTraffic>) -> Self {
        let host = |name| HostProfile::shipped(name).expect("it ships with the program");
        let of_clients = NicProfile::shipped("nic-intel-desktop");
        Self {
            nics: NicProfile::of_report(),
            host: host("athlon-2600"),
            client_nic: of_clients.expect("it ships with the program"),
            client_host: host("athlon-2000"),
            logs,
            traces,
            web: WebSettings::default(),
            router: RouterSettings::default(),
        }
    }

    /// The NICs that a router can have.
    pub fn router_nics(&self) -> Vec<usize> {
        let can = |nic: &usize| self.nics[*nic].name != WITHOUT_ROUTER;
        (0..self.nics.len()).filter(can).collect()
    }

    /// Everything that is to be measured.
    pub fn points(&self) -> Vec<ApplicationPoint> {
        self.workloads().iter().flat_map(Workload::points).collect()
    }

    /// Measures a point.
    ///
    /// # Errors
    /// A profile describes what cannot be simulated.
    pub fn measure(
        &self,
        point: &ApplicationPoint,
    ) -> Result<ApplicationMeasurement, SimulationError> {
        let machines = |nic: usize| Machines {
            nic: &self.nics[nic],
            host: &self.host,
            client_nic: &self.client_nic,
            client_host: &self.client_host,
        };
        match *point {
            ApplicationPoint::Web { log, nic } => {
                let load = &self.logs[log].replay;
                measure_web(&machines(nic), load, &self.web).map(ApplicationMeasurement::Web)
            }
            ApplicationPoint::Router {
                drivers,
                trace,
                nic,
            } => {
                let traffic = &self.traces[trace];
                measure_router(&machines(nic), drivers, traffic, &self.router)
                    .map(ApplicationMeasurement::Router)
            }
        }
    }

    /// The workloads: web servers, then routers with interrupts, then those that poll.
    pub fn workloads(&self) -> Vec<Workload> {
        let web = self.logs.iter().enumerate().map(|(log, load)| Workload {
            name: load.name.clone(),
            of: WorkloadOf::Web { log },
            nics: (0..self.nics.len()).collect(),
        });
        let router = Drivers::ALL.into_iter().flat_map(|drivers| {
            let traces = self.traces.iter().enumerate();
            traces.map(move |(trace, traffic)| Workload {
                name: format!("{}, {}", traffic.name, drivers.name()),
                of: WorkloadOf::Router { drivers, trace },
                nics: self.router_nics(),
            })
        });
        web.chain(router).collect()
    }
}

/// A log or a trace on all NICs that can have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it is.
    pub of: WorkloadOf,
    /// The NICs, by their places.
    pub nics: Vec<usize>,
}

/// What a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadOf {
    /// A web server's log, by its place.
    Web {
        /// The log.
        log: usize,
    },
    /// A router's trace, by its place.
    Router {
        /// How its drivers hear of frames.
        drivers: Drivers,
        /// The trace.
        trace: usize,
    },
}

impl Workload {
    /// What is measured for it on the NIC of this place.
    pub fn point(&self, nic: usize) -> ApplicationPoint {
        match self.of {
            WorkloadOf::Web { log } => ApplicationPoint::Web { log, nic },
            WorkloadOf::Router { drivers, trace } => ApplicationPoint::Router {
                drivers,
                trace,
                nic,
            },
        }
    }

    /// What is measured for it.
    pub fn points(&self) -> Vec<ApplicationPoint> {
        self.nics.iter().map(|nic| self.point(*nic)).collect()
    }

    /// Whether it is a web server's.
    pub fn is_web(&self) -> bool {
        matches!(self.of, WorkloadOf::Web { .. })
    }
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicationResults(BTreeMap<ApplicationPoint, ApplicationMeasurement>);

impl ApplicationResults {
    /// Takes in what was measured.
    pub fn insert(&mut self, point: ApplicationPoint, measurement: ApplicationMeasurement) {
        self.0.insert(point, measurement);
    }

    /// What was measured of a point.
    ///
    /// # Panics
    /// When it was not.
    pub fn get(&self, point: &ApplicationPoint) -> &ApplicationMeasurement {
        self.0.get(point).expect("it was measured")
    }

    /// The values of a workload, by NIC.
    pub fn values(&self, workload: &Workload) -> Vec<f64> {
        let points = workload.points();
        points.iter().map(|point| self.get(point).value()).collect()
    }

    /// Connections that a web server opens a millisecond: the most over all logs, on the NIC of this place.
    pub fn connections_per_ms(&self, nic: usize) -> f64 {
        let of_nic = self
            .0
            .iter()
            .filter_map(|(point, measured)| match (point, measured) {
                (ApplicationPoint::Web { nic: of, .. }, ApplicationMeasurement::Web(web))
                    if *of == nic =>
                {
                    Some(web.best.connections_per_ms())
                }
                _ => None,
            });
        of_nic.fold(0.0, f64::max)
    }
}
