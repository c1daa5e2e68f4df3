//! Draws panels.

use super::super::axis::{Axis, Of};
use super::super::{Curves, Line, NotDrawn, Panel, Panels};
use super::Draw;
use super::axes::{self, BELOW, Below};
use super::legend::{self, Sample};
use super::look::{DASHED, Dash, colour, dash, mark};
use super::sheet::{Sheet, TEXT};
use crate::significant;
use plotters::style::text_anchor::HPos;

/// Distance from the heading of a panel to the panel, and from there to the next heading.
const HEADING: f64 = TEXT * 1.45;
const BETWEEN: f64 = 8.0;

impl Draw for Panels {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn> {
        draw(self, Of::Numbers, sheet)
    }
}

impl Draw for Curves {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn> {
        draw(&Panels::from(self), Of::Bytes, sheet)
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
        Axis::new(self.log_y, Of::Numbers, points.chain(ends), true)
    }
}

/// How the lines of a figure are distinguished.
struct Names<'a> {
    /// Names, in the order of their first lines.
    names: Vec<&'a str>,
    /// Whether dashes have a meaning of their own.
    has_dashed: bool,
}

impl<'a> Names<'a> {
    fn of(panels: &'a Panels) -> Self {
        let lines = || panels.panels.iter().flat_map(|panel| &panel.lines);
        let mut names = Vec::new();
        for line in lines() {
            if !names.contains(&line.name.as_str()) {
                names.push(line.name.as_str());
            }
        }
        Self {
            names,
            has_dashed: lines().any(|line| line.dashed),
        }
    }

    fn number(&self, line: &Line) -> usize {
        let found = self.names.iter().position(|name| *name == line.name);
        found.unwrap_or_default()
    }

    fn dash(&self, number: usize, is_dashed: bool) -> Dash {
        match (self.has_dashed, is_dashed) {
            (false, _) => dash(number),
            (true, false) => None,
            (true, true) => DASHED,
        }
    }

    fn entries(&self) -> Vec<(&'a str, Sample)> {
        let names = self.names.iter().enumerate();
        names
            .map(|(i, name)| (*name, Sample::Line(self.dash(i, false), mark(i))))
            .collect()
    }
}

fn draw(panels: &Panels, of_x: Of, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn> {
    let names = Names::of(panels);
    let lines = || panels.panels.iter().flat_map(|panel| &panel.lines);
    let is_drawn = |line: &Line, at: f64| line.points.iter().any(|point| point.0 == at);
    sheet.note(lines().any(|line| line.doubtful.iter().any(|at| is_drawn(line, *at))))?;
    let first = panels.panels.first().map_or(&[][..], |panel| &panel.lines);
    for line in first {
        let missing = line.doubtful.iter().filter(|at| !is_drawn(line, **at));
        let missing: Vec<String> = missing.map(|at| significant(*at)).collect();
        if !missing.is_empty() {
            let left_out = format!(
                "left out, not steady: {} at {}",
                line.name,
                missing.join(", ")
            );
            sheet.footing(&left_out)?;
        }
    }
    sheet.footing(&on_axis(&panels.x, panels.log_x))?;
    if names.names.len() > 1 {
        legend::draw(sheet, sheet.left, &names.entries())?;
    }
    let points = panels.panels.iter().flat_map(Panel::points);
    let x = Axis::new(panels.log_x, of_x, points.map(|point| point.0), false);
    // All panels have the same height; tick labels are below the last one only.
    let count = i32::try_from(panels.panels.len().max(1)).unwrap_or(1);
    let height = (sheet.bottom - sheet.top - sheet.px(BELOW)) / count;
    for (index, panel) in panels.panels.iter().enumerate() {
        let is_last = index + 1 == panels.panels.len();
        draw_panel(panel, x, &names, sheet, height, is_last)?;
    }
    Ok(())
}

/// Returns the label of an axis.
fn on_axis(label: &str, is_logarithmic: bool) -> String {
    match is_logarithmic {
        true => format!("{label} (logarithmic)"),
        false => label.to_owned(),
    }
}

/// Draws a panel with its heading into the given part of the sheet's free space.
fn draw_panel(
    panel: &Panel,
    x: Axis,
    names: &Names<'_>,
    sheet: &mut Sheet<'_>,
    height: i32,
    is_last: bool,
) -> Result<(), NotDrawn> {
    let y = panel.y_axis();
    let next = sheet.top + height;
    let heading = on_axis(&panel.y, panel.log_y);
    sheet.text(&heading, TEXT, HPos::Left, (sheet.left, sheet.top))?;
    sheet.top += sheet.px(HEADING);
    let bottom = next - sheet.px(if is_last { 0.0 } else { BETWEEN });
    let place = axes::draw(sheet, bottom, Below::Axis(x), y, is_last)?;
    for line in &panel.lines {
        draw_line(line, (x, y), names, sheet, &place)?;
    }
    sheet.top = next;
    Ok(())
}

fn draw_line(
    line: &Line,
    (x, y): (Axis, Axis),
    names: &Names<'_>,
    sheet: &Sheet<'_>,
    place: &dyn Fn(f64, f64) -> (i32, i32),
) -> Result<(), NotDrawn> {
    let i = names.number(line);
    let cap = sheet.px(3.0);
    for &(h, from, to) in &line.intervals {
        // Values without a logarithm lie below the axis.
        let (Some(h), Some(to)) = (x.place(h), y.place(to)) else {
            continue;
        };
        let (low, high) = (place(h, y.place(from).unwrap_or(y.from)), place(h, to));
        sheet.line(vec![low, high], colour(i), 1.2, None)?;
        for (h, v) in [low, high] {
            sheet.line(vec![(h - cap, v), (h + cap, v)], colour(i), 1.2, None)?;
        }
    }
    let shown = |&(h, v): &(f64, f64)| Some((h, place(x.place(h)?, y.place(v)?)));
    let places: Vec<(f64, (i32, i32))> = line.points.iter().filter_map(shown).collect();
    let way = places.iter().map(|(_, place)| *place).collect();
    sheet.line(way, colour(i), 2.0, names.dash(i, line.dashed))?;
    for (h, at) in places {
        sheet.mark(mark(i), at, colour(i))?;
        if line.doubtful.contains(&h) {
            sheet.text(
                "*",
                TEXT,
                HPos::Left,
                (at.0 + sheet.px(4.0), at.1 - sheet.px(TEXT)),
            )?;
        }
    }
    Ok(())
}
