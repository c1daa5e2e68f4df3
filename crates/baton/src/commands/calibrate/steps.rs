//! The steps of a round: each takes what a run measured and gives one constant a better value.
//!
//! A scale multiplies a known part of the work that a request takes. Without offload the published numbers say how much
//! work that may be in all; so a run at any scale tells which scale would give just that much, if nothing else changed.
//! With offload each scale shows in two numbers, which it cannot both meet: least squares find the value between. As
//! other things do change a little, the steps are repeated.

use super::constants::{BYPASS_LIMITS, SCALE_LIMITS};
use super::published::Published;
use super::tolerance::{POINTS, RELATIVE_PERCENT};
use baton_host::{LAYERS, Layer};
use baton_sim::results::Results;
use std::ops::RangeInclusive;

/// Tasks that `nic.scale.host` multiplies; `nic.scale.offload` multiplies all others.
const HOST_TASKS: [&str; 3] = ["lookup", "host_receive", "host_send"];

/// Work per request: host cycles or NIC instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    /// What the scale in question multiplies.
    scaled: f64,
    /// The rest: memory stalls, and what other scales multiply.
    fixed: f64,
}

impl Work {
    /// The scale at which the work is `required`, as it is what it is at `scale`. Without scaled work, `scale` itself.
    fn scale_for(self, scale: u32, required: f64) -> f64 {
        if self.scaled > 0.0 {
            f64::from(scale) * (required - self.fixed) / self.scaled
        } else {
            f64::from(scale)
        }
    }
}

/// A published number that a scale is to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pull {
    /// Simulated less published, in tolerances.
    error: f64,
    /// What the error gains when the scale doubles, if nothing else changed.
    slope: f64,
}

impl Pull {
    /// The request rate, where the processor that does the work is the bottleneck.
    fn of_rate(work: Work, run: &Results, published: &Published) -> Self {
        let tolerance = RELATIVE_PERCENT / 100.0;
        Self {
            error: (run.clients.request_rate / published.request_rate - 1.0) / tolerance,
            slope: -work.scaled / (work.scaled + work.fixed) / tolerance,
        }
    }

    /// The simulated and the published idle time of the processor that does the work, where another is the bottleneck;
    /// in a unit of work, of all that it could do, there are so many requests.
    fn of_idle(work: Work, (simulated, published): (f64, f64), requests: f64) -> Self {
        Self {
            error: (simulated - published) / POINTS,
            slope: -100.0 * work.scaled * requests / POINTS,
        }
    }
}

/// The scale at which the squared errors have the least sum, were they linear.
fn least_squares(scale: u32, pulls: &[Pull]) -> f64 {
    let sum = |term: fn(&Pull) -> f64| pulls.iter().map(term).sum::<f64>();
    let curvature = sum(|pull| pull.slope * pull.slope);
    let step = if curvature > 0.0 {
        -sum(|pull| pull.error * pull.slope) / curvature
    } else {
        0.0
    };
    f64::from(scale) * (1.0 + step)
}

/// What a processor of so many million cycles or instructions a second can spend on a request.
fn available_per_request(millions_per_s: u32, idle_percent: f64, request_rate: f64) -> f64 {
    f64::from(millions_per_s) * 1e6 * (1.0 - idle_percent / 100.0) / request_rate
}

/// A scale in whole per cent.
fn per_cent(scale: f64, limits: RangeInclusive<u32>) -> u32 {
    let (least, most) = (f64::from(*limits.start()), f64::from(*limits.end()));
    scale.round().clamp(least, most) as u32
}

/// `host.scale.network_stack`, from a run without offload: its published share of the host's cycles per request.
pub fn network_stack(run: &Results, published: &Published) -> u32 {
    let required = host_cycles(run, published) * network_stack_share(published);
    let work = host_work(run, Layer::is_network_stack);
    let scale = run.experiment.host.scale.network_stack;
    per_cent(work.scale_for(scale, required), SCALE_LIMITS)
}

/// `host.scale.application`, from a run without offload: the rest of the host's cycles per request.
pub fn application(run: &Results, published: &Published) -> u32 {
    let required = host_cycles(run, published) * (1.0 - network_stack_share(published));
    let work = host_work(run, |layer| !layer.is_network_stack());
    let scale = run.experiment.host.scale.application;
    per_cent(work.scale_for(scale, required), SCALE_LIMITS)
}

/// `nic.scale.host`, from a run without offload: the published idle time of the NIC.
pub fn nic_host(run: &Results, published: &Published) -> u32 {
    let required = available_per_request(
        run.experiment.nic.mips,
        published.nic_idle_percent,
        published.request_rate,
    );
    let scale = run.experiment.nic.scale.host;
    per_cent(
        nic_work(run, is_host_task).scale_for(scale, required),
        SCALE_LIMITS,
    )
}

/// `nic.scale.offload`, from two runs with offload: the published idle time of a NIC that is not the bottleneck, and the
/// published request rate with one that is.
pub fn nic_offload(
    (idle, idle_published): (&Results, &Published),
    (busy, busy_published): (&Results, &Published),
) -> u32 {
    let scale = idle.experiment.nic.scale.offload;
    let work = |run| nic_work(run, |task| !is_host_task(task));
    let pulls = [
        Pull::of_idle(
            work(idle),
            (idle.nic.idle_percent, idle_published.nic_idle_percent),
            idle.clients.request_rate / (f64::from(idle.experiment.nic.mips) * 1e6),
        ),
        Pull::of_rate(work(busy), busy, busy_published),
    ];
    per_cent(least_squares(scale, &pulls), SCALE_LIMITS)
}

/// `host.scale.bypass`, from two runs with offload: the published idle time of a host that is not the bottleneck, and the
/// published request rate with one that is.
pub fn bypass(
    (idle, idle_published): (&Results, &Published),
    (busy, busy_published): (&Results, &Published),
) -> u32 {
    let scale = idle.experiment.host.scale.bypass;
    let pulls = [
        Pull::of_idle(
            bypass_work(idle),
            (idle.host.idle_percent, idle_published.host_idle_percent),
            idle.clients.request_rate / (f64::from(idle.experiment.host.clock_mhz) * 1e6),
        ),
        Pull::of_rate(bypass_work(busy), busy, busy_published),
    ];
    per_cent(least_squares(scale, &pulls), BYPASS_LIMITS)
}

/// How far the median delays of host packets on the NIC are from the published ones: the root of the squared logarithms
/// of both ratios, so that half counts as much as twice.
pub fn delay_distance(run: &Results, published: &Published) -> f64 {
    let log_ratio = |simulated: f64, published: f64| (simulated / published).ln();
    let send = log_ratio(
        run.nic.send_delay_us.p50.unwrap_or_default(),
        published.send_delay_us,
    );
    let receive = log_ratio(
        run.nic.receive_delay_us.p50.unwrap_or_default(),
        published.receive_delay_us,
    );
    send.hypot(receive)
}

/// Host cycles per request that the published request rate and idle time allow.
fn host_cycles(run: &Results, published: &Published) -> f64 {
    available_per_request(
        run.experiment.host.clock_mhz,
        published.host_idle_percent,
        published.request_rate,
    )
}

fn network_stack_share(published: &Published) -> f64 {
    published
        .network_stack_percent
        .expect("published for the run without offload")
        / 100.0
}

/// Cycles per request in some of the host's layers, those that instructions take apart from stalls.
fn host_work(run: &Results, part: impl Fn(Layer) -> bool) -> Work {
    let responses = run.clients.responses as f64;
    let mut work = Work {
        scaled: 0.0,
        fixed: 0.0,
    };
    for layer in LAYERS.into_iter().filter(|layer| part(*layer)) {
        let name = format!("{layer:?}").to_ascii_lowercase();
        let cycles = run.host.layers.get(&name).copied().unwrap_or_default();
        work.scaled += cycles.execute as f64 / responses;
        work.fixed += (cycles.l2 + cycles.memory) as f64 / responses;
    }
    work
}

/// Cycles per request of the whole host, those that `host.scale.bypass` multiplies apart from all others.
fn bypass_work(run: &Results) -> Work {
    let host = &run.experiment.host;
    let count = |tasks: &[&str]| {
        let counts = tasks.iter().filter_map(|task| run.nic.tasks.get(*task));
        counts.map(|task| task.count).sum::<u64>() as f64 / run.clients.responses as f64
    };
    // The driver's part is within its layer: it shows in what the NIC took from it and gave it.
    let driver = count(&["command", "handoff", "restore"])
        * f64::from(host.instructions.driver_command)
        + count(&["event"]) * f64::from(host.instructions.driver_event);
    let own = host_work(run, |layer| matches!(layer, Layer::Bypass | Layer::Handoff)).scaled;
    let all = host_work(run, |_| true);
    let scaled = own + driver * f64::from(host.scale.bypass) / 100.0;
    Work {
        scaled,
        fixed: all.scaled + all.fixed - scaled,
    }
}

/// Instructions per request of some of the NIC's tasks, apart from those of all others.
fn nic_work(run: &Results, part: impl Fn(&str) -> bool) -> Work {
    let responses = run.clients.responses as f64;
    let mut work = Work {
        scaled: 0.0,
        fixed: 0.0,
    };
    for (task, done) in &run.nic.tasks {
        let sum = if part(task) {
            &mut work.scaled
        } else {
            &mut work.fixed
        };
        *sum += done.instructions as f64 / responses;
    }
    work
}

fn is_host_task(task: &str) -> bool {
    HOST_TASKS.contains(&task)
}

#[cfg(test)]
mod tests;
