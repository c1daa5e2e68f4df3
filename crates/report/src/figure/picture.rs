//! Kinds of picture files.

use super::{Drawn, NotDrawn};
use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::prelude::DrawingBackend;
use plotters::style::{FontStyle, RGBColor, register_font};
use std::path::Path;
use std::sync::Once;

/// Width and height of all figures in pixels.
const SIZE: (u32, u32) = (960, 600);
/// The font of all figures, part of the program so that figures do not depend on the machine.
pub(super) const FONT: &str = "sans-serif";
const WHITE: RGBColor = RGBColor(255, 255, 255);

/// A kind of picture file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picture {
    /// Scalable vector graphics.
    Svg,
    /// Portable network graphics.
    Png,
}

/// Something to draw.
pub(super) trait Draw {
    /// Draws it into the whole of `area`.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Result<(), NotDrawn>;
}

impl Picture {
    /// The kind that the ending of `path` asks for: `.svg` or `.png`.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            _ => None,
        }
    }

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
