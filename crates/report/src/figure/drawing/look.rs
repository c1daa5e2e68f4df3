//! Colours, dashes, marks and hatching. Dashes, marks and hatching repeat what colours show, for greyscale prints.

use plotters::style::RGBColor;

pub const WHITE: RGBColor = RGBColor(255, 255, 255);
pub const BLACK: RGBColor = RGBColor(0, 0, 0);
pub const FAINT: RGBColor = RGBColor(225, 225, 225);

/// Colours that colour-blind people can distinguish (Okabe and Ito, "Color universal design", 2008), then greys.
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

/// Returns the colour of the `i`-th item of a figure.
pub const fn colour(i: usize) -> RGBColor {
    COLOURS[i % COLOURS.len()]
}

/// Lengths of a dash and of the gap after it, in pixels; `None` for a solid line.
pub type Dash = Option<(f64, f64)>;

/// Returns the dashes of the `i`-th line, in figures where dashes have no other meaning.
pub const fn dash(i: usize) -> Dash {
    [
        None,
        Some((7.0, 3.0)),
        Some((2.0, 3.0)),
        Some((12.0, 4.0)),
        Some((4.0, 5.0)),
    ][i % 5]
}

/// Dashes of a line that has a solid counterpart.
pub const DASHED: Dash = Some((6.0, 5.0));

/// The shape of a mark at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
    Ring,
    Plus,
}

/// Returns the mark of the `i`-th line.
pub const fn mark(i: usize) -> Mark {
    use Mark::{Cross, Diamond, Disc, Plus, Ring, Square, Triangle};
    [Disc, Square, Triangle, Diamond, Cross, Ring, Plus][i % 7]
}

/// Direction of hatching lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hatch {
    Rising,
    Falling,
    Level,
}

/// Returns the hatching of the `i`-th area.
pub const fn hatches(i: usize) -> &'static [Hatch] {
    const OF: [&[Hatch]; 5] = [
        &[],
        &[Hatch::Rising],
        &[Hatch::Falling],
        &[Hatch::Level],
        &[Hatch::Rising, Hatch::Falling],
    ];
    OF[i % OF.len()]
}

/// Returns the hatching lines, `distance` apart, inside the rectangle from `(left, top)` to `(right, bottom)`.
pub fn hatching(
    hatch: Hatch,
    distance: i32,
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
) -> Vec<[(i32, i32); 2]> {
    let distance = distance.max(1);
    let multiples = |from: i32, to: i32| {
        let first = from.div_euclid(distance) + 1;
        (first..)
            .map(move |n| n * distance)
            .take_while(move |at| *at < to)
    };
    // Lines on which x + y or x - y is constant, clipped to the rectangle.
    match hatch {
        Hatch::Level => multiples(top, bottom)
            .map(|y| [(left, y), (right, y)])
            .collect(),
        Hatch::Rising => multiples(left + top, right + bottom)
            .map(|sum| {
                let (from, to) = (left.max(sum - bottom), right.min(sum - top));
                [(from, sum - from), (to, sum - to)]
            })
            .collect(),
        Hatch::Falling => multiples(left - bottom, right - top)
            .map(|difference| {
                let (from, to) = (left.max(difference + top), right.min(difference + bottom));
                [(from, from - difference), (to, to - difference)]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hatching_stays_inside() {
        for hatch in [Hatch::Rising, Hatch::Falling, Hatch::Level] {
            let lines = hatching(hatch, 4, -3, 10, 21, 30);
            assert!(lines.len() >= 4, "{hatch:?}: {lines:?}");
            for (x, y) in lines.into_iter().flatten() {
                assert!(
                    (-3..=21).contains(&x) && (10..=30).contains(&y),
                    "{hatch:?}: {x}, {y}"
                );
            }
            assert!(hatching(hatch, 4, 5, 5, 5, 5).is_empty());
        }
    }
}
