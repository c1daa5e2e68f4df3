//! Draws curves.

use super::super::{Curves, NotDrawn};
use super::{BLACK, Draw, FAINT, FONT, colour};
use crate::bytes;
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::PathElement;
use plotters::prelude::DrawingBackend;
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::{Color, IntoFont, RGBColor};

impl Curves {
    /// Logarithms to base two of the smallest and the largest size.
    fn range(&self) -> (f64, f64) {
        let sizes = || {
            self.curves
                .iter()
                .flat_map(|c| &c.points)
                .map(|p| log2(p.0))
        };
        let least = sizes().fold(f64::INFINITY, f64::min);
        let most = sizes().fold(f64::NEG_INFINITY, f64::max);
        if least < most {
            (least, most)
        } else if least.is_finite() {
            (least - 1.0, least + 1.0)
        } else {
            (16.0, 30.0)
        }
    }

    /// Names in order of their first curve.
    fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for curve in &self.curves {
            if !names.contains(&curve.name.as_str()) {
                names.push(curve.name.as_str());
            }
        }
        names
    }
}

impl Draw for Curves {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), NotDrawn> {
        let (least, most) = self.range();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 22).into_font())
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(60)
            .build_cartesian_2d(least..most, 0.0..100.0)
            .map_err(NotDrawn::because)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(FAINT)
            .x_labels((most - least) as usize + 1)
            .x_label_formatter(&|size| bytes(size.exp2().round() as u64).replace(".0", ""))
            .y_labels(11)
            .y_label_formatter(&|percent| format!("{percent:.0} %"))
            .x_desc(&self.x)
            .y_desc(&self.y)
            .label_style((FONT, 15).into_font())
            .draw()
            .map_err(NotDrawn::because)?;
        let names = self.names();
        let mut labelled = vec![false; names.len()];
        for curve in &self.curves {
            let i = names.iter().position(|name| *name == curve.name);
            let i = i.unwrap_or_default();
            let points = curve.points.iter().map(|&(size, y)| (log2(size), y));
            let style = colour(i).stroke_width(2);
            let drawn = if curve.dashed {
                chart.draw_series(DashedLineSeries::new(points, 6, 5, style))
            } else {
                chart.draw_series(LineSeries::new(points, style))
            };
            let entry = drawn.map_err(NotDrawn::because)?;
            if !std::mem::replace(&mut labelled[i], true) {
                let line = move |(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], style);
                entry.label(&curve.name).legend(line);
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(RGBColor(255, 255, 255).mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15).into_font())
            .draw()
            .map_err(NotDrawn::because)
    }
}

fn log2(size: u64) -> f64 {
    (size.max(1) as f64).log2()
}
