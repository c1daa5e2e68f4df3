//! Tests of loads with finite demand.

use super::*;
use crate::log::{Log, ReadOptions};
use crate::source::{Demand, RequestSpec, SECOND_PS, Workload};
use crate::{Fixed, FixedSpec, Replay, SessionRule};
use proptest::prelude::*;
use std::path::Path;

/// Creates a paced load of connections with `requests` requests each.
fn fixed(requests: u32, spec: &LoadSpec, seed: u64) -> Paced<Fixed> {
    let pace = Pace {
        log_requests_per_s: None,
        shares: 1,
        seed,
    };
    Paced::new(
        Fixed::new(FixedSpec::httperf(1, requests, None)),
        spec,
        pace,
    )
}

fn open(arrivals: Arrivals) -> LoadSpec {
    LoadSpec {
        rate: Some(Rate::PerSecond(1000.0)),
        arrivals: Some(arrivals),
        ..LoadSpec::default()
    }
}

fn connections(load: &mut dyn Workload, count: usize) -> Vec<Vec<RequestSpec>> {
    let mut script = Vec::new();
    let mut next = || {
        load.next_connection(&mut script);
        script.clone()
    };
    (0..count).map(|_| next()).collect()
}

/// Returns the seconds from each connection to the next.
fn gaps(load: &mut dyn Workload, count: usize) -> Vec<f64> {
    let connections = connections(load, count);
    let gaps = connections
        .iter()
        .map(|script| script[0].wait_ps as f64 / SECOND_PS as f64);
    gaps.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the index of dispersion (variance over mean) of the counts of arrivals in intervals of this many seconds.
fn dispersion(gaps: &[f64], interval: f64) -> f64 {
    let mut counts = vec![0.0_f64; (gaps.iter().sum::<f64>() / interval) as usize];
    let mut now = 0.0;
    for gap in gaps {
        now += gap;
        if let Some(count) = counts.get_mut((now / interval) as usize) {
            *count += 1.0;
        }
    }
    let mean = mean(&counts);
    let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
    squares / counts.len() as f64 / mean
}

#[test]
fn each_kind_of_arrivals_has_the_rate_and_its_own_burstiness() {
    let of = |arrivals, seed| gaps(&mut fixed(1, &open(arrivals), seed), 200_000);
    assert!(of(Arrivals::Even, 1).iter().all(|gap| *gap == 1e-3));
    for seed in 1..=3 {
        let poisson = of(Arrivals::Poisson, seed);
        assert!((mean(&poisson) * 1e3 - 1.0).abs() < 0.01);
        for interval in [0.1, 1.0] {
            let dispersion = dispersion(&poisson, interval);
            assert!((0.7..1.4).contains(&dispersion), "{dispersion}");
        }
        let on_off = of(Arrivals::OnOff, seed);
        assert!((0.8..1.25).contains(&(mean(&on_off) * 1e3)));
        // Self-similar: the longer the intervals, the more their counts vary.
        let [short, long] = [0.01, 1.0].map(|interval| dispersion(&on_off, interval));
        assert!(long > 3.0 * short && long > 5.0, "{short} {long}");
    }
}

#[test]
fn requests_of_a_connection_follow_each_other_or_think() {
    let mut spec = open(Arrivals::Even);
    let mut load = fixed(4, &spec, 1);
    assert_eq!(load.demand(), Demand::PartlyOpen);
    let script = connections(&mut load, 1).remove(0);
    let waits: Vec<u64> = script.iter().map(|request| request.wait_ps).collect();
    // With four requests per connection, there are 250 connections a second.
    assert_eq!(waits, [4_000_000_000, 0, 0, 0]);
    spec.think = Some(Think::Constant(0.5));
    let script = connections(&mut fixed(2, &spec, 1), 1).remove(0);
    assert_eq!(script[1].wait_ps, SECOND_PS / 2);
}

#[test]
fn clients_of_a_closed_loop_think_before_each_request() {
    let thinks = [
        (Think::Constant(2.0), 0.0),
        (Think::Exponential(2.0), 0.02),
        (
            Think::Pareto {
                mean: 2.0,
                shape: 3.0,
            },
            0.03,
        ),
    ];
    for (think, off) in thinks {
        let spec = LoadSpec {
            think: Some(think),
            ..LoadSpec::default()
        };
        let mut load = fixed(2, &spec, 5);
        assert_eq!(load.demand(), Demand::Closed);
        let waits: Vec<f64> = connections(&mut load, 50_000)
            .concat()
            .iter()
            .map(|request| request.wait_ps as f64 / SECOND_PS as f64)
            .collect();
        assert!(
            (mean(&waits) / 2.0 - 1.0).abs() <= off,
            "{think} {}",
            mean(&waits)
        );
    }
    let mut infinite = fixed(2, &LoadSpec::default(), 5);
    assert!(
        connections(&mut infinite, 9)
            .concat()
            .iter()
            .all(|request| request.wait_ps == 0)
    );
}

#[test]
fn the_seed_determines_random_numbers() {
    for arrivals in [Arrivals::Poisson, Arrivals::OnOff] {
        let of = |seed| gaps(&mut fixed(1, &open(arrivals), seed), 100);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

const TEXT: &str = "\
1,30/Apr/1998,22:00:00,/a,200,500
2,30/Apr/1998,22:00:01,/b,200,70
1,30/Apr/1998,22:00:04,/b,304,-
1,30/Apr/1998,22:00:04,/a,200,500
3,30/Apr/1998,22:00:05,/b,200,70
2,30/Apr/1998,22:01:00,/a,206,10
";

fn log() -> Log {
    Log::from_reader(Path::new("test"), TEXT.as_bytes(), &ReadOptions::default()).unwrap()
}

/// Returns the seconds at which requests are due in one pass over the log, by connection.
fn due(spec: &LoadSpec, rule: SessionRule) -> Vec<Vec<f64>> {
    let replay = Replay::timed(&log(), rule).unwrap();
    let count = replay.connections();
    let pace = Pace {
        log_requests_per_s: replay.requests_per_s(),
        shares: 1,
        seed: 1,
    };
    let mut load = Paced::new(replay, spec, pace);
    let mut begins = 0;
    let due = |script: Vec<RequestSpec>| {
        begins += script[0].wait_ps;
        let mut now = begins;
        let later = script.iter().skip(1).map(|request| {
            now += request.wait_ps;
            now
        });
        let all: Vec<u64> = [begins].into_iter().chain(later).collect();
        all.iter().map(|ps| *ps as f64 / SECOND_PS as f64).collect()
    };
    connections(&mut load, count).into_iter().map(due).collect()
}

#[test]
fn a_log_keeps_its_times_and_their_ratios_however_fast_it_is() {
    let at = |rate| LoadSpec {
        rate: Some(rate),
        ..LoadSpec::default()
    };
    // Connections begin in seconds 0, 1, 5 and 60. With a mean gap at the end, a pass has six requests in 80 seconds.
    let own = due(&at(Rate::Times(1.0)), SessionRule::PAPERS);
    let first = own[0][0];
    let since_first: Vec<Vec<f64>> = own
        .iter()
        .map(|script| script.iter().map(|due| due - first).collect())
        .collect();
    // Two requests came in second 4 and are spread over it.
    assert_eq!(
        since_first,
        [vec![0.0, 4.0, 4.5], vec![1.0], vec![5.0], vec![60.0]]
    );
    assert_eq!(first, 20.0);
    for (rate, speed) in [(Rate::Times(4.0), 4.0), (Rate::PerSecond(1.0), 80.0 / 6.0)] {
        let scaled = due(&at(rate), SessionRule::PAPERS);
        for (own, scaled) in own.concat().iter().zip(scaled.concat()) {
            assert!(
                (own / speed - scaled).abs() < 1e-9,
                "{rate}: {own} {scaled}"
            );
        }
    }
}

#[test]
fn a_pipelined_request_arrives_with_the_one_before_it() {
    let spec = LoadSpec {
        rate: Some(Rate::Times(1.0)),
        ..LoadSpec::default()
    };
    let due = due(&spec, SessionRule::PIPELINED);
    assert_eq!(due[0], [20.0, 20.0, 20.0]);
}

#[test]
fn the_gaps_of_the_log_can_be_think_times() {
    let spec = LoadSpec {
        think: Some(Think::Log),
        ..LoadSpec::default()
    };
    assert_eq!(due(&spec, SessionRule::PAPERS)[0], [0.0, 4.0, 4.5]);
}

#[test]
fn shares_of_a_log_keep_its_times() {
    let parts = Replay::timed(&log(), SessionRule::PAPERS).unwrap().split(2);
    let [mut first, mut second] = <[Replay; 2]>::try_from(parts).unwrap();
    // A pass takes 80 seconds. The first share has connection 0 alone; the others begin 1, 5 and 60 seconds after it.
    assert_eq!(gaps(&mut first, 2), [80.0, 80.0]);
    assert_eq!(gaps(&mut second, 4), [21.0, 4.0, 55.0, 21.0]);
}

#[test]
fn written_loads_are_read_back() {
    let rates = ["2x", "0.5x", "5000/s"];
    assert!(
        rates
            .iter()
            .all(|text| text.parse::<Rate>().unwrap().to_string() == *text)
    );
    let thinks = ["7s", "0.25s", "exponential:7s", "pareto:7s:1.5", "log"];
    assert!(
        thinks
            .iter()
            .all(|text| text.parse::<Think>().unwrap().to_string() == *text)
    );
    assert_eq!("250ms".parse(), Ok(Think::Constant(0.25)));
    for text in [
        "", "5000", "x", "-2x", "0x", "infx", "NaN/s", "5000/m", "1e300/s", "2e8/s", "1e7x",
    ] {
        assert_eq!(text.parse::<Rate>(), Err(rate::NotRate), "{text}");
    }
    for text in [
        "",
        "7",
        "s",
        "-1s",
        "normal:7s",
        "exponential",
        "pareto:7s",
        "pareto:7s:1",
        "log:1",
    ] {
        assert_eq!(text.parse::<Think>(), Err(think::NotThink), "{text}");
    }
}

#[test]
fn impossible_loads_are_named() {
    let refused = |text: &str, is_log| {
        let spec: LoadSpec = toml::from_str(text).unwrap();
        spec.check(is_log).map_err(|error| error.to_string())
    };
    for (text, is_log, field) in [
        ("rate = '2x'", false, "rate = 2x"),
        ("rate = '9/s'\narrivals = 'log'", false, "arrivals = log"),
        ("think = 'log'", false, "think = log"),
        ("arrivals = 'poisson'", true, "arrivals = Poisson"),
        ("rate = '2x'\nthink = '1s'", true, "think = 1s"),
        ("on_off.sources = 0", true, "on_off.sources = 0"),
        ("on_off.on_shape = 1.0", true, "on_off.on_shape = 1"),
        ("on_off.off_ms = nan", true, "on_off.off_ms = NaN"),
    ] {
        let error = refused(text, is_log).unwrap_err();
        assert!(error.starts_with(field), "{error}");
    }
    assert_eq!(refused("rate = '2x'", true), Ok(()));
    assert_eq!(
        refused("rate = '2x'\narrivals = 'poisson'\nthink = '1s'", true),
        Ok(())
    );
}

proptest! {
    /// The remainder of a period at a random moment has the mean of renewal theory (Kleinrock 5.2): E[x^2] / 2 E[x].
    #[test]
    fn remaining_periods_have_the_mean_of_renewal_theory(seed in 0_u64..20) {
        let pareto = pareto::Pareto::new(3.0, 4.5);
        let mut random = <Pcg64 as rand::SeedableRng>::seed_from_u64(seed);
        let rests: Vec<f64> = (0..50_000).map(|_| pareto.sample_rest(&mut random)).collect();
        let least: f64 = 3.0 * 3.5 / 4.5;
        let squares = 4.5 * least * least / 2.5;
        prop_assert!((mean(&rests) / (squares / 6.0) - 1.0).abs() < 0.03, "{}", mean(&rests));
    }
}

/// The mean that each load reports matches its scripts.
#[test]
fn loads_know_how_many_requests_their_connections_have() {
    use crate::{
        OnDemand, OnDemandSpec, RemoteFiles, RemoteFilesSpec, SpecWeb, SpecWebSpec, TitleClass,
    };
    let class = |viewers, bytes| TitleClass {
        viewers,
        titles: 5,
        bytes,
    };
    let on_demand = OnDemandSpec {
        classes: vec![class(3, 500), class(1, 2_000)],
        rate_kbps: 8,
        chunk_bytes: 100,
    };
    let loads: Vec<Box<dyn Workload>> = vec![
        Box::new(Fixed::new(FixedSpec::httperf(1, 7, None))),
        Box::new(SpecWeb::new(SpecWebSpec::full(10), 1)),
        Box::new(OnDemand::new(on_demand, 1)),
        Box::new(RemoteFiles::new(RemoteFilesSpec::default(), 1)),
        Box::new(Replay::new(&log(), SessionRule::PAPERS).unwrap()),
    ];
    for mut load in loads {
        let requests = connections(&mut load, 4_000).concat().len() as f64 / 4_000.0;
        let said = load.requests_per_connection();
        assert!((requests / said - 1.0).abs() < 0.05, "{requests} {said}");
    }
}
