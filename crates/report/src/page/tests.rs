//! A page contains its data as text, and nothing that it would have to fetch.

use super::*;

/// Text that a careless page would execute, or that would end its data.
const HOSTILE: &str = "</script><script>alert(1)</script><!-- \"'&";

fn page() -> Page {
    let measure = |name: &str, shown| Measure {
        name: name.to_owned(),
        label: name.replace('_', " "),
        meaning: "what it is".to_owned(),
        shown,
    };
    let run = |seed| Run {
        name: HOSTILE.to_owned(),
        seed,
        limit: "the link".to_owned(),
        keys: vec![HOSTILE.to_owned()],
        values: vec![Some(1_234.567_89), None],
        cycles_percent: vec![66.666_66, 33.333_33],
        samples: Samples {
            time_us: vec![0, 1000],
            ..Samples::default()
        },
        ..Run::default()
    };
    Page {
        title: format!("Title {HOSTILE}"),
        headline: "The link is the limit.".to_owned(),
        findings: vec![HOSTILE.to_owned()],
        comparison: Comparison {
            head: [
                "configuration",
                "requests/s",
                "against the first",
                "ms",
                "limit",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: [
                ("slow", 0.5, ""),
                ("fast", 1.0, "it was short"),
                ("same", 1.0, "it was short"),
            ]
            .map(|(name, length, doubt)| Compared {
                cells: [name, "1", "2", "3", HOSTILE].map(str::to_owned).to_vec(),
                bar: Some((length, 0.125)),
                doubt: doubt.to_owned(),
            })
            .to_vec(),
            note: HOSTILE.to_owned(),
        },
        provenance: vec![("program".to_owned(), HOSTILE.to_owned())],
        runs: Runs {
            measures: vec![measure("rate_per_s", true), measure("other", false)],
            keys: vec![HOSTILE.to_owned()],
            keys_in_words: vec![HOSTILE.to_owned()],
            common: [("nic.mips".to_owned(), HOSTILE.to_owned())].into(),
            layers: vec!["tcp".to_owned(), "idle".to_owned()],
            runs: (0..60).map(run).collect(),
        },
    }
}

/// Returns the page without its own styles and scripts, after checking that there are as many as expected.
fn without_assets(html: &str) -> String {
    let mut rest = html;
    let mut text = String::new();
    for (open, close) in [
        ("<style>", "</style>"),
        ("<script>", "</script>"),
        ("<script>", "</script>"),
    ] {
        let (before, after) = rest.split_once(open).expect("it begins");
        text += before;
        rest = after.split_once(close).expect("it ends").1;
    }
    text + rest
}

#[test]
fn names_are_escaped_everywhere() {
    let html = page().html();
    let text = without_assets(&html);
    assert!(!text.contains("alert(1)</script>"), "{text}");
    assert!(!text.contains("<!--"), "a comment would begin");
    assert_eq!(text.matches("<script").count(), 1, "the data");
    assert!(text.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    assert!(text.contains("\\u003c/script>"));
}

#[test]
fn data_is_embedded_with_six_digits() {
    let html = page().html();
    let (_, data) = html.split_once("id=\"data\">").expect("data");
    let (data, _) = data.split_once("</script>").expect("its end");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["runs"].as_array().map(Vec::len), Some(60));
    assert_eq!(data["runs"][0]["name"], HOSTILE);
    assert_eq!(
        data["runs"][0]["values"],
        serde_json::json!([1234.57, null])
    );
    assert_eq!(
        data["runs"][0]["cycles_percent"],
        serde_json::json!([66.67, 33.33])
    );
}

#[test]
fn the_first_rows_are_there_without_scripts() {
    let text = without_assets(&page().html());
    assert_eq!(text.matches("<td class=\"number\">1,235</td>").count(), 50);
    assert!(text.contains("the first 50 of 60"));
    for words in [
        "The link is the limit.",
        "<caption",
        "scope=\"row\"",
        "lang=\"en\"",
        "<noscript>",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn configurations_have_bars_and_reasons_for_doubt() {
    let text = without_assets(&page().html());
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(text.contains("width:50.00%") && text.contains("left:37.50%;width:25.00%"));
    assert!(text.contains("fast *") && !text.contains("slow *"));
    assert!(text.contains("* fast; same: it was short"));
    let order = [
        "id=\"verdict\"",
        "id=\"over-keys\"",
        "fast *",
        "id=\"cycles\"",
        "id=\"runs\" tab",
    ];
    assert!(
        order.map(place).is_sorted(),
        "what matters most comes first"
    );
}

fn explorer() -> explorer::Explorer {
    let control = |key: &str, kind| explorer::Control {
        key: key.to_owned(),
        label: HOSTILE.to_owned(),
        meaning: HOSTILE.to_owned(),
        value: "4".to_owned(),
        kind,
        only_where: Some((HOSTILE.to_owned(), HOSTILE.to_owned())),
        with: None,
    };
    let number = explorer::Kind::Number {
        least: 1,
        stops: vec![1, 4],
    };
    let choice = explorer::Kind::Choice(vec![("4".to_owned(), HOSTILE.to_owned())]);
    explorer::Explorer {
        title: HOSTILE.to_owned(),
        text: HOSTILE.to_owned(),
        log: Some((HOSTILE.to_owned(), "H4sI".to_owned())),
        groups: vec![explorer::Group {
            title: HOSTILE.to_owned(),
            controls: vec![control("a.b", number), control("c", choice)],
        }],
        ..explorer::Explorer::default()
    }
}

#[test]
fn controls_have_labels_and_initial_values() {
    let text = without_assets(&explorer().html());
    assert!(
        !text.contains("alert(1)</script>") && !text.contains("<!--"),
        "{text}"
    );
    for words in [
        "<label for=\"a-b\">",
        "data-stops=\"1 4\"",
        "type=\"number\" min=\"1\" step=\"1\" required value=\"4\"",
        "<option value=\"4\" selected>",
        "aria-live=\"polite\"",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn the_page_fetches_nothing() {
    let (report, explorer) = (page().html(), explorer().html());
    assert!(explorer.contains("'wasm-unsafe-eval'") && !report.contains("wasm"));
    for html in [report, explorer] {
        fetches_nothing(&html);
    }
}

fn fetches_nothing(html: &str) {
    for words in [
        "src=",
        "href=\"http",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!html.contains(words), "{words}");
    }
    assert!(html.contains("default-src 'none'"));
    let licence = html
        .find("Permission is hereby granted")
        .expect("the library's licence");
    assert!(licence < html.find("var uPlot").expect("the library"));
}
