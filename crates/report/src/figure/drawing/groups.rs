//! Draws groups of bars.

use super::super::axis::{Axis, Of};
use super::super::{GroupPanel, GroupSeries, Groups, NotDrawn};
use super::Draw;
use super::axes::{self, BESIDE, Below};
use super::legend::{self, Sample};
use super::look::{BLACK, Dash};
use super::sheet::{Sheet, TEXT};
use plotters::style::text_anchor::HPos;
use std::iter::repeat;

/// Share of a group's slot that its bars take.
const WIDTH: f64 = 0.8;
/// Dash of the height that bars are compared with.
const LEVEL: Dash = Some((6.0, 4.0));

impl GroupPanel {
    fn entries(&self) -> Vec<(&str, Sample)> {
        let entries = self.series.iter();
        let entries = entries.map(|series| (series.name.as_str(), Sample::Area));
        entries.collect()
    }

    /// Returns the ends of all bars and intervals.
    fn ends(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(GroupSeries::ends)
    }

    /// Draws the panel into the free part of a sheet down to `bottom`, and returns the middle of each group.
    fn draw(
        &self,
        sheet: &mut Sheet<'_>,
        groups: usize,
        bottom: i32,
        shared: &Shared<'_>,
    ) -> Result<Vec<(i32, i32)>, NotDrawn> {
        let heading = (sheet.left, sheet.top + sheet.px((legend::ROW - TEXT) / 2.0));
        sheet.text(&self.y, TEXT, HPos::Left, heading)?;
        if shared.has_legend {
            sheet.top += sheet.px(legend::ROW);
        } else {
            // The legend is beside the heading, since there may be many panels.
            let from = sheet.left + sheet.width(&self.y, TEXT) + sheet.px(28.0);
            legend::draw(sheet, from, &self.entries())?;
        }
        let ends: Vec<f64> = match &shared.ends {
            Some(ends) => ends.clone(),
            None => self.ends().collect(),
        };
        let y = Axis::new(false, Of::Numbers, ends.into_iter(), true);
        let place = axes::draw(sheet, bottom, Below::Things(groups), y, false)?;
        let bar = WIDTH / self.series.len().max(1) as f64;
        for (i, series) in self.series.iter().enumerate() {
            for (group, height) in series.values.iter().enumerate() {
                let Some(height) = height else { continue };
                let left = group as f64 + (1.0 - WIDTH) / 2.0 + i as f64 * bar;
                sheet.area(place(left, 0.0), place(left + bar, *height), i)?;
                if let Some(half) = series.half_widths.get(group).copied().flatten() {
                    let middle = left + bar / 2.0;
                    let ends = [*height - half, *height + half];
                    draw_interval(sheet, ends.map(|end| place(middle, end)))?;
                }
            }
        }
        let across = |at: f64| [0.0, groups as f64].map(|group| place(group, at)).to_vec();
        if y.from < 0.0 {
            sheet.line(across(0.0), BLACK, 1.0, None)?;
        }
        if let Some((level, _)) = shared.level {
            sheet.line(across(*level), BLACK, 1.6, LEVEL)?;
        }
        let middle = |group: usize| place(group as f64 + 0.5, y.from);
        Ok((0..groups).map(middle).collect())
    }
}

impl GroupSeries {
    fn ends(&self) -> impl Iterator<Item = f64> {
        let halves = self.half_widths.iter().copied().chain(repeat(None));
        let bars = self.values.iter().zip(halves);
        let ends = bars.filter_map(|(height, half)| {
            let (height, half) = ((*height)?, half.unwrap_or_default());
            Some([height - half, height + half])
        });
        ends.flatten()
    }
}

/// Properties that the panels of a figure share.
struct Shared<'a> {
    has_legend: bool,
    /// Ends of all bars, if all panels have the same scale.
    ends: Option<Vec<f64>>,
    level: Option<&'a (f64, String)>,
}

fn draw_interval(sheet: &Sheet<'_>, [low, high]: [(i32, i32); 2]) -> Result<(), NotDrawn> {
    let cap = sheet.px(3.0);
    sheet.line(vec![low, high], BLACK, 1.2, None)?;
    for (h, v) in [low, high] {
        sheet.line(vec![(h - cap, v), (h + cap, v)], BLACK, 1.2, None)?;
    }
    Ok(())
}

impl Draw for Groups {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn> {
        let groups = self.names.len().max(1);
        let place_width =
            (sheet.right - sheet.left - sheet.px(BESIDE)) / i32::try_from(groups).unwrap_or(1);
        let names = self
            .names
            .iter()
            .map(|name| sheet.lines(name, TEXT, place_width));
        let names: Vec<Vec<String>> = names.collect();
        let rows = names.iter().map(Vec::len).max().unwrap_or(0);
        sheet.footing(&self.x)?;
        let first = self.panels.first();
        let is_alike = |panel: &GroupPanel| {
            let mut pairs = first
                .into_iter()
                .flat_map(|first| first.series.iter().zip(&panel.series));
            let as_many = first.is_some_and(|first| first.series.len() == panel.series.len());
            as_many && pairs.all(|(one, other)| one.name == other.name)
        };
        let shared = Shared {
            has_legend: self.panels.iter().all(is_alike),
            ends: (!self.y.is_empty()).then(|| {
                let levels = self.level.iter().map(|(level, _)| *level);
                self.panels
                    .iter()
                    .flat_map(GroupPanel::ends)
                    .chain(levels)
                    .collect()
            }),
            level: self.level.as_ref(),
        };
        if !self.y.is_empty() {
            sheet.text(&self.y, TEXT, HPos::Left, (sheet.left, sheet.top))?;
            sheet.top += sheet.px(TEXT * 1.5);
        }
        if let Some(panel) = first.filter(|_| shared.has_legend) {
            let level = self
                .level
                .iter()
                .map(|(_, name)| (name.as_str(), Sample::Level(LEVEL)));
            let entries: Vec<_> = panel.entries().into_iter().chain(level).collect();
            legend::draw(sheet, sheet.left, &entries)?;
        }
        let below = sheet.px(TEXT * 1.2 * rows as f64 + 8.0);
        let count = i32::try_from(self.panels.len().max(1)).unwrap_or(1);
        let (top, height) = (sheet.top, (sheet.bottom - below - sheet.top) / count);
        for (index, panel) in (1i32..).zip(&self.panels) {
            let bottom = top + height * index;
            let is_last = index == count;
            let middles = panel.draw(
                sheet,
                groups,
                bottom - sheet.px(if is_last { 0.0 } else { 10.0 }),
                &shared,
            )?;
            sheet.top = bottom;
            for ((x, y), lines) in middles.into_iter().zip(&names).filter(|_| is_last) {
                for (row, line) in lines.iter().enumerate() {
                    let y = y + sheet.px(6.0 + TEXT * 1.2 * row as f64);
                    sheet.text(line, TEXT, HPos::Center, (x, y))?;
                }
            }
        }
        Ok(())
    }
}
