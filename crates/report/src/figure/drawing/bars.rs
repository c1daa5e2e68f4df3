//! Draws bars.

use super::super::axis::Axis;
use super::super::{Bars, NotDrawn};
use super::Draw;
use super::axes::{self, BESIDE, Below};
use super::legend::{self, Sample};
use super::sheet::{Sheet, TEXT};
use plotters::style::text_anchor::HPos;

/// Width of a bar, as a share of its slot.
const WIDTH: f64 = 0.7;
/// Line spacing of a bar's name, in design pixels.
const ROW: f64 = TEXT * 1.2;

impl Bars {
    /// Returns the rectangles (left, bottom; right, top) of the `part`-th part of all bars.
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
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn> {
        sheet.note(self.bars.iter().any(|bar| bar.is_doubtful))?;
        let entries: Vec<(&str, Sample)> = self
            .parts
            .iter()
            .map(|part| (part.as_str(), Sample::Area))
            .collect();
        legend::draw(sheet, sheet.left, &entries)?;
        sheet.text(&self.y, TEXT, HPos::Left, (sheet.left, sheet.top))?;
        sheet.top += sheet.px(TEXT * 1.6);
        // Break names that are too wide for their bars.
        let count = self.bars.len().max(1);
        let place_width =
            (sheet.right - sheet.left - sheet.px(BESIDE)) / i32::try_from(count).unwrap_or(1);
        let names = self.bars.iter().map(|bar| {
            let mark = if bar.is_doubtful { " *" } else { "" };
            let lines = bar.name.lines().enumerate();
            let lines = lines.map(|(n, line)| {
                if n == 0 {
                    format!("{line}{mark}")
                } else {
                    line.to_owned()
                }
            });
            lines
                .flat_map(|line| sheet.lines(&line, TEXT, place_width))
                .collect()
        });
        let names: Vec<Vec<String>> = names.collect();
        let rows = names.iter().map(Vec::len).max().unwrap_or(0);
        sheet.bottom -= sheet.px(ROW * rows as f64 + 6.0);
        let y = Axis::up_to(self.most);
        let place = axes::draw(sheet, sheet.bottom, Below::Things(count), y, false)?;
        for part in 0..self.parts.len() {
            for [from, to] in self.rectangles(part) {
                sheet.area(place(from.0, from.1), place(to.0, to.1), part)?;
            }
        }
        for (i, lines) in names.iter().enumerate() {
            let (x, y) = place(i as f64 + 0.5, 0.0);
            for (row, line) in lines.iter().enumerate() {
                let y = y + sheet.px(6.0 + ROW * row as f64);
                sheet.text(line, TEXT, HPos::Center, (x, y))?;
            }
        }
        Ok(())
    }
}
