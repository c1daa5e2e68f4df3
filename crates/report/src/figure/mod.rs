//! Figures as files: curves, stacked bars and panels of lines, as SVG or PNG.
//!
//! What is drawn is data ([`Curves`], [`Bars`], [`Panels`]); the drawing is the same for both kinds of file.

mod bars;
mod curves;
mod panels;
mod picture;

pub use bars::{Bar, Bars};
pub use curves::{Curve, Curves};
pub use panels::{Line, Panel, Panels};
pub use picture::Picture;

use plotters::style::RGBColor;

/// Any figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Curves over sizes.
    Curves(Curves),
    /// Stacked bars.
    Bars(Bars),
    /// Lines in panels.
    Panels(Panels),
}

impl Figure {
    /// The figure as a file.
    ///
    /// # Errors
    /// The drawing library fails.
    pub fn draw(&self, picture: Picture) -> Drawn {
        match self {
            Self::Curves(curves) => curves.draw(picture),
            Self::Bars(bars) => bars.draw(picture),
            Self::Panels(panels) => panels.draw(picture),
        }
    }
}

impl From<Panels> for Figure {
    fn from(panels: Panels) -> Self {
        Self::Panels(panels)
    }
}

/// What a figure gives, or why it could not be drawn.
pub type Drawn = Result<Vec<u8>, NotDrawn>;

/// The drawing library failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the figure cannot be drawn: {0}")]
pub struct NotDrawn(String);

impl NotDrawn {
    fn because(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// Colours that people of all kinds of sight can tell apart (Okabe and Ito, "Color universal design", 2008), then greys.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(170, 150, 20),
    RGBColor(0, 0, 0),
    RGBColor(130, 130, 130),
    RGBColor(190, 190, 190),
];

/// The colour of the `i`-th thing in a figure.
const fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}

#[cfg(test)]
mod tests;
