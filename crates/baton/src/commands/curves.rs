//! Curves of cache hits over sizes, for all policies: computed, as tables and as figures.

use crate::failure::Failure;
use crate::runner::{Interrupt, for_all};
use baton_cache::ByteBound;
use baton_report::figure::{Curve as Line, Curves as Figure};
use baton_report::{self as report, Column, Table};
use baton_workload::analyse::{BlockString, Policy, Sample};
use baton_workload::{Log, SessionRule, Sessions};
use serde::Serialize;
use std::ops::{Range, RangeInclusive};

/// Exponents of cache sizes as in figure 3 of the network interface data caching paper, and larger ones: 64 KB to 1 GB.
const SIZES: RangeInclusive<u32> = 16..=30;

/// Returns the sizes that are computed by default.
pub fn default_sizes() -> Vec<u64> {
    SIZES.map(|power| 1 << power).collect()
}

/// Curves to compute.
#[derive(Clone, Debug)]
pub struct Request {
    /// Policies of the curves.
    pub policies: Vec<Policy>,
    /// Sizes of a cache in bytes, ascending.
    pub sizes: Vec<u64>,
    /// Numbers of independent caches.
    pub caches: Vec<u8>,
    /// Size of a block, bytes.
    pub block_bytes: u64,
    /// Rule that assigns requests to connections. A connection uses only one cache.
    pub rule: SessionRule,
}

/// Hits of a policy over sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The policy.
    pub policy: Policy,
    /// Number of independent caches of each size.
    pub caches: u8,
    /// Points in order of size.
    pub points: Vec<Point>,
}

/// Hits at one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Size of each cache.
    pub cache_bytes: u64,
    /// Share of content bytes kept off the bus, 0 to 1.
    pub share: f64,
}

/// Hits of some sizes of one cache, to be computed on one thread.
struct Task<'a> {
    policy: Policy,
    string: &'a BlockString,
    /// Needed only by policies that know all future requests.
    bound: Option<&'a ByteBound>,
    /// Indices of the sizes in the request.
    sizes: Range<usize>,
    slots: &'a [u32],
}

impl Task<'_> {
    /// Returns the bytes hit at each size.
    fn run(&self) -> Vec<u64> {
        let slots = &self.slots[self.sizes.clone()];
        self.policy.hit_bytes(self.string, self.bound, slots)
    }
}

/// Computes all curves of `log`: by policy, then by number of caches.
///
/// # Errors
/// Fails if the log cannot be divided into blocks, or if the user interrupts.
pub fn compute(
    log: &Log,
    request: &Request,
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Curve>, Failure> {
    let sessions = Sessions::new(&log.requests, request.rule);
    let mut curves: Vec<Curve> = Vec::new();
    for &caches in &request.caches {
        let first = curves.len();
        for (sample, sizes) in samples(log, request) {
            let strings =
                BlockString::sampled(log, &sessions, caches.into(), request.block_bytes, sample)
                    .map_err(|error| Failure::BadInput(format!("the log: {error}")))?;
            let request = Request {
                sizes: sizes.to_vec(),
                ..request.clone()
            };
            let received = Received {
                strings: &strings,
                step: sample.step(),
                content_bytes: log.content_bytes(),
            };
            let more = received.curves(&request, threads, interrupt)?;
            match curves.get_mut(first..).filter(|curves| !curves.is_empty()) {
                None => curves.extend(more),
                Some(curves) => {
                    for (curve, more) in curves.iter_mut().zip(more) {
                        curve.points.extend(more.points);
                    }
                }
            }
        }
    }
    let place = |curve: &Curve| request.policies.iter().position(|p| *p == curve.policy);
    curves.sort_by_key(place);
    Ok(curves)
}

/// Returns the blocks to follow, and for which sizes: all blocks for all sizes, or a sample for each size.
pub fn samples<'r>(log: &Log, request: &'r Request) -> Vec<(Sample, &'r [u64])> {
    let of = |size: u64| Sample::of(log, request.block_bytes, size);
    match request.sizes.first() {
        Some(&first) if of(first) != Sample::ALL => {
            let sizes = request.sizes.chunks(1);
            sizes.map(|sizes| (of(sizes[0]), sizes)).collect()
        }
        _ => vec![(Sample::ALL, &request.sizes)],
    }
}

/// The references that some caches receive.
struct Received<'a> {
    strings: &'a [BlockString],
    /// How many blocks each reference stands for.
    step: u32,
    /// Content of all responses.
    content_bytes: u64,
}

impl Received<'_> {
    /// Computes the curves of all policies.
    fn curves(
        &self,
        request: &Request,
        threads: usize,
        interrupt: &Interrupt,
    ) -> Result<Vec<Curve>, Failure> {
        let strings = self.strings;
        let bounds = if request.policies.iter().any(|policy| policy.knows_future()) {
            let bound = |string: &BlockString| ByteBound::new(&string.references);
            for_all(strings, "caches", threads, interrupt, bound)?
        } else {
            Vec::new()
        };
        let slots = |bytes: &u64| {
            let blocks = bytes / request.block_bytes / u64::from(self.step);
            u32::try_from(blocks).unwrap_or(u32::MAX)
        };
        let slots: Vec<u32> = request.sizes.iter().map(slots).collect();
        let mut tasks = Vec::new();
        for &policy in &request.policies {
            for (i, string) in strings.iter().enumerate() {
                let all = 0..slots.len();
                let step = if policy == Policy::LRU {
                    slots.len().max(1)
                } else {
                    1
                };
                tasks.extend(all.clone().step_by(step).map(|first| Task {
                    policy,
                    string,
                    bound: bounds.get(i),
                    sizes: first..(first + step).min(all.end),
                    slots: &slots,
                }));
            }
        }
        let hits = for_all(&tasks, "caches", threads, interrupt, Task::run)?;
        let curve = |&policy: &Policy| {
            let mut sums = vec![0; slots.len()];
            for (task, hits) in tasks
                .iter()
                .zip(&hits)
                .filter(|(task, _)| task.policy == policy)
            {
                for (sum, hit) in sums[task.sizes.clone()].iter_mut().zip(hits) {
                    *sum += hit;
                }
            }
            let point = |(&cache_bytes, sum): (&u64, u64)| Point {
                cache_bytes,
                share: (sum * u64::from(self.step)) as f64 / self.content_bytes.max(1) as f64,
            };
            Curve {
                policy,
                caches: strings.len() as u8,
                points: request.sizes.iter().zip(sums).map(point).collect(),
            }
        };
        Ok(request.policies.iter().map(curve).collect())
    }
}

/// Renders one table for each number of caches, with a row for each size and a column for each policy.
pub fn tables(curves: &[Curve]) -> String {
    let mut caches: Vec<u8> = curves.iter().map(|curve| curve.caches).collect();
    caches.sort_unstable();
    caches.dedup();
    let table = |&caches: &u8| {
        let of: Vec<&Curve> = curves.iter().filter(|c| c.caches == caches).collect();
        table(caches, &of)
    };
    caches.iter().map(table).collect::<Vec<_>>().join("\n")
}

fn table(caches: u8, curves: &[&Curve]) -> String {
    let title = match caches {
        1 => "Share of content bytes that one cache keeps off the bus:".to_owned(),
        _ => format!(
            "The same with {caches} caches of that size each, with connections assigned in turn:"
        ),
    };
    let mut columns = vec![Column::numbers("cache")];
    columns.extend(curves.iter().map(|c| Column::numbers(c.policy.name())));
    let mut table = Table::new(columns).titled(title);
    let sizes = curves.first().map_or(&[][..], |curve| &curve.points);
    for (i, size) in sizes.iter().enumerate() {
        let mut cells = vec![size_text(size.cache_bytes)];
        let share = |curve: &&Curve| format!("{:.1} %", 100.0 * curve.points[i].share);
        cells.extend(curves.iter().map(share));
        table.row(cells);
    }
    table.render()
}

/// Formats a size: `64 KiB`, `16 MiB`.
pub fn size_text(bytes: u64) -> String {
    report::bytes(bytes).replace(".0 ", " ")
}

/// Draws the curves as a figure: solid lines for one cache, dashed for several. `name` returns the name of a curve.
pub fn figure(title: String, curves: &[Curve], name: impl Fn(&Curve) -> String) -> Figure {
    let line = |curve: &Curve| Line {
        name: name(curve),
        dashed: curve.caches > 1,
        points: curve
            .points
            .iter()
            .map(|point| (point.cache_bytes, 100.0 * point.share))
            .collect(),
    };
    Figure {
        title,
        x: "size of each cache (solid: one cache, dashed: several independent ones)".to_owned(),
        y: "content bytes kept off the bus, %".to_owned(),
        curves: curves.iter().map(line).collect(),
    }
}
