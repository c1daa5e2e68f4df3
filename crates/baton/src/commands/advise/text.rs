//! The verdict in words. All numbers and comparisons come from the verdict.

use super::verdict::{BreakEven, Effect, Point, Question, UnderLoad, Verdict, Way, sign};
use baton_report::{self as report, Column, Table};
use baton_sim::results::{Limit, NotSteady, Results};
use baton_stats::Estimate;
use std::fmt::Write as _;

/// Returns the whole text.
pub fn of(verdict: &Verdict) -> String {
    let mut text = headline(verdict) + &caution(verdict) + "\n";
    text += &paragraph(&log(verdict));
    text += &paragraph(&machine(verdict));
    text.push('\n');
    text += &table(&verdict.ways);
    text.push('\n');
    for way in &verdict.ways {
        text += &paragraph(&sentence(verdict, way));
    }
    if !verdict.break_even.is_empty() {
        text += "\nWhere it pays:\n";
        for found in &verdict.break_even {
            text += &paragraph(&break_even(found));
        }
    }
    if !verdict.under_load.is_empty() {
        text += &paragraph(&under_load(&verdict.under_load));
    }
    if !verdict.left_out.is_empty() {
        let left_out = verdict.left_out.join("; ");
        text += &paragraph(&format!(
            "- Left out, because the time limit (--seconds) had passed: {left_out}."
        ));
    }
    text += "\nWhat was assumed:\n";
    for assumption in &verdict.assumed {
        text += &paragraph(&format!("- {assumption}."));
    }
    text
}

fn paragraph(text: &str) -> String {
    report::wrapped(text, report::width(), 2)
}

fn headline(verdict: &Verdict) -> String {
    let baseline = &verdict.ways[0];
    let advised = verdict.advised.map(|number| &verdict.ways[number]);
    let load = verdict.own_load.as_ref();
    let own = load.map(|load| {
        format!(
            "in its busiest second the log has {} requests, {} of what the server can serve without handoff",
            report::grouped(load.peak_per_s as u64),
            report::percent(load.peak_percent)
        )
    });
    let own = own.unwrap_or_default();
    let begin = match load {
        Some(load) if load.is_light() && advised.is_some() => {
            format!("keep this traffic on the host: {own}. If it has to serve much more, ")
        }
        Some(_) if advised.is_some() => format!("{own}. At full load, "),
        _ => String::new(),
    };
    let text = match advised {
        Some(way) if way.effect == Effect::Faster => format!(
            "Verdict: {begin}`{}` serves this traffic faster than no handoff, by {}.",
            way.name,
            change(way)
        ),
        Some(way) => format!(
            "Verdict: {begin}none of the ways tried serves more of this traffic; {}. `{}` serves as much (no difference that matters), and \
             the host spends {} less time on each response.",
            limited(baseline),
            way.name,
            way.host_time_saved_percent
                .map(report::difference_size)
                .unwrap_or_default()
        ),
        None => format!(
            "Verdict: keep this traffic on the host. None of the ways tried serves more of it or takes work off the host; {}{}.",
            limited(baseline),
            if own.is_empty() {
                own
            } else {
                format!("; {own}")
            }
        ),
    };
    paragraph(&(text + &as_good(verdict)))
}

/// Names the ways that cannot be told from the recommended one.
fn as_good(verdict: &Verdict) -> String {
    let name = |&number: &usize| format!("`{}`", verdict.ways[number].name);
    let names: Vec<String> = verdict.as_good.iter().map(name).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!(" {one} is as good, and needs more of the NIC."),
        names => format!(
            " These are as good, and need more of the NIC: {}.",
            names.join("; ")
        ),
    }
}

/// Warns if a way that lets a saturated server serve more slows down the responses of a server that is not saturated.
fn caution(verdict: &Verdict) -> String {
    let is_slower = |load: &UnderLoad| {
        let pair = load.baseline_ms.zip(load.way_ms);
        let difference = pair.and_then(|(baseline, way)| baseline.difference_percent(way));
        load.share_percent < 100.0 && difference.is_some_and(|difference| sign(difference) > 0)
    };
    match verdict.under_load.iter().find(|load| is_slower(load)) {
        Some(load) => paragraph(&format!(
            "But a server that is not saturated responds more slowly with `{}`, even at {} of the rate without handoff: see below.",
            load.way,
            report::percent(load.share_percent)
        )),
        None => String::new(),
    }
}

/// Returns what keeps a way from serving more, as a clause.
pub fn limited(way: &Way) -> String {
    let waits = way.limits.is_empty() && way.client_timeouts as f64 > WAITS * way.responses as f64;
    match waits {
        true => format!(
            "nothing is always busy, because clients wait for lost packets ({})",
            report::counted(way.client_timeouts, "timeout")
        ),
        false => Limit::told(&way.limits),
    }
}

/// Number of client timeouts per response above which the text says that clients wait for lost packets.
const WAITS: f64 = 0.001;

fn log(verdict: &Verdict) -> String {
    let log = &verdict.log;
    let mut text = format!(
        "The log {} ({}) has {} requests from {} clients on {} connections. The mean response has {}, the largest {}; all responses together \
         have {} of content, from files of {}.",
        log.path.display(),
        log.format,
        report::grouped(log.requests),
        report::grouped(log.clients),
        report::grouped(log.connections),
        report::bytes(log.mean_response_bytes.round() as u64),
        report::bytes(log.largest_response_bytes),
        report::bytes(log.content_bytes),
        report::bytes(log.footprint_bytes),
    );
    if log.clients_unknown.is_some() {
        text += " Who its clients are is unknown: everything here holds for connections of the addresses in it, which may be those of proxies.";
    }
    if log.lines_skipped > 0 {
        let _ = write!(
            text,
            " {} skipped.",
            report::counted(log.lines_skipped, "line")
        );
    }
    let cache = log
        .lru_hits
        .iter()
        .find(|point| point.cache_bytes >= 16 << 20);
    if let Some(point) = cache.or(log.lru_hits.last()) {
        let _ = write!(
            text,
            " An LRU cache of {} would contain {} of the content when it is requested, if requests came in the order of the log.",
            report::bytes(point.cache_bytes),
            report::percent(point.hit_percent)
        );
    }
    text
}

fn machine(verdict: &Verdict) -> String {
    let machine = &verdict.machine;
    let nics = match machine.nics {
        1 => "a NIC".to_owned(),
        nics => format!("{nics} NICs"),
    };
    format!(
        "It was replayed by {} clients, each of which sends its next request as soon as it has the response to the last one, on the machine \
         `{}`: a host of {} MHz, {nics} of {} MIPS and {} Mb/s.",
        report::grouped(u64::from(machine.clients)),
        machine.profile,
        report::grouped(u64::from(machine.host_mhz)),
        report::grouped(u64::from(machine.nic_mips)),
        report::grouped(machine.link_mbps),
    )
}

/// Renders the ways, with a row for each.
fn table(ways: &[Way]) -> String {
    let mut table = Table::new(vec![
        Column::words("way"),
        Column::numbers("requests/s"),
        Column::numbers("against\nno handoff"),
        Column::numbers("host us\na request"),
        Column::numbers("host\nbusy"),
        Column::numbers("NIC\nbusy"),
        Column::numbers("NIC\nMIPS"),
        Column::numbers("NIC\nmemory"),
    ]);
    for way in ways {
        table.row(vec![
            way.name.clone() + if way.not_steady.is_empty() { "" } else { " *" },
            report::grouped(way.request_rate.mean.round() as u64),
            way.gain_percent
                .map_or_else(|| "-".to_owned(), report::difference),
            report::significant(way.host_us_per_request.mean),
            report::percent(way.host_busy_percent),
            report::percent(way.nic_busy_percent),
            report::grouped(way.nic_mips_used.round() as u64),
            report::bytes(way.nic_memory_bytes),
        ]);
    }
    let mut text = table.render();
    for way in ways.iter().filter(|way| !way.not_steady.is_empty()) {
        let why = NotSteady::texts(&way.not_steady);
        text += &paragraph(&format!("* {}: {why}", way.name));
    }
    text
}

/// Describes one way.
fn sentence(verdict: &Verdict, way: &Way) -> String {
    let mut text = format!("- {}: ", way.name);
    text += &match way.effect {
        Effect::Baseline => format!(
            "{} requests/s; {}; the network stack takes {} of the host's cycles",
            report::estimated(way.request_rate),
            limited(way),
            report::percent(way.network_stack_percent)
        ),
        Effect::Faster => format!("faster, {}; {}", change(way), next_limit(verdict, way)),
        Effect::Slower => format!("slower, {}; {}", change(way), next_limit(verdict, way)),
        Effect::FreesHost => format!(
            "no difference in speed that matters ({}), but the host spends {} less time on each response; {}",
            change(way),
            way.host_time_saved_percent
                .map(report::difference_size)
                .unwrap_or_default(),
            limited(way)
        ),
        Effect::None => format!(
            "no difference that matters ({}); {}",
            change(way),
            limited(way)
        ),
    };
    if way.connections_on_nic > 0.0 {
        let _ = write!(
            text,
            "; {} connections on the NIC on average",
            report::significant(way.connections_on_nic)
        );
    }
    if let Some(kept) = way.kept_off_bus_percent.filter(|kept| sign(*kept) > 0) {
        let _ = write!(
            text,
            "; {} of the content stays off the bus",
            report::estimated_percent(kept)
        );
    }
    if way.frames_dropped > 0 {
        let _ = write!(
            text,
            "; the NIC dropped {} frames",
            report::grouped(way.frames_dropped)
        );
    }
    text + "."
}

/// Formats the difference of the request rate from that without handoff, with its interval.
fn change(way: &Way) -> String {
    let gain = way.gain_percent.map(report::difference).unwrap_or_default();
    format!(
        "{gain}, {} requests/s",
        report::grouped(way.request_rate.mean.round() as u64)
    )
}

fn next_limit(verdict: &Verdict, way: &Way) -> String {
    let is_same = way.limits == verdict.ways[0].limits;
    limited(way)
        + if is_same {
            ", as without handoff"
        } else {
            " now"
        }
}

/// Returns a question as a clause.
pub const fn asked(question: Question) -> &'static str {
    match question {
        Question::NicSpeed => "how fast the NIC has to be",
        Question::Connections => "how many connections it may hold",
        Question::CacheSize => "how large its cache has to be",
        Question::Load => "how long responses take at which load",
    }
}

/// Returns the subject of a question.
const fn subject(question: Question) -> &'static str {
    match question {
        Question::NicSpeed => "NIC speed",
        Question::Connections => "connections that a NIC may hold",
        Question::CacheSize => "cache on a NIC",
        Question::Load => "load",
    }
}

/// Formats a value of the subject with its unit.
fn value(question: Question, value: f64) -> String {
    let number = value as u64;
    match question {
        Question::NicSpeed => format!("{} MIPS", report::grouped(number)),
        Question::Connections => format!("{} connections", report::grouped(number)),
        Question::CacheSize => report::bytes(number * 1024),
        Question::Load => format!("{} requests/s", report::grouped(number)),
    }
}

/// Describes response times at limited loads.
fn under_load(loads: &[UnderLoad]) -> String {
    let time = |ms: Option<Estimate>| match ms {
        Some(ms) => format!("{} ms", report::estimated(ms)),
        None => "overload".to_owned(),
    };
    let way = loads.first().map_or("", |load| &load.way);
    let points: Vec<String> = loads
        .iter()
        .map(|load| {
            format!(
                "{} and {} at {} ({})",
                time(load.baseline_ms),
                time(load.way_ms),
                value(Question::Load, load.offered_per_s),
                report::percent(load.share_percent)
            )
        })
        .collect();
    format!(
        "- {} (`{way}`): mean response time without handoff and with it: {}. Percentages are of the request rate without handoff, and \
         requests arrive as a Poisson process.",
        subject(Question::Load),
        points.join("; ")
    )
}

fn break_even(found: &BreakEven) -> String {
    let what = subject(found.question);
    let value = |number: f64| value(found.question, number);
    let points: Vec<String> = found
        .points
        .iter()
        .map(|point| {
            format!(
                "{} at {}",
                report::difference(point.gain_percent),
                value(point.value)
            )
        })
        .collect();
    let pays = match pays(found) {
        Pays::Nowhere => "it is not faster than no handoff at any value tried".to_owned(),
        Pays::Everywhere => "it is faster than no handoff at all values tried".to_owned(),
        Pays::From(from) => format!("it is faster than no handoff from {} upwards", value(from)),
        Pays::Between(from, to) => {
            format!(
                "it is faster than no handoff from {} to {}",
                value(from),
                value(to)
            )
        }
        Pays::At(values) => {
            let values: Vec<String> = values.iter().copied().map(value).collect();
            format!("it is faster than no handoff at {}", values.join(", "))
        }
    };
    format!(
        "- {what} (`{}`): {pays} ({}).",
        found.way,
        points.join(", ")
    )
}

/// The values at which a way pays, among the measured ones.
enum Pays<'a> {
    Nowhere,
    Everywhere,
    From(f64),
    Between(f64, f64),
    At(&'a [f64]),
}

fn pays(found: &BreakEven) -> Pays<'_> {
    let does = |point: &Point| found.pays_at.contains(&point.value);
    let first = found.points.iter().position(does);
    let last = found.points.iter().rposition(does);
    let (Some(first), Some(last)) = (first, last) else {
        return Pays::Nowhere;
    };
    let is_end = last + 1 == found.points.len();
    let [from, to] = [first, last].map(|number| found.points[number].value);
    match (found.points[first..=last].iter().all(does), first, is_end) {
        (false, ..) => Pays::At(&found.pays_at),
        (true, 0, true) => Pays::Everywhere,
        (true, _, true) => Pays::From(from),
        (true, ..) if first == last => Pays::At(&found.pays_at),
        (true, ..) => Pays::Between(from, to),
    }
}

/// Returns the assumptions, from the run without handoff.
pub fn assumed(baseline: &Results) -> Vec<String> {
    let experiment = &baseline.experiment;
    let passes = baseline.long_run.passes.unwrap_or(0.0);
    let replayed = (passes > 1.0).then(|| {
        format!(
            "the run makes {} passes over the log, so that caches already hold content from earlier passes",
            report::significant(passes)
        )
    });
    let mut assumed = vec![
        "the machine is that of the profile, with constants that were fitted to a paper's results; results for another host, NIC or operating \
         system differ"
            .to_owned(),
        format!(
            "demand is unlimited: each of {} clients sends its next request as soon as it has the response to the last one, so that rates show \
             the server's capacity and response times merely follow from the rates",
            report::grouped(u64::from(experiment.clients.connections))
        ),
        "requests of one client that are at most 15 s apart share a connection; all content is static and has the size that the log gives"
            .to_owned(),
        format!(
            "blocks of the log's connections are replayed in random order (seed {}); intervals are 95 % confidence intervals, from batch means \
             of one run, for responses of the log's mean size on connections of its mean length",
            experiment.run.seed
        ),
    ];
    assumed.extend(replayed);
    assumed
}
