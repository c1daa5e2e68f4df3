//! Runs of the simulated server, one for each log and cache size.

use super::Source;
use crate::commands::reproduce::{Context, Row, Shown};
use crate::config::{self, Request, Setting};
use crate::failure::Failure;
use crate::runner::{Job, run_all};
use baton_bus::Category;
use baton_report::Scale;
use baton_sim::results::Results;
use baton_workload::Preset;

/// The experiment, which is built in and in `experiments/`.
pub(super) const EXPERIMENT: &str = "dcache-2002";

/// A log on a server whose NICs have caches of some size, or none.
pub(super) struct Run {
    pub source: Source,
    /// Of each NIC's cache; 0: none.
    pub mib: u32,
    pub results: Results,
}

impl Run {
    /// What rows call it.
    pub fn name(&self) -> String {
        format!("{}, {}", self.source.name(), self.cache())
    }

    /// `no cache`, `4 MB`.
    pub fn cache(&self) -> String {
        match self.mib {
            0 => "no cache".to_owned(),
            mib => format!("{mib} MB a NIC"),
        }
    }

    /// Content that clients received, Mb/s.
    pub const fn content_mbps(&self) -> f64 {
        self.results.clients.content_mbps
    }

    /// Share of the bus's time that was not free, per cent.
    pub fn utilisation_percent(&self) -> f64 {
        let interconnect = self.results.interconnect.as_ref();
        interconnect.map_or(0.0, |bus| bus.utilisation_percent)
    }

    /// Share of the bus's time that these categories took, per cent.
    pub fn time_percent(&self, categories: &[Category]) -> f64 {
        let Some(bus) = &self.results.interconnect else {
            return 0.0;
        };
        let time = |category: &Category| bus.time_percent.get(*category);
        categories.iter().map(time).sum()
    }

    /// The bus's time that these categories took, for each bit of content that clients received; in no sensible unit,
    /// to be compared with other runs of the same log.
    pub fn traffic(&self, categories: &[Category]) -> f64 {
        self.time_percent(categories) / self.content_mbps().max(f64::MIN_POSITIVE)
    }

    /// How much less of it there is than in `before`, per cent.
    pub fn reduction_percent(&self, before: &Self, categories: &[Category]) -> f64 {
        let was = before.traffic(categories);
        if was > 0.0 {
            100.0 * (1.0 - self.traffic(categories) / was)
        } else {
            0.0
        }
    }

    pub fn row(
        &self,
        metric: &'static str,
        name: &'static str,
        scale: Scale,
        published: Option<f64>,
        simulated: f64,
    ) -> Row {
        Row {
            config: self.name(),
            metric,
            published,
            simulated,
            shown: Shown { name, scale },
        }
    }
}

/// The parts of a bar, from below, as in figures 4 and 7 of the paper.
pub(super) const PARTS: [(&str, &[Category]); 5] = [
    ("HTTP content", &[Category::Content]),
    ("bus overhead", &[Category::Overhead]),
    ("protocol headers", &[Category::ProtocolHeader]),
    ("HTTP headers", &[Category::HttpHeader]),
    (
        "other",
        &[Category::Descriptor, Category::Event, Category::Other],
    ),
];

/// Runs all logs with caches of these sizes on each NIC: by log, then by size.
///
/// # Errors
/// Bad input, a failed run, an interrupt.
pub(super) fn run(context: &Context<'_>, sizes_mib: &[u32]) -> Result<Vec<Run>, Failure> {
    let sources = Source::all(context, &Preset::DATA_CACHING)?;
    let pairs = || {
        let with_sizes = |source| sizes_mib.iter().map(move |&mib| (source, mib));
        sources.iter().flat_map(with_sizes)
    };
    let jobs = pairs()
        .map(|(source, mib)| job(context, source, mib))
        .collect::<Result<Vec<_>, _>>()?;
    let results = run_all(&jobs, context.threads, context.interrupt)?;
    let run = |((source, mib), results): ((&Source, u32), Results)| Run {
        source: source.clone(),
        mib,
        results,
    };
    Ok(pairs().zip(results).map(run).collect())
}

fn job(context: &Context<'_>, source: &Source, mib: u32) -> Result<Job, Failure> {
    let mut settings = vec![
        Setting::of_flag("--seed", "run.seed", context.seed),
        set("nic.firmware.cache.kib", 1024 * mib),
    ];
    let log = match source {
        Source::Excerpt { path, .. } => Some(path.clone()),
        Source::Own(path) => {
            settings.extend(context.reading.settings());
            Some(path.clone())
        }
        Source::Generated(preset) => {
            settings.push(set("workload.preset", preset.name()));
            settings.push(set("workload.requests", preset.requests()));
            None
        }
    };
    settings.extend(context.packets());
    let request = Request {
        experiment: EXPERIMENT.to_owned(),
        log,
        settings,
        ..Request::default()
    };
    let mut experiment = config::plan_one(&request)?;
    experiment.name = match mib {
        0 => format!("{}, no cache", source.name()),
        mib => format!("{}, {mib} MB a NIC", source.name()),
    };
    Ok(Job::new(experiment, request.command(None)))
}

/// As `--set` would.
fn set(path: &str, value: impl ToString) -> Setting {
    Setting::of_set(path, value)
}
