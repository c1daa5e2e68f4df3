//! The drawing of figures.

mod bars;
mod curves;
mod groups;
mod panels;

use super::{Drawn, NOT_STEADY, NotDrawn, Picture};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::Text;
use plotters::prelude::DrawingBackend;
use plotters::style::{FontStyle, IntoFont, RGBColor, register_font};
use std::sync::Once;

/// Width and height of all figures in pixels.
const SIZE: (u32, u32) = (960, 600);
/// The font of all figures, part of the program so that figures do not depend on the machine.
pub(super) const FONT: &str = "sans-serif";
const WHITE: RGBColor = RGBColor(255, 255, 255);
const BLACK: RGBColor = RGBColor(0, 0, 0);
const FAINT: RGBColor = RGBColor(225, 225, 225);

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

/// Says below the figure what its marks are, if it has any.
fn draw_note<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    is_doubtful: bool,
) -> Result<(), NotDrawn> {
    if !is_doubtful {
        return Ok(());
    }
    let place = (16, i32::try_from(SIZE.1).unwrap_or(0) - 20);
    let note = Text::new(NOT_STEADY, place, (FONT, 14).into_font());
    area.draw(&note).map_err(NotDrawn::because)
}

/// Something to draw.
pub(super) trait Draw {
    /// Draws it into the whole of `area`.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), NotDrawn>;
}

impl Picture {
    /// The file that shows `what`.
    pub(super) fn of(self, what: &impl Draw) -> Drawn {
        static FONTS: Once = Once::new();
        FONTS.call_once(|| {
            // Fails only if the font is broken; then drawing text fails and says so.
            let font = epaint_default_fonts::UBUNTU_LIGHT;
            let _ = register_font(FONT, FontStyle::Normal, font);
        });
        match self {
            Self::Svg => svg(what),
            Self::Png => png(what),
        }
    }
}

fn svg(what: &impl Draw) -> Drawn {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        fill_and_draw(what, &area)?;
    }
    Ok(text.into_bytes())
}

fn png(what: &impl Draw) -> Drawn {
    let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area();
        fill_and_draw(what, &area)?;
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(NotDrawn::because)?;
    writer
        .write_image_data(&pixels)
        .and_then(|()| writer.finish())
        .map_err(NotDrawn::because)?;
    Ok(file)
}

fn fill_and_draw<B: DrawingBackend>(
    what: &impl Draw,
    area: &DrawingArea<B, Shift>,
) -> Result<(), NotDrawn> {
    area.fill(&WHITE).map_err(NotDrawn::because)?;
    what.draw(area)?;
    area.present().map_err(NotDrawn::because)
}
