//! Draws panels.

use super::super::{NotDrawn, Panel, Panels};
use super::{BLACK, Draw, FAINT, FONT, colour, draw_note};
use crate::significant;
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Text};
use plotters::prelude::DrawingBackend;
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::{Color, IntoFont, RGBColor};

/// A linear axis, or one of logarithms to base 10.
#[derive(Clone, Copy)]
struct Axis {
    log: bool,
    from: f64,
    to: f64,
}

impl Panels {
    fn x_axis(&self) -> Axis {
        let points = self.panels.iter().flat_map(Panel::points);
        Axis::of(self.log_x, points.map(|point| point.0), false)
    }

    /// Names in order of their first line.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(line.name.as_str());
            }
        }
        names
    }
}

impl Panel {
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines
            .iter()
            .flat_map(|line| line.points.iter().copied())
    }

    fn y_axis(&self) -> Axis {
        let intervals = self.lines.iter().flat_map(|line| &line.intervals);
        let ends = intervals.flat_map(|&(_, from, to)| [from, to]);
        let points = self.points().map(|point| point.1);
        Axis::of(self.log_y, points.chain(ends), true)
    }
}

impl Axis {
    /// An axis on which all `values` have room; a linear one may begin at 0.
    fn of(log: bool, values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let shown = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let scaled = shown.map(|value| if log { value.log10() } else { value });
        let (least, most) = scaled.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), value| {
            (l.min(value), m.max(value))
        });
        let (least, most) = if least <= most {
            (least, most)
        } else {
            (0.0, 1.0)
        };
        let least = if from_zero && !log {
            least.min(0.0)
        } else {
            least
        };
        let margin = if most > least {
            0.04 * (most - least)
        } else {
            0.5
        };
        let from = if from_zero && !log {
            least
        } else {
            least - margin
        };
        Self {
            log,
            from,
            to: most + margin,
        }
    }

    /// Where a value stands; none on an axis of logarithms for what has none.
    fn place(self, value: f64) -> Option<f64> {
        let shown = value.is_finite() && (!self.log || value > 0.0);
        shown.then(|| if self.log { value.log10() } else { value })
    }

    fn label(self, place: f64) -> String {
        significant(if self.log { 10_f64.powf(place) } else { place })
    }
}

impl Draw for Panels {
    fn draw<B: DrawingBackend>(&self, whole: &DrawingArea<B, Shift>) -> Result<(), NotDrawn> {
        let area = whole
            .titled(&self.title, (FONT, 22).into_font())
            .map_err(NotDrawn::because)?;
        let names = self.names();
        let rows = area.split_evenly((self.panels.len().max(1), 1));
        for (index, (panel, row)) in self.panels.iter().zip(&rows).enumerate() {
            let last = index + 1 == self.panels.len();
            self.draw_panel(panel, row, &names, index == 0, last)?;
        }
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        draw_note(whole, lines().any(|line| !line.doubtful.is_empty()))
    }
}

impl Panels {
    fn draw_panel<B: DrawingBackend>(
        &self,
        panel: &Panel,
        area: &DrawingArea<B, Shift>,
        names: &[&str],
        legend: bool,
        last: bool,
    ) -> Result<(), NotDrawn> {
        let (x, y) = (self.x_axis(), panel.y_axis());
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(if last { 46 } else { 24 })
            .y_label_area_size(72)
            .build_cartesian_2d(x.from..x.to, y.from..y.to)
            .map_err(NotDrawn::because)?;
        let (x_label, y_label) = (|place: &f64| x.label(*place), |place: &f64| y.label(*place));
        let mut mesh = chart.configure_mesh();
        mesh.max_light_lines(0)
            .bold_line_style(FAINT)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label)
            .y_labels(6)
            .y_desc(&panel.y)
            .label_style((FONT, 14).into_font());
        if last {
            mesh.x_desc(&self.x);
        }
        mesh.draw().map_err(NotDrawn::because)?;
        let mut labelled = vec![false; names.len()];
        for line in &panel.lines {
            let i = names.iter().position(|name| *name == line.name);
            let i = i.unwrap_or_default();
            let style = colour(i).stroke_width(2);
            let places = || {
                let place = |&(h, v): &(f64, f64)| Some((x.place(h)?, y.place(v)?));
                line.points.iter().filter_map(place)
            };
            let dots = places().map(|place| Circle::new(place, 3, colour(i).filled()));
            chart.draw_series(dots).map_err(NotDrawn::because)?;
            // What has no logarithm lies below the axis.
            let interval = |&(h, from, to): &(f64, f64, f64)| {
                let h = x.place(h)?;
                Some(vec![
                    (h, y.place(from).unwrap_or(y.from)),
                    (h, y.place(to)?),
                ])
            };
            let intervals = line.intervals.iter().filter_map(interval);
            let intervals = intervals.map(|ends| PathElement::new(ends, colour(i)));
            chart.draw_series(intervals).map_err(NotDrawn::because)?;
            let doubtful = line
                .points
                .iter()
                .filter(|(h, _)| line.doubtful.contains(h));
            let marks = doubtful.filter_map(|&(h, v)| Some((x.place(h)?, y.place(v)?)));
            let style_of_marks = (FONT, 18).into_font().color(&colour(i));
            let marks = marks.map(|place| Text::new("*", place, style_of_marks.clone()));
            chart.draw_series(marks).map_err(NotDrawn::because)?;
            let drawn = if line.dashed {
                chart.draw_series(DashedLineSeries::new(places(), 6, 5, style))
            } else {
                chart.draw_series(LineSeries::new(places(), style))
            };
            let entry = drawn.map_err(NotDrawn::because)?;
            if legend && !std::mem::replace(&mut labelled[i], true) {
                let mark = move |(h, v)| PathElement::new(vec![(h, v), (h + 24, v)], style);
                entry.label(&line.name).legend(mark);
            }
        }
        if legend {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(RGBColor(255, 255, 255).mix(0.85))
                .border_style(BLACK.mix(0.3))
                .label_font((FONT, 14).into_font())
                .draw()
                .map_err(NotDrawn::because)?;
        }
        Ok(())
    }
}
