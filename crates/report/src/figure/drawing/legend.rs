//! Legends, which are placed beside what they explain, never over it.

use super::super::NotDrawn;
use super::look::{BLACK, Dash, Mark, colour};
use super::sheet::{Sheet, TEXT};
use plotters::style::text_anchor::HPos;

/// Sample in front of a name.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    /// A line with its mark.
    Line(Dash, Mark),
    /// A black line without a mark.
    Level(Dash),
    /// An area.
    Area,
}

/// Distances in design pixels: width of a sample, gap to the name, gap to the next entry, and row height.
const SAMPLE: f64 = 34.0;
const GAP: f64 = 7.0;
const NEXT: f64 = 22.0;
pub const ROW: f64 = 19.0;

/// Draws legend entries in rows, starting at `from`, and continues the sheet below them. The `i`-th entry has the `i`-th colour.
pub fn draw(sheet: &mut Sheet<'_>, from: i32, entries: &[(&str, Sample)]) -> Result<(), NotDrawn> {
    let (sample_width, gap) = (sheet.px(SAMPLE), sheet.px(GAP));
    let mut x = from;
    for (i, (name, sample)) in entries.iter().enumerate() {
        let width = sample_width + gap + sheet.width(name, TEXT);
        if x > sheet.left && x + width > sheet.right {
            x = sheet.left;
            sheet.top += sheet.px(ROW);
        }
        let middle = sheet.top + sheet.px(ROW / 2.0);
        match *sample {
            Sample::Line(dash, mark) => {
                let ends = vec![(x, middle), (x + sample_width, middle)];
                sheet.line(ends, colour(i), 2.0, dash)?;
                sheet.mark(mark, (x + sample_width / 2, middle), colour(i))?;
            }
            Sample::Level(dash) => {
                let ends = vec![(x, middle), (x + sample_width, middle)];
                sheet.line(ends, BLACK, 1.6, dash)?;
            }
            Sample::Area => {
                let half = sheet.px(6.0);
                sheet.area((x, middle - half), (x + sample_width, middle + half), i)?;
            }
        }
        let place = (
            x + sample_width + gap,
            sheet.top + sheet.px((ROW - TEXT) / 2.0),
        );
        sheet.text(name, TEXT, HPos::Left, place)?;
        x += width + sheet.px(NEXT);
    }
    if !entries.is_empty() {
        sheet.top += sheet.px(ROW + 6.0);
    }
    Ok(())
}
