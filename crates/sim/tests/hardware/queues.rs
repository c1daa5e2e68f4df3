//! Compares queues built from the simulator's parts with textbook waiting times (Kleinrock, *Queueing Systems*, volume 1).

use baton_sim::hardware::{NicProcessor, NicProcessorConfig, Wire, WireConfig};
use baton_stats::{Batch, Estimate, Mix, batches};
use baton_wire::{Span, Time};
use rand::SeedableRng;
use rand_distr::{Distribution, Exp};
use rand_pcg::Pcg64;

const SEEDS: u64 = 20;
const CUSTOMERS: u32 = 400_000;
/// Number of customers whose waits make one batch of a run.
const PART: usize = 400;
const WARM_UP: usize = 20_000;
/// Share of the time in which the server is busy.
const LOAD: f64 = 0.8;
const MEAN_SERVICE_S: f64 = 10e-6;

/// Returns the mean wait with Poisson arrivals. `departure` returns when the customer that arrives now departs, and its service time.
fn mean_wait(seed: u64, mut departure: impl FnMut(Time, &mut Pcg64) -> (Time, Span)) -> Estimate {
    let mut random = Pcg64::seed_from_u64(seed);
    let between = Exp::new(LOAD / MEAN_SERVICE_S).expect("a rate");
    let mut now = Time::ZERO;
    let mut wait = || {
        now += Span::from_ps((between.sample(&mut random) * 1e12) as u64);
        let (done, service) = departure(now, &mut random);
        ((done - now) - service).as_secs_f64()
    };
    let waits: Vec<f64> = (0..CUSTOMERS).map(|_| wait()).collect();
    let part = |waits: &[f64]| Batch {
        requests: waits.len() as f64,
        value: waits.iter().sum(),
        ..Batch::default()
    };
    let parts: Vec<Batch> = waits[WARM_UP..].chunks(PART).map(part).collect();
    let (each, _) = batches(&parts, Mix::default()).expect("enough batches");
    each.mean
}

/// Asserts that the intervals cover the true value as often as they promise, allowing for the small number of runs.
fn check(truth: f64, wait: impl Fn(u64) -> Estimate) {
    let waits: Vec<Estimate> = (1..=SEEDS).map(wait).collect();
    let covered = waits.iter().filter(|wait| wait.covers(truth)).count();
    assert!(
        covered >= 17,
        "{covered} of {SEEDS} cover {truth}: {waits:?}"
    );
    assert!(
        waits.iter().all(|wait| wait.relative() < Some(0.12)),
        "{waits:?}"
    );
}

/// Exponential service: a processor with random work.
#[test]
fn a_processor_with_random_work_is_an_m_m_1_queue() {
    let config = NicProcessorConfig { mips: 1000 };
    let work = Exp::new(1.0 / (MEAN_SERVICE_S * 1e9)).expect("a rate");
    check(LOAD * MEAN_SERVICE_S / (1.0 - LOAD), |seed| {
        let mut processor = NicProcessor::new(&config).expect("a valid configuration");
        mean_wait(seed, |now, random| {
            let instructions = work.sample(random) as u64;
            let service = Span::from_ps(instructions * 1_000);
            (processor.run(now, instructions), service)
        })
    });
}

/// Constant service time: a wire with frames of equal length.
#[test]
fn a_wire_with_equal_frames_is_an_m_d_1_queue() {
    let config = WireConfig {
        rate_mbps: 1000,
        delay_ns: 0,
        ..WireConfig::default()
    };
    // 1,250 bytes with preamble and gap.
    let service = Span::from_us(10);
    let frame = 1250 - 20;
    check(LOAD * MEAN_SERVICE_S / (2.0 * (1.0 - LOAD)), |seed| {
        let mut wire: Wire<()> = Wire::new(&config, seed).expect("a valid configuration");
        mean_wait(seed, |now, _| {
            while wire.receive(now).is_some() {}
            wire.send(now, frame, ());
            (wire.free_at(), service)
        })
    });
}
