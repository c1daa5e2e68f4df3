//! Converts SVG to other formats.

use crate::failure::Failure;
use baton_report::figure::{FONT_FILE, Size};
use krilla::Document;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt as _, SvgSettings};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use std::sync::Arc;

/// Returns a PDF page of this size, with its font embedded.
///
/// # Errors
/// Fails if the page cannot be made.
pub fn pdf(svg: &str, size: Size) -> Result<Vec<u8>, Failure> {
    let tree = tree(svg)?;
    let (width, height) = size.points();
    let (width, height) = (width as f32, height as f32);
    let settings = PageSettings::from_wh(width, height).ok_or_else(|| failed("no page"))?;
    let area = krilla::geom::Size::from_wh(width, height).ok_or_else(|| failed("no page"))?;
    let mut document = Document::new();
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    let drawn = surface.draw_svg(&tree, area, SvgSettings::default());
    drawn.ok_or_else(|| failed("its text cannot be set"))?;
    surface.finish();
    page.finish();
    document
        .finish()
        .map_err(|error| failed(format!("{error:?}")))
}

/// Returns a PNG picture with the pixels of this size, which records their number per inch.
///
/// # Errors
/// Fails if the picture cannot be made.
pub fn png(svg: &str, size: Size) -> Result<Vec<u8>, Failure> {
    let tree = tree(svg)?;
    let (width, height) = size.pixels();
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed("too many pixels"))?;
    let (of_width, of_height) = (tree.size().width(), tree.size().height());
    let scale = Transform::from_scale(width as f32 / of_width, height as f32 / of_height);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    // Figures have no transparent pixels.
    let colours = pixels
        .data()
        .chunks_exact(4)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]);
    let colours: Vec<u8> = colours.collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: size.pixels_per_metre(),
        yppu: size.pixels_per_metre(),
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&colours).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

/// Parses an SVG. Only the font in the program is used, so that figures do not depend on the machine.
fn tree(svg: &str) -> Result<Tree, Failure> {
    let mut options = Options::default();
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(FONT_FILE.to_vec());
    let family = fonts.faces().next().and_then(|face| face.families.first());
    let family = family.map(|(name, _)| name.clone()).unwrap_or_default();
    fonts.set_sans_serif_family(family);
    Tree::from_str(svg, &options).map_err(failed)
}

fn failed(reason: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("the figure cannot be drawn: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_report::figure::{Figure, Line, Panel, Panels};

    fn figure() -> Figure {
        Figure::Panels(Panels {
            title: "Rates".to_owned(),
            x: "speed, MIPS".to_owned(),
            log_x: false,
            panels: vec![Panel {
                y: "rate, 1/s".to_owned(),
                log_y: false,
                lines: vec![Line {
                    name: "one".to_owned(),
                    dashed: false,
                    points: vec![(100.0, 2.0), (200.0, 3.0)],
                    intervals: vec![(100.0, 1.0, 3.0)],
                    doubtful: Vec::new(),
                }],
            }],
        })
    }

    fn size() -> Size {
        Size::new(Some("84mm x 60mm".parse().expect("a size")), Some(150)).expect("a size")
    }

    #[test]
    fn a_png_has_the_requested_size_text_and_lines() {
        let svg = figure().svg(size()).expect("is drawn");
        let file = png(&svg, size()).expect("is made");
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .expect("a picture");
        assert_eq!((reader.info().width, reader.info().height), (496, 354));
        let dimensions = reader.info().pixel_dims.expect("it says how large it is");
        assert_eq!((dimensions.xppu, dimensions.unit), (5906, png::Unit::Meter));
        let mut pixels = vec![0; reader.output_buffer_size().expect("not too large")];
        reader.next_frame(&mut pixels).expect("pixels");
        let inked = |pixels: &[u8]| pixels.iter().filter(|&&value| value < 128).count();
        assert!(inked(&pixels) > 3000, "{} dark values", inked(&pixels));
        // The title is in the first rows: without a font they would be white.
        assert!(inked(&pixels[..496 * 3 * 40]) > 300);
    }

    #[test]
    fn a_pdf_has_the_requested_size_and_embeds_its_font() {
        let svg = figure().svg(size()).expect("is drawn");
        let file = pdf(&svg, size()).expect("is made");
        let text = String::from_utf8_lossy(&file);
        assert!(text.starts_with("%PDF-"));
        // 84 mm x 60 mm in points, of which an inch has 72.
        for words in [
            "/MediaBox[0 0 238.11",
            " 170.07",
            "Ubuntu-Light",
            "/FontFile",
        ] {
            assert!(text.contains(words), "{words}");
        }
        assert_eq!(
            pdf(&svg, size()).expect("is made"),
            file,
            "the same each time"
        );
    }
}
