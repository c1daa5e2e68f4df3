//! Finite loads: open loops compared with queueing theory, and response times from when a request was due.

use baton_apps::web;
use baton_sim::config::{ApplicationConfig, Experiment, WorkloadConfig};
use baton_sim::results::{OpenLoopResults, ResponseTime, Results};
use baton_sim::{Load, Machine, NoObserver};
use baton_workload::load::{Arrivals, Rate};
use baton_workload::{
    Demand, FileSet, FixedSpec, LoadSpec, RequestSpec, SpecWebSpec, Throttle, Workload,
};
use rand::SeedableRng;
use rand_distr::{Distribution, Exp};
use rand_pcg::Pcg64;

fn open(rate: f64, arrivals: Arrivals) -> LoadSpec {
    LoadSpec {
        rate: Some(Rate::PerSecond(rate)),
        arrivals: Some(arrivals),
        ..LoadSpec::default()
    }
}

/// Connections that each request 1,000 bytes, at this rate, from a server that takes no time behind a wire of 10 Mb/s.
fn fixed(rate: f64, arrivals: Arrivals) -> Experiment {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Fixed(FixedSpec::httperf(1_000, 1, None)),
        load: open(rate, arrivals),
        ..Experiment::default()
    };
    experiment.wire.rate_mbps = 10;
    experiment.run.cost_models = false;
    experiment.run.warmup_responses = Some(500);
    experiment.run.measured_responses = Some(20_000);
    experiment
}

fn run(experiment: &Experiment) -> Results {
    baton_sim::run(experiment, "test", &[], &mut NoObserver)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run_load(experiment: &Experiment, load: impl Workload + Send + 'static) -> Results {
    let load: Load = vec![Box::new(load)];
    let machine = Machine::builder(experiment).load(load).build();
    let results = machine.and_then(|machine| machine.run("test", &mut NoObserver));
    results.unwrap_or_else(|error| panic!("{error}"))
}

fn response_ms(results: &Results) -> ResponseTime {
    let time = results.long_run.response_ms;
    time.unwrap_or_else(|| panic!("{:?}", results.long_run))
}

fn open_loop(results: &Results) -> &OpenLoopResults {
    results.clients.open_loop.as_ref().expect("an open loop")
}

/// Long connections, each of which sends requests as a Poisson process, with responses of one frame.
struct Streams {
    /// Distribution of the time between requests of a connection, in picoseconds.
    between: Exp<f64>,
    /// Time between the starts of connections, in picoseconds.
    apart_ps: u64,
    files: FileSet,
    random: Pcg64,
}

/// Number of concurrent connections.
const STREAMS: u32 = 200;
/// Number of requests of each connection.
const STREAM_REQUESTS: u32 = 50;

impl Streams {
    fn new(requests_per_s: f64, seed: u64) -> Self {
        let streams = f64::from(STREAMS);
        Self {
            between: Exp::new(requests_per_s / streams * 1e-12).expect("a rate"),
            apart_ps: (f64::from(STREAM_REQUESTS) / requests_per_s * 1e12) as u64,
            files: FileSet::new(vec![1_000]),
            random: Pcg64::seed_from_u64(seed),
        }
    }
}

impl Workload for Streams {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        script.clear();
        for _ in 0..STREAM_REQUESTS {
            script.push(RequestSpec {
                wait_ps: self.between.sample(&mut self.random) as u64,
                ..RequestSpec::fixed(0, 1_000)
            });
        }
        script[0].wait_ps = self.apart_ps;
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        STREAM_REQUESTS.into()
    }

    fn demand(&self) -> Demand {
        Demand::Open
    }
}

/// Requests arrive as a Poisson process at a server that takes no time, behind a wire with frames of equal length. The additional response
/// time over a single request is the wait of an M/D/1 queue (Kleinrock, *Queueing Systems*, volume 1, 5.6).
#[test]
fn a_machine_behind_a_wire_is_an_m_d_1_queue() {
    // Ethernet with preamble and gap, IP, TCP with timestamps, HTTP, content.
    let service_ms = (38.0 + 20.0 + 32.0 + 250.0 + 1_000.0) * 8.0 / 10e3;
    let of = |load: f64| {
        let mut experiment = fixed(1.0, Arrivals::Poisson);
        experiment.clients.connections = 2 * STREAMS;
        experiment.run.warmup_responses = Some(15_000);
        experiment.run.measured_responses = Some(60_000);
        experiment.run.limit_s = 10_000;
        run_load(&experiment, Streams::new(load / service_ms * 1e3, 3))
    };
    let alone = response_ms(&of(0.01)).p50.expect("enough responses").mean;
    for load in [0.3, 0.6, 0.8] {
        let results = of(load);
        let waited = response_ms(&results).mean.mean - alone;
        let truth = load * service_ms / (2.0 * (1.0 - load));
        assert!(
            (waited / truth - 1.0).abs() < 0.06,
            "{load}: {waited} {truth}"
        );
    }
}

/// Little's law: the mean number of requests in progress is the number that arrive during a response time.
#[test]
fn requests_in_progress_obey_littles_law() {
    for (rate, arrivals) in [
        (100.0, Arrivals::Poisson),
        (600.0, Arrivals::Poisson),
        (300.0, Arrivals::OnOff),
    ] {
        let mut experiment = fixed(rate, arrivals);
        experiment.run.sample_us = 500;
        let results = run(&experiment);
        let from_us = (results.warmup_s * 1e6) as u64;
        let samples = results
            .series
            .iter()
            .filter(|sample| sample.time_us >= from_us);
        let under_way: Vec<f64> = samples.map(|sample| sample.unanswered as f64).collect();
        let under_way = under_way.iter().sum::<f64>() / under_way.len() as f64;
        let of_time = results.clients.request_rate
            * open_loop(&results).response_ms.mean.expect("responses")
            * 1e-3;
        assert!(
            (under_way / of_time - 1.0).abs() < 0.02,
            "{under_way} {of_time}"
        );
    }
}

#[test]
fn the_offered_load_is_served_below_saturation() {
    let mut logs = Experiment {
        workload: WorkloadConfig::Generated {
            preset: "demo".to_owned(),
            requests: 10_000,
            persistent_s: 15,
            pipeline_s: None,
        },
        ..Experiment::default()
    };
    // Part of a log may have another rate than the whole log.
    logs.run.warmup_packets = Some(200_000);
    logs.run.measured_passes = Some(2.0);
    logs.clients.replayers = 3;
    for arrivals in [Arrivals::Log, Arrivals::Even, Arrivals::Poisson] {
        logs.load = open(3_000.0, arrivals);
        let fixed = (arrivals != Arrivals::Log).then(|| fixed(300.0, arrivals));
        for (experiment, rate) in [(Some(&logs), 3_000.0), (fixed.as_ref(), 300.0)] {
            let Some(experiment) = experiment else {
                continue;
            };
            let results = run(experiment);
            let served = results.request_rate();
            // In one of twenty runs, the interval does not cover the true value.
            let half_width = 2.0 * served.half_width.expect("an interval") + 1e-3 * rate;
            assert!(
                (served.mean - rate).abs() < half_width,
                "{arrivals:?}: {served:?}"
            );
            let offered = open_loop(&results).offered_rate;
            assert!(
                (offered / served.mean - 1.0).abs() < 0.05,
                "{offered} {served:?}"
            );
            assert!(results.clients.failed.values().all(|count| *count == 0));
        }
    }
}

/// Small responses, and from time to time one that occupies the only client for a second.
struct Stalls {
    number: u64,
    files: FileSet,
}

impl Workload for Stalls {
    fn next_connection(&mut self, script: &mut Vec<RequestSpec>) {
        let file = u32::from(self.number % 2_000 == 1_000);
        self.number += 1;
        script.clear();
        script.push(RequestSpec {
            wait_ps: 10_000_000_000,
            ..RequestSpec::fixed(file, self.files.size(file))
        });
    }

    fn files(&self) -> &FileSet {
        &self.files
    }

    fn requests_per_connection(&self) -> f64 {
        1.0
    }

    fn demand(&self) -> Demand {
        Demand::PartlyOpen
    }
}

/// Coordinated omission: if response times are measured from when requests were sent, each stall counts as one slow response. But requests were due
/// every 10 ms, so a hundred of them were slow.
#[test]
fn a_stall_shows_in_the_time_from_when_requests_were_due() {
    let mut experiment = fixed(1.0, Arrivals::Even);
    experiment.clients.connections = 1;
    experiment.wire.rate_mbps = 100;
    let stalls = Stalls {
        number: 0,
        files: FileSet::new(vec![1_000, 12_000_000]),
    };
    let results = run_load(&experiment, stalls);
    let (sent, due) = (
        &results.clients.response_ms,
        &open_loop(&results).response_ms,
    );
    assert!(sent.p99 < Some(2.0) && sent.max > Some(900.0), "{sent:?}");
    assert!(due.p90 < Some(2.0) && due.p99 > Some(700.0), "{due:?}");
    assert!(due.mean > sent.mean.map(|mean| 10.0 * mean), "{due:?}");
}

#[test]
fn a_limit_that_is_set_alone_keeps_the_others() {
    let spec: SpecWebSpec = toml::from_str("throttle.max_bps = 500000").expect("a load");
    let limits = Throttle {
        max_bps: 500_000,
        ..Throttle::default()
    };
    assert_eq!(spec.throttle, Some(limits));
}

/// Clients that read in pieces handle a server's FIN only after they have read all data before it. The server closes after each response,
/// so that each request has its own connection.
#[test]
fn clients_that_read_in_pieces_read_all_that_comes_before_the_end() {
    let mut experiment = Experiment {
        workload: WorkloadConfig::Specweb(SpecWebSpec::only_static(10)),
        application: ApplicationConfig::Web(web::Config {
            keep_alive: false,
            ..web::Config::default()
        }),
        ..Experiment::default()
    };
    experiment.clients.connections = 10;
    experiment.run.warmup_packets = Some(0);
    experiment.run.measured_packets = 3_000;
    experiment.run.check = true;
    let results = run(&experiment);
    assert!(results.clients.responses > 100);
    let ended = (results.clients.responses).abs_diff(results.clients.connections);
    assert!(ended <= 10, "{ended}");
    let content = results.clients.content_mbps;
    assert!(content < 1.01 * 10.0 * 0.4, "{content} Mb/s");
}

/// Clients that read in pieces keep to their rate from the first second on, whatever they request. Clients that take data as it arrives do
/// so only in the long run, since they wait after a large file. Clients whose clocks tick exceed their rate, because each pause ends up to
/// a tick early.
#[test]
fn clients_that_read_in_pieces_hold_their_rate_at_once() {
    const CLIENTS: u32 = 100;
    let mbps = |read_bytes, tick_us| {
        let throttle = Throttle {
            read_bytes,
            ..Throttle::default()
        };
        let mut experiment = Experiment {
            workload: WorkloadConfig::Specweb(SpecWebSpec {
                throttle: Some(throttle),
                ..SpecWebSpec::full(CLIENTS)
            }),
            ..Experiment::default()
        };
        experiment.clients.connections = CLIENTS;
        experiment.clients.tick_us = tick_us;
        experiment.run.cost_models = false;
        experiment.run.warmup_packets = Some(0);
        experiment.run.measured_packets = 8_000;
        let results = run(&experiment);
        assert!(results.measured_s < 3.0, "{} s", results.measured_s);
        results.clients.content_mbps
    };
    let most = f64::from(CLIENTS) * Throttle::default().max_bps as f64 / 1e6;
    let in_pieces = mbps(Throttle::default().read_bytes, 0);
    assert!(
        (0.8 * most..=1.01 * most).contains(&in_pieces),
        "{in_pieces} Mb/s"
    );
    let at_once = mbps(0, 0);
    assert!(at_once > 1.1 * most, "{at_once} Mb/s");
    // At the client's rate a segment takes 29.2 ms, but the client waits only two ticks of 10 ms.
    let by_ticks = mbps(Throttle::default().read_bytes, 10_000);
    let ratio = by_ticks / in_pieces;
    assert!(
        (1.3..1.6).contains(&ratio),
        "{by_ticks} of {in_pieces} Mb/s"
    );
}
