//! Figures show all their names, and their data is everything that they show.

use super::*;
use serde_json::json;

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

fn svg(figure: impl Into<Figure>) -> String {
    figure.into().svg(Size::default()).unwrap()
}

fn all() -> [Figure; 4] {
    [
        curves().into(),
        Figure::Bars(bars()),
        groups().into(),
        panels().into(),
    ]
}

/// Returns whether `words` is a text element by itself.
fn says(svg: &str, words: &str) -> bool {
    svg.contains(&format!("\n{words}\n"))
}

#[test]
fn panels_share_an_axis_and_a_legend() {
    let text = svg(panels());
    for words in [
        "Batching",
        "connections (logarithmic)",
        "response time (logarithmic)",
        "crossings",
        "10,000",
        "1",
        "100",
    ] {
        assert!(says(&text, words), "{words}");
    }
    for name in ["\nhost\n", "\nboth\n"] {
        assert_eq!(text.matches(name).count(), 1, "one entry in the legend");
    }
    assert_eq!(
        text.matches("<circle").count(),
        1 + 3 + 2,
        "marks of the first line, and in the legend"
    );
    let nothing = Panels {
        panels: Vec::new(),
        ..panels()
    };
    svg(nothing);
}

#[test]
fn lines_differ_by_marks_and_by_dashes_without_another_meaning() {
    let line = |number: usize| Line {
        name: format!("line {number}"),
        dashed: false,
        points: vec![(1.0, number as f64), (2.0, number as f64)],
        intervals: Vec::new(),
        doubtful: Vec::new(),
    };
    let figure = |dashed| {
        let mut lines: Vec<Line> = (0..2).map(line).collect();
        lines[1].dashed = dashed;
        Panels {
            title: String::new(),
            x: "x".to_owned(),
            log_x: false,
            panels: vec![Panel {
                y: "y".to_owned(),
                log_y: false,
                lines,
            }],
        }
    };
    let strokes = |figure| svg(figure).matches("<polyline").count();
    // A dashed line is many strokes. The first line is always solid; so is the legend entry of the second if dashes have a meaning.
    assert!(strokes(figure(false)) > strokes(figure(true)) && strokes(figure(true)) > 20);
    let text = svg(figure(false));
    assert!(
        text.contains("<circle") && text.contains("<polygon"),
        "two shapes of marks"
    );
}

#[test]
fn intervals_are_vertical_lines_with_caps() {
    let strokes = |panels: &Panels| svg(panels.clone()).matches("<polyline").count();
    let without = panels();
    let mut with = panels();
    // The second interval starts below a logarithmic axis, and the third ends there.
    with.panels[0].lines[0].intervals = vec![(1.0, 2.0, 3.0), (10.0, 0.0, 5.0), (100.0, -2.0, 0.0)];
    let mut narrower = with.clone();
    narrower.panels[0].lines[0].intervals.pop();
    assert_eq!(strokes(&with), strokes(&narrower));
    narrower.panels[0].lines[0].intervals.pop();
    assert_eq!(strokes(&with), strokes(&narrower) + 3);
    assert!(strokes(&narrower) > strokes(&without));
}

fn groups() -> Groups {
    let series = |name: &str, values: &[Option<f64>]| GroupSeries {
        name: name.to_owned(),
        values: values.to_vec(),
        ..GroupSeries::default()
    };
    Groups {
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
        ..Groups::default()
    }
}

#[test]
fn runs_that_are_not_drawn_are_named() {
    let mut figure = panels();
    for panel in &mut figure.panels {
        panel.lines[0].doubtful = vec![20.0];
    }
    let text = svg(figure);
    assert!(says(&text, "left out, not steady: host at 20.0"), "{text}");
    assert!(!text.contains("* not steady"), "no point is marked");
}

#[test]
fn a_loss_is_a_bar_below_zero() {
    let mut figure = groups();
    let ticks = |figure: &Groups| says(&svg(figure.clone()), "-5");
    assert!(!ticks(&figure));
    figure.panels[1].series[0].values[1] = Some(-5.25);
    assert!(ticks(&figure));
}

#[test]
fn alike_panels_share_a_scale_a_legend_and_a_level() {
    let panel = |name: &str, heights: [f64; 2]| GroupPanel {
        y: name.to_owned(),
        series: vec![GroupSeries {
            name: "handed off".to_owned(),
            values: heights.map(Some).to_vec(),
            half_widths: vec![Some(0.1), None],
        }],
    };
    let figure = Groups {
        x: "connections".to_owned(),
        y: "share".to_owned(),
        level: Some((1.0, "kernel".to_owned())),
        panels: vec![panel("1 KB", [0.5, 0.2]), panel("1 MB", [3.0, 2.0])],
        ..groups()
    };
    let text = svg(figure);
    for (words, times) in [
        ("connections", 1),
        ("share", 1),
        ("kernel", 1),
        ("handed off", 1),
        ("3", 2),
    ] {
        assert_eq!(
            text.matches(&format!("\n{words}\n")).count(),
            times,
            "{words}"
        );
    }
}

#[test]
fn groups_have_names_legends_and_bars() {
    let text = svg(groups());
    for words in ["NICs", "1 first", "2 second", "Mb/s", "accept", "open"] {
        assert!(says(&text, words), "{words}");
    }
    assert_eq!(
        text.matches("<polygon").count(),
        3 + 5,
        "entries of legends, and a bar for each value"
    );
    let empty = Groups {
        names: Vec::new(),
        panels: Vec::new(),
        ..groups()
    };
    svg(empty);
}

#[test]
fn a_drawing_contains_its_text_and_units() {
    let text = svg(curves());
    for words in [
        "Kept off the bus",
        "64 KiB",
        "16 MiB",
        "80",
        "cache (logarithmic)",
        "content",
        "lru",
        "sieve",
    ] {
        assert!(says(&text, words), "{words}");
    }
    assert_eq!(
        text.matches("\nlru\n").count(),
        1,
        "one entry in the legend for both"
    );
    let text = svg(Figure::Bars(bars()));
    for words in ["Bus", "utilisation, %", "overhead", "nasa", "4 MB"] {
        assert!(says(&text, words), "{words}");
    }
}

#[test]
fn a_figure_has_the_requested_size_and_readable_text() {
    let size = Size::new(Some("84mm x 60mm".parse().unwrap()), None).unwrap();
    for figure in all() {
        let text = figure.svg(size).unwrap();
        assert!(
            text.starts_with(
                "<svg width=\"317.48\" height=\"226.77\" role=\"img\" viewBox=\"0 0 5080 3628\""
            ),
            "{text:.120}"
        );
        let sizes = text
            .split("font-size=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        let least = sizes
            .map(|size| size.parse::<f64>().unwrap())
            .fold(f64::INFINITY, f64::min);
        // Units are 1/16 pixel, and a point is 4/3 pixels. The sizes that figures give are a few units larger.
        assert!(least / 16.0 * 0.75 > 5.5, "{least}");
    }
}

#[test]
fn a_title_is_not_interpreted_as_markup() {
    let text = svg(Curves {
        title: "a <b> & c".to_owned(),
        ..curves()
    });
    assert!(
        text.contains("<title>a &lt;b> &amp; c</title>"),
        "{text:.300}"
    );
}

#[test]
fn figures_without_points_or_with_one_are_drawn() {
    let mut empty = curves();
    empty.curves.clear();
    svg(empty);
    let mut point = curves();
    point.curves.truncate(1);
    point.curves[0].points.truncate(1);
    svg(point);
}

#[test]
fn runs_that_were_not_steady_are_marked_with_advice() {
    let text = svg(Figure::Bars(bars()));
    assert!(
        text.contains("nasa *") && text.contains(&NOT_STEADY[2..]),
        "{text}"
    );
    assert!(!svg(panels()).contains(NOT_STEADY));
    let mut panels = panels();
    panels.panels[0].lines[0].doubtful = vec![10.0, 11.0];
    let text = svg(panels);
    assert_eq!(text.matches("\n*\n").count(), 1, "the point of that run");
    assert!(text.contains(NOT_STEADY), "{text}");
}

#[test]
fn data_has_a_row_for_each_point() {
    let mut panels = panels();
    panels.panels[1].lines[0].name = "a \"b\", c".to_owned();
    panels.panels[1].lines[0].intervals = vec![(1.0, 8.0, 10.5)];
    panels.panels[1].lines[0].doubtful = vec![10_000.0];
    let figure = Figure::Panels(panels);
    let csv = figure.csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "measure,series,dashed,x,y,low,high,steady");
    assert_eq!(lines.len(), 1 + 8);
    assert_eq!(
        lines[7],
        "crossings,\"a \"\"b\"\", c\",false,1.0,9.0,8.0,10.5,true"
    );
    assert_eq!(
        lines[8],
        "crossings,\"a \"\"b\"\", c\",false,10000.0,4.0,,,false"
    );
    assert_eq!(
        Figure::Bars(bars()).csv().lines().nth(1),
        Some("\"nasa, 0 MB\",content,60.0,true")
    );
    assert_eq!(Figure::Groups(groups()).csv().lines().count(), 1 + 6);
}

#[test]
fn a_specification_refers_to_existing_fields() {
    for figure in all() {
        let specification = figure.vega_lite();
        assert_eq!(
            specification["$schema"],
            json!("https://vega.github.io/schema/vega-lite/v5.json")
        );
        let records = figure.records();
        assert_eq!(
            specification["data"]["values"].as_array().unwrap().len(),
            records.len()
        );
        assert_eq!(
            vega::unknown_fields(&specification, &records[0]),
            Vec::<String>::new()
        );
        assert!(!specification["vconcat"].as_array().unwrap().is_empty());
    }
}
