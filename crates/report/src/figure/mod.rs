//! Figures as files: curves, stacked bars, groups of bars and panels of lines, as SVG, as CSV data, and as Vega-Lite specifications.
//!
//! Figures are described by data ([`Curves`], [`Bars`], [`Groups`], [`Panels`]). Drawing them needs the feature `figures`: without it
//! ([`CAN_DRAW`]), every figure is [`NotDrawn`].

#[cfg(feature = "figures")]
mod axis;
mod bars;
mod curves;
mod data;
#[cfg(feature = "figures")]
mod drawing;
mod groups;
mod panels;
mod size;
mod vega;

pub use bars::{Bar, Bars};
pub use curves::{Curve, Curves};
#[cfg(feature = "figures")]
pub use drawing::FONT_FILE;
pub use groups::{GroupPanel, GroupSeries, Groups};
pub use panels::{Line, Panel, Panels};
pub use size::{BadSize, Extent, Size};

/// Whether figures can be drawn, i.e. whether the feature `figures` is on.
pub const CAN_DRAW: bool = cfg!(feature = "figures");

/// Text below a figure with runs that were not steady, which explains its marks and what to do.
#[cfg(feature = "figures")]
const NOT_STEADY: &str =
    "* not steady: measure longer (--packets, --requests) or warm up longer (--warmup)";

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
    /// Returns the figure as SVG.
    ///
    /// # Errors
    /// The drawing library fails, or is not compiled in.
    #[cfg(feature = "figures")]
    pub fn svg(&self, size: Size) -> Drawn {
        match self {
            Self::Curves(curves) => drawing::svg(curves, size),
            Self::Bars(bars) => drawing::svg(bars, size),
            Self::Groups(groups) => drawing::svg(groups, size),
            Self::Panels(panels) => drawing::svg(panels, size),
        }
    }

    /// Returns an error, because the drawing library is not compiled in.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "figures"))]
    pub fn svg(&self, _: Size) -> Drawn {
        Err(NotDrawn::because(
            "this program was built without the feature `figures`",
        ))
    }
}

impl From<Curves> for Figure {
    fn from(curves: Curves) -> Self {
        Self::Curves(curves)
    }
}

impl From<Groups> for Figure {
    fn from(groups: Groups) -> Self {
        Self::Groups(groups)
    }
}

impl From<Panels> for Figure {
    fn from(panels: Panels) -> Self {
        Self::Panels(panels)
    }
}

/// A figure's file, or why it could not be drawn.
pub type Drawn = Result<String, NotDrawn>;

/// The drawing library failed, or is not compiled in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the figure cannot be drawn: {0}")]
pub struct NotDrawn(String);

impl NotDrawn {
    /// Creates the error from its reason.
    pub fn because(reason: impl std::fmt::Display) -> Self {
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
        let figure = Figure::Curves(Curves {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            curves: Vec::new(),
        });
        let error = figure.svg(Size::default()).unwrap_err();
        assert!(error.to_string().contains("without the feature `figures`"));
    }
}
