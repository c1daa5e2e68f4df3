//! Draws figures.

mod axes;
mod bars;
mod groups;
mod legend;
mod look;
mod panels;
mod sheet;

use super::{Drawn, NotDrawn, Size};
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea;
use plotters::style::{FontStyle, register_font};
use sheet::Sheet;
use std::fmt::Write as _;
use std::sync::Once;

/// The font of all figures, part of the program so that figures do not depend on the machine.
pub(super) const FONT: &str = "sans-serif";
/// The font's file.
pub const FONT_FILE: &[u8] = epaint_default_fonts::UBUNTU_LIGHT;
/// Library units per pixel. The plotting library uses whole numbers; this many units keep lines straight.
const UNITS_PER_PIXEL: f64 = 16.0;

/// A figure that can be drawn.
pub(super) trait Draw {
    /// Returns the title above the figure; may be empty.
    fn title(&self) -> &str;

    /// Draws the figure into the free part of `sheet`.
    fn draw(&self, sheet: &mut Sheet<'_>) -> Result<(), NotDrawn>;
}

/// Returns `what` as an SVG file.
pub(super) fn svg(what: &impl Draw, size: Size) -> Drawn {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // Fails only if the font is broken; then drawing text reports the error.
        let _ = register_font(FONT, FontStyle::Normal, FONT_FILE);
    });
    let (width, height) = size.css();
    let units = |pixels: f64| (pixels * UNITS_PER_PIXEL).round() as u32;
    let mut drawn = String::new();
    {
        let area = SVGBackend::with_string(&mut drawn, (units(width), units(height)));
        let area = area.into_drawing_area();
        area.fill(&look::WHITE).map_err(NotDrawn::because)?;
        let mut sheet = Sheet::new(area.clone(), width);
        sheet.heading(what.title())?;
        what.draw(&mut sheet)?;
        area.present().map_err(NotDrawn::because)?;
    }
    Ok(sized(&drawn, what.title(), size))
}

/// Returns the drawing with its title and its intended size.
fn sized(drawn: &str, title: &str, size: Size) -> String {
    let (width, height) = size.css();
    let (head, rest) = drawn.split_once('>').unwrap_or(("", drawn));
    let view = head.split_once("viewBox=").map_or("", |(_, view)| view);
    let mut text =
        format!("<svg width=\"{width:.2}\" height=\"{height:.2}\" role=\"img\" viewBox={view}>");
    if !title.is_empty() {
        let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(text, "\n<title>{escaped}</title>");
    }
    text + rest
}
