//! What others measured of the memory behaviour of FreeBSD's network stack, with few and many connections.
//!
//! Nothing is fitted to these numbers. The machines were real ones and not the modelled server: what counts is how the numbers grow.

use super::{Context, Outcome, Reproduction, Row, Shown, table};
use crate::config::{Request, Setting};
use crate::failure::Failure;
use crate::runner::{Job, run_all};
use baton_report::Scale;
use baton_sim::results::{Cycles, Results};

/// Cache misses of a server that only sends.
pub const MISSES: Reproduction = Reproduction {
    name: "memory-misses",
    about: "L2 misses per KB sent with 6 to 16,384 connections; predictions (USENIX 2006, Table 2, uniprocessor kernel)",
    figure: false,
    run: |context| MISSES_STUDY.run(context),
};

/// Cycles of TCP of a web server.
pub const TCP: Reproduction = Reproduction {
    name: "memory-tcp",
    about: "cycles of TCP per packet with 16 to 8,192 connections, near and far; predictions (Rice TR05-450, abstract)",
    figure: false,
    run: |context| TCP_STUDY.run(context),
};

/// What was measured in several set-ups, and how a run gives it.
struct Study {
    /// Built in, and in `experiments/`: a variant for each set-up, the first the one that growth is told from.
    experiment: &'static str,
    /// Whether another log may be replayed in place of a generated one.
    takes_log: bool,
    title: &'static str,
    note: &'static str,
    /// What was measured, by the names of the set-ups.
    published: &'static [(&'static str, f64)],
    /// The metric that was measured.
    measured: Metric,
    /// How much more it is than in the first set-up: name, and in words.
    growth: (&'static str, &'static str),
    /// What nobody published.
    beside: &'static [Metric],
}

/// A number of a run.
#[derive(Clone, Copy)]
struct Metric {
    name: &'static str,
    in_words: &'static str,
    of: fn(&Results) -> f64,
}

const MISSES_STUDY: Study = Study {
    experiment: "memory-misses",
    takes_log: false,
    title: "L2 data misses of a server that only sends (USENIX 2006, Table 2), measured and simulated:",
    note: "Measured on a core of an Opteron 275 with the uniprocessor kernel of FreeBSD 7. With 6 connections that sent 4,034 Mb/s.\n",
    published: &[
        ("6 connections", 1.83),
        ("192 connections", 4.08),
        ("16384 connections", 18.49),
    ],
    measured: Metric {
        name: "l2_misses_per_kb",
        in_words: "L2 misses per KB sent",
        of: |run| l2_misses(run) / kilobytes(run),
    },
    growth: ("l2_misses_growth", "times those of 6 connections"),
    beside: &[
        Metric {
            name: "content_mbps",
            in_words: "sent, Mb/s",
            of: |run| run.clients.content_mbps,
        },
        Metric {
            name: "memory_stall_percent",
            in_words: "waiting for memory, % of host cycles",
            of: memory_stall_percent,
        },
    ],
};

const TCP_STUDY: Study = Study {
    experiment: "memory-tcp",
    takes_log: true,
    title: "Cycles of the TCP layer of a web server (Rice TR05-450), measured and simulated:",
    note: "The abstract gives the least and the most, and not with how many connections and how far away: they stand beside the \
           extremes\nof the simulated set-ups. Delays are one way.\n",
    published: &[
        ("16 connections, 1 us", 1312.0),
        ("8192 connections, 10 ms", 5364.0),
    ],
    measured: Metric {
        name: "tcp_cycles_per_packet",
        in_words: "cycles of TCP per packet",
        of: |run| per_packet(run, tcp(run).total()),
    },
    growth: ("tcp_cycles_growth", "times those of the first"),
    beside: &[
        Metric {
            name: "tcp_misses_per_packet",
            in_words: "L2 misses of TCP per packet",
            of: |run| per_packet(run, tcp(run).l2_misses),
        },
        Metric {
            name: "stack_misses_per_packet",
            in_words: "L2 misses of the network stack per packet",
            of: |run| run.host.host_packets.l2_misses.unwrap_or(f64::NAN),
        },
        Metric {
            name: "memory_stall_percent",
            in_words: "waiting for memory, % of host cycles",
            of: memory_stall_percent,
        },
    ],
};

impl Study {
    fn run(&self, context: &Context<'_>) -> Result<Outcome, Failure> {
        self.refuse_what_it_has_not(context)?;
        let seed = Setting::of_flag("--seed", "run.seed", context.seed);
        let log = context.log;
        let request = Request {
            experiment: self.experiment.to_owned(),
            log: log.map(Into::into),
            settings: std::iter::once(seed)
                .chain(context.packets())
                .chain(log.map(|_| Setting::log_in_order()))
                .chain(log.into_iter().flat_map(|_| context.reading.settings()))
                .collect(),
            ..Request::default()
        };
        let results = run_all(&Job::all_of(&request)?, context.threads, context.interrupt)?;
        let rows: Vec<Row> = (results.iter())
            .flat_map(|run| self.rows_of(&results[0], run))
            .collect();
        Ok(Outcome {
            text: format!("{}\n{}", table(self.title, &rows), self.note),
            rows,
            figure: None,
        })
    }

    fn refuse_what_it_has_not(&self, context: &Context<'_>) -> Result<(), Failure> {
        let name = self.experiment;
        let (given, flag) = match (context.data, context.log) {
            (Some(_), _) => (true, "--data"),
            (None, log) => (log.is_some() && !self.takes_log, "--log"),
        };
        match given {
            true => Err(Failure::BadInput(format!(
                "{flag}: {name} has no such option; see baton reproduce --help"
            ))),
            false => Ok(()),
        }
    }

    /// All numbers of a set-up.
    fn rows_of(&self, first: &Results, run: &Results) -> Vec<Row> {
        let config = set_up(run);
        let published = |of: &str| (self.published.iter().find(|(name, _)| *name == of)).copied();
        let here = published(config).map(|(_, value)| value);
        let at_first = published(set_up(first)).map(|(_, value)| value);
        let row = |metric: &Metric, published, simulated| Row {
            config: config.to_owned(),
            metric: metric.name,
            published,
            simulated,
            shown: Shown {
                name: metric.in_words,
                scale: Scale::Factor,
            },
        };
        let value = (self.measured.of)(run);
        let (name, in_words) = self.growth;
        let growth = Metric {
            name,
            in_words,
            ..self.measured
        };
        let beside = self.beside.iter();
        [
            row(&self.measured, here, value),
            row(
                &growth,
                here.zip(at_first).map(|(of, to)| of / to),
                value / (self.measured.of)(first),
            ),
        ]
        .into_iter()
        .chain(beside.map(|metric| row(metric, None, (metric.of)(run))))
        .collect()
    }
}

/// The name of a run's variant.
fn set_up(run: &Results) -> &str {
    &run.experiment.name
}

/// KB (1,024 bytes) of content that clients received.
fn kilobytes(run: &Results) -> f64 {
    run.clients.content_mbps * 1e6 / 8.0 * run.measured_s / 1024.0
}

/// Of the whole host.
fn l2_misses(run: &Results) -> f64 {
    run.host
        .layers
        .values()
        .map(|layer| layer.l2_misses)
        .sum::<u64>() as f64
}

fn tcp(run: &Results) -> Cycles {
    run.host.layers.get("tcp").copied().unwrap_or_default()
}

fn per_packet(run: &Results, count: u64) -> f64 {
    count as f64 / run.packets as f64
}

/// Share of its busy cycles.
fn memory_stall_percent(run: &Results) -> f64 {
    let layers = || run.host.layers.values();
    let all: u64 = layers().map(Cycles::total).sum();
    100.0 * layers().map(|layer| layer.memory).sum::<u64>() as f64 / all as f64
}
