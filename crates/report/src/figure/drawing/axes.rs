//! Draws a pair of axes with ticks at given values.

use super::super::NotDrawn;
use super::super::axis::Axis;
use super::look::{BLACK, FAINT};
use super::sheet::{Sheet, TEXT};
use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::style::Color as _;
use std::ops::Range;

/// Space in design pixels beside and below a chart for tick labels.
pub const BESIDE: f64 = 64.0;
pub const BELOW: f64 = 24.0;
/// Minimum distance between ticks.
const TICK: (f64, f64) = (60.0, 26.0);

/// An axis in the form that the plotting library needs.
#[derive(Clone)]
struct Ticked {
    range: Range<f64>,
    ticks: Vec<f64>,
    /// The axis that formats the labels; `None` if there are no labels.
    axis: Option<Axis>,
}

impl Ranged for Ticked {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Ticked {
    fn format_ext(&self, place: &f64) -> String {
        self.axis
            .map_or_else(String::new, |axis| axis.label(*place))
    }
}

/// What is below a chart.
pub enum Below {
    /// An axis.
    Axis(Axis),
    /// This many items side by side, each of width 1.
    Things(usize),
}

/// Draws axes into the part of the sheet above `bottom`, with the labels of a horizontal axis below that. Returns a function that maps a
/// pair of axis values to a position.
pub fn draw<'a>(
    sheet: &Sheet<'a>,
    bottom: i32,
    below: Below,
    y: Axis,
    has_labels: bool,
) -> Result<impl Fn(f64, f64) -> (i32, i32) + use<'a>, NotDrawn> {
    let (width, height) = (
        sheet.right - sheet.left - sheet.px(BESIDE),
        bottom - sheet.top,
    );
    let space = match has_labels {
        true => sheet.px(BELOW),
        false => 0,
    };
    let x = match below {
        Below::Axis(axis) => Ticked {
            range: axis.from..axis.to,
            ticks: axis.ticks(sheet.room(width, TICK.0)),
            axis: Some(axis),
        },
        Below::Things(count) => Ticked {
            range: 0.0..count.max(1) as f64,
            ticks: Vec::new(),
            axis: None,
        },
    };
    let y = Ticked {
        range: y.from..y.to,
        ticks: y.ticks(sheet.room(height, TICK.1)),
        axis: Some(y),
    };
    let area = sheet.part(sheet.left, sheet.top, sheet.right, bottom + space);
    let mut chart = ChartBuilder::on(&area)
        .x_label_area_size(space)
        .y_label_area_size(sheet.px(BESIDE))
        .build_cartesian_2d(x, y)
        .map_err(NotDrawn::because)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .set_all_tick_mark_size(sheet.px(4.0))
        .bold_line_style(FAINT.stroke_width(sheet.stroke(1.0)))
        .axis_style(BLACK.stroke_width(sheet.stroke(1.0)))
        .label_style(sheet.style(TEXT))
        .draw()
        .map_err(NotDrawn::because)?;
    let plot = chart.plotting_area().clone();
    Ok(move |h: f64, v: f64| plot.map_coordinate(&(h, v)))
}
