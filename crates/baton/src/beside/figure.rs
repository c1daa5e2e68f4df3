//! The figures of a study.

use super::{Outcome, label, on_axis, setting};
use crate::config::{FigurePlan, Form};
use baton_report::figure::{
    Bar, Bars, Figure, GroupPanel, GroupSeries, Groups, Line, Panel, Panels,
};
use baton_stats::Estimate;
use baton_study::table::Cell;
use baton_study::table::metrics::Metric;

/// Place of a point in a figure: its position on the horizontal axis, and the name of its line.
struct Place {
    point: usize,
    x: f64,
    name: String,
}

/// Draws metrics over a key, as bars for each variant, or as parts of a stack for each point: means over the seeds with their 95 %
/// intervals or, for one seed, with those of its run. Published numbers have lines or bars of their own.
pub fn of(figure: &FigurePlan, outcome: &Outcome<'_>) -> Figure {
    match &figure.x {
        Some(x) => Figure::Panels(lines(figure, x, outcome)),
        None if figure.stacks => Figure::Bars(stacks(figure, outcome)),
        None => Figure::Groups(bars(figure, outcome)),
    }
}

/// Draws a stack for each point. If a variant has several points, its name is below the first.
fn stacks(figure: &FigurePlan, outcome: &Outcome<'_>) -> Bars {
    let points = &outcome.plan.points;
    let part = |point: usize, metric: &&Metric| {
        let found = outcome.estimate(point, metric.name);
        found.map_or(0.0, |found| found.mean)
    };
    let whole = |point: usize| -> f64 { figure.y.iter().map(|metric| part(point, metric)).sum() };
    let scale = |point: usize| match figure.against.get(point) {
        None => 1.0,
        Some(other) => 100.0 / whole(other.unwrap_or(point)).max(f64::MIN_POSITIVE),
    };
    let mut last = None;
    let bars = figure.points.iter().map(|&point| {
        let variant = &points[point].variant;
        let is_first = last.replace(variant) != Some(variant);
        let name = match (setting(outcome.plan, point), variant) {
            (Some(setting), Some(variant)) if is_first => format!("{setting}\n{variant}"),
            (Some(setting), Some(_)) => setting,
            _ => label(outcome.plan, point),
        };
        Bar {
            name,
            is_doubtful: outcome.is_doubtful(point),
            parts: (figure.y.iter())
                .map(|metric| scale(point) * part(point, metric))
                .collect(),
        }
    });
    let bars: Vec<Bar> = bars.collect();
    let heights = bars.iter().map(|bar| bar.parts.iter().sum());
    let parts = figure.y.iter().map(|metric| metric.name_in_words());
    let y = || in_words(figure, figure.y[0]);
    Bars {
        title: figure.title.clone(),
        y: figure.y_label.clone().unwrap_or_else(y),
        most: heights.fold(0.0, f64::max),
        parts: parts.collect(),
        bars,
    }
}

fn lines(figure: &FigurePlan, x: &str, outcome: &Outcome<'_>) -> Panels {
    let places = figure.points.iter().filter_map(|&point| {
        let name = name(figure, outcome, point, true);
        let x = outcome.plan.points[point].value(x)?.as_number()?;
        Some(Place { point, x, name })
    });
    let mut places: Vec<Place> = places.collect();
    let names = distinct(places.iter().map(|place| &place.name));
    places.sort_by(|one, other| one.x.total_cmp(&other.x));
    let panels = figure.y.iter().map(|metric| {
        let of_name = |name: &String| {
            let of_line = || places.iter().filter(|place| place.name == *name);
            let simulated = line(figure, outcome, metric.name, name, of_line());
            let published_of = |metric: &str| {
                let at = |place: &Place| published_at(figure, outcome, place.point, metric);
                of_line()
                    .filter_map(|place| Some((place.x, at(place)?)))
                    .collect::<Vec<_>>()
            };
            // The legend is in only one panel, which may not be the one with published numbers.
            let mut metrics = figure.y.iter();
            let is_told = metrics.any(|metric| !published_of(metric.name).is_empty());
            let published = is_told.then(|| Line {
                dashed: true,
                points: published_of(metric.name),
                ..bare(format!("{name}, published"))
            });
            std::iter::once(simulated).chain(published)
        };
        Panel {
            y: in_words(figure, metric),
            log_y: figure.log_y,
            lines: names.iter().flat_map(of_name).collect(),
        }
    });
    Panels {
        title: figure.title.clone(),
        x: figure.x_label.clone(),
        log_x: figure.log_x,
        panels: panels.collect(),
    }
}

/// Draws groups of bars, one for each variant, with a bar for each value of the swept keys.
fn bars(figure: &FigurePlan, outcome: &Outcome<'_>) -> Groups {
    let variant = |point: usize| {
        outcome.plan.points[point]
            .variant
            .clone()
            .unwrap_or_default()
    };
    let series = |point: usize| name(figure, outcome, point, false);
    let all: Vec<(String, String)> = (figure.points.iter())
        .map(|&point| (variant(point), series(point)))
        .collect();
    let variants = distinct(all.iter().map(|(variant, _)| variant));
    let names = distinct(all.iter().map(|(_, series)| series));
    let panel = |described: &Metric| {
        let metric = described.name;
        let values = |name: &String, value: &dyn Fn(usize) -> Option<f64>| {
            let at = |variant: &String| {
                let is_it =
                    |(_, told): &(usize, &(String, String))| told.0 == *variant && told.1 == *name;
                let found = all.iter().enumerate().find(is_it)?;
                value(figure.points[found.0])
            };
            variants.iter().map(at).collect::<Vec<_>>()
        };
        let of_name = |name: &String| {
            let simulated = values(name, &|point| {
                Some(estimate(figure, outcome, point, metric)?.mean)
            });
            let published = values(name, &|point| published_at(figure, outcome, point, metric));
            let published = published.iter().any(Option::is_some).then(|| GroupSeries {
                name: format!("{name}, published"),
                values: published.clone(),
                ..GroupSeries::default()
            });
            let half_widths = values(name, &|point| {
                estimate(figure, outcome, point, metric)?.half_width
            });
            let name = name.clone();
            std::iter::once(GroupSeries {
                name,
                values: simulated,
                half_widths,
            })
            .chain(published)
        };
        GroupPanel {
            y: in_words(figure, described),
            series: names.iter().flat_map(of_name).collect(),
        }
    };
    Groups {
        title: figure.title.clone(),
        names: variants
            .iter()
            .map(|name| name.replace(", ", "\n"))
            .collect(),
        panels: figure.y.iter().map(|metric| panel(metric)).collect(),
        ..Groups::default()
    }
}

/// Returns the drawn value of a metric: its value, or its difference.
fn estimate(
    figure: &FigurePlan,
    outcome: &Outcome<'_>,
    point: usize,
    metric: &str,
) -> Option<Estimate> {
    match figure.against.is_empty() {
        true => outcome.estimate(point, metric),
        false => outcome.beside(point, figure.against[point]?, metric, Form::Percent),
    }
}

/// Returns the published number for the drawn value.
fn published_at(
    figure: &FigurePlan,
    outcome: &Outcome<'_>,
    point: usize,
    metric: &str,
) -> Option<f64> {
    let (form, against) = match figure.against.get(point) {
        None => (Form::Absolute, None),
        Some(against) => (Form::Percent, *against),
    };
    let mut numbers = outcome.plan.numbers.iter();
    let found = numbers.find(|number| {
        number.point == point
            && number.metric.name == metric
            && (number.form, number.against) == (form, against)
    });
    found.map(|number| number.value)
}

/// Returns the label of the vertical axis.
fn in_words(figure: &FigurePlan, metric: &Metric) -> String {
    match figure.against.is_empty() {
        true => metric.label(),
        false => format!("{}: difference, %", metric.name_in_words()),
    }
}

/// Returns the name that distinguishes a line from others.
fn name(figure: &FigurePlan, outcome: &Outcome<'_>, at: usize, with_variant: bool) -> String {
    let point = &outcome.plan.points[at];
    let axes = point.axes.iter().enumerate();
    let axes = axes.filter(|(_, axis)| {
        let first = axis.first();
        first.is_some_and(|(key, value)| figure.series.contains(key) && *value != Cell::Nothing)
    });
    let keys = axes.filter_map(|(axis, _)| on_axis(outcome.plan, at, axis));
    let variant = point.variant.iter().filter(|_| with_variant).cloned();
    let parts: Vec<String> = variant.chain(keys).collect();
    match parts.is_empty() {
        true => outcome.plan.name.clone(),
        false => parts.join(", "),
    }
}

/// Returns the names without duplicates, in the order in which they first appear in the study.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

const fn bare(name: String) -> Line {
    Line {
        name,
        dashed: false,
        points: Vec::new(),
        intervals: Vec::new(),
        doubtful: Vec::new(),
    }
}

fn line<'a>(
    figure: &FigurePlan,
    outcome: &Outcome<'_>,
    metric: &str,
    name: &str,
    places: impl Iterator<Item = &'a Place>,
) -> Line {
    let mut line = bare(name.to_owned());
    for &Place { point, x, .. } in places {
        let Some(Estimate { mean, half_width }) = estimate(figure, outcome, point, metric) else {
            continue;
        };
        line.points.push((x, mean));
        line.intervals
            .extend(half_width.map(|half| (x, mean - half, mean + half)));
        line.doubtful
            .extend(outcome.is_doubtful(point).then_some(x));
    }
    line
}
