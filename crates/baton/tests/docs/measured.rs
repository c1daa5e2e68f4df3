//! What pages say that a benchmark printed is what is kept of it.

use super::common::root;
use libtest_mimic::{Failed, Trial};
use std::fs;

/// Pages with rows of `docs/src/handoff_cost.txt` about a server, and how many they have.
const TABLES: [(&str, &str, usize); 3] = [
    ("README.md", "nginx", 10),
    ("docs/src/live/performance.md", "nginx", 16),
    ("docs/src/live/performance.md", "baton", 16),
];

/// How a server's table begins, but for its name.
const HEAD: &str = ": file, connections | requests/s: kernel | handed off | core, us a request: kernel | handed off | saved | adapter |";

pub fn trials() -> Vec<Trial> {
    let trial = |&(page, server, rows)| {
        Trial::test(format!("handoff_cost of {server} in {page}"), move || {
            has_rows(page, server, rows)
        })
    };
    TABLES.iter().map(trial).collect()
}

/// The rows below the table's head are rows of what was printed of the server.
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

/// A line of what the benchmark printed of this server as a row of a page: the kernel with its offloads on, and handed off.
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

/// A number with its thousands apart.
fn grouped(number: &str) -> Option<String> {
    Some(baton_report::grouped(number.parse().ok()?))
}
