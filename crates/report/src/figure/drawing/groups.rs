//! Draws groups of bars.

use super::super::{GroupPanel, Groups, NotDrawn};
use super::{BLACK, Draw, FAINT, FONT, colour};
use crate::significant;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont};

/// Share of a group's place that its bars take.
const WIDTH: f64 = 0.8;
/// Pixels beside the panels for their legends, and from one entry to the next.
const LEGEND: i32 = 230;
const ENTRY: i32 = 15;
/// Pixels below the last panel for the names of groups.
const NAMES: u32 = 34;
/// How much higher the axis is than the highest bar.
const HEADROOM: f64 = 1.06;

impl GroupPanel {
    fn most(&self) -> f64 {
        let series = self.series.iter().flat_map(|series| &series.values);
        let most = series.flatten().copied().fold(0.0, f64::max);
        if most > 0.0 { most * HEADROOM } else { 1.0 }
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        names: &[String],
        last: bool,
    ) -> Result<(), NotDrawn> {
        let width = area.dim_in_pixel().0 as i32;
        let (panel, legend) = area.split_horizontally(width - LEGEND);
        let y_label = |value: &f64| significant(*value);
        let mut chart = ChartBuilder::on(&panel)
            .margin(6)
            .margin_bottom(if last { NAMES } else { 6 })
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..names.len().max(1) as f64, 0.0..self.most())
            .map_err(NotDrawn::because)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .max_light_lines(0)
            .bold_line_style(FAINT)
            .y_labels(5)
            .y_label_formatter(&y_label)
            .y_desc(&self.y)
            .label_style((FONT, 13).into_font())
            .draw()
            .map_err(NotDrawn::because)?;
        let bar = WIDTH / self.series.len().max(1) as f64;
        for (i, series) in self.series.iter().enumerate() {
            let fill = colour(i).filled();
            let heights = series.values.iter().enumerate();
            let bars = heights.filter_map(|(group, height)| {
                let left = group as f64 + (1.0 - WIDTH) / 2.0 + i as f64 * bar;
                Some(Rectangle::new(
                    [(left, 0.0), (left + bar, (*height)?)],
                    fill,
                ))
            });
            chart.draw_series(bars).map_err(NotDrawn::because)?;
            let top = 10 + ENTRY * i as i32;
            let square = Rectangle::new([(6, top), (18, top + 10)], fill);
            let words = Text::new(series.name.as_str(), (24, top - 2), (FONT, 13).into_font());
            legend.draw(&square).map_err(NotDrawn::because)?;
            legend.draw(&words).map_err(NotDrawn::because)?;
        }
        if !last {
            return Ok(());
        }
        let style = (FONT, 14)
            .into_font()
            .color(&BLACK)
            .pos(Pos::new(HPos::Center, VPos::Top));
        let place = chart.plotting_area();
        for (group, name) in names.iter().enumerate() {
            let (x, y) = place.map_coordinate(&(group as f64 + 0.5, 0.0));
            let (left, top) = area.get_base_pixel();
            let words = Text::new(name.as_str(), (x - left, y - top + 8), style.clone());
            area.draw(&words).map_err(NotDrawn::because)?;
        }
        Ok(())
    }
}

impl Draw for Groups {
    fn draw<B: DrawingBackend>(&self, whole: &DrawingArea<B, Shift>) -> Result<(), NotDrawn> {
        let area = whole
            .titled(&self.title, (FONT, 22).into_font())
            .map_err(NotDrawn::because)?;
        let rows = area.split_evenly((self.panels.len().max(1), 1));
        for (index, (panel, row)) in self.panels.iter().zip(&rows).enumerate() {
            let last = index + 1 == self.panels.len();
            panel.draw(row, &self.names, last)?;
        }
        Ok(())
    }
}
