//! The sheet that a figure is drawn on, and the sizes of its elements.

use super::super::{NOT_STEADY, NotDrawn};
use super::look::{BLACK, Dash, Mark};
use super::{FONT, UNITS_PER_PIXEL};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{Circle, PathElement, Polygon, Text};
use plotters::series::DashedLineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Text sizes in design pixels. A figure of usual width is 960 design pixels wide.
pub const TITLE: f64 = 20.0;
pub const TEXT: f64 = 14.0;
/// Minimum text size in CSS pixels: 7 points.
const LEAST_TEXT: f64 = 9.4;
/// Width from which on text no longer grows.
const USUAL_WIDTH: f64 = 960.0;
const MARGIN: f64 = 12.0;

/// A figure that is being drawn from top to bottom. Positions are in the plotting library's units, relative to the figure's corner.
pub struct Sheet<'a> {
    whole: Area<'a>,
    /// Library units per design pixel.
    units: f64,
    /// The free part of the sheet: left, top, right, bottom.
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

impl<'a> Sheet<'a> {
    /// Creates an empty sheet of this width in CSS pixels.
    pub fn new(whole: Area<'a>, width: f64) -> Self {
        let scale = (width / USUAL_WIDTH).clamp(LEAST_TEXT / TEXT, 1.0);
        let (width, height) = whole.dim_in_pixel();
        let mut sheet = Self {
            whole,
            units: UNITS_PER_PIXEL * scale,
            left: 0,
            top: 0,
            right: i32::try_from(width).unwrap_or(i32::MAX),
            bottom: i32::try_from(height).unwrap_or(i32::MAX),
        };
        let margin = sheet.px(MARGIN);
        sheet.left += margin;
        sheet.top += margin;
        sheet.right -= margin;
        sheet.bottom -= margin;
        sheet
    }

    /// Converts design pixels to the library's units.
    pub fn px(&self, pixels: f64) -> i32 {
        (pixels * self.units).round() as i32
    }

    /// Converts design pixels to the library's units, for font sizes and line widths.
    pub fn stroke(&self, pixels: f64) -> u32 {
        self.px(pixels).unsigned_abs().max(1)
    }

    /// Returns how many items of `pixels` design pixels fit into `units` library units.
    pub fn room(&self, units: i32, pixels: f64) -> usize {
        usize::try_from(units / self.px(pixels).max(1)).unwrap_or(0)
    }

    /// Returns the part of the figure between these positions.
    pub fn part(&self, left: i32, top: i32, right: i32, bottom: i32) -> Area<'a> {
        let size = |from: i32, to: i32| (to - from).max(1).unsigned_abs();
        self.whole
            .clone()
            .shrink((left, top), (size(left, right), size(top, bottom)))
    }

    /// Returns the style of text of this size.
    pub fn style(&self, size: f64) -> TextStyle<'static> {
        TextStyle::from((FONT, f64::from(self.px(size))).into_font())
    }

    /// Returns the width of a text of this size.
    pub fn width(&self, text: &str, size: f64) -> i32 {
        let width = self.whole.estimate_text_size(text, &self.style(size));
        width.map_or(0, |(width, _)| i32::try_from(width).unwrap_or(0))
    }

    /// Breaks a text into lines of at most `width`, except for words that are longer.
    pub fn lines(&self, text: &str, size: f64, width: i32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if self.width(&format!("{line} {word}"), size) <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    }

    /// Draws a text with this horizontal anchor, its top at `place`.
    pub fn text(
        &self,
        text: &str,
        size: f64,
        anchor: HPos,
        place: (i32, i32),
    ) -> Result<(), NotDrawn> {
        let style = self.style(size).pos(Pos::new(anchor, VPos::Top));
        let text = Text::new(text.to_owned(), place, style);
        self.whole.draw(&text).map_err(NotDrawn::because)
    }

    /// Draws the title, and continues the sheet below it.
    pub fn heading(&mut self, title: &str) -> Result<(), NotDrawn> {
        let lines = self.lines(title, TITLE, self.right - self.left);
        for line in &lines {
            self.text(line, TITLE, HPos::Left, (self.left, self.top))?;
            self.top += self.px(TITLE * 1.25);
        }
        Ok(())
    }

    /// Draws text below a figure, from the bottom upwards.
    pub fn footing(&mut self, text: &str) -> Result<(), NotDrawn> {
        let lines = self.lines(text, TEXT, self.right - self.left);
        let middle = (self.left + self.right) / 2;
        for line in lines.iter().rev() {
            self.bottom -= self.px(TEXT * 1.3);
            self.text(line, TEXT, HPos::Center, (middle, self.bottom))?;
        }
        Ok(())
    }

    /// Explains below the figure what its stars mean, if it has any.
    pub fn note(&mut self, is_doubtful: bool) -> Result<(), NotDrawn> {
        match is_doubtful {
            true => self.footing(NOT_STEADY),
            false => Ok(()),
        }
    }

    /// Draws a line through several positions.
    pub fn line(
        &self,
        places: Vec<(i32, i32)>,
        colour: RGBColor,
        width: f64,
        dash: Dash,
    ) -> Result<(), NotDrawn> {
        let style = colour.stroke_width(self.stroke(width));
        match dash {
            None => self.whole.draw(&PathElement::new(places, style)),
            Some((dash, gap)) => {
                let series =
                    DashedLineSeries::new(places, self.stroke(dash), self.stroke(gap), style);
                series
                    .into_iter()
                    .try_for_each(|part| self.whole.draw(&part))
            }
        }
        .map_err(NotDrawn::because)
    }

    /// Draws a filled polygon.
    pub fn fill(&self, corners: Vec<(i32, i32)>, colour: RGBColor) -> Result<(), NotDrawn> {
        let polygon = Polygon::new(corners, colour.filled());
        self.whole.draw(&polygon).map_err(NotDrawn::because)
    }

    /// Draws a mark.
    pub fn mark(&self, mark: Mark, (x, y): (i32, i32), colour: RGBColor) -> Result<(), NotDrawn> {
        let corners = |shape: &[(f64, f64)]| {
            shape
                .iter()
                .map(|&(h, v)| (x + self.px(h), y + self.px(v)))
                .collect()
        };
        let strokes = |ends: [[(f64, f64); 2]; 2]| {
            ends.iter()
                .try_for_each(|ends| self.line(corners(ends), colour, 1.8, None))
        };
        match mark {
            Mark::Disc => {
                let disc = Circle::new((x, y), self.px(3.4), colour.filled());
                self.whole.draw(&disc).map_err(NotDrawn::because)
            }
            Mark::Ring => {
                let ring = Circle::new((x, y), self.px(3.4), super::look::WHITE.filled());
                self.whole.draw(&ring).map_err(NotDrawn::because)?;
                let ring = Circle::new((x, y), self.px(3.4), colour.stroke_width(self.stroke(1.6)));
                self.whole.draw(&ring).map_err(NotDrawn::because)
            }
            Mark::Square => self.fill(
                corners(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
                colour,
            ),
            Mark::Triangle => self.fill(corners(&[(0.0, -4.6), (4.2, 3.2), (-4.2, 3.2)]), colour),
            Mark::Diamond => self.fill(
                corners(&[(0.0, -4.8), (4.2, 0.0), (0.0, 4.8), (-4.2, 0.0)]),
                colour,
            ),
            Mark::Cross => strokes([[(-3.4, -3.4), (3.4, 3.4)], [(-3.4, 3.4), (3.4, -3.4)]]),
            Mark::Plus => strokes([[(-4.4, 0.0), (4.4, 0.0)], [(0.0, -4.4), (0.0, 4.4)]]),
        }
    }

    /// Draws an area with its hatching and its border.
    pub fn area(&self, from: (i32, i32), to: (i32, i32), i: usize) -> Result<(), NotDrawn> {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        if left == right || top == bottom {
            return Ok(());
        }
        let corners = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        self.fill(corners.clone(), super::look::colour(i))?;
        for hatch in super::look::hatches(i) {
            for ends in super::look::hatching(*hatch, self.px(6.0), left, top, right, bottom) {
                self.line(ends.to_vec(), super::look::WHITE, 1.2, None)?;
            }
        }
        let around = [corners.clone(), vec![corners[0]]].concat();
        self.line(around, BLACK, 0.6, None)
    }
}
