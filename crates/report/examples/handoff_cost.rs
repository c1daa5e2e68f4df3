//! Draws what `./e2e --bench-handoff` has printed: the server's processor time a request, of what it is in the kernel with its offloads on.
//!
//! `cargo run -p baton-report --example handoff_cost <docs/src/handoff_cost.txt >docs/src/handoff_cost.svg`

use baton_report::figure::{GroupPanel, GroupSeries, Groups, Picture};
use std::io::{self, Read, Write};

/// A line of the table.
struct Row<'a> {
    server: &'a str,
    group: String,
    /// Of each system, in the order of the table, microseconds a request.
    costs: Vec<f64>,
}

/// The systems beside the first one, to which they are compared.
const SYSTEMS: [&str; 2] = ["kernel, its offloads off", "handed off to an adapter"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let rows: Vec<Row<'_>> = text.lines().filter_map(parse).collect();
    let mut servers: Vec<&str> = rows.iter().map(|row| row.server).collect();
    servers.dedup();
    let of = |server: &str| rows.iter().filter(|row| row.server == server).collect();
    let panels: Vec<(&str, Vec<&Row<'_>>)> = servers.iter().map(|&it| (it, of(it))).collect();
    let names = panels
        .first()
        .map(|(_, rows)| rows.iter().map(|row| row.group.clone()));
    let figure = Groups {
        title: "Time of the server's core a request; 1: in the kernel, its offloads on".to_owned(),
        names: names.into_iter().flatten().collect(),
        panels: panels
            .iter()
            .map(|(server, rows)| panel(server, rows))
            .collect(),
    };
    io::stdout().write_all(&figure.draw(Picture::Svg)?)?;
    Ok(())
}

fn parse(line: &str) -> Option<Row<'_>> {
    let mut parts = line.split('|');
    let mut head = parts.next()?.split_whitespace();
    let (server, file, connections) = (head.next()?, head.next()?, head.next()?);
    connections.parse::<u32>().ok()?;
    let costs = parts.map(|part| part.split_whitespace().nth(1)?.parse().ok());
    Some(Row {
        server,
        group: format!("{file} ×{connections}"),
        costs: costs.collect::<Option<_>>()?,
    })
}

fn panel(server: &str, rows: &[&Row<'_>]) -> GroupPanel {
    let series = SYSTEMS.iter().zip(1..).map(|(name, system)| GroupSeries {
        name: (*name).to_owned(),
        values: rows
            .iter()
            .map(|row| Some(row.costs.get(system)? / row.costs[0]))
            .collect(),
    });
    GroupPanel {
        y: server.to_owned(),
        series: series.collect(),
    }
}
