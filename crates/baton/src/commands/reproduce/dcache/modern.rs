//! Where a data cache on the NIC still pays: two ports of 100 Gigabit Ethernet on PCI Express. Nothing is published.

use crate::commands::reproduce::{Context, Outcome, Reproduction, Row, Shown};
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::runner::{Job, run_all};
use crate::tables::number;
use baton_bus::Category;
use baton_report::figure::{Bar, Bars, Figure};
use baton_report::{Column, Scale, Table, significant, width, wrapped};
use baton_sim::results::Results;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "dcache-modern",
    about: "where caches on NICs still pay: 2 x 100 GbE, PCI Express, a log like that of a delivery network (no publication)",
    figure: true,
    run,
};

/// The experiment, which is built in and in `experiments/`.
const EXPERIMENT: &str = "dcache-modern";
/// Variants that differ in nothing but their caches follow each other; the first of them has none.
const CACHES: usize = 3;
/// A cache pays where clients get this much more, per cent.
const WORTH_PERCENT: f64 = 2.0;

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    if context.log.is_some() || context.data.is_some() {
        return Err(Failure::BadInput(
            "reproduce dcache-modern: runs on a generated log only; expected neither --log nor --data (`baton run \
             dcache-modern --log FILE` takes any log)"
                .to_owned(),
        ));
    }
    let seed = Setting::of_flag("--seed", "run.seed", context.seed);
    let request = Request {
        experiment: EXPERIMENT.to_owned(),
        settings: std::iter::once(seed).chain(context.packets()).collect(),
        ..Request::default()
    };
    let results = run_all(&Job::all_of(&request)?, context.threads, context.interrupt)?;
    let links = || results.chunks(CACHES);
    let rows = links().flat_map(|link| link.iter().flat_map(|run| rows_of(&link[0], run)));
    let sentences: String = links()
        .map(|link| wrapped(&sentence(link), width(), 2))
        .collect();
    let bar = |run: &Results| Bar {
        name: run
            .experiment
            .name
            .replacen(", ", "\n", 1)
            .replacen("PCIe ", "", 1),
        is_doubtful: run.long_run.is_doubtful(),
        parts: vec![run.clients.content_mbps / 1000.0],
    };
    Ok(Outcome {
        rows: rows.collect::<Vec<_>>().into(),
        text: format!("{}\n{sentences}", table(links())),
        figure: Some(Figure::Bars(Bars {
            title: "What clients of two 100 GbE ports get, by PCI Express link and cache a port"
                .to_owned(),
            y: "content, Gb/s".to_owned(),
            most: 220.0,
            parts: vec!["content".to_owned()],
            bars: results.iter().map(bar).collect(),
        })),
    })
}

/// Share of the content that did not cross the link, by time on it for the same content, per cent.
fn kept_off_percent(without: &Results, run: &Results) -> f64 {
    let per_content = |run: &Results| {
        let time = run.interconnect.as_ref();
        let time = time.map_or(0.0, |bus| bus.time_percent.get(Category::Content));
        time / run.clients.content_mbps.max(f64::MIN_POSITIVE)
    };
    100.0 * (1.0 - per_content(run) / per_content(without).max(f64::MIN_POSITIVE))
}

fn utilisation_percent(run: &Results) -> f64 {
    let interconnect = run.interconnect.as_ref();
    interconnect.map_or(0.0, |bus| bus.utilisation_percent)
}

fn benefit_percent(without: &Results, run: &Results) -> f64 {
    100.0 * (run.clients.content_mbps / without.clients.content_mbps.max(f64::MIN_POSITIVE) - 1.0)
}

fn rows_of(without: &Results, run: &Results) -> [Row; 4] {
    let row = |metric, name, simulated| Row {
        config: run.experiment.name.clone(),
        metric,
        published: None,
        simulated,
        shown: Shown {
            name,
            scale: Scale::Relative,
        },
    };
    [
        row(
            "content_mbps",
            "throughput, Mb/s of content",
            run.clients.content_mbps,
        ),
        row(
            "link_utilisation_percent",
            "busiest direction of the links, %",
            utilisation_percent(run),
        ),
        row(
            "content_kept_off_link_percent",
            "content kept off the links, %",
            kept_off_percent(without, run),
        ),
        row(
            "benefit_percent",
            "more throughput, %",
            benefit_percent(without, run),
        ),
    ]
}

fn table<'a>(links: impl Iterator<Item = &'a [Results]>) -> String {
    let columns = vec![
        Column::words("link and cache a port"),
        Column::numbers("content,\nGb/s"),
        Column::numbers("busiest\nlink"),
        Column::numbers("content kept\noff it"),
        Column::numbers("benefit"),
        Column::numbers("mean\nresponse, ms"),
        Column::numbers("host idle"),
    ];
    let title = "Two ports of 100 Gigabit Ethernet, generated log like that of a delivery network; all values are assumed, all \
                 results predictions:";
    let mut table = Table::new(columns).titled(title);
    for link in links {
        for run in link {
            table.row(vec![
                run.experiment.name.clone(),
                significant(run.clients.content_mbps / 1000.0),
                format!("{:.1} %", utilisation_percent(run)),
                format!("{:.1} %", kept_off_percent(&link[0], run)),
                format!("{:+.1} %", benefit_percent(&link[0], run)),
                number(run.clients.response_ms.mean),
                format!("{:.1} %", run.host.idle_percent),
            ]);
        }
    }
    table.render()
}

/// Whether caches pay on one kind of link.
fn sentence(link: &[Results]) -> String {
    let (without, most) = (&link[0], &link[link.len() - 1]);
    let name = without
        .experiment
        .name
        .split(',')
        .next()
        .unwrap_or_default();
    let (benefit, kept) = (
        benefit_percent(without, most),
        kept_off_percent(without, most),
    );
    let used = utilisation_percent(without);
    if benefit >= WORTH_PERCENT {
        format!(
            "- {name}: the link is {used:.0} % used without a cache. The largest cache keeps {kept:.0} % of the content off it, \
             and clients get {benefit:.0} % more."
        )
    } else {
        format!(
            "- {name}: clients get no more with caches ({benefit:+.1} %), for the link is no bottleneck ({used:.0} % used). What \
             is saved is reading {kept:.0} % of the content from host memory."
        )
    }
}
