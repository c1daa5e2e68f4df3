//! Sizes of figures.

use std::fmt;
use std::str::FromStr;

/// Pixels per inch in CSS and SVG.
const CSS_PER_INCH: f64 = 96.0;
const MM_PER_INCH: f64 = 25.4;
const POINTS_PER_INCH: f64 = 72.0;
/// Resolution of a figure whose size is given as lengths, as journals print it.
const PRINTED_DPI: f64 = 300.0;
/// Allowed lengths of a figure's side, in inches.
const SIDES: std::ops::RangeInclusive<f64> = 1.0..=100.0;

/// Size of a figure: its printed size, and the resolution of a bitmap of that size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    inches: (f64, f64),
    dpi: f64,
}

impl Default for Size {
    /// 960 x 600 pixels on a screen.
    fn default() -> Self {
        Self {
            inches: (960.0 / CSS_PER_INCH, 600.0 / CSS_PER_INCH),
            dpi: CSS_PER_INCH,
        }
    }
}

impl Size {
    /// Creates a size from the user's choices. The default resolution is 96 pixels per inch, or 300 if the size is given as lengths.
    ///
    /// # Errors
    /// A side is shorter or longer than allowed.
    pub fn new(extent: Option<Extent>, dpi: Option<u32>) -> Result<Self, BadSize> {
        let extent = extent.unwrap_or(Extent {
            sides: (960.0, 600.0),
            unit: Unit::Pixel,
        });
        let usual = match extent.unit {
            Unit::Pixel => CSS_PER_INCH,
            _ => PRINTED_DPI,
        };
        let dpi = dpi.map_or(usual, f64::from);
        let inch = extent.unit.of_an_inch(dpi);
        let inches = (extent.sides.0 / inch, extent.sides.1 / inch);
        match SIDES.contains(&inches.0) && SIDES.contains(&inches.1) {
            true => Ok(Self { inches, dpi }),
            false => Err(BadSize),
        }
    }

    /// Returns the size in CSS or SVG pixels.
    pub fn css(self) -> (f64, f64) {
        (self.inches.0 * CSS_PER_INCH, self.inches.1 * CSS_PER_INCH)
    }

    /// Returns the size in points, of 1/72 inch.
    pub fn points(self) -> (f64, f64) {
        let (width, height) = self.inches;
        (width * POINTS_PER_INCH, height * POINTS_PER_INCH)
    }

    /// Returns the size in pixels of a bitmap.
    pub fn pixels(self) -> (u32, u32) {
        let pixels = |inches: f64| (inches * self.dpi).round() as u32;
        (pixels(self.inches.0), pixels(self.inches.1))
    }

    /// Returns the pixels per metre of a bitmap.
    pub fn pixels_per_metre(self) -> u32 {
        (self.dpi * 1000.0 / MM_PER_INCH).round() as u32
    }
}

/// The size is not allowed for a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected sides from 25.4 mm to 2540 mm; --dpi says how many pixels an inch has")]
pub struct BadSize;

/// Width and height, as in `84mm x 60mm` or `1200x800`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extent {
    sides: (f64, f64),
    unit: Unit,
}

baton_named::named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Unit {
        Pixel => "px",
        Millimetre => "mm",
        Centimetre => "cm",
        Inch => "in",
        Point => "pt",
    }
}

impl Unit {
    /// Returns how many of this unit make an inch.
    const fn of_an_inch(self, dpi: f64) -> f64 {
        match self {
            Self::Pixel => dpi,
            Self::Millimetre => MM_PER_INCH,
            Self::Centimetre => MM_PER_INCH / 10.0,
            Self::Inch => 1.0,
            Self::Point => POINTS_PER_INCH,
        }
    }
}

impl FromStr for Extent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let side = |text: &str| {
            let text = text.trim();
            let unit = Unit::ALL
                .into_iter()
                .find(|unit| text.ends_with(unit.name()));
            let number = text
                .strip_suffix(unit.map_or("", Unit::name))
                .unwrap_or(text);
            let number: f64 = number.trim_end().parse().ok()?;
            (number.is_finite() && number > 0.0).then_some((number, unit))
        };
        let sides = text.split_once(['x', 'X', '×'].as_slice());
        // "px" has an x, too.
        let sides = match text.split_once("px") {
            Some((width, rest)) => rest
                .trim_start()
                .strip_prefix('x')
                .map(|height| (width, height))
                .or(sides),
            None => sides,
        };
        let sides = sides.and_then(|(width, height)| Some((side(width)?, side(height)?)));
        let expected = "expected WIDTHxHEIGHT, as in 84mm x 60mm or 1200x800";
        let ((width, of_width), (height, of_height)) = sides.ok_or(expected)?;
        match (of_width, of_height) {
            (Some(one), Some(other)) if one != other => {
                Err("expected one unit for both sides, as in 84mm x 60mm")
            }
            (one, other) => Ok(Self {
                sides: (width, height),
                unit: one.or(other).unwrap_or(Unit::Pixel),
            }),
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.sides;
        let unit = self.unit.name();
        write!(f, "{width}{unit} x {height}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(extent: &str, dpi: Option<u32>) -> Size {
        Size::new(Some(extent.parse().unwrap()), dpi).unwrap()
    }

    #[test]
    fn lengths_and_pixels_are_distinguished() {
        for text in ["84mm x 60mm", "84x60mm", "84 mm × 60 mm", "8.4cm x 6cm"] {
            assert_eq!(size(text, None).pixels(), (992, 709), "{text}");
        }
        for text in ["1200x800", "1200px x 800px", "1200x800px", "1200px x 800"] {
            assert_eq!(size(text, Some(300)).pixels(), (1200, 800), "{text}");
        }
        assert_eq!(size("3in x 2in", Some(600)).pixels(), (1800, 1200));
        assert_eq!(size("216pt x 144pt", None).points(), (216.0, 144.0));
        assert_eq!(Size::new(None, None), Ok(Size::default()));
        // More pixels per inch make a smaller figure with relatively larger text.
        assert_eq!(size("1200x600", Some(192)).css(), (600.0, 300.0));
        assert_eq!(size("960x600", None).pixels_per_metre(), 3780);
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "",
            "84mm",
            "x",
            "84mm x",
            "axb",
            "-1x2",
            "nanxnan",
            "infx1",
            "84mm x 60in",
            "84em x 60em",
        ] {
            assert!(text.parse::<Extent>().is_err(), "{text}");
        }
        for text in ["1mm x 1mm", "960000x600", "10x10"] {
            assert_eq!(
                Size::new(Some(text.parse().unwrap()), None),
                Err(BadSize),
                "{text}"
            );
        }
    }
}
