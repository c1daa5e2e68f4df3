//! Checks that tables of a benchmark in the pages agree with the stored output of the benchmark.

use super::common::root;
use libtest_mimic::{Failed, Trial};
use std::fs;

/// Pages with a table from `docs/src/handoff_cost.txt`, each with the server and the number of rows.
const TABLES: [(&str, &str, usize); 3] = [
    ("README.md", "nginx", 10),
    ("docs/src/live/performance.md", "nginx", 15),
    ("docs/src/live/performance.md", "baton", 16),
];

/// The header of a table, after the name of the server.
const HEAD: &str = ": file, connections | requests/s: kernel | handed off | core, us a request: kernel | handed off | saved | adapter |";

pub fn trials() -> Vec<Trial> {
    let trial = |&(page, server, rows)| {
        Trial::test(format!("handoff_cost of {server} in {page}"), move || {
            has_rows(page, server, rows)
        })
    };
    TABLES.iter().map(trial).collect()
}

/// Checks that each row below the header of the server's table is in the stored output.
fn has_rows(page: &str, server: &str, expected: usize) -> Result<(), Failed> {
    let read = |path: &str| {
        fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let printed = read("docs/src/handoff_cost.txt")?;
    let printed: Vec<String> = printed
        .lines()
        .filter_map(|line| row(line, server))
        .collect();
    let text = read(page)?;
    let head = format!("| {server}{HEAD}");
    let below = text.lines().skip_while(|&line| line != head).skip(2);
    let rows: Vec<&str> = below.take_while(|line| line.starts_with('|')).collect();
    if let Some(wrong) = rows
        .iter()
        .find(|&&line| !printed.iter().any(|row| row == line))
    {
        let printed = printed.join("\n");
        let message = format!("{page}: the table has\n{wrong}\nexpected one of\n{printed}");
        return Err(message.into());
    }
    match rows.len() == expected {
        true => Ok(()),
        false => Err(format!("{page}: {} rows of the table, not {expected}", rows.len()).into()),
    }
}

/// Formats a line of the benchmark's output about this server as the pages do. It has the results in the kernel with its offloads and handed off.
fn row(line: &str, server: &str) -> Option<String> {
    let mut columns = line.split('|');
    let (what, kernel, handed_off) = (columns.next()?, columns.next()?, columns.nth(1)?);
    let what: Vec<&str> = what.split_whitespace().collect();
    let [of, file, connections] = what[..] else {
        return None;
    };
    if of != server {
        return None;
    }
    let (size, unit) = file.split_at(file.len() - 1);
    let connections = grouped(connections)?;
    let numbers = |column: &str| -> Vec<String> {
        let words = column.split_whitespace();
        words
            .map(|word| word.trim_end_matches("/s").to_owned())
            .collect()
    };
    let (kernel, handed_off) = (numbers(kernel), numbers(handed_off));
    let (before, after): (f64, f64) = (
        kernel.get(1)?.parse().ok()?,
        handed_off.get(1)?.parse().ok()?,
    );
    let saved = 100.0 * (1.0 - after / before);
    Some(format!(
        "| {size} {unit}B, {connections} | {} | {} | {before:.1} | {after:.1} | {saved:.0} % | {} |",
        grouped(&kernel[0])?,
        grouped(&handed_off[0])?,
        handed_off.get(3)?
    ))
}

/// Formats a number with thousands separators.
fn grouped(number: &str) -> Option<String> {
    Some(baton_report::grouped(number.parse().ok()?))
}
