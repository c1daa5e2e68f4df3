//! Figures as files: curves, stacked bars, groups of bars and panels of lines, as SVG or PNG.
//!
//! What is drawn is data ([`Curves`], [`Bars`], [`Groups`], [`Panels`]); the drawing is the same for both kinds of file. It is the feature `figures`:
//! without it ([`CAN_DRAW`]) every figure is [`NotDrawn`].

mod bars;
mod curves;
#[cfg(feature = "figures")]
mod drawing;
mod groups;
mod panels;
mod picture;

pub use bars::{Bar, Bars};
pub use curves::{Curve, Curves};
pub use groups::{GroupPanel, GroupSeries, Groups};
pub use panels::{Line, Panel, Panels};
pub use picture::Picture;

/// Whether figures can be drawn: the feature `figures`.
pub const CAN_DRAW: bool = cfg!(feature = "figures");

/// Below a figure that shows runs which were not steady: what its marks say, and what to do.
#[cfg(feature = "figures")]
const NOT_STEADY: &str =
    "* not steady: measure longer (--packets, --responses) or warm up longer (--warmup)";

/// Any figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Curves over sizes.
    Curves(Curves),
    /// Stacked bars.
    Bars(Bars),
    /// Groups of bars in panels.
    Groups(Groups),
    /// Lines in panels.
    Panels(Panels),
}

impl Figure {
    /// The figure as a file.
    ///
    /// # Errors
    /// The drawing library fails, or is left out.
    pub fn draw(&self, picture: Picture) -> Drawn {
        match self {
            Self::Curves(curves) => curves.draw(picture),
            Self::Bars(bars) => bars.draw(picture),
            Self::Groups(groups) => groups.draw(picture),
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

/// The drawing library failed, or there is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the figure cannot be drawn: {0}")]
pub struct NotDrawn(String);

impl NotDrawn {
    fn because(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

#[cfg(all(test, feature = "figures"))]
mod tests;

#[cfg(all(test, not(feature = "figures")))]
mod undrawn {
    use super::*;

    #[test]
    fn a_figure_that_cannot_be_drawn_says_why() {
        let figure = Curves {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            curves: Vec::new(),
        };
        let error = figure.draw(Picture::Svg).unwrap_err();
        assert!(error.to_string().contains("without the feature `figures`"));
    }
}
