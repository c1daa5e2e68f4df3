//! Draws groups of bars.

use super::super::axis::{Axis, Of};
use super::super::{GroupPanel, Groups, NotDrawn};
use super::Draw;
use super::axes::{self, BESIDE, Below};
use super::legend::{self, Sample};
use super::sheet::{Sheet, TEXT};
use plotters::style::text_anchor::HPos;

/// Share of a group's slot that its bars take.
const WIDTH: f64 = 0.8;

impl GroupPanel {
    /// Draws the panel into the free part of a sheet down to `bottom`, and returns the middle of each group.
    fn draw(
        &self,
        sheet: &mut Sheet<'_>,
        groups: usize,
        bottom: i32,
    ) -> Result<Vec<(i32, i32)>, NotDrawn> {
        let heading = (sheet.left, sheet.top + sheet.px((legend::ROW - TEXT) / 2.0));
        sheet.text(&self.y, TEXT, HPos::Left, heading)?;
        // Beside the heading, since there may be many panels.
        let from = sheet.left + sheet.width(&self.y, TEXT) + sheet.px(28.0);
        let entries = self.series.iter();
        let entries = entries.map(|series| (series.name.as_str(), Sample::Area));
        legend::draw(sheet, from, &entries.collect::<Vec<_>>())?;
        let heights = self.series.iter().flat_map(|series| &series.values);
        let y = Axis::new(false, Of::Numbers, heights.flatten().copied(), true);
        let place = axes::draw(sheet, bottom, Below::Things(groups), y, false)?;
        let bar = WIDTH / self.series.len().max(1) as f64;
        for (i, series) in self.series.iter().enumerate() {
            for (group, height) in series.values.iter().enumerate() {
                let Some(height) = height else { continue };
                let left = group as f64 + (1.0 - WIDTH) / 2.0 + i as f64 * bar;
                sheet.area(place(left, 0.0), place(left + bar, *height), i)?;
            }
        }
        let middle = |group: usize| place(group as f64 + 0.5, y.from);
        Ok((0..groups).map(middle).collect())
    }
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
