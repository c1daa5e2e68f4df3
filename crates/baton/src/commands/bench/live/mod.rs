//! `baton bench nic` on an interface, and `baton bench reflect`.

mod choice;
mod csv;
mod found;
mod reflect;
mod report;
mod session;
mod table;

pub(super) use choice::{Choice, choose};
pub(super) use reflect::execute as reflect;

use super::table::unit;
use crate::cli::{BenchNicArgs, LiveBenchArgs};
use crate::failure::Failure;
use crate::output::{JsonOutput, Pending, print_text};
use crate::runner::Interrupt;
use baton_microbench::measure::{Measurement, Settings, measure};
use baton_microbench::rfc2544::rfc2544;
use baton_microbench::under_load::under_load;
use baton_microbench::{Load, Port, Request, Test, Trial};
use baton_tester::{Tester, TesterError};
use baton_wire::Span;
use choice::Partner;
use found::{Method, TestFound};

/// Warm-up in which caches are filled before frames are counted, and windows grow before segments are counted. Never longer than a trial.
const WARM_UP: Span = Span::from_ms(100);

/// Runs the tests.
pub(super) fn execute(
    arguments: &BenchNicArgs,
    partner: &Partner,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let live = &arguments.live;
    let tests = arguments.tests();
    check(live, &tests)?;
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let pending = |flag, path: &Option<std::path::PathBuf>| {
        path.as_deref()
            .map(|path| Pending::new(flag, path))
            .transpose()
    };
    let csv = pending("--csv", &live.csv)?;
    let report = pending("--report", &live.report)?;
    let found = session::run(arguments, partner, &tests, interrupt, |tester| {
        tests
            .iter()
            .map(|test| of_test(tester, *test, arguments))
            .collect()
    })?;
    let text = table::text(&found);
    // If a file cannot be written, the table is shown nevertheless, so that the results are not lost.
    let to_csv = csv.map(|csv| csv.write(csv::text(&found).as_bytes()));
    let to_report = report.map(|report| report.write(report::text(&found).as_bytes()));
    match json {
        Some(json) => json.write(&found, &text)?,
        None => print_text(&text)?,
    }
    to_csv.into_iter().chain(to_report).collect()
}

/// Refuses options that exclude each other.
fn check(live: &LiveBenchArgs, tests: &[Test]) -> Result<(), Failure> {
    let with_connections = tests.iter().find(|test| test.has_connections());
    match with_connections {
        Some(test) if live.rate.is_some() => Err(Failure::BadInput(format!(
            "--rate: {} varies the number of connections, not a rate; expected no --rate, or other tests with --test",
            test.name()
        ))),
        _ => Ok(()),
    }
}

fn of_test(
    tester: &mut Tester<'_>,
    test: Test,
    arguments: &BenchNicArgs,
) -> Result<TestFound, TesterError> {
    let method = Method::of(arguments);
    let settings = Settings {
        algorithm: arguments.search.into(),
        ..Settings::live(method.trials, method.warm_up(), method.trial())
    };
    let search = match arguments.live.rate {
        Some(rate) => at_rate(tester, test, rate, &method)?,
        None => measure(tester, test, &settings)?,
    };
    let details = tester.take_details();
    let counts_frames = test.sends_datagrams() || test.receives_datagrams();
    let rfc2544 = match arguments.rfc2544 && counts_frames {
        true => Some(rfc2544(tester, test, &settings)?),
        false => None,
    };
    let without_loss = search.goals.first().and_then(|result| result.lower);
    let latency = match without_loss.filter(|_| arguments.latency && counts_frames) {
        Some(rate) => Some(under_load(tester, test, &settings, rate)?),
        None => None,
    };
    // Discards the details of the additional trials, which are not reported one by one.
    tester.take_details();
    Ok(TestFound {
        search,
        rfc2544,
        latency,
        details,
    })
}

/// Runs all trials at one rate.
fn at_rate(
    tester: &mut Tester<'_>,
    test: Test,
    rate: f64,
    method: &Method,
) -> Result<Measurement, TesterError> {
    let request = Request {
        test,
        load: Load::Rate(rate),
        warm_up: method.warm_up(),
        duration: method.trial(),
    };
    let trials: Result<Vec<Trial>, _> =
        (0..method.trials).map(|_| tester.trial(&request)).collect();
    let trials = trials?;
    let best = (0..trials.len()).max_by(|a, b| trials[*a].result().total_cmp(&trials[*b].result()));
    let best_trial = best.unwrap_or(0);
    Ok(Measurement {
        test,
        best: trials[best_trial].result(),
        best_trial,
        goals: Vec::new(),
        trials,
    })
}

/// Returns a short text about a finished trial, shown while other trials are running.
fn told(trial: &Trial) -> String {
    format!(
        "{}: {:.1} {}",
        trial.test.name(),
        trial.result(),
        unit(trial.test)
    )
}

impl From<TesterError> for Failure {
    fn from(error: TesterError) -> Self {
        match error {
            TesterError::BadInput(message) => Self::BadInput(message),
            TesterError::Interrupted => Self::Interrupted,
            TesterError::Failed(message) => Self::Failed(message),
        }
    }
}
