//! Figures 5 to 11 of "Isolating the Performance Impacts of Network Interface Cards through Microbenchmarks" (Rice University TR EE0401).
//!
//! The heights of the bars are not in the text of the report: what it says of them stands beside the simulated values.

mod figure;
mod text;

use super::{Context, Outcome, Reproduction, Row, Shown};
use crate::failure::Failure;
use crate::runner::{Interrupt, for_all};
use baton_microbench::measure::TrialLength;
use baton_microbench::report::{
    Bar, Laboratory, Partners, Point, Results, Series, Statement, Verdict, bars, pairs, statements,
};
use baton_report::{self as report, figure::Figure};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "nic-microbench",
    about: "ten microbenchmarks of six NICs, simulated with their drivers (Rice TR EE0401, Figures 5 to 11)",
    figure: true,
    run,
};

/// What was measured, and what follows from it.
struct Study {
    laboratory: Laboratory,
    results: Results,
    partners: Partners,
    bars: Vec<Bar>,
    statements: Vec<Statement>,
}

impl Study {
    /// Searches everything: first each NIC with each, which tells the best partners, then what is left of the figures.
    ///
    /// # Errors
    /// An interrupt, or a profile that cannot be simulated.
    fn run(laboratory: Laboratory, threads: usize, interrupt: &Interrupt) -> Result<Self, Failure> {
        let nics = laboratory.nics.len();
        let mut results = Results::default();
        let measure = |results: &mut Results, points: Vec<Point>| {
            let points = results.missing(points);
            let work = |point: &Point| laboratory.measure(point);
            let found = for_all(&points, "searches", threads, interrupt, work)?;
            for (point, measurement) in points.into_iter().zip(found) {
                let measurement =
                    measurement.map_err(|error| Failure::Failed(error.to_string()))?;
                results.insert(point, measurement);
            }
            Ok::<(), Failure>(())
        };
        measure(&mut results, pairs(nics))?;
        let partners = Partners::find(nics, &results);
        let bars = bars(nics, &partners);
        measure(&mut results, bars.iter().map(|bar| bar.point).collect())?;
        Ok(Self {
            statements: statements(&results, &partners),
            laboratory,
            results,
            partners,
            bars,
        })
    }

    fn rows(&self) -> Vec<Row> {
        let shown = |name| Shown {
            name,
            scale: report::Scale::Points,
        };
        let of_bar = |bar: &Bar| Row {
            config: self.laboratory.nics[bar.nic].name.clone(),
            metric: metric(bar.series),
            published: None,
            simulated: self.results.best(&bar.point),
            shown: shown(bar.series.name()),
        };
        let of_statement = |statement: &Statement| {
            let held = statement.parts.iter().filter(|part| part.holds).count();
            Row {
                config: statement.id.to_owned(),
                metric: "parts_that_hold_percent",
                published: Some(100.0),
                simulated: 100.0 * held as f64 / statement.parts.len() as f64,
                shown: shown(statement.says),
            }
        };
        let bars = self.bars.iter().map(of_bar);
        bars.chain(self.statements.iter().map(of_statement))
            .collect()
    }

    fn holding(&self) -> usize {
        let holds = |one: &&Statement| one.verdict == Verdict::Holds;
        self.statements.iter().filter(holds).count()
    }
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut laboratory = Laboratory::of_report();
    if let Some(frames) = context.measured {
        laboratory.settings.trials = TrialLength::of_frames(frames);
    }
    let study = Study::run(laboratory, context.threads, context.interrupt)?;
    Ok(Outcome {
        rows: study.rows(),
        text: text::text(&study),
        figure: Some(Figure::Panels(figure::panels(&study))),
    })
}

/// The name of a series in rows.
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
