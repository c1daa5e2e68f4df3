//! Draws bars.

use super::super::{Bars, NotDrawn};
use super::{BLACK, Draw, FAINT, FONT, colour, draw_note};
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

/// Share of a bar's place that the bar takes.
const WIDTH: f64 = 0.7;

impl Bars {
    /// Left, bottom, right and top of the `part`-th part of all bars.
    fn rectangles(&self, part: usize) -> impl Iterator<Item = [(f64, f64); 2]> + '_ {
        self.bars.iter().enumerate().map(move |(i, bar)| {
            let bottom: f64 = bar.parts.iter().take(part).sum();
            let top = bottom + bar.parts.get(part).copied().unwrap_or(0.0);
            let left = i as f64 + (1.0 - WIDTH) / 2.0;
            [(left, bottom), (left + WIDTH, top)]
        })
    }
}

impl Draw for Bars {
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), NotDrawn> {
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 22).into_font())
            .margin(16)
            .margin_bottom(70)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..self.bars.len().max(1) as f64, 0.0..self.most)
            .map_err(NotDrawn::because)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .max_light_lines(0)
            .bold_line_style(FAINT)
            .y_desc(&self.y)
            .label_style((FONT, 15).into_font())
            .draw()
            .map_err(NotDrawn::because)?;
        for (i, part) in self.parts.iter().enumerate() {
            let fill = colour(i).filled();
            let rectangles = self
                .rectangles(i)
                .map(|corners| Rectangle::new(corners, fill));
            let entry = chart.draw_series(rectangles).map_err(NotDrawn::because)?;
            let square = move |(x, y)| Rectangle::new([(x, y - 6), (x + 14, y + 6)], fill);
            entry.label(part).legend(square);
        }
        let place = chart.plotting_area();
        let style = TextStyle::from((FONT, 14).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
        for (i, bar) in self.bars.iter().enumerate() {
            let (x, y) = place.map_coordinate(&(i as f64 + 0.5, 0.0));
            for (line, words) in (0i32..).zip(bar.name.lines()) {
                let mark = if bar.is_doubtful && line == 0 {
                    " *"
                } else {
                    ""
                };
                let words = Text::new(
                    format!("{words}{mark}"),
                    (x, y + 8 + 17 * line),
                    style.clone(),
                );
                area.draw(&words).map_err(NotDrawn::because)?;
            }
        }
        draw_note(area, self.bars.iter().any(|bar| bar.is_doubtful))?;
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(RGBColor(255, 255, 255).mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15).into_font())
            .draw()
            .map_err(NotDrawn::because)
    }
}
