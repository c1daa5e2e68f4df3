//! Figures 1 and 3 of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Rice University TR EE0401): a
//! web server and a router on each NIC.
//!
//! Nothing is fitted to the report's statements about them: all values are predictions.

mod figure;
mod loads;
mod text;

use super::microbench::{PROFILES, measure_all, statement_row, table_of_statements};
use super::{Context, Outcome, Reproduction, Row};
use crate::failure::Failure;
use crate::runner::for_all;
use baton_microbench::Test;
use baton_microbench::measure::TrialLength;
use baton_microbench::report::{
    ApplicationLaboratory, ApplicationMeasurement, ApplicationResults, Laboratory, Point, Results,
    Statement, Workload, application_statements,
};
use baton_report::figure::Figure;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "nic-applications",
    about: "a web server and an IP router on six NICs, simulated; predictions (Rice TR EE0401, Figures 1 and 3)",
    figure: true,
    run,
};

/// The measurements of applications.
pub(super) struct Study {
    pub(super) laboratory: ApplicationLaboratory,
    pub(super) results: ApplicationResults,
}

impl Study {
    /// Measures all logs and traces on all NICs.
    ///
    /// # Errors
    /// Fails on bad input, if a profile cannot be simulated, or if the user interrupts.
    pub(super) fn run(context: &Context<'_>) -> Result<Self, Failure> {
        let (logs, traces) = (loads::logs(context)?, loads::traces(context)?);
        let mut laboratory = ApplicationLaboratory::of_report(&PROFILES, logs, traces);
        if let Some(packets) = context.measured {
            laboratory.router.trials = TrialLength::of_frames(packets);
            laboratory.web.responses = packets.max(1);
            laboratory.web.warm_up = packets / 4;
        }
        let points = laboratory.points();
        let work = |point: &_| laboratory.measure(point);
        let found = for_all(
            &points,
            "measurements",
            context.threads,
            context.interrupt,
            work,
        )?;
        let mut results = ApplicationResults::default();
        for (point, measurement) in points.into_iter().zip(found) {
            let measurement = measurement.map_err(|error| Failure::Failed(error.to_string()))?;
            results.insert(point, measurement);
        }
        Ok(Self {
            laboratory,
            results,
        })
    }

    /// Returns the rows of a workload: configuration, metric and value.
    fn rows(&self, workload: &Workload) -> Vec<Row> {
        let of_nic = |nic: &usize| {
            let config = format!("{}, {}", self.laboratory.nics[*nic].name, workload.name);
            let row = |(metric, value)| Row::simulated(config.clone(), metric, value);
            match self.results.get(&workload.point(*nic)) {
                ApplicationMeasurement::Web(web) => {
                    let best = &web.best;
                    let values = [
                        ("figure_1_content_mbps", best.mbps()),
                        ("requests_per_s", best.requests_per_s()),
                        ("connections_per_ms", best.connections_per_ms()),
                        ("users", best.users.into()),
                    ];
                    values.map(row).to_vec()
                }
                ApplicationMeasurement::Router(router) => {
                    let values = [
                        ("figure_3_kpps", router.kpps),
                        ("kpps_with_half_a_percent_lost", router.kpps_with_loss),
                    ];
                    values.map(row).to_vec()
                }
            }
        };
        workload.nics.iter().flat_map(of_nic).collect()
    }
}

/// Returns, for each NIC, the connections that it accepts in a millisecond with the partner from which it accepts most.
fn accepted(context: &Context<'_>, laboratory: &Laboratory) -> Result<Vec<f64>, Failure> {
    let nics = laboratory.nics.len();
    let with_each = |nic| (0..nics).map(move |partner| Point::of(Test::Accept, nic, partner));
    let mut results = Results::default();
    let all = (0..nics).flat_map(with_each).collect();
    measure_all(
        laboratory,
        &mut results,
        all,
        (context.threads, context.interrupt),
    )?;
    let best = |nic| with_each(nic).map(|point| results.best(&point));
    Ok((0..nics).map(|nic| best(nic).fold(0.0, f64::max)).collect())
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut laboratory = Laboratory::of_report(&PROFILES);
    if let Some(frames) = context.measured {
        laboratory.settings.trials = TrialLength::of_frames(frames);
    }
    // Files are read first, so that bad input is refused immediately.
    let study = Study::run(context)?;
    let accepted = accepted(context, &laboratory)?;
    let statements: Vec<Statement> =
        application_statements(&study.laboratory, &study.results, &accepted);
    let workloads = study.laboratory.workloads();
    let mut rows: Vec<Row> = workloads.iter().flat_map(|one| study.rows(one)).collect();
    rows.extend(statements.iter().map(statement_row));
    let mut text = text::text(&study);
    text.push_str(&table_of_statements(&statements));
    text.push_str(&text::note(&study));
    Ok(Outcome {
        rows: super::of_code(rows),
        text,
        figure: Some(Figure::Groups(figure::groups(&study))),
    })
}
