//! Figure 3 of the data-caching paper: the content that caches of 64 KB to 16 MB would keep off the bus. Needs no machine.
//!
//! According to the paper, LFU is slightly better than LRU (section 3). This holds on the real excerpts, and on the generated World Cup
//! log, which was fitted with that in mind. On the generated NASA and Berkeley logs LFU is far worse: these were fitted to three points of
//! LRU's curve, and reach them with files of nearly equal popularity that are requested in bursts. LFU sees only popularity: files that
//! were hit often in a past burst stay, and files of a new burst are evicted first. With two caches of 8 MiB, and the same requests of
//! these logs in random order, every policy keeps as little off the bus as LFU does with the log in its order (NASA 50 % by LRU and 10 % by
//! LFU in order, 9 and 9 % shuffled; Berkeley 8.2 and 0.7 %, 0.6 and 1.4 %), and frequency that ages (GDSF: 44 and 8.5 %) does about as
//! well as LRU. So the cause is the bursts of the logs, not the policy.

use super::excerpts::Source;
use super::{Context, Outcome, Reproduction, Row, of_code};
use crate::commands::curves::{self, Curve, Request};
use crate::failure::Failure;
use baton_cache::{AdmissionConfig, ReplacementConfig};
use baton_report::figure::Figure;
use baton_report::{Column, Scale, Table, significant};
use baton_workload::analyse::Policy;
use baton_workload::{Preset, SessionRule};

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "dcache-locality",
    about: "content that caches of 64 KB to 16 MB on one and two NICs keep off the bus (ASPLOS 2002, Figure 3)",
    figure: true,
    run,
};

/// 64 KB to 16 MB.
const SIZES: std::ops::RangeInclusive<u32> = 16..=24;
/// Sizes for which numbers are published.
const PUBLISHED_MIB: [u64; 3] = [4, 8, 16];
const BLOCK_BYTES: u64 = 4096;

/// A log and its curves.
struct Measured {
    source: Source,
    curves: Vec<Curve>,
}

impl Measured {
    fn share(&self, policy: Policy, caches: u8, cache_bytes: u64) -> Option<f64> {
        let same = |curve: &&Curve| curve.policy == policy && curve.caches == caches;
        let curve = self.curves.iter().find(same)?;
        let point = curve.points.iter().find(|p| p.cache_bytes == cache_bytes)?;
        Some(100.0 * point.share)
    }
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    let mut measured = Vec::new();
    for source in Source::all(context, &Preset::DATA_CACHING)? {
        let log = source.read(context)?;
        let curves = curves::compute(&log, &request(), context.threads, context.interrupt)?;
        measured.push(Measured { source, curves });
    }
    let rows: Vec<Row> = measured.iter().flat_map(rows_of).collect();
    let text = format!(
        "{}\n{}\n{}\n{}\n{}",
        sizes_table("one LRU cache", &measured, 1),
        sizes_table(
            "two LRU caches of that size, with connections assigned in turn,",
            &measured,
            2
        ),
        policies_table(&measured),
        published_table(&rows),
        super::excerpts::note(context),
    );
    let lru = measured.iter().flat_map(|m| {
        let lru = m.curves.iter().filter(|curve| curve.policy == Policy::LRU);
        lru.map(|curve| (m.source.name(), curve))
    });
    let (names, lru): (Vec<String>, Vec<Curve>) = lru.map(|(n, c)| (n, c.clone())).unzip();
    let title = "Content kept off the bus by LRU caches on the NIC (after Figure 3)".to_owned();
    let mut figure = curves::figure(title, &lru, |_| String::new());
    for (line, name) in figure.curves.iter_mut().zip(names) {
        line.name = name;
    }
    Ok(Outcome {
        rows: of_code(rows),
        text,
        figure: Some(Figure::Curves(figure)),
    })
}

fn request() -> Request {
    let online = ReplacementConfig::ALL.map(|p| Policy::Online(p, AdmissionConfig::All));
    Request {
        policies: online.into_iter().chain([Policy::Min]).collect(),
        sizes: SIZES.map(|power| 1 << power).collect(),
        caches: vec![1, 2],
        block_bytes: BLOCK_BYTES,
        rule: SessionRule::PIPELINED,
    }
}

/// Returns rows for all points of all curves. Published: LRU on two NICs, whole traces.
fn rows_of(measured: &Measured) -> Vec<Row> {
    let published = |curve: &Curve, cache_bytes: u64| {
        let Source::Generated(preset) = measured.source else {
            return None;
        };
        let place = PUBLISHED_MIB
            .iter()
            .position(|mib| mib << 20 == cache_bytes)?;
        let comparable = curve.policy == Policy::LRU && curve.caches == 2;
        let shares = preset.published().filter(|_| comparable)?.hits_4_8_16_mib;
        Some(100.0 * shares[place])
    };
    let name = measured.source.name();
    let row = |curve: &Curve, cache_bytes: u64, share: f64| Row {
        config: format!(
            "{name}, {} of {}, {}",
            if curve.caches == 1 {
                "one cache"
            } else {
                "two caches"
            },
            curves::size_text(cache_bytes),
            curve.policy.name(),
        ),
        metric: "content_kept_off_bus_percent",
        published: published(curve, cache_bytes),
        simulated: 100.0 * share,
    };
    let of_curve = |curve: &Curve| -> Vec<Row> {
        let points = curve.points.iter();
        points
            .map(|point| row(curve, point.cache_bytes, point.share))
            .collect()
    };
    measured.curves.iter().flat_map(of_curve).collect()
}

/// Renders a row for each size and a column for each log.
fn sizes_table(what: &str, measured: &[Measured], caches: u8) -> String {
    let mut columns = vec![Column::numbers("cache")];
    columns.extend(
        measured
            .iter()
            .map(|m| Column::numbers(in_two_lines(&m.source.name()))),
    );
    let title = format!("Share of content bytes that {what} would keep off the bus:");
    let mut table = Table::new(columns).titled(title);
    for size in SIZES.map(|power| 1u64 << power) {
        let mut cells = vec![curves::size_text(size)];
        cells.extend(
            measured
                .iter()
                .map(|m| percent(m.share(Policy::LRU, caches, size))),
        );
        table.row(cells);
    }
    table.render()
}

/// Renders a row for each log and a column for each policy, for two caches of 8 MB.
fn policies_table(measured: &[Measured]) -> String {
    let policies = request().policies;
    let mut columns = vec![Column::words("log")];
    columns.extend(policies.iter().map(|p| Column::numbers(p.name())));
    let title = "The same for other policies, two caches of 8 MiB (min: the most block hits, with knowledge of all future requests):";
    let mut table = Table::new(columns).titled(title);
    for log in measured {
        let mut cells = vec![log.source.name()];
        cells.extend(policies.iter().map(|p| percent(log.share(*p, 2, 8 << 20))));
        table.row(cells);
    }
    format!("{}{BURSTS}", table.render())
}

/// Note on policies by frequency with generated logs.
const BURSTS: &str = "\
The generated NASA and Berkeley logs are fitted to LRU's curve and have bursts of requests for files that are about equally popular.
LFU never forgets a burst that is over, so its results are far worse than the published ones (slightly better than LRU).
";

/// Renders the rows that have published values, with the error. Only the first row of a configuration names it.
fn published_table(rows: &[Row]) -> String {
    let mut table = Table::new(vec![
        Column::words("configuration"),
        Column::words("metric"),
        Column::numbers("published"),
        Column::numbers("simulated"),
        Column::numbers("error"),
    ])
    .titled("Published values, and those of the generated logs, which were fitted to them:");
    let mut last = "";
    for row in rows {
        let Some(published) = row.published else {
            continue;
        };
        let is_first = std::mem::replace(&mut last, &row.config) != row.config;
        let config = is_first.then(|| row.config.clone());
        table.row(vec![
            config.unwrap_or_default(),
            "content kept off the bus, %".to_owned(),
            significant(published),
            significant(row.simulated),
            Scale::Points.error(published, row.simulated),
        ]);
    }
    table.render()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.1} %"))
}

/// Splits a name such as `nasa (generated)` into two lines, for heads of columns.
fn in_two_lines(name: &str) -> String {
    name.replacen(" (", "\n(", 1)
}
