//! Draws the output of `./e2e --bench-handoff` for one server: the time that its core spends on a request, as a share of the time in the kernel with
//! its offloads on.
//!
//! `cargo run -p baton-report --example handoff_cost docs/src/handoff_cost.txt nginx docs/src/handoff_cost.svg`

use baton_report::figure::{Figure, GroupPanel, GroupSeries, Groups, Size};
use std::fs;

/// A row of the table.
struct Row<'a> {
    file: &'a str,
    connections: &'a str,
    /// Microseconds per request on each system, in the order of the table.
    costs: Vec<f64>,
}

/// The systems after the first one, with which they are compared.
const SYSTEMS: [&str; 2] = ["kernel, its offloads off", "handed off to an adapter"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, server, to] = &arguments[..] else {
        return Err("usage: handoff_cost TABLE SERVER FIGURE".into());
    };
    let text = fs::read_to_string(from)?;
    let rows: Vec<Row<'_>> = text
        .lines()
        .filter_map(|line| parse(line, server))
        .collect();
    let panels: Vec<&[Row<'_>]> = rows.chunk_by(|one, next| one.file == next.file).collect();
    let groups = panels.first().copied().unwrap_or_default();
    let figure = Groups {
        title: format!("{server}: processor time per request, compared with the kernel"),
        x: "connections".to_owned(),
        y: "server core's time per request (in the kernel with its offloads on = 1)".to_owned(),
        level: Some((1.0, "kernel, its offloads on".to_owned())),
        names: groups.iter().map(|row| grouped(row.connections)).collect(),
        panels: panels.into_iter().map(panel).collect(),
    };
    Ok(fs::write(to, Figure::Groups(figure).svg(Size::default())?)?)
}

fn parse<'a>(line: &'a str, server: &str) -> Option<Row<'a>> {
    let mut parts = line.split('|');
    let mut head = parts.next()?.split_whitespace();
    let is_of_server = head.next()? == server;
    let (file, connections) = (head.next()?, head.next()?);
    let costs = parts.map(|part| part.split_whitespace().nth(1)?.parse().ok());
    let costs = costs.collect::<Option<_>>()?;
    is_of_server.then_some(Row {
        file,
        connections,
        costs,
    })
}

fn panel(rows: &[Row<'_>]) -> GroupPanel {
    let series = SYSTEMS.iter().zip(1..).map(|(name, system)| GroupSeries {
        name: (*name).to_owned(),
        values: rows
            .iter()
            .map(|row| Some(row.costs.get(system)? / row.costs[0]))
            .collect(),
        ..GroupSeries::default()
    });
    GroupPanel {
        y: rows
            .first()
            .map_or(String::new(), |row| format!("files of {}", size(row.file))),
        series: series.collect(),
    }
}

/// Returns a size in words: `1K` is 1 KB.
fn size(file: &str) -> String {
    let (number, unit) = file.split_at(file.len() - 1);
    format!("{number} {unit}B")
}

fn grouped(connections: &str) -> String {
    connections
        .parse()
        .map_or_else(|_| connections.to_owned(), baton_report::grouped)
}
