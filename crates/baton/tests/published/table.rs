//! Tables of expected numbers: `| configuration | metric | here | docs | published |`.
//!
//! `here` is the result of this test's run, `docs` the number in the book, and `published` that of the paper. A number may state how far the run may
//! be from it, as in `23,031 ± 7 %`, or `0 ± 5` in the unit of the number. Otherwise, the tolerance is 0.5 %, because a run gives the same bits each
//! time. As numbers in a table are rounded, half of their last digit is allowed in addition. `-` means that there is no number. If the name of a
//! configuration ends with settings in brackets, the table may leave these out.

use crate::found::Found;
use libtest_mimic::Failed;

/// The tolerance of numbers that state none: a deterministic simulation changes only if its code does.
const SAME: &str = "0.5 %";

/// Checks all numbers in the table against the results.
pub fn compare(table: &str, found: &[Found]) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for row in rows(table) {
        let [config, metric, numbers @ ..] = &row[..] else {
            panic!("expected five columns: {row:?}");
        };
        let value = value_of(found, config, metric);
        let value = value.ok_or_else(|| format!("{config}: there is no {metric}"))?;
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

/// Returns the sections of a file, each with its heading.
pub fn sections(tables: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = tables.split("\n## ").skip(1);
    parts.map(|part| part.split_once('\n').expect("rows under a heading"))
}

/// Returns the names of the configurations of a table with one row each.
pub fn configurations(table: &str) -> impl Iterator<Item = &str> {
    rows(table).map(|row| row[0])
}

/// Returns the rows of all tables, without their headers.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let is_row = |line: &&str| line.starts_with('|') && !line.starts_with("|---");
    let cells = |line| {
        let line: &str = line;
        line.trim_matches('|').split('|').map(str::trim).collect()
    };
    let rows = table.lines().filter(is_row).map(cells);
    rows.filter(|cells: &Vec<&str>| cells[0] != "configuration")
}

/// Returns whether a value agrees with a cell.
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
    // Decimal fractions are not exact in binary.
    (value - expected).abs() <= allowed + rounding + 1e-9
}

fn number(text: &str) -> f64 {
    let digits = text.replace(',', "");
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{text:?} is not a number"))
}
