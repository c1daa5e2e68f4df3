//! Reads timelines: they agree with the results of the run, and writing them does not change the run.

use baton_bus::interconnect::InterconnectConfig;
use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::{Cycles, Results};
use baton_sim::{Machine, Observer, RunError, Timeline};
use baton_testkit::Timeline as Read;
use baton_timeline::{Connections, Sampling, Summary};
use baton_wire::{Span, Time};
use baton_workload::FixedSpec;
use std::path::PathBuf;

fn experiment() -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(8192, 4, None)),
        ..Experiment::default()
    };
    experiment.clients.connections = 100;
    experiment.nic.firmware.hard_limit = 30;
    experiment.run.sample_us = 2_000;
    experiment.run.warmup_packets = Some(2_000);
    experiment.run.measured_packets = 8_000;
    experiment
}

/// Returns an experiment in which the NIC is so slow that it drops packets.
fn overloaded() -> Experiment {
    let mut experiment = experiment();
    experiment.nic.mips = 100;
    experiment.nic.firmware.arrival_queue_packets = 64;
    experiment.nic.firmware.receive_queue_packets = 16;
    experiment
}

/// Records the summary that it receives.
#[derive(Default)]
struct Observed(Option<Summary>);

impl Observer for Observed {
    fn progress(&mut self, _share: f64) {}

    fn timeline(&mut self, summary: &Summary) {
        self.0 = Some(summary.clone());
    }
}

/// A run and the file that it wrote.
struct Written {
    results: Results,
    bytes: Vec<u8>,
    summary: Summary,
}

impl Written {
    fn read(&self) -> Read {
        Read::read(&self.bytes)
    }
}

/// Returns the path of one test's file.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("baton-timeline-{}-{name}", std::process::id()))
}

fn run(experiment: &Experiment, name: &str, sampling: Sampling) -> Result<Written, RunError> {
    let path = path(name);
    let timeline = Timeline {
        sampling,
        path: path.clone(),
    };
    let machine = Machine::builder(experiment).timeline(Some(&timeline));
    let mut observed = Observed::default();
    let results = machine.build()?.run("test", &mut observed);
    let bytes = std::fs::read(&path).expect("a file");
    std::fs::remove_file(&path).expect("it is there");
    Ok(Written {
        results: results?,
        bytes,
        summary: observed.0.expect("the observer received it"),
    })
}

fn all() -> Sampling {
    Sampling {
        connections: Connections::Every(1),
        ..Sampling::default()
    }
}

fn written(experiment: &Experiment, name: &str, sampling: Sampling) -> Written {
    run(experiment, name, sampling).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_timeline_changes_no_result_and_is_reproducible() {
    for (name, experiment) in [("quick", experiment()), ("slow", overloaded())] {
        let none = baton_sim::run(&experiment, "test", &[], &mut Observed::default());
        let none = format!("{:?}", none.expect("a run"));
        let one = written(&experiment, &format!("{name} one"), all());
        let other = written(&experiment, &format!("{name} other"), all());
        assert_eq!(format!("{:?}", one.results), none);
        assert!(one.bytes == other.bytes, "{name}");
    }
}

#[test]
fn spans_agree_with_the_results() {
    let one = written(&overloaded(), "spans", all());
    let (read, results) = (one.read(), &one.results);
    assert!(one.summary.left_out.iter().all(|left| left.events == 0));
    for (layer, cycles) in &results.host.layers {
        let spans = read.spans_on("host", "processor");
        let sum: u64 = spans
            .filter(|span| span.name == *layer)
            .map(|span| span.number("cycles"))
            .sum();
        assert_eq!(sum, Cycles::total(cycles), "{layer}");
    }
    for (task, of_task) in &results.nic.tasks {
        let spans = || {
            read.spans_on("NIC 0", "processor")
                .filter(|span| span.name == *task)
        };
        let sum = |what: &str| spans().map(|span| span.number(what)).sum::<u64>();
        assert_eq!(sum("instructions"), of_task.instructions, "{task}");
        assert_eq!(sum("count"), of_task.count, "{task}");
    }
    let interrupts = read
        .moments
        .iter()
        .filter(|moment| moment.name == "interrupt");
    let interrupts: u64 = interrupts.map(|moment| moment.number("count")).sum();
    assert_eq!(interrupts, results.host.interrupts);
    // A cycle of the host takes 500 ps, and an instruction of the NIC 10 ns. The lengths of spans follow from these, rounded down to a nanosecond.
    for (process, what, ps) in [("host", "cycles", 500), ("NIC 0", "instructions", 10_000)] {
        let spans = read.spans_on(process, "processor");
        let (mut ns, mut work) = (0, 0);
        for span in spans {
            assert!(
                (span.to - span.from).abs_diff(span.number(what) * ps / 1000) <= 1,
                "{span:?}"
            );
            assert_eq!(span.depth, 0);
            ns += span.to - span.from;
            work += span.number(what) * ps / 1000;
        }
        assert!(
            work > 0 && ns.abs_diff(work) < work / 1000,
            "{process}: {ns} of {work}"
        );
    }
}

#[test]
fn counters_are_the_time_series_and_the_drops() {
    let one = written(&overloaded(), "counters", all());
    let (read, results) = (one.read(), &one.results);
    let from_us = (results.warmup_s * 1e6) as u64;
    let series: Vec<_> = results
        .series
        .iter()
        .filter(|sample| sample.time_us > from_us)
        .collect();
    assert!(series.len() > 10, "{}", series.len());
    for sample in series {
        for (name, value) in [
            ("open connections", sample.open),
            ("connections on NICs", sample.connections),
            ("Qlen", sample.qlen),
            ("Soft_Limit", sample.soft_limit),
        ] {
            let values = read.counter("server", name);
            let now = values
                .iter()
                .rev()
                .find(|(at, _)| *at <= sample.time_us * 1000);
            let now = now.map_or(0, |(_, value)| *value);
            assert_eq!(now, i64::from(value), "{name}");
        }
    }
    let mut dropped = 0;
    for (reason, count) in &results.nic.drops {
        let values = read.counter("NIC 0", &format!("dropped: {reason}"));
        let grown = values.last().map_or(0, |last| last.1 - values[0].1);
        assert_eq!(grown, *count as i64, "{reason}");
        let lost = read
            .moments
            .iter()
            .filter(|moment| moment.words.get("why") == Some(reason));
        assert_eq!(lost.count() as u64, *count, "{reason}");
        dropped += count;
    }
    assert!(dropped > 100, "{dropped}");
}

#[test]
fn chosen_connections_show_where_they_are() {
    let sampling = Sampling {
        from: Some(Time::ZERO),
        ..all()
    };
    let mut experiment = experiment();
    experiment.run.warmup_packets = Some(0);
    let one = written(&experiment, "lives", sampling.clone());
    let read = one.read();
    let lives = |place: &str| read.spans.iter().filter(|span| span.name == place).count() as u64;
    let handoff = &one.results.handoff;
    assert!(handoff.accepted > 20, "{handoff:?}");
    assert_eq!(lives("on the NIC"), handoff.accepted);
    let frames = read
        .moments
        .iter()
        .filter(|moment| moment.numbers.contains_key("ack"));
    assert!(frames.count() as u64 > one.results.packets * 9 / 10);
    // Sampling one connection in ten shows a tenth of them, with the same moments as in the full timeline.
    let tenth = Sampling {
        connections: Connections::Every(10),
        ..sampling
    };
    let tenth = written(&experiment, "tenth", tenth);
    let (opened, all) = (one.summary.opened, one.summary.shown);
    assert_eq!((opened, tenth.summary.opened), (all, all));
    assert_eq!(tenth.summary.shown, all.div_ceil(10));
    let of_tenth = tenth
        .read()
        .moments
        .into_iter()
        .filter(|moment| moment.track.0 == "connections");
    let every: Vec<_> = of_tenth
        .map(|moment| (moment.track.1, moment.name, moment.from))
        .collect();
    let there = |moment: &(String, String, u64)| {
        let mut all = read.moments.iter();
        all.any(|one| (&one.track.1, &one.name, one.from) == (&moment.0, &moment.1, moment.2))
    };
    assert!(every.len() > 100 && every.iter().step_by(17).all(there));
}

#[test]
fn connections_that_lose_segments_or_move_are_found_afterwards() {
    let mut experiment = experiment();
    experiment.wire.loss = 0.005;
    (experiment.tcp.rto_min_ms, experiment.clients.tcp.rto_min_ms) = (5, 5);
    for rule in [Connections::Lossy, Connections::Moved] {
        let sampling = Sampling {
            connections: rule,
            from: Some(Time::ZERO),
            ..Sampling::default()
        };
        let one = written(&experiment, &rule.to_string(), sampling);
        let read = one.read();
        let mut tracks = std::collections::BTreeMap::new();
        for told in read.spans.iter().chain(&read.moments) {
            if told.track.0 == "connections" {
                let is_why = match rule {
                    Connections::Lossy => told.name == "lost" || told.name.contains("again"),
                    _ => ["refused", "handing off"].contains(&&*told.name),
                };
                let (begins, why) = tracks.entry(told.number).or_insert((false, false));
                *begins |= told.name == "SYN in";
                *why |= is_why;
            }
        }
        let (shown, opened) = (one.summary.shown, one.summary.opened);
        assert!(
            tracks.len() as u64 == shown && shown > 10 && shown < opened,
            "{shown}"
        );
        assert!(
            tracks.values().all(|(begins, why)| *begins && *why),
            "{rule}"
        );
    }
}

#[test]
fn transfers_on_a_bus_are_not_nested() {
    let mut experiment = experiment();
    experiment.interconnect = InterconnectConfig::preset("pcie-3-x8").expect("a preset");
    let one = written(&experiment, "bus", all());
    let read = one.read();
    let spans: Vec<_> = read.spans_on("bus", "NIC 0").collect();
    for name in [
        "doorbell",
        "read requests",
        "write responses",
        "interrupt",
        "read data",
        "write data",
    ] {
        assert!(
            spans
                .iter()
                .any(|span| span.name == name && span.to > span.from),
            "{name}"
        );
    }
    assert!(spans.iter().all(|span| span.depth == 0));
}

#[test]
fn a_size_limit_is_kept_and_omissions_are_reported() {
    let mut experiment = experiment();
    experiment.run.measured_packets = 60_000;
    let sampling = Sampling {
        most_bytes: 1 << 20,
        ..all()
    };
    let one = written(&experiment, "limit", sampling);
    assert!(one.bytes.len() <= 1 << 20 && one.bytes.len() > 800_000);
    let [work, connections, samples] = one.summary.left_out;
    assert!(work.events > 1_000 && connections.events > 1_000 && samples.events == 0);
    let read = one.read();
    assert!(read.facts["left_out"].contains("pieces of work and transfers from 0."));
    // Nothing is missing up to that time, and the time series is complete.
    let since = work.since.expect("a time").as_ps() / 1_000;
    let whole = written(&experiment, "whole", all());
    let whole = whole.read();
    let part = read.spans_on("host", "processor");
    let part: Vec<_> = part.map(|span| (&span.name, span.from, span.to)).collect();
    let whole = whole.spans_on("host", "processor");
    let whole: Vec<_> = whole.map(|span| (&span.name, span.from, span.to)).collect();
    let before = whole.partition_point(|(_, from, _)| *from < since);
    assert!(part.len() > 1_000 && (before..whole.len()).contains(&part.len()));
    assert_eq!(part, whole[..part.len()]);
    let last = read.counter("host", "free mbufs").last().expect("values");
    assert!(last.0 > since, "{last:?} is not later than {since}");
}

#[test]
fn a_window_is_kept_and_one_that_never_opens_is_an_error() {
    let at = |us| Some(Time::ZERO + Span::from_us(us));
    let sampling = Sampling {
        from: at(10_000),
        to: at(12_000),
        ..all()
    };
    let read = written(&experiment(), "window", sampling).read();
    let told = || read.spans.iter().chain(&read.moments);
    assert!(told().count() > 1_000);
    // A piece of work that begins within the window is written completely.
    for told in told() {
        assert!((10_000_000..12_010_000).contains(&told.from), "{told:?}");
    }
    let late = Sampling {
        from: at(1_000_000_000),
        ..all()
    };
    let late = run(&experiment(), "late", late).map(|_| ());
    assert!(matches!(late, Err(RunError::Unreached { .. })), "{late:?}");
}
