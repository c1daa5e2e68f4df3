//! The figure of a study.

use crate::config::FigurePlan;
use crate::failure::Failure;
use baton_report::figure::{Line, Panel, Panels};
use baton_stats::Estimate;
use baton_study::table::{Cell, metrics};
use baton_study::{Head, Store, Study, StudyRun};

/// What is drawn of a run.
struct Drawn {
    /// Where it stands on the horizontal axis.
    x: f64,
    /// Each of the figure's metrics, with the run's own interval.
    y: Vec<Option<Estimate>>,
    /// Whether it was not steady.
    is_doubtful: bool,
}

/// Draws metrics over a key, from all runs of a study that have been done: means over the seeds with their 95 % intervals, of one seed
/// with those of the run.
///
/// # Errors
/// Results cannot be read.
pub fn of(figure: &FigurePlan, store: &Store, study: &Study) -> Result<Panels, Failure> {
    let column = |path: &String| study.columns.iter().position(|column| column.path == *path);
    let x = column(&figure.x);
    let series: Vec<usize> = figure.series.iter().filter_map(column).collect();
    // By order of first appearance, as in the study.
    let mut lines: Vec<(String, Vec<Drawn>)> = Vec::new();
    for run in study.runs.iter().filter(|run| store.has(run.key)) {
        let Some(x) = x.and_then(|x| run.values[x].as_number()) else {
            continue;
        };
        let drawn = Drawn::of(x, figure, &store.head(run.key)?);
        let name = name(study, &series, run);
        match lines.iter_mut().find(|line| line.0 == name) {
            Some((_, runs)) => runs.push(drawn),
            None => lines.push((name, vec![drawn])),
        }
    }
    for (_, runs) in &mut lines {
        runs.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let panel = |(number, metric): (usize, &&metrics::Metric)| Panel {
        y: metric.name.to_owned(),
        log_y: figure.log_y,
        lines: lines
            .iter()
            .map(|(name, runs)| line(name, runs, number))
            .collect(),
    };
    Ok(Panels {
        title: figure.title.clone(),
        x: figure.x_label.clone(),
        log_x: figure.log_x,
        panels: figure.y.iter().enumerate().map(panel).collect(),
    })
}

impl Drawn {
    fn of(x: f64, figure: &FigurePlan, head: &Head) -> Self {
        let value = |name: &str| head.metrics.get(name).and_then(Cell::as_number);
        let estimate = |metric: &&metrics::Metric| {
            let half_width = metrics::interval_of(metric.name);
            Some(Estimate {
                mean: value(metric.name)?,
                half_width: half_width.and_then(|name| value(&name)),
            })
        };
        Self {
            x,
            y: figure.y.iter().map(estimate).collect(),
            is_doubtful: matches!(head.metrics.get(metrics::NOT_STEADY), Some(Cell::Text(_))),
        }
    }
}

/// What tells a line from the others.
fn name(study: &Study, series: &[usize], run: &StudyRun) -> String {
    let keys = series.iter();
    let keys =
        keys.map(|&number| format!("{} = {}", study.columns[number].path, run.values[number]));
    let parts: Vec<String> = run.variant.iter().cloned().chain(keys).collect();
    match parts.is_empty() {
        true => study.name.clone(),
        false => parts.join(", "),
    }
}

fn line(name: &str, runs: &[Drawn], metric: usize) -> Line {
    let mut line = Line {
        name: name.to_owned(),
        dashed: false,
        points: Vec::new(),
        intervals: Vec::new(),
        doubtful: Vec::new(),
    };
    for seeds in runs.chunk_by(|one, other| one.x == other.x) {
        let x = seeds[0].x;
        let of_seeds: Vec<Estimate> = seeds.iter().filter_map(|run| run.y[metric]).collect();
        let means: Vec<f64> = of_seeds.iter().map(|estimate| estimate.mean).collect();
        let estimate = match of_seeds.as_slice() {
            [one] => Some(*one),
            _ => Estimate::of_independent(&means),
        };
        let Some(Estimate { mean, half_width }) = estimate else {
            continue;
        };
        line.points.push((x, mean));
        line.intervals
            .extend(half_width.map(|half| (x, mean - half, mean + half)));
        line.doubtful
            .extend(seeds.iter().any(|run| run.is_doubtful).then_some(x));
    }
    line
}
