//! `baton advise`: finds out what would help a server with the traffic of a log.

pub(super) mod text;
pub(super) mod verdict;

use crate::cli::AdviseArgs;
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::logs;
use crate::output::{JsonOutput, print_text, spare};
use crate::runner::{Interrupt, Job, run_all};
use baton_report::{bytes, counted, grouped};
use baton_sim::config::{Experiment, Length};
use baton_sim::results::Results;
use baton_workload::SessionRule;
use baton_workload::analyse::Analysis;
use std::time::{Duration, Instant};
use verdict::{
    BreakEven, Effect, LogFacts, MachineFacts, OwnLoad, Point, Question, UnderLoad, Verdict, Way,
    advised,
};

/// The experiment whose variants are the ways to compare; the first is the server without handoff.
const WAYS: &str = "advise";
const NIC_CACHE: &str = "NIC cache";
/// Offered loads at which response times are measured, per cent of the rate without handoff.
const LOADS_PERCENT: [f64; 4] = [50.0, 80.0, 95.0, 110.0];
/// Range of a log's own load, per cent of the rate without handoff, in which it is one of the offered loads.
const OWN_LOADS_PERCENT: std::ops::RangeInclusive<f64> = 5.0..=150.0;
const MEMORY_KIB: &str = "nic.firmware.memory_kib";

/// Minimum number of requests for a verdict.
const LEAST_REQUESTS: u64 = 500;
/// Minimum number of clients for a verdict.
const LEAST_CLIENTS: u64 = 10;
/// Data of a full segment.
const SEGMENT_BYTES: f64 = 1448.0;

/// Runs the command.
///
/// # Errors
/// Fails on bad input, if a run fails, or if the user interrupts.
pub fn execute(arguments: &AdviseArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    spare(&arguments.log, "--json", arguments.json.as_deref())?;
    let json = arguments.json.as_deref().map(JsonOutput::new).transpose()?;
    let adviser = Adviser {
        arguments,
        interrupt,
        until: Instant::now() + Duration::from_secs(arguments.seconds),
    };
    let ways = adviser.plan(&[], &[])?;
    let log = adviser.log()?;
    if let Some(baseline) = ways.first() {
        adviser.refuse_too_large(&log, &baseline.experiment)?;
    }
    let verdict = adviser.verdict(log, &ways)?;
    let text = text::of(&verdict);
    match json {
        Some(json) => json.write(&verdict, &text),
        None => print_text(&text),
    }
}

struct Adviser<'a> {
    arguments: &'a AdviseArgs,
    interrupt: &'a Interrupt,
    /// Time after which no more questions are begun.
    until: Instant,
}

impl Adviser<'_> {
    /// Plans the runs of these ways, or of all ways if `names` is empty, with these values.
    fn plan(&self, names: &[&str], values: &[Setting]) -> Result<Vec<Job>, Failure> {
        let seed = Setting::of_flag("--seed", "run.seed", self.arguments.seed.get());
        let request = Request {
            experiment: WAYS.to_owned(),
            text: None,
            profile: self.arguments.machine.clone(),
            log: Some(self.arguments.log.clone()),
            settings: std::iter::once(seed)
                .chain(self.arguments.reading.settings())
                .chain(self.arguments.set.iter().cloned())
                .chain(values.iter().cloned())
                .collect(),
            variants: names.iter().map(|&name| name.to_owned()).collect(),
            ..Request::default()
        };
        Job::all_of(&request)
    }

    fn run(&self, jobs: &[Job]) -> Result<Vec<Results>, Failure> {
        run_all(jobs, self.arguments.threads.get(), self.interrupt)
    }

    /// Runs those `jobs` that were not run `before`, because equal experiments give equal results. Returns the results of all.
    fn run_new(&self, jobs: &[Job], before: &[Results]) -> Result<Vec<Results>, Failure> {
        let known = |job: &Job| before.iter().find(|run| run.experiment == job.experiment);
        let new = jobs.iter().filter(|job| known(job).is_none());
        let new: Vec<Job> = new.cloned().collect();
        let mut ran = self.run(&new)?.into_iter();
        let results = |job| known(job).cloned().or_else(|| ran.next());
        Ok(jobs.iter().filter_map(results).collect())
    }

    fn log(&self) -> Result<LogFacts, Failure> {
        let path = &self.arguments.log;
        let log = logs::read_replayable(path, &self.arguments.reading, self.interrupt)?;
        let unknown = log.unknown_clients();
        if let (Some(reason), None) = (&unknown, self.arguments.clients) {
            return Err(Failure::BadInput(format!(
                "{}: its clients cannot be identified, and so neither can its connections, on which the verdict rests: {reason}. Expected a log \
                 with the clients' addresses, or --clients unknown for a verdict on connections of the addresses that it has",
                path.display()
            )));
        }
        let analysis = Analysis::of(&log, SessionRule::PAPERS);
        let facts = LogFacts::of(path.clone(), &analysis, unknown);
        self.refuse_too_little(&facts)?;
        Ok(facts)
    }

    /// Refuses a log with too few requests or clients: replaying it more often shows nothing new about its traffic.
    fn refuse_too_little(&self, log: &LogFacts) -> Result<(), Failure> {
        let has_clients = log.clients >= LEAST_CLIENTS || log.clients_unknown.is_some();
        if log.requests >= LEAST_REQUESTS && has_clients {
            return Ok(());
        }
        Err(Failure::BadInput(format!(
            "{}: {} from {} are too few for a verdict, however often they are replayed. Expected at least {LEAST_REQUESTS} requests from at least \
             {LEAST_CLIENTS} clients; `baton trace` describes what the log has, and `baton run {WAYS} --log` replays it",
            log.path.display(),
            counted(log.requests, "request"),
            counted(log.clients, "client"),
        )))
    }

    /// Refuses responses so large that each client would still be receiving its first one when the run ends.
    fn refuse_too_large(&self, log: &LogFacts, baseline: &Experiment) -> Result<(), Failure> {
        let run = &baseline.run;
        let Length::Packets(measured) = run.measured() else {
            return Ok(());
        };
        let packets = measured.saturating_mul(run.most_lengths.into()) as f64;
        // Every second data packet is acknowledged.
        let each = 1.5 * log.mean_response_bytes / SEGMENT_BYTES;
        let clients = f64::from(baseline.clients.connections);
        if clients * each <= packets {
            return Ok(());
        }
        // Ten responses for each of at least 16 clients make an estimate.
        let fewer = packets / (10.0 * each);
        let remedy = match fewer >= 16.0 {
            true => format!("--set clients.connections={fewer:.0}"),
            false => format!(
                "a log without the responses above {}, which are downloads whose speed the network determines",
                bytes((packets / 160.0 / 1.5 * SEGMENT_BYTES) as u64)
            ),
        };
        Err(Failure::BadInput(format!(
            "{}: the mean response has {}, so that {} clients would not receive one each within the {} packets of a run; expected {remedy}",
            log.path.display(),
            bytes(log.mean_response_bytes as u64),
            baseline.clients.connections,
            grouped(packets as u64),
        )))
    }

    fn verdict(&self, log: LogFacts, ways: &[Job]) -> Result<Verdict, Failure> {
        let results = self.run(ways)?;
        if let Some(empty) = results.iter().find(|result| result.clients.responses == 0) {
            return Err(Failure::Failed(format!(
                "{}: no response was complete within {} packets; measure longer, as with --set run.measured_packets=2000000",
                empty.experiment.name, empty.packets
            )));
        }
        let [baseline, others @ ..] = results.as_slice() else {
            return Err(Failure::Failed(
                "none of the ways to compare was run".to_owned(),
            ));
        };
        let others = others.iter().map(|result| Way::of(result, Some(baseline)));
        let ways: Vec<Way> = std::iter::once(Way::of(baseline, None))
            .chain(others)
            .collect();
        let mut best = advised(&ways).into_iter();
        let mut verdict = Verdict {
            own_load: OwnLoad::of(&log, baseline),
            log,
            machine: MachineFacts::of(self.machine(), baseline),
            advised: best.next(),
            as_good: best.collect(),
            break_even: Vec::new(),
            under_load: Vec::new(),
            left_out: Vec::new(),
            assumed: text::assumed(baseline),
            ways,
        };
        let handoff = best_handoff(&verdict.ways).to_owned();
        for (question, way, values) in [
            (
                Question::NicSpeed,
                &*handoff,
                mips(baseline.experiment.nic.mips),
            ),
            (Question::Connections, &handoff, vec![64, 256, 1024, 4096]),
            (
                Question::CacheSize,
                NIC_CACHE,
                vec![1024, 4096, 16_384, 65_536],
            ),
        ] {
            if Instant::now() >= self.until {
                verdict.left_out.push(text::asked(question).to_owned());
                continue;
            }
            let points = self.points(question, way, &values, &results)?;
            verdict
                .break_even
                .push(BreakEven::new(question, way, points));
        }
        match Instant::now() < self.until {
            true => {
                let own = verdict.own_load.as_ref().map(|load| load.peak_percent);
                verdict.under_load = self.under_load(&handoff, baseline, own)?;
            }
            false => verdict
                .left_out
                .push(text::asked(Question::Load).to_owned()),
        }
        Ok(verdict)
    }

    /// Measures response times without handoff and of a way, at shares of the rate without handoff. The log's `own` load is one of them if
    /// it is in `OWN_LOADS_PERCENT`.
    fn under_load(
        &self,
        way: &str,
        baseline: &Results,
        own: Option<f64>,
    ) -> Result<Vec<UnderLoad>, Failure> {
        let capacity = baseline.request_rate().mean;
        let own = own.filter(|percent| OWN_LOADS_PERCENT.contains(percent));
        let mut shares: Vec<f64> = LOADS_PERCENT.into_iter().chain(own).collect();
        shares.sort_by(f64::total_cmp);
        let rates = shares.into_iter();
        let rates: Vec<(f64, f64)> = rates
            .map(|percent| (percent, (capacity * percent / 100.0).round()))
            .collect();
        let mut jobs = Vec::new();
        for (_, rate) in &rates {
            let load = [
                Setting::of_set(Question::Load.name(), format!("{rate}/s")),
                Setting::of_set("load.arrivals", "poisson"),
            ];
            jobs.append(&mut self.plan(&[&baseline.experiment.name, way], &load)?);
        }
        let results = self.run(&jobs)?;
        let pairs = rates.into_iter().zip(results.chunks_exact(2));
        let found = |((share_percent, offered_per_s), pair): ((f64, f64), &[Results])| {
            let mean_ms = |run: &Results| run.long_run.response_ms.map(|time| time.mean);
            UnderLoad {
                offered_per_s,
                share_percent,
                baseline_ms: mean_ms(&pair[0]),
                way: way.to_owned(),
                way_ms: mean_ms(&pair[1]),
            }
        };
        Ok(pairs.map(found).collect())
    }

    /// Measures the gain of a way at each value of a setting, relative to the first of `ways`, which is without handoff.
    fn points(
        &self,
        question: Question,
        way: &str,
        values: &[u32],
        ways: &[Results],
    ) -> Result<Vec<Point>, Failure> {
        let baseline = &ways[0];
        let mut jobs = Vec::new();
        for &value in values {
            let mut settings = vec![Setting::of_set(question.name(), value)];
            if question == Question::CacheSize {
                // The memory grows by the size of the cache.
                let memory = baseline
                    .experiment
                    .nic
                    .firmware
                    .memory_kib
                    .saturating_add(value);
                settings.push(Setting::of_set(MEMORY_KIB, memory));
            }
            jobs.append(&mut self.plan(&[way], &settings)?);
        }
        let base = baseline.request_rate();
        let point = |(&value, result): (&u32, &Results)| {
            Some(Point {
                value: f64::from(value),
                gain_percent: base.difference_percent(result.request_rate())?,
            })
        };
        let results = self.run_new(&jobs, ways)?;
        Ok(values.iter().zip(&results).filter_map(point).collect())
    }

    fn machine(&self) -> &str {
        self.arguments.machine.as_deref().unwrap_or("handoff-2006")
    }
}

/// Returns speeds of NICs slower and faster than the machine's.
fn mips(own: u32) -> Vec<u32> {
    [25, 50, 75, 100, 150, 200, 400]
        .map(|percent| (u64::from(own) * percent / 100).max(1) as u32)
        .to_vec()
}

/// Returns the name of the way with handoff that serves most requests.
fn best_handoff(ways: &[Way]) -> &str {
    let handoff = ways
        .iter()
        .filter(|way| way.effect != Effect::Baseline && way.connections_on_nic > 0.0);
    let best = handoff.max_by(|a, b| a.request_rate.mean.total_cmp(&b.request_rate.mean));
    best.map_or("handoff, host first", |way| &way.name)
}
