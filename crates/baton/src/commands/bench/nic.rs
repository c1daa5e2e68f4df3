//! `baton bench nic`: runs the tests on one simulated NIC.

use super::table;
use crate::cli::BenchNicArgs;
use crate::config::parts::{self, Tested};
use crate::failure::Failure;
use crate::output::{JsonOutput, print_text};
use crate::runner::{Interrupt, for_all};
use baton_microbench::frame::LinkRate;
use baton_microbench::measure::{Measurement, Settings, measure};
use baton_microbench::rfc2544::{Rfc2544, rfc2544};
use baton_microbench::simulated::{SimulatedPort, SimulationError};
use baton_microbench::under_load::{UnderLoad, under_load};
use baton_microbench::{Port, Test};
use baton_sim::config::{HostConfig, NicHardware};
use serde::Serialize;

/// All measurements.
#[derive(Debug, Serialize)]
pub(super) struct Bench {
    /// The NIC under test.
    pub(super) nic: NicHardware,
    /// The NIC of its partners.
    pub(super) partner: NicHardware,
    /// The profile of all hosts.
    pub(super) host: HostConfig,
    /// Flows of datagrams of each sender.
    pub(super) flows: u16,
    /// The link between them.
    pub(super) link: LinkRate,
    /// The results, in the order of the tests.
    pub(super) tests: Vec<Measured>,
}

/// Measurements of one test.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    /// The search.
    pub(super) search: Measurement,
    /// Results of RFC 2544, if they were requested and the test counts frames.
    pub(super) rfc2544: Option<Rfc2544>,
    /// Latency at shares of the highest rate without loss, if it was requested and there is such a rate.
    pub(super) latency: Option<Vec<UnderLoad>>,
}

/// Runs the command.
pub(super) fn execute(arguments: &BenchNicArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let under_test = parts::tested(&Tested {
        nic: ("NIC", &arguments.nic),
        host: arguments.host.as_deref().map(|host| ("--host", host)),
        settings: &arguments.set,
    })?;
    let adapter = under_test.nic;
    let nic = adapter.hardware.as_deref().cloned().unwrap_or_default();
    let partner = match &arguments.partner {
        Some(partner) => parts::nic(("--partner", partner))?,
        None => nic.clone(),
    };
    let mut host = under_test.host;
    host.cores = arguments.cores.unwrap_or(u8::MAX).min(host.cores);
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let port = SimulatedPort {
        adapter: nic.adapter.then_some(&adapter),
        flows: arguments.flows,
        ..SimulatedPort::with_partner(&nic, &partner, &host)
    };
    let settings = Settings {
        algorithm: arguments.search.into(),
        ..Settings::simulated_on(port.link_rate())
    };
    let work = |test: &Test| measured(&port, *test, &settings, arguments);
    let found = for_all(
        &arguments.tests(),
        "tests",
        arguments.threads.get(),
        interrupt,
        work,
    )?;
    let tests = found.into_iter().collect::<Result<Vec<_>, _>>();
    let tests = tests.map_err(|error| Failure::Failed(error.to_string()))?;
    let bench = Bench {
        tests,
        nic: nic.clone(),
        partner: partner.clone(),
        host: host.clone(),
        link: port.link_rate(),
        flows: arguments.flows,
    };
    let text = table::text(&bench);
    match json {
        Some(json) => json.write(&bench, &text),
        None => print_text(&text),
    }
}

fn measured(
    port: &SimulatedPort<'_>,
    test: Test,
    settings: &Settings,
    arguments: &BenchNicArgs,
) -> Result<Measured, SimulationError> {
    let mut port = port.clone();
    let counts_frames = test.sends_datagrams() || test.receives_datagrams();
    let of_rfc = arguments.rfc2544 && counts_frames;
    let search = measure(&mut port, test, settings)?;
    let without_loss = search.goals.first().and_then(|result| result.lower);
    let most = without_loss.filter(|_| arguments.latency && counts_frames);
    Ok(Measured {
        search,
        latency: most
            .map(|rate| under_load(&mut port, test, settings, rate))
            .transpose()?,
        rfc2544: of_rfc
            .then(|| rfc2544(&mut port, test, settings))
            .transpose()?,
    })
}
