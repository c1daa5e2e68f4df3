//! Figures 5 to 11 of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Rice University TR EE0401).
//!
//! The text of the report does not have the heights of the bars: its statements about them are shown next to the simulated values.

mod figure;
mod text;

pub(super) use text::statement_table as table_of_statements;

use super::{Context, Outcome, Reproduction, Row};
use crate::config::parts;
use crate::failure::Failure;
use crate::runner::{Interrupt, for_all};
use baton_microbench::Profiles;
use baton_microbench::measure::TrialLength;
use baton_microbench::report::{
    Bar, Laboratory, Partners, Point, Results, Series, Statement, Verdict, bars, pairs, statements,
};
use baton_report::figure::Figure;
use baton_sim::config::NicHardware;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "nic-microbench",
    about: "ten microbenchmarks of six NICs, simulated with their drivers (Rice TR EE0401, Figures 5 to 11)",
    figure: true,
    run,
};

/// The profiles that ship with the program.
pub(super) const PROFILES: Profiles = Profiles {
    nic: parts::shipped_nic,
    host: parts::shipped_host,
};

/// Measurements, and conclusions from them.
pub(super) struct Study {
    laboratory: Laboratory,
    pub(super) results: Results,
    pub(super) partners: Partners,
    bars: Vec<Bar>,
    statements: Vec<Statement>,
}

impl Study {
    /// Measures the report's NICs, with trials of the length that the user specifies.
    ///
    /// # Errors
    /// Fails if a profile cannot be simulated, or if the user interrupts.
    pub(super) fn of_report(context: &Context<'_>) -> Result<Self, Failure> {
        let mut laboratory = Laboratory::of_report(&PROFILES);
        if let Some(frames) = context.measured {
            laboratory.settings.trials = TrialLength::of_frames(frames);
        }
        Self::run(laboratory, context.threads, context.interrupt)
    }

    /// Searches for all rates: first of each pair of NICs, which determines the best partners, then of the other bars in the figures.
    ///
    /// # Errors
    /// Fails if a profile cannot be simulated, or if the user interrupts.
    fn run(laboratory: Laboratory, threads: usize, interrupt: &Interrupt) -> Result<Self, Failure> {
        let nics = laboratory.nics.len();
        let mut results = Results::default();
        let how = (threads, interrupt);
        measure_all(&laboratory, &mut results, pairs(nics), how)?;
        let partners = Partners::find(nics, &results);
        let bars = bars(nics, &partners);
        let of_bars = bars.iter().map(|bar| bar.point).collect();
        measure_all(&laboratory, &mut results, of_bars, how)?;
        Ok(Self {
            statements: statements(&results, &partners),
            laboratory,
            results,
            partners,
            bars,
        })
    }

    fn rows(&self) -> Vec<Row> {
        let of_bar = |bar: &Bar| {
            let name = &self.laboratory.nics[bar.nic].name;
            Row::simulated(name, metric(bar.series), self.results.best(&bar.point))
        };
        let bars = self.bars.iter().map(of_bar);
        bars.chain(self.statements.iter().map(statement_row))
            .collect()
    }

    fn holding(&self) -> usize {
        let holds = |one: &&Statement| one.verdict == Verdict::Holds;
        self.statements.iter().filter(holds).count()
    }
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let study = Study::of_report(context)?;
    Ok(Outcome {
        rows: super::of_code(study.rows()),
        text: text::text(&study),
        figure: Some(Figure::Groups(figure::groups(&study))),
    })
}

/// Searches for the rates of those `points` that have no result, on this many threads.
///
/// # Errors
/// Fails if a profile cannot be simulated, or if the user interrupts.
pub(super) fn measure_all(
    laboratory: &Laboratory,
    results: &mut Results,
    points: Vec<Point>,
    (threads, interrupt): (usize, &Interrupt),
) -> Result<(), Failure> {
    let points = results.missing(points);
    let work = |point: &Point| laboratory.measure(point);
    let found = for_all(&points, "searches", threads, interrupt, work)?;
    for (point, measurement) in points.into_iter().zip(found) {
        let measurement = measurement.map_err(|error| Failure::Failed(error.to_string()))?;
        results.insert(point, measurement);
    }
    Ok(())
}

/// Returns the NICs by number and name.
pub(super) fn names(nics: &[NicHardware]) -> Vec<String> {
    let numbered = (1..).zip(nics);
    numbered
        .map(|(number, nic)| format!("{number} {}", nic.name))
        .collect()
}

/// Returns a row with the share of a statement's parts that hold.
pub(super) fn statement_row(statement: &Statement) -> Row {
    let held = statement.parts.iter().filter(|part| part.holds).count();
    Row {
        config: statement.id.to_owned(),
        metric: "parts_that_hold_percent",
        published: Some(100.0),
        simulated: 100.0 * held as f64 / statement.parts.len() as f64,
    }
}

/// Returns the name of a series in rows.
fn metric(series: Series) -> &'static str {
    match series {
        Series::LargeSend => "figure_5_udp_send_1472_mbps",
        Series::LargeReceive => "figure_5_udp_receive_1472_mbps",
        Series::Tcp => "figure_5_tcp_mbps",
        Series::LargeSendBest => "figure_6_udp_send_1472_mbps",
        Series::LargeReceiveBest => "figure_6_udp_receive_1472_mbps",
        Series::TcpSendBest => "figure_6_tcp_send_mbps",
        Series::TcpReceiveBest => "figure_6_tcp_receive_mbps",
        Series::SmallSend => "figure_7_udp_send_18_mbps",
        Series::SmallReceive => "figure_7_udp_receive_18_mbps",
        Series::SmallSendBest => "figure_8_udp_send_18_mbps",
        Series::SmallReceiveBest => "figure_8_udp_receive_18_mbps",
        Series::LargeThreeWay => "figure_9_udp_three_way_1472_mbps",
        Series::SmallThreeWay => "figure_10_udp_three_way_18_mbps",
        Series::Connections => "figure_11_same_nic_connections_per_ms",
        Series::AcceptBest => "figure_11_accepted_connections_per_ms",
        Series::InitiateBest => "figure_11_initiated_connections_per_ms",
    }
}
