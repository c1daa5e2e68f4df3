//! Tables of an adapter's applications: their processes, their rings, and their crossings.

use baton_bus::{Category, Direction, EntriesPerTransfer};
use baton_live::{ApplicationRow, BusRow, RingRow};
use baton_report::{Column, Table, grouped};

/// Number of shown buckets of a histogram, which suffices for the depth of the rings.
const BUCKETS: usize = 8;

/// Renders all tables; empty without applications.
pub fn render(applications: &[ApplicationRow]) -> String {
    if applications.is_empty() {
        return String::new();
    }
    let buses: Vec<(String, &BusRow)> = applications
        .iter()
        .map(|application| (application.number.to_string(), &application.bus))
        .collect();
    [processes(applications), rings(&buses), crossings(&buses)].concat()
}

fn processes(applications: &[ApplicationRow]) -> String {
    let mut table = Table::new(vec![
        Column::words("application"),
        Column::numbers("pid"),
        Column::numbers("user"),
        Column::words("name"),
        Column::words("link"),
        Column::numbers("for, s"),
        Column::numbers("sockets"),
        Column::numbers("listening"),
        Column::numbers("connected"),
        Column::numbers("shared KiB"),
    ]);
    for row in applications {
        table.row(vec![
            row.number.to_string(),
            row.pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            row.uid
                .map_or_else(|| "-".to_owned(), |uid| uid.to_string()),
            row.name.clone(),
            row.link.replace('_', " "),
            format!("{:.1}", row.attached_ms as f64 / 1000.0),
            grouped(row.sockets),
            grouped(row.listeners),
            grouped(row.connections),
            grouped(row.bus.memory_bytes / 1024),
        ]);
    }
    table.render()
}

/// Renders the rings with the histograms of batching, one row for each direction.
fn rings(buses: &[(String, &BusRow)]) -> String {
    let mut columns = vec![
        Column::words("application"),
        Column::words("ring"),
        Column::numbers("waiting"),
        Column::numbers("descriptors"),
        Column::numbers("transfers"),
        Column::numbers("mean"),
        Column::numbers("largest"),
    ];
    columns.extend((0..BUCKETS).map(|bucket| Column::numbers(bucket_name(bucket))));
    columns.extend([Column::numbers("full"), Column::numbers("held up")]);
    let mut table = Table::new(columns);
    for (name, bus) in buses {
        for (ring, row) in [("requests", &bus.requests), ("responses", &bus.responses)] {
            table.row(ring_row(name, ring, row));
        }
    }
    table.render()
}

fn ring_row(name: &str, ring: &str, row: &RingRow) -> Vec<String> {
    let EntriesPerTransfer {
        transfers,
        entries,
        largest,
        buckets,
    } = row.per_transfer;
    let mut cells = vec![name.to_owned(), ring.to_owned()];
    cells.extend([row.waiting, entries, transfers].map(grouped));
    cells.push(format!("{:.1}", row.per_transfer.mean()));
    cells.push(grouped(largest));
    cells.extend(buckets[..BUCKETS].iter().map(|&count| grouped(count)));
    cells.extend([row.full, row.held_up].map(grouped));
    cells
}

/// Returns the numbers of descriptors that a bucket stands for.
fn bucket_name(bucket: usize) -> String {
    match bucket {
        0 | 1 => (bucket + 1).to_string(),
        _ => format!("{}-{}", (1 << (bucket - 1)) + 1, 1 << bucket),
    }
}

/// Renders DMA operations and bytes by purpose, and the doorbells of this side.
fn crossings(buses: &[(String, &BusRow)]) -> String {
    let mut table = Table::new(vec![
        Column::words("application"),
        Column::words("direction"),
        Column::numbers("crossings"),
        Column::numbers("content"),
        Column::numbers("descriptors"),
        Column::numbers("other bytes"),
        Column::numbers("doorbells"),
        Column::numbers("spared"),
    ]);
    for (name, bus) in buses {
        for (label, direction) in [
            ("to adapter", Direction::ToNic),
            ("to application", Direction::ToHost),
        ] {
            let account = bus.crossings.direction(direction);
            let content = account.bytes.get(Category::Content);
            let descriptors =
                account.bytes.get(Category::Descriptor) + account.bytes.get(Category::Event);
            let doorbells = match direction {
                // The other side counts its own doorbells.
                Direction::ToNic => [String::new(), String::new()],
                Direction::ToHost => [bus.doorbells_rung, bus.doorbells_saved].map(grouped),
            };
            let mut cells = vec![name.clone(), label.to_owned(), grouped(account.crossings)];
            let other = account.bytes.total() - content - descriptors;
            cells.extend([content, descriptors, other].map(grouped));
            cells.extend(doorbells);
            table.row(cells);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_named_by_what_they_count() {
        let names: Vec<String> = (0..BUCKETS).map(bucket_name).collect();
        assert_eq!(
            names,
            ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128"]
        );
    }

    #[test]
    fn an_application_is_shown_with_its_rings_and_transfers() {
        let mut bus = BusRow {
            doorbells_rung: 17,
            memory_bytes: 2 << 20,
            ..BusRow::default()
        };
        bus.responses.per_transfer.record(3);
        bus.crossings
            .cross(Direction::ToHost, Category::Content, 4096);
        let row = ApplicationRow {
            number: 2,
            pid: Some(4711),
            uid: Some(33),
            name: "web".to_owned(),
            link: "shared_memory".to_owned(),
            attached_ms: 1500,
            sockets: 3,
            listeners: 1,
            connections: 2,
            bus,
        };
        // The width of a terminal in which each row fits on one line.
        baton_report::set_width(200);
        let text = render(&[row]);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(words).collect();
        for expected in [
            "2 4711 33 web shared memory 1.5 3 1 2 2,048",
            "2 responses 0 3 1 3.0 3 0 0 1 0 0 0 0 0 0 0",
            "2 to application 1 4,096 0 0 17 0",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{text}");
        }
        assert_eq!(render(&[]), "", "an engine without applications");
    }
}
