//! What a run predicts about a much longer one, and when runs end.

use baton_sim::config::{Experiment, WorkloadConfig};
use baton_sim::results::{NotSteady, Results};
use baton_sim::{Load, Machine, NoObserver, RunError};
use baton_workload::{FileSet, FixedSpec, RequestSpec, Workload};
use rand::SeedableRng;
use rand_distr::{Distribution, Pareto};
use rand_pcg::Pcg64;

/// A log in which the sizes of responses and the requests per connection are heavy-tailed. The replay starts at a given connection.
struct HeavyTailed {
    specs: Vec<RequestSpec>,
    /// Where each connection starts in `specs`, and where the last one ends.
    ends: Vec<usize>,
    next: usize,
    files: FileSet,
}

impl HeavyTailed {
    fn new(requests: usize, from: usize) -> Self {
        let mut random = Pcg64::seed_from_u64(14);
        let sizes = Pareto::new(2_000.0, 1.2).expect("a distribution");
        let mut size = || f64::min(sizes.sample(&mut random), 3e6) as u64;
        let sizes: Vec<u64> = (0..requests).map(|_| size()).collect();
        let specs = (0..).zip(&sizes);
        let specs: Vec<RequestSpec> = specs
            .map(|(file, &size)| RequestSpec::fixed(file, size))
            .collect();
        let lengths = Pareto::new(1.0, 1.3).expect("a distribution");
        let mut ends = vec![0];
        while *ends.last().expect("it is not empty") < requests {
            let length = f64::min(lengths.sample(&mut random), 200.0) as usize;
            ends.push((ends.last().expect("it is not empty") + length).min(requests));
        }
        let next = from % (ends.len() - 1);
        Self {
            specs,
            ends,
            next,
            files: FileSet::new(sizes),
        }
    }
}

impl Workload for HeavyTailed {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        script.clear();
        script.extend_from_slice(&self.specs[self.ends[self.next]..self.ends[self.next + 1]]);
        self.next = (self.next + 1) % (self.ends.len() - 1);
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn references(&self) -> &[RequestSpec] {
        &self.specs
    }

    fn connections_in_pass(&self) -> u64 {
        self.ends.len() as u64 - 1
    }

    fn requests_per_connection(&self) -> f64 {
        self.specs.len() as f64 / (self.ends.len() - 1) as f64
    }
}

const REQUESTS: usize = 4_000;

fn experiment() -> Experiment {
    let mut experiment = Experiment::default();
    experiment.clients.connections = 64;
    experiment.run.warmup_packets = Some(5_000);
    experiment.run.measured_packets = 25_000;
    experiment
}

fn results(experiment: &Experiment, load: Load) -> Result<Results, RunError> {
    let machine = Machine::builder(experiment).load(load).build()?;
    machine.run("test", &mut NoObserver)
}

fn heavy_tailed(experiment: &Experiment, from: usize) -> Results {
    let load: Load = vec![Box::new(HeavyTailed::new(REQUESTS, from))];
    results(experiment, load).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn throughput_divided_by_request_rate_is_the_mean_size() {
    let heavy = heavy_tailed(&experiment(), 0).long_run;
    let fixed = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(10_000, 3, None)),
        ..experiment()
    };
    let fixed = baton_sim::run(&fixed, "test", &[], &mut NoObserver)
        .expect("it runs")
        .long_run;
    assert_eq!(
        (fixed.served_response_bytes, fixed.mean_response_bytes),
        (10_000.0, 10_000.0)
    );
    assert_eq!((fixed.passes, &fixed.not_steady[..]), (None, &[][..]));
    for long_run in [heavy, fixed] {
        let rate = long_run.request_rate.expect("a rate").mean;
        let bytes_per_s = long_run.content_mbps.expect("a rate").mean / 8e-6;
        assert!((bytes_per_s / rate / long_run.mean_response_bytes - 1.0).abs() < 1e-9);
    }
}

/// Predictions from short parts of a heavy-tailed log agree with a run fifty times as long; plain counts do not.
#[test]
fn short_runs_agree_with_a_long_one() {
    let mut long = experiment();
    long.run.measured_packets *= 50;
    let long = heavy_tailed(&long, 0);
    let truth = long.request_rate().mean;
    assert!(long.request_rate().relative() < Some(0.01));
    let short: Vec<Results> = (0..20)
        .map(|part| heavy_tailed(&experiment(), 89 * part))
        .collect();
    let covered = short
        .iter()
        .filter(|run| run.request_rate().covers(truth))
        .count();
    let near = |rate: f64, within: f64| (rate / truth - 1.0).abs() < within;
    let counted = short
        .iter()
        .filter(|run| near(run.clients.request_rate, 0.03))
        .count();
    let rates: Vec<_> = short.iter().map(Results::request_rate).collect();
    assert!(
        covered >= 18 && counted <= 10,
        "{covered} cover {truth}, {counted} were near: {rates:?}"
    );
    assert!(
        rates.iter().all(|rate| near(rate.mean, 0.05)),
        "{truth}: {rates:?}"
    );
}

#[test]
fn a_run_continues_until_its_rate_is_known() {
    let mut experiment = experiment();
    experiment.run.until_ci_percent = Some(1.0);
    let run = heavy_tailed(&experiment, 0);
    assert!(run.long_run.is_known_to(1.0), "{:?}", run.long_run);
    assert!(run.packets > experiment.run.measured_packets);
    experiment.run.most_lengths = 1;
    let run = heavy_tailed(&experiment, 0);
    assert!(run.packets < experiment.run.measured_packets + 100);
}

#[test]
fn a_run_may_be_as_long_as_responses_seconds_or_passes_say() {
    let run = |set: fn(&mut Experiment)| {
        let mut experiment = experiment();
        set(&mut experiment);
        heavy_tailed(&experiment, 0)
    };
    let responses = run(|experiment| experiment.run.measured_responses = Some(700));
    assert!((700..710).contains(&responses.clients.responses));
    let seconds = run(|experiment| experiment.run.measured_seconds = Some(0.05));
    assert!(
        (seconds.measured_s - 0.05).abs() < 1e-3,
        "{}",
        seconds.measured_s
    );
    let passes = run(|experiment| experiment.run.measured_passes = Some(0.5));
    assert!((2_000..2_010).contains(&passes.clients.responses));
    assert!(passes.long_run.passes > Some(0.5));
}

#[test]
fn impossible_lengths_are_refused() {
    let mut experiment = experiment();
    experiment.workload = WorkloadConfig::Fixed(FixedSpec::httperf(10_000, 3, None));
    experiment.run.measured_passes = Some(1.0);
    let refused = baton_sim::run(&experiment, "test", &[], &mut NoObserver);
    let refused = refused.expect_err("the workload is endless").to_string();
    assert!(refused.contains("run.measured_passes"), "{refused}");
    experiment.run.measured_seconds = Some(1.0);
    assert!(experiment.validate().is_err(), "two lengths");
    experiment.run.measured_passes = None;
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        experiment.run.measured_seconds = Some(seconds);
        assert!(experiment.validate().is_err(), "{seconds}");
    }
}

#[test]
fn a_run_says_why_it_is_not_steady() {
    let mut starting = experiment();
    starting.clients.start_interval_us = 20_000;
    assert!(
        heavy_tailed(&starting, 0)
            .long_run
            .not_steady
            .contains(&NotSteady::ClientsStarting)
    );
    let mut short = experiment();
    short.run.measured_packets = 30;
    let run = heavy_tailed(&short, 0);
    assert!(
        run.long_run.not_steady.contains(&NotSteady::TooShort),
        "{:?}",
        run.long_run
    );
    assert_eq!((run.long_run.request_rate, run.long_run.batches), (None, 0));
    assert_eq!(run.request_rate().half_width, None);
}

/// Caches on NICs are warm when they are full, or when each block of the log has been requested.
#[test]
fn caches_that_fill_are_warm_up() {
    let cached = |kib| {
        let mut experiment = experiment();
        experiment.host.kernel.nic_cache.enabled = true;
        experiment.nic.firmware.cache.kib = kib;
        experiment
    };
    let is_filling = |run: &Results| run.long_run.not_steady.contains(&NotSteady::CachesFilling);
    let small = heavy_tailed(&cached(256), 0);
    assert!(!is_filling(&small), "{:?}", small.long_run);
    // Larger than all files.
    let mut large = cached(65_536);
    large.nic.firmware.memory_kib = 131_072;
    let short = heavy_tailed(&large, 0);
    assert!(is_filling(&short), "{:?}", short.long_run);
    large.run.until_ci_percent = Some(2.0);
    let long = heavy_tailed(&large, 0);
    assert!(!is_filling(&long), "{:?}", long.long_run);
    let kept = |run: &Results| run.long_run.content_kept_off_bus_percent.expect("a share");
    assert!(
        kept(&long).covers(100.0) && kept(&short).mean < 90.0,
        "{short:?}"
    );
    let known = |run: &Results| kept(run).half_width.is_some();
    assert!(known(&small) && known(&long) && !known(&short));
}

/// The hit ratio for large responses is not known before some have been served.
#[test]
fn caches_that_saw_only_small_responses_have_wider_intervals() {
    let mut few = experiment();
    few.host.kernel.nic_cache.enabled = true;
    few.nic.firmware.cache.kib = 64;
    few.run.measured_packets = 3_000;
    few.run.warmup_packets = Some(2_000);
    let few = heavy_tailed(&few, 0).long_run;
    let served = few.served_response_bytes / few.mean_response_bytes;
    assert!(served < 0.9, "{few:?}");
    let kept = few.content_kept_off_bus_percent.expect("a share");
    let half = kept.half_width.expect("an interval");
    assert!(half > (1.0 - served) * kept.mean, "{few:?}");
}
