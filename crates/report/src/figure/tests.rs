//! Figures are files of their kind with all names in them.

use super::*;
use std::path::Path;

fn curves() -> Curves {
    let curve = |name: &str, dashed, points: &[(u64, f64)]| Curve {
        name: name.to_owned(),
        dashed,
        points: points.to_vec(),
    };
    Curves {
        title: "Kept off the bus".to_owned(),
        x: "cache".to_owned(),
        y: "content".to_owned(),
        curves: vec![
            curve(
                "lru",
                false,
                &[(1 << 16, 3.0), (1 << 20, 40.0), (1 << 24, 80.0)],
            ),
            curve("lru", true, &[(1 << 16, 2.0), (1 << 24, 70.0)]),
            curve("sieve", false, &[(1 << 16, 4.0), (1 << 24, 85.0)]),
        ],
    }
}

fn bars() -> Bars {
    let bar = |name: &str, parts: &[f64]| Bar {
        name: name.to_owned(),
        is_doubtful: name.ends_with("4 MB"),
        parts: parts.to_vec(),
    };
    Bars {
        title: "Bus".to_owned(),
        y: "utilisation, %".to_owned(),
        most: 100.0,
        parts: vec!["content".to_owned(), "overhead".to_owned()],
        bars: vec![
            bar("nasa\n0 MB", &[60.0, 30.0]),
            bar("nasa\n4 MB", &[40.0, 20.0]),
        ],
    }
}

fn panels() -> Panels {
    let line = |name: &str, points: &[(f64, f64)]| Line {
        name: name.to_owned(),
        dashed: name == "both",
        points: points.to_vec(),
        intervals: Vec::new(),
        doubtful: Vec::new(),
    };
    Panels {
        title: "Batching".to_owned(),
        x: "connections".to_owned(),
        log_x: true,
        panels: vec![
            Panel {
                y: "response time".to_owned(),
                log_y: true,
                lines: vec![
                    line("host", &[(1.0, 2.0), (10.0, 3.0), (10_000.0, 400.0)]),
                    line("both", &[(1.0, 0.0), (100.0, 3.0), (1_000.0, 900.0)]),
                ],
            },
            Panel {
                y: "crossings".to_owned(),
                log_y: false,
                lines: vec![line("host", &[(1.0, 9.0), (10_000.0, 4.0)])],
            },
        ],
    }
}

#[test]
fn panels_share_an_axis_and_a_legend() {
    let svg = String::from_utf8(panels().draw(Picture::Svg).unwrap()).unwrap();
    for words in [
        "Batching",
        "connections",
        "response time",
        "crossings",
        "10,000",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    for name in ["\nhost\n", "\nboth\n"] {
        assert_eq!(svg.matches(name).count(), 1, "one entry in the legend");
    }
    assert_eq!(
        svg.matches("<circle").count(),
        7,
        "the point without a logarithm is left out"
    );
    Panels {
        panels: Vec::new(),
        ..panels()
    }
    .draw(Picture::Svg)
    .unwrap();
}

#[test]
fn intervals_are_upright_lines() {
    let strokes = |panels: &Panels| {
        let svg = String::from_utf8(panels.draw(Picture::Svg).unwrap()).unwrap();
        svg.matches("<polyline").count()
    };
    let without = panels();
    let mut with = panels();
    // The second begins where an axis of logarithms has no place, the third ends there.
    with.panels[0].lines[0].intervals = vec![(1.0, 2.0, 3.0), (10.0, 0.0, 5.0), (100.0, -2.0, 0.0)];
    assert_eq!(strokes(&with), strokes(&without) + 2);
}

#[test]
fn groups_have_names_legends_and_bars() {
    let series = |name: &str, values: &[Option<f64>]| GroupSeries {
        name: name.to_owned(),
        values: values.to_vec(),
    };
    let groups = Groups {
        title: "NICs".to_owned(),
        names: vec!["1 first".to_owned(), "2 second".to_owned()],
        panels: vec![
            GroupPanel {
                y: "Mb/s".to_owned(),
                series: vec![series("send", &[Some(900.0), Some(600.0)])],
            },
            GroupPanel {
                y: "1/ms".to_owned(),
                series: vec![
                    series("accept", &[Some(10.0), None]),
                    series("open", &[Some(20.0), Some(5.0)]),
                ],
            },
        ],
    };
    let svg = String::from_utf8(groups.draw(Picture::Svg).unwrap()).unwrap();
    for words in ["NICs", "1 first", "2 second", "Mb/s", "accept", "open"] {
        assert!(svg.contains(words), "{words}");
    }
    // The ground, three entries of legends, and a bar for each value.
    assert_eq!(svg.matches("<rect").count(), 1 + 3 + 5);
    let empty = Groups {
        names: Vec::new(),
        panels: Vec::new(),
        ..groups
    };
    empty.draw(Picture::Svg).unwrap();
}

#[test]
fn the_ending_of_a_path_says_the_kind() {
    assert_eq!(Picture::of_path(Path::new("a/b.SVG")), Some(Picture::Svg));
    assert_eq!(Picture::of_path(Path::new("b.png")), Some(Picture::Png));
    assert_eq!(Picture::of_path(Path::new("b.jpg")), None);
    assert_eq!(Picture::of_path(Path::new("svg")), None);
}

#[test]
fn a_drawing_has_its_words_and_lines() {
    let svg = String::from_utf8(curves().draw(Picture::Svg).unwrap()).unwrap();
    for words in [
        "<svg",
        "Kept off the bus",
        "64 KiB",
        "16 MiB",
        "100 %",
        "cache",
        "content",
        "lru",
        "sieve",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    assert_eq!(
        svg.matches("\nlru\n").count(),
        1,
        "one entry in the legend for both"
    );
    let svg = String::from_utf8(bars().draw(Picture::Svg).unwrap()).unwrap();
    for words in ["Bus", "utilisation, %", "overhead", "nasa", "4 MB"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn a_bitmap_is_a_png_that_is_not_empty() {
    for file in [
        curves().draw(Picture::Png),
        bars().draw(Picture::Png),
        panels().draw(Picture::Png),
    ] {
        let file = file.unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let inked = pixels.iter().filter(|&&value| value < 128).count();
        assert!(inked > 5000, "{inked} dark values");
    }
}

#[test]
fn nothing_and_a_single_point_are_drawn_too() {
    let mut empty = curves();
    empty.curves.clear();
    empty.draw(Picture::Svg).unwrap();
    let mut point = curves();
    point.curves.truncate(1);
    point.curves[0].points.truncate(1);
    point.draw(Picture::Png).unwrap();
}

#[test]
fn runs_that_were_not_steady_are_marked_with_what_to_do() {
    let text = |figure: Figure| String::from_utf8(figure.draw(Picture::Svg).unwrap()).unwrap();
    let svg = text(Figure::Bars(bars()));
    assert!(
        svg.contains("nasa *") && svg.contains(&NOT_STEADY[2..]),
        "{svg}"
    );
    assert!(!text(Figure::Panels(panels())).contains(NOT_STEADY));
    let mut panels = panels();
    panels.panels[0].lines[0].doubtful = vec![10.0, 11.0];
    let svg = text(Figure::Panels(panels));
    assert_eq!(svg.matches("\n*\n").count(), 1, "the point of that run");
    assert!(svg.contains(NOT_STEADY), "{svg}");
}
