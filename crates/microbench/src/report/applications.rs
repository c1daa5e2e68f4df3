//! The applications of the report on its NICs: Figures 1 and 3.

use crate::Profiles;
use crate::applications::{
    Drivers, Machines, RouterMeasurement, RouterSettings, RouterTraffic, WebMeasurement,
    WebSettings, measure_router, measure_web,
};
use crate::simulated::SimulationError;
use baton_sim::config::{HostConfig, NicHardware};
use baton_workload::Replay;
use std::collections::BTreeMap;

/// The NIC of the report whose driver does not work with the report's router.
const WITHOUT_ROUTER: &str = "Netgear";

/// A log that a web server's clients replay.
#[derive(Clone, Debug)]
pub struct WebLoad {
    /// Name of the log.
    pub name: String,
    /// The requests to replay.
    pub replay: Replay,
}

/// NICs, machines and loads for the application experiments.
#[derive(Clone, Debug)]
pub struct ApplicationLaboratory {
    /// The NICs that are compared.
    pub nics: Vec<NicHardware>,
    /// The host of servers and routers.
    pub host: HostConfig,
    /// The NIC of all clients.
    pub client_nic: NicHardware,
    /// The host of all clients.
    pub client_host: HostConfig,
    /// Logs that web servers answer.
    pub logs: Vec<WebLoad>,
    /// Traces that routers forward.
    pub traces: Vec<RouterTraffic>,
    /// How web servers are measured.
    pub web: WebSettings,
    /// How routers are measured.
    pub router: RouterSettings,
}

/// One bar of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationPoint {
    /// A web server with a NIC answers a log.
    Web {
        /// Index of the log.
        log: usize,
        /// Index of the NIC.
        nic: usize,
    },
    /// A router with two NICs of the same kind forwards a trace.
    Router {
        /// How the router's drivers learn of frames.
        drivers: Drivers,
        /// Index of the trace.
        trace: usize,
        /// Index of the NIC.
        nic: usize,
    },
}

/// Measurement of one point.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplicationMeasurement {
    /// Measurement of a web server.
    Web(WebMeasurement),
    /// Measurement of a router.
    Router(RouterMeasurement),
}

impl ApplicationMeasurement {
    /// Returns the rate of content in Mb/s, or of packets in thousands per second.
    pub fn value(&self) -> f64 {
        match self {
            Self::Web(web) => web.best.mbps(),
            Self::Router(router) => router.kpps,
        }
    }
}

impl ApplicationLaboratory {
    /// Returns the six NICs and the machines of the report.
    ///
    /// # Panics
    /// Never: the profiles ship with the program.
    pub fn of_report(profiles: &Profiles, logs: Vec<WebLoad>, traces: Vec<RouterTraffic>) -> Self {
        Self {
            nics: profiles.nics_of_report(),
            host: (profiles.host)("athlon-2600"),
            client_nic: (profiles.nic)("nic-intel-desktop"),
            client_host: (profiles.host)("athlon-2000"),
            logs,
            traces,
            web: WebSettings::default(),
            router: RouterSettings::default(),
        }
    }

    /// Returns the indices of the NICs that can be used in a router.
    pub fn router_nics(&self) -> Vec<usize> {
        let can = |nic: &usize| self.nics[*nic].name != WITHOUT_ROUTER;
        (0..self.nics.len()).filter(can).collect()
    }

    /// Returns all points to measure.
    pub fn points(&self) -> Vec<ApplicationPoint> {
        self.workloads().iter().flat_map(Workload::points).collect()
    }

    /// Measures a point.
    ///
    /// # Errors
    /// A profile describes something that cannot be simulated.
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

    /// Returns the workloads: web servers, then routers with interrupts, then routers that poll.
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

/// A log or a trace, with all NICs that can be used for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Name of the log or trace.
    pub name: String,
    /// The log or trace.
    pub of: WorkloadOf,
    /// Indices of the NICs.
    pub nics: Vec<usize>,
}

/// The log or trace of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadOf {
    /// A web server's log.
    Web {
        /// Index of the log.
        log: usize,
    },
    /// A router's trace.
    Router {
        /// How the router's drivers learn of frames.
        drivers: Drivers,
        /// Index of the trace.
        trace: usize,
    },
}

impl Workload {
    /// Returns the point of this workload on the NIC of index `nic`.
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

    /// Returns all points of this workload.
    pub fn points(&self) -> Vec<ApplicationPoint> {
        self.nics.iter().map(|nic| self.point(*nic)).collect()
    }

    /// Returns whether the workload is that of a web server.
    pub fn is_web(&self) -> bool {
        matches!(self.of, WorkloadOf::Web { .. })
    }
}

/// All measurements, by point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicationResults(BTreeMap<ApplicationPoint, ApplicationMeasurement>);

impl ApplicationResults {
    /// Adds a measurement.
    pub fn insert(&mut self, point: ApplicationPoint, measurement: ApplicationMeasurement) {
        self.0.insert(point, measurement);
    }

    /// Returns the measurement of a point.
    ///
    /// # Panics
    /// When the point was not measured.
    pub fn get(&self, point: &ApplicationPoint) -> &ApplicationMeasurement {
        self.0.get(point).expect("the point was measured")
    }

    /// Returns the values of a workload, in the order of its NICs.
    pub fn values(&self, workload: &Workload) -> Vec<f64> {
        let points = workload.points();
        points.iter().map(|point| self.get(point).value()).collect()
    }

    /// Returns the most connections that a web server with the NIC of index `nic` opens per millisecond with any log.
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
