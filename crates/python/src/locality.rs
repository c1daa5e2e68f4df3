//! Hit ratios of caches over their sizes, as `baton trace locality` computes them.

use crate::failure::bad_input;
use crate::table::Rows;
use baton_cache::{AdmissionConfig, ByteBound, ReplacementConfig};
use baton_config::Failure;
use baton_study::table::{Cell, Column, Kind};
use baton_workload::analyse::{BlockString, Policy};
use baton_workload::{Log, SessionRule, Sessions};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to compute.
pub struct Asked {
    policies: Vec<Policy>,
    /// Cache sizes in ascending order.
    sizes: Vec<u64>,
    block_bytes: u64,
    caches: usize,
}

impl Asked {
    /// Creates the request from names.
    ///
    /// # Errors
    /// A policy does not exist, or a cache size is not possible.
    pub fn new(
        policies: &[String],
        admission: &str,
        mut sizes: Vec<u64>,
        block_bytes: u64,
        caches: usize,
    ) -> PyResult<Self> {
        let all = [
            AdmissionConfig::All,
            AdmissionConfig::SECOND_REQUEST,
            AdmissionConfig::TINY_LFU,
        ];
        let found = all.into_iter().find(|one| one.name() == admission);
        let admission = found.ok_or_else(|| unknown(admission, all.map(|one| one.name())))?;
        let policy = |name: &String| {
            let online = ReplacementConfig::from_name(name);
            let online = online.map(|policy| Policy::Online(policy, admission));
            let future = [Policy::Min, Policy::Bound].into_iter();
            let found = online.or(future.into_iter().find(|policy| policy.name() == *name));
            found.ok_or_else(|| {
                let names = ReplacementConfig::ALL.map(ReplacementConfig::name);
                unknown(name, names.into_iter().chain(["min", "bound"]))
            })
        };
        let policies = policies.iter().map(policy).collect::<PyResult<_>>()?;
        sizes.sort_unstable();
        sizes.dedup();
        let too_small = sizes.first().filter(|size| **size < block_bytes.max(1));
        if let Some(size) = too_small {
            return Err(bad_input(format!(
                "sizes: found {size}; expected at least a block of {block_bytes} bytes"
            )));
        }
        if caches == 0 {
            return Err(bad_input("caches: found 0; expected at least 1"));
        }
        Ok(Self {
            policies,
            sizes,
            block_bytes,
            caches,
        })
    }

    /// Returns a row for each policy and size.
    ///
    /// # Errors
    /// The log cannot be split into blocks, or the computation was stopped.
    pub fn curves(&self, log: &Log, rule: SessionRule, stop: &AtomicBool) -> Result<Rows, Failure> {
        let sessions = Sessions::new(&log.requests, rule);
        let strings = BlockString::split(log, &sessions, self.caches, self.block_bytes);
        let strings = strings.map_err(|error| Failure::BadInput(format!("the log: {error}")))?;
        let total: u64 = strings.iter().map(|string| string.bytes).sum();
        let slots = |bytes: &u64| u32::try_from(bytes / self.block_bytes).unwrap_or(u32::MAX);
        let slots: Vec<u32> = self.sizes.iter().map(slots).collect();
        let knows_future = self.policies.iter().any(|policy| policy.knows_future());
        let mut rows = Rows::new(columns());
        let bounds = strings
            .iter()
            .map(|string| knows_future.then(|| ByteBound::new(&string.references)));
        let bounds: Vec<Option<ByteBound>> = bounds.collect();
        for policy in &self.policies {
            let mut sums = vec![0; slots.len()];
            for (string, bound) in strings.iter().zip(&bounds) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Failure::Interrupted);
                }
                let hits = policy.hit_bytes(string, bound.as_ref(), &slots);
                sums.iter_mut().zip(hits).for_each(|(sum, hit)| *sum += hit);
            }
            for (bytes, sum) in self.sizes.iter().zip(sums) {
                rows.push([
                    Cell::text(policy.name()),
                    Cell::count(self.caches as u64),
                    Cell::count(*bytes),
                    Cell::number(sum as f64 / total.max(1) as f64),
                ]);
            }
        }
        Ok(rows)
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("policy", Kind::Text),
        Column::new("caches", Kind::Integer),
        Column::new("cache_bytes", Kind::Integer),
        Column::new("hit_share", Kind::Number),
    ]
}

fn unknown(name: &str, known: impl IntoIterator<Item = &'static str>) -> PyErr {
    let known: Vec<&str> = known.into_iter().collect();
    bad_input(format!(
        "{name}: no such policy; expected one of {}",
        known.join(", ")
    ))
}
