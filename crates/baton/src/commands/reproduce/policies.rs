//! Policies that the handoff-policies paper leaves to others, beside its own. Nothing is published.

use super::{Context, Outcome, Reproduction, Row, Shown};
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::runner::{Job, run_all};
use crate::tables::number;
use baton_report::figure::{Figure, GroupPanel, GroupSeries, Groups};
use baton_report::{Column, Scale, Table, grouped, width, wrapped};
use baton_sim::results::Results;
use baton_stats::Estimate;
use std::path::Path;

/// The entry in the list.
pub const REPRODUCTION: Reproduction = Reproduction {
    name: "handoff-policies",
    about: "selection by rate, benefit, an oracle; load by time worked and packets; relief: what beats FCFS? (no publication)",
    figure: true,
    run,
};

/// The experiment, which is built in and in `experiments/`.
const EXPERIMENT: &str = "handoff-policies";
/// Loads: name, and preset. `--log` takes the place of the first.
const LOADS: [(&str, &str); 2] = [("World Cup", "worldcup-lifetimes"), ("IBM", "ibm")];
/// What limits the NIC: places for connections, or its processor.
const NICS: [(&str, u32); 2] = [("256 places", 256), ("4096 places", 4096)];
/// Seeds, where the user does not say how many.
const SEEDS: u32 = 5;
/// In the experiment, the variant without handoff and the one that the others are compared with.
const NONE: usize = 0;
const FCFS: usize = 1;

/// One load on one NIC.
struct Scene {
    load: String,
    nic: &'static str,
    places: u32,
    /// By policy, then by seed.
    runs: Vec<Vec<Results>>,
}

fn run(context: &Context<'_>) -> Result<Outcome, Failure> {
    if context.data.is_some() {
        let expected = "expected --log FILE for a log in place of the first load";
        let message = format!("--data: {EXPERIMENT} has no such option; {expected}");
        return Err(Failure::BadInput(message));
    }
    let seeds = context.batching.seeds.unwrap_or(SEEDS);
    let seeds: Vec<u64> = (0..seeds.into())
        .map(|later| context.seed.wrapping_add(later))
        .collect();
    let mut scenes = Vec::new();
    let mut jobs = Vec::new();
    for (nic, places) in NICS {
        for (load, preset) in LOADS {
            for &seed in &seeds {
                jobs.extend(Job::all_of(&request(context, preset, places, seed))?);
            }
            let load = match log(context, preset) {
                Some(path) => path.display().to_string(),
                None => load.to_owned(),
            };
            let runs = Vec::new();
            scenes.push(Scene {
                load,
                nic,
                places,
                runs,
            });
        }
    }
    let policies = jobs.len() / (scenes.len() * seeds.len());
    let results = run_all(&jobs, context.threads, context.interrupt)?;
    for (number, run) in results.into_iter().enumerate() {
        let scene = &mut scenes[number / (policies * seeds.len())];
        scene.runs.resize_with(policies, Vec::new);
        scene.runs[number % policies].push(run);
    }
    let rows = scenes.iter().flat_map(Scene::rows);
    let (tables, sentences): (Vec<_>, Vec<_>) = (scenes.iter())
        .map(|scene| (scene.table(), wrapped(&scene.sentence(), width(), 2)))
        .unzip();
    Ok(Outcome {
        rows: rows.collect(),
        text: format!("{}\n{}", tables.join("\n"), sentences.concat()),
        figure: Some(figure(&scenes)),
    })
}

/// The log that takes the place of a load.
fn log<'a>(context: &Context<'a>, preset: &str) -> Option<&'a Path> {
    context.log.filter(|_| preset == LOADS[0].1)
}

/// All policies with one seed.
fn request(context: &Context<'_>, preset: &str, places: u32, seed: u64) -> Request {
    let log = log(context, preset);
    let workload = match log {
        Some(_) => Setting::log_in_order(),
        None => Setting::of_set("workload.preset", preset),
    };
    let settings = [
        Setting::of_flag("--seed", "run.seed", seed),
        Setting::of_set("nic.firmware.hard_limit", places),
        workload,
    ];
    Request {
        experiment: EXPERIMENT.to_owned(),
        log: log.map(Into::into),
        settings: (settings.into_iter())
            .chain(context.packets())
            .chain(log.into_iter().flat_map(|_| context.reading.settings()))
            .collect(),
        ..Request::default()
    }
}

fn name(policy: &[Results]) -> &str {
    &policy[0].experiment.name
}

/// The mean of a metric over the seeds.
fn mean(policy: &[Results], metric: fn(&Results) -> f64) -> Estimate {
    let values: Vec<f64> = policy.iter().map(metric).collect();
    Estimate::of_independent(&values).unwrap_or_default()
}

fn request_rate(run: &Results) -> f64 {
    run.clients.request_rate
}

impl Scene {
    fn name(&self) -> String {
        format!("{}, {}", self.load, self.nic)
    }

    /// By how much more requests a policy serves than another, seed by seed, per cent.
    fn gain(&self, policy: &[Results], over: usize) -> Estimate {
        let rates = |runs: &[Results]| runs.iter().map(request_rate).collect::<Vec<_>>();
        let (these, others) = (rates(&self.runs[over]), rates(policy));
        Estimate::of_difference_percent(&these, &others).unwrap_or_default()
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.runs.iter().flat_map(move |policy| {
            let gain = self.gain(policy, FCFS);
            let row = |metric, name_of_metric, simulated| Row {
                config: format!("{}: {}", self.name(), name(policy)),
                metric,
                published: None,
                simulated,
                shown: Shown {
                    name: name_of_metric,
                    scale: Scale::Relative,
                },
            };
            let rate = mean(policy, request_rate).mean;
            let half_width = gain.half_width.unwrap_or(f64::NAN);
            [
                row("request_rate", "requests/s", rate),
                row("over_fcfs_percent", "more than FCFS, %", gain.mean),
                row("over_fcfs_half_width", "half of its interval", half_width),
            ]
        })
    }

    fn table(&self) -> String {
        let columns = vec![
            Column::words("policy"),
            Column::numbers("requests/s"),
            Column::numbers("over FCFS, %"),
            Column::numbers("packets of\noffloaded, %"),
            Column::numbers("on the NIC"),
            Column::numbers("packets for\na handoff"),
            Column::numbers("NIC\nidle, %"),
            Column::numbers("mean\nresponse, ms"),
        ];
        let seeds = self.runs[FCFS].len();
        let title = format!(
            "{}: means of {seeds} seeds, differences with 95 % intervals",
            self.name()
        );
        let mut table = Table::new(columns).titled(&title);
        for (at, policy) in self.runs.iter().enumerate() {
            let of = |metric| mean(policy, metric).mean;
            let share = of(|run| run.handoff.offloaded_packets_percent);
            let per_handoff = of(|run| {
                let on_nic = run.packets as f64 * run.handoff.offloaded_packets_percent / 100.0;
                on_nic / (run.handoff.accepted as f64).max(1.0)
            });
            let gain = self.gain(policy, FCFS);
            let gain = match gain.half_width {
                _ if at == FCFS => String::new(),
                None => format!("{:+.1}", gain.mean),
                Some(half) => format!("{:+.1} ± {half:.1}", gain.mean),
            };
            table.row(vec![
                name(policy).to_owned(),
                grouped(of(request_rate).round() as u64),
                gain,
                format!("{share:.1}"),
                format!("{:.0}", of(|run| run.nic.connections_mean)),
                format!("{per_handoff:.0}"),
                format!("{:.1}", of(|run| run.nic.idle_percent)),
                number(Some(of(|run| {
                    run.clients.response_ms.mean.unwrap_or(f64::NAN)
                }))),
            ]);
        }
        table.render()
    }

    /// What beats FCFS here, beyond what chance would do.
    fn sentence(&self) -> String {
        let beyond_chance = |gain: &Estimate| gain.half_width.is_none_or(|half| gain.mean > half);
        let mut better: Vec<(&str, Estimate)> = (self.runs.iter().enumerate())
            .filter(|&(number, _)| number != NONE && number != FCFS)
            .map(|(_, policy)| (name(policy), self.gain(policy, FCFS)))
            .filter(|(_, gain)| gain.mean > 0.0 && beyond_chance(gain))
            .collect();
        better.sort_by(|(_, one), (_, other)| other.mean.total_cmp(&one.mean));
        let list = better
            .iter()
            .map(|(name, gain)| format!("{name} ({:+.1} %)", gain.mean));
        let what = match better.is_empty() {
            true => "nothing beats FCFS".to_owned(),
            false => format!("FCFS is beaten by {}", list.collect::<Vec<_>>().join(", ")),
        };
        let handoff = self.gain(&self.runs[FCFS], NONE).mean;
        format!(
            "- {} ({} connections at most): FCFS serves {handoff:+.1} % against no handoff; {what}.",
            self.name(),
            self.places
        )
    }
}

/// What each policy serves beside no handoff.
fn figure(scenes: &[Scene]) -> Figure {
    let policies = &scenes[0].runs;
    let gain = |scene: &Scene, policy: usize| {
        let gain = scene.gain(&scene.runs[policy], NONE).mean;
        (gain > 0.0).then_some(gain)
    };
    let panel = |(nic, _): &(&str, u32)| GroupPanel {
        y: format!("{nic}: more requests/s, %"),
        series: (scenes.iter().filter(|scene| scene.nic == *nic))
            .map(|scene| GroupSeries {
                name: scene.load.clone(),
                values: (FCFS..policies.len())
                    .map(|policy| gain(scene, policy))
                    .collect(),
            })
            .collect(),
    };
    Figure::Groups(Groups {
        title: "What a server gains by handoff, by policy".to_owned(),
        names: policies[FCFS..]
            .iter()
            .map(|policy| name(policy).replace(", ", "\n"))
            .collect(),
        panels: NICS.iter().map(panel).collect(),
    })
}
