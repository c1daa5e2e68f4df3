//! Tables of what is to come out: `| configuration | metric | here | docs | published |`.
//!
//! `here` is what this test's runs give, which are the same bits each time: within 0.5 %. Beside the book's and the published numbers stands
//! how far the run may be from them, `23,031 ± 7 %`, or `0 ± 5` in the number's own unit; of the book's, without that, 0.5 %. What is written
//! is rounded, so half of its last digit is allowed besides. `-` is nothing. Of a configuration with the settings behind it in brackets, only
//! what is before these has to be named.

use crate::found::Found;
use libtest_mimic::Failed;

/// How far a deterministic simulation may move before somebody should look.
const SAME: &str = "0.5 %";

/// Sees that everything in the table came out.
pub fn compare(table: &str, found: &[Found]) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for row in rows(table) {
        let [config, metric, numbers @ ..] = &row[..] else {
            panic!("a row of five columns: {row:?}");
        };
        let value = value_of(found, config, metric);
        let value = value.ok_or_else(|| format!("{config}: no {metric} came out"))?;
        for (cell, source) in numbers.iter().zip(["here", "docs", "published"]) {
            if !is_within(cell, value) {
                wrong.push(format!("{config}, {metric}: {value}, {source} {cell}"));
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

/// Returns the metric of the configuration with this name or, if there is none, of one whose name continues with settings.
fn value_of(found: &[Found], config: &str, metric: &str) -> Option<f64> {
    let named = |is_it: &dyn Fn(&str) -> bool| {
        let mut found = found.iter();
        found.find(|found| found.metric == metric && is_it(&found.config))
    };
    let with_settings = format!("{config} (");
    let found =
        named(&|name| name == config).or_else(|| named(&|name| name.starts_with(&with_settings)));
    found.map(|found| found.value)
}

/// The parts of a table under headings, by their headings.
pub fn sections(tables: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = tables.split("\n## ").skip(1);
    parts.map(|part| part.split_once('\n').expect("rows under a heading"))
}

/// The rows of a table below its head.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|---");
    let cells = |line| {
        let line: &str = line;
        line.trim_matches('|').split('|').map(str::trim).collect()
    };
    let rows = table.lines().filter(is_row).map(cells);
    rows.filter(|cells: &Vec<&str>| cells[0] != "configuration")
}

/// Whether a value is what a cell says.
fn is_within(cell: &str, value: f64) -> bool {
    if cell == "-" {
        return true;
    }
    let (text, tolerance) = cell.split_once(" ± ").unwrap_or((cell, SAME));
    let expected = number(text);
    let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let rounding = 0.5 * 10_f64.powi(-(decimals as i32));
    let allowed = match tolerance.strip_suffix(" %") {
        Some(percent) => expected.abs() * number(percent) / 100.0,
        None => number(tolerance),
    };
    // The last digit of a decimal fraction may be wrong in binary.
    (value - expected).abs() <= allowed + rounding + 1e-9
}

fn number(text: &str) -> f64 {
    let digits = text.replace(',', "");
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}
