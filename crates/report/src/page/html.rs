//! A page as HTML.

use super::{Compared, Comparison, Page, Run, Runs};
use crate::significant;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

/// Style sheets of the page and of the plotting library.
pub(super) const STYLE: &str = concat!(
    include_str!("assets/uPlot.min.css"),
    include_str!("assets/page.css")
);
/// The plotting library with its licence, and the page's scripts, each after those that it depends on.
const LIBRARY: &str = include_str!("assets/uPlot.iife.min.js");
const LICENCE: &str = include_str!("assets/uPlot.LICENSE");
const SCRIPTS: [&str; 6] = [
    include_str!("assets/data.js"),
    include_str!("assets/table.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/bars.js"),
    include_str!("assets/keys.js"),
    include_str!("assets/main.js"),
];
/// Number of table rows that are shown without scripts.
const ROWS: usize = 50;
/// Maximum number of keys that have a column in the table of runs, as in `table.js`.
const KEY_COLUMNS: usize = 8;
/// Content security policy: the page loads nothing, whatever a name in the data contains.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

impl Page {
    /// Returns the whole page. Names are escaped as text, whatever they contain.
    pub fn html(&self) -> String {
        let body = html! {
            a.skip href="#runs" { "To the runs" }
            header { h1 { (self.title) } }
            main {
                (self.verdict())
                (over_keys(&self.runs))
                (comparison(&self.comparison))
                (figures())
                (runs(&self.runs))
                (configuration(&self.runs))
                (provenance(&self.provenance))
            }
            (scripts(&self.runs, &SCRIPTS))
        };
        document(&self.title, POLICY, STYLE, &body)
    }

    fn verdict(&self) -> Markup {
        html! {
            section aria-labelledby="verdict" {
                h2 #verdict { "Verdict" }
                p.headline { (self.headline) }
                @for finding in &self.findings { p { (finding) } }
            }
        }
    }
}

/// Returns the table of configurations, with the reasons why some may not hold below it.
fn comparison(comparison: &Comparison) -> Markup {
    let rows = &comparison.rows;
    let has_bars = rows.iter().any(|row| row.bar.is_some());
    let percent = |share: f64| format!("{:.2}%", 100.0 * share.clamp(0.0, 1.0));
    html! {
        section aria-labelledby="configurations" {
            h2 #configurations { "Configurations" }
            div.scroll tabindex="0" role="region" aria-label="Table of configurations" {
                table.compared {
                    thead {
                        tr {
                            @for (number, title) in comparison.head.iter().enumerate() {
                                th.number[is_number(number)] scope="col" { (title) }
                                @if number == 1 && has_bars { th.bars aria-hidden="true" {} }
                            }
                        }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                @for (number, cell) in row.cells.iter().enumerate() {
                                    @if number == 0 {
                                        th scope="row" { (cell) @if !row.doubt.is_empty() { " *" } }
                                    } @else {
                                        td.number[is_number(number)] data-head=[comparison.head.get(number)] { (cell) }
                                    }
                                    @if number == 1 && has_bars {
                                        td.bars aria-hidden="true" {
                                            @if let Some((length, half)) = row.bar {
                                                div.track {
                                                    div.length style=(format!("width:{}", percent(length))) {}
                                                    div.interval style=(format!("left:{};width:{}", percent(length - half), percent(2.0 * half))) {}
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            p.note { (comparison.note) }
            @for (doubt, names) in doubts(rows) { p.note { "* " (names.join("; ")) ": " (doubt) } }
        }
    }
}

/// Returns whether a column of the table of configurations has numbers: all but the first and the last.
const fn is_number(column: usize) -> bool {
    matches!(column, 1..=3)
}

/// Returns the doubts, each with the configurations that have it.
fn doubts(rows: &[Compared]) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| !row.doubt.is_empty()) {
        let name = row.cells.first().map_or("", String::as_str);
        match all.iter_mut().find(|(doubt, _)| *doubt == row.doubt) {
            Some((_, names)) => names.push(name),
            None => all.push((&row.doubt, vec![name])),
        }
    }
    all
}

/// Returns a document with this title, content security policy, style and body.
pub(super) fn document(title: &str, policy: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// Returns the data, the plotting library, and the scripts that use both.
pub(super) fn scripts(data: &impl Serialize, scripts: &[&str]) -> Markup {
    html! {
        script type="application/json" id="data" { (PreEscaped(embedded(data))) }
        script { (PreEscaped(format!("/*! uPlot\n{LICENCE}*/\n{LIBRARY}"))) }
        script { (PreEscaped(scripts.concat())) }
    }
}

/// Returns the section with the origin of the data: names and values.
pub(super) fn provenance(lines: &[(String, String)]) -> Markup {
    html! {
        section aria-labelledby="provenance" {
            h2 #provenance { "Origin of the data" }
            table {
                caption.unseen { "Program, files and dates" }
                tbody {
                    @for (what, says) in lines {
                        tr { th.name scope="row" { (what) } td.wide { (says) } }
                    }
                }
            }
        }
    }
}

/// Returns data as JSON for a script element, which would end at the first `</script`, and in which `<!--` has a meaning.
fn embedded(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).expect("it is JSON");
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Returns the table of runs. Scripts rewrite it with all rows.
fn runs(runs: &Runs) -> Markup {
    let shown: Vec<usize> = (0..runs.measures.len())
        .filter(|&number| runs.measures[number].shown)
        .collect();
    let has_sources = runs.runs.iter().any(|run| !run.source.is_empty());
    html! {
        section aria-labelledby="runs" {
            h2 #runs tabindex="-1" { "Runs" }
            div #tools hidden {
                p.help { "Press a heading to sort by it." }
                details { summary { "Columns" } fieldset #columns { legend { "Columns of the table" } } }
            }
            div.scroll tabindex="0" role="region" aria-label="Table of runs" {
                table #table {
                    caption { "One row for each run" @if runs.runs.len() > ROWS { "; the first " (ROWS) " of " (runs.runs.len()) } }
                    thead {
                        tr {
                            @if has_sources { th scope="col" { "from" } }
                            th scope="col" { "run" }
                            th scope="col" { "seed" }
                            @for key in runs.keys.iter().take(KEY_COLUMNS) { th scope="col" { (key) } }
                            @for &number in &shown { th scope="col" { (runs.measures[number].label) } }
                            th scope="col" { "limit" }
                            th scope="col" { "doubt" }
                        }
                    }
                    tbody { @for run in runs.runs.iter().take(ROWS) { (row(run, &shown, has_sources)) } }
                }
            }
            p #more hidden {}
        }
    }
}

fn row(run: &Run, shown: &[usize], has_sources: bool) -> Markup {
    let value = |number: usize| run.values.get(number).copied().flatten();
    html! {
        tr {
            @if has_sources { td { (run.source) } }
            th.name scope="row" { (run.name) }
            td.number { (run.seed) }
            @for key in run.keys.iter().take(KEY_COLUMNS) { td.number { (key) } }
            @for &number in shown {
                td.number { (value(number).map_or_else(|| "-".to_owned(), significant)) }
            }
            td { (run.limit) }
            td.doubt { (run.doubt) }
        }
    }
}

/// Returns the elements into which scripts draw a measure over a key.
fn over_keys(runs: &Runs) -> Markup {
    html! {
        noscript { p { "Figures, and all but the first runs, need JavaScript, which is switched off." } }
        @if !runs.keys.is_empty() {
            section #over-keys aria-labelledby="over-keys-title" hidden {
                h2 #over-keys-title { "Over a key" }
                div.charts {}
                div.choices {}
            }
        }
    }
}

/// Returns the elements into which scripts draw, after the filter of what they draw.
fn figures() -> Markup {
    html! {
        section #choose aria-labelledby="choose-title" hidden {
            h2 #choose-title { "Choose runs" }
            label for="filter" { "Show only runs with" }
            input #filter type="search" aria-describedby="filter-help" autocomplete="off";
            p #filter-error role="alert" {}
            p #filter-help.help {
                "For all that follows and the figure above: words, or comparisons such as " code { "seed=1" } " and "
                code { "request_rate_per_s > 20000" } ", separated by spaces."
            }
            p #count role="status" {}
        }
        section #cycles aria-labelledby="cycles-title" hidden {
            h2 #cycles-title { "Where the host's time goes" }
            div.choices {}
            div.charts {}
        }
        section #over-time aria-labelledby="over-time-title" hidden {
            h2 #over-time-title { "Over time" }
            div.choices {}
            div.charts {}
        }
    }
}

/// Returns what all runs have in common; scripts show what two runs share.
fn configuration(runs: &Runs) -> Markup {
    html! {
        section #configuration aria-labelledby="configuration-title" {
            h2 #configuration-title { "Configuration" }
            div.choices {}
            details {
                summary { "What all runs have in common (" (runs.common.len()) " keys)" }
                table {
                    caption.unseen { "Keys that are the same in all runs" }
                    thead { tr { th scope="col" { "key" } th scope="col" { "value" } } }
                    tbody { @for (key, value) in &runs.common { tr { th scope="row" { (key) } td.wide { (value) } } } }
                }
            }
        }
    }
}
