//! One round: every constant once, each from runs that know the values found before it.

use super::constants::{ARRIVAL_QUEUES, Constants, TRANSMIT_BURSTS};
use super::published::{PUBLISHED, Published, rows_of};
use super::{steps, tolerance};
use crate::commands::reproduce::Row;
use crate::config::{self, Request};
use crate::failure::Failure;
use crate::runner::{Interrupt, Job, run_all};
use baton_sim::results::Results;

/// The rows of the published table.
const NO_OFFLOAD: &Published = &PUBLISHED[0];
const OFFLOAD_256: &Published = &PUBLISHED[1];
const OFFLOAD_1024_FCFS: &Published = &PUBLISHED[2];
const OFFLOAD_1024_HOST_FIRST: &Published = &PUBLISHED[3];

/// Distances that runs do not tell apart, as they differ by chance: five per cent of a delay.
const AS_NEAR: f64 = 0.05;

/// A round has settled if it moved no number by more than this part of its tolerance. Runs with neighbouring constants
/// differ by chance about as much.
const SETTLED: f64 = 0.25;

/// How runs are made.
pub struct Bench<'a> {
    /// Machine, log, seed and length of all runs.
    pub request: Request,
    /// Runs at the same time.
    pub threads: usize,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

/// What a round found.
pub struct Round {
    /// The constants.
    pub constants: Constants,
    /// How the two that are chosen compare with their alternatives.
    pub choices: [Choice; 2],
    /// All published numbers, simulated with these constants.
    pub rows: Vec<Row>,
}

impl Round {
    /// Whether it gave the numbers of the round before, as far as runs tell them apart.
    pub fn settled_since(&self, before: &Self) -> bool {
        let moved = |(now, before): (&Row, &Row)| {
            let published = now.published.unwrap_or(now.simulated);
            tolerance::apart(now.shown.scale, published, now.simulated, before.simulated)
        };
        self.rows
            .iter()
            .zip(&before.rows)
            .all(|pair| moved(pair) <= SETTLED)
    }
}

/// A constant that is chosen from a few values by the delays of one row.
pub struct Choice {
    /// The constant's key.
    pub key: &'static str,
    /// The row.
    pub published: &'static Published,
    /// In the order of their values.
    pub candidates: Vec<Candidate>,
}

/// One value of a constant that is chosen.
pub struct Candidate {
    /// The value.
    pub value: u32,
    /// Median delay of host packets to be sent.
    pub send_delay_us: f64,
    /// Median delay of received host packets.
    pub receive_delay_us: f64,
    /// How far the two are from the published ones.
    pub distance: f64,
}

impl Bench<'_> {
    /// One run of a row with these constants.
    fn job(&self, published: &Published, constants: &Constants) -> Result<Job, Failure> {
        let mut request = self.request.clone();
        published.config.clone_into(&mut request.experiment);
        request.settings.extend(constants.settings());
        let experiment = config::plan_one(&request)?;
        Ok(Job::new(experiment, request.command(None)))
    }

    /// Runs rows with constants, all at the same time if threads allow.
    fn run(&self, wanted: &[(&Published, Constants)]) -> Result<Vec<Results>, Failure> {
        let jobs = wanted
            .iter()
            .map(|(published, constants)| self.job(published, constants))
            .collect::<Result<Vec<_>, _>>()?;
        let results = run_all(&jobs, self.threads, self.interrupt)?;
        match results.iter().find(|result| result.clients.responses == 0) {
            None => Ok(results),
            Some(silent) => Err(Failure::BadInput(format!(
                "{}: no response was complete within {} measured packets; expected more: --packets N",
                silent.experiment.name, silent.packets
            ))),
        }
    }

    /// One run.
    fn run_one(&self, published: &Published, constants: Constants) -> Result<Results, Failure> {
        let mut results = self.run(&[(published, constants)])?;
        Ok(results.pop().expect("one result per job"))
    }

    /// A round that starts from `constants`.
    ///
    /// # Errors
    /// Bad input, a failed run, an interrupt.
    pub fn round(&self, mut constants: Constants) -> Result<Round, Failure> {
        self.fit_host_and_packets(&mut constants)?;
        self.fit_offload(&mut constants)?;
        self.fit_bypass(&mut constants)?;
        let choices = self.choose(&mut constants)?;
        Ok(Round {
            constants,
            choices,
            rows: self.numbers(constants)?,
        })
    }

    /// All published numbers, and what the simulation with `constants` gives.
    ///
    /// # Errors
    /// Bad input, a failed run, an interrupt.
    pub fn numbers(&self, constants: Constants) -> Result<Vec<Row>, Failure> {
        let results = self.run(&PUBLISHED.each_ref().map(|published| (published, constants)))?;
        Ok(results
            .iter()
            .zip(&PUBLISHED)
            .flat_map(|(result, published)| rows_of(result, published))
            .filter(|row| row.published.is_some())
            .collect())
    }

    /// Without offload: what requests cost the host, and host packets the NIC.
    fn fit_host_and_packets(&self, constants: &mut Constants) -> Result<(), Failure> {
        let run = self.run_one(NO_OFFLOAD, *constants)?;
        constants.network_stack = steps::network_stack(&run, NO_OFFLOAD);
        constants.application = steps::application(&run, NO_OFFLOAD);
        constants.nic_host = steps::nic_host(&run, NO_OFFLOAD);
        Ok(())
    }

    /// With offload: what offloaded connections cost the NIC.
    fn fit_offload(&self, constants: &mut Constants) -> Result<(), Failure> {
        let rows = [OFFLOAD_256, OFFLOAD_1024_FCFS];
        let runs = self.run(&rows.map(|published| (published, *constants)))?;
        constants.nic_offload = steps::nic_offload((&runs[0], rows[0]), (&runs[1], rows[1]));
        Ok(())
    }

    /// With offload: what offloaded connections cost the host.
    fn fit_bypass(&self, constants: &mut Constants) -> Result<(), Failure> {
        let rows = [OFFLOAD_1024_FCFS, OFFLOAD_1024_HOST_FIRST];
        let runs = self.run(&rows.map(|published| (published, *constants)))?;
        constants.bypass = steps::bypass((&runs[0], rows[0]), (&runs[1], rows[1]));
        Ok(())
    }

    /// How long host packets wait: for those before them in the arrival queue, and for bursts of segments.
    fn choose(&self, constants: &mut Constants) -> Result<[Choice; 2], Failure> {
        let queues = ARRIVAL_QUEUES.map(|arrival_queue_packets| Constants {
            arrival_queue_packets,
            ..*constants
        });
        let bursts = TRANSMIT_BURSTS.map(|transmit_burst_segments| Constants {
            transmit_burst_segments,
            ..*constants
        });
        let with = |published| move |constants| (published, constants);
        let wanted: Vec<_> = queues
            .into_iter()
            .map(with(OFFLOAD_1024_FCFS))
            .chain(bursts.into_iter().map(with(OFFLOAD_1024_HOST_FIRST)))
            .collect();
        let results = self.run(&wanted)?;
        let (of_queues, of_bursts) = results.split_at(ARRIVAL_QUEUES.len());
        let choices = [
            Choice::new(
                "nic.firmware.arrival_queue_packets",
                OFFLOAD_1024_FCFS,
                &ARRIVAL_QUEUES,
                of_queues,
            ),
            Choice::new(
                "nic.firmware.transmit_burst_segments",
                OFFLOAD_1024_HOST_FIRST,
                &TRANSMIT_BURSTS,
                of_bursts,
            ),
        ];
        constants.arrival_queue_packets = choices[0].chosen();
        constants.transmit_burst_segments = choices[1].chosen();
        Ok(choices)
    }
}

impl Choice {
    fn new(
        key: &'static str,
        published: &'static Published,
        values: &[u32],
        runs: &[Results],
    ) -> Self {
        let candidate = |(&value, run): (&u32, &Results)| Candidate {
            value,
            send_delay_us: run.nic.send_delay_us.p50.unwrap_or_default(),
            receive_delay_us: run.nic.receive_delay_us.p50.unwrap_or_default(),
            distance: steps::delay_distance(run, published),
        };
        Self {
            key,
            published,
            candidates: values.iter().zip(runs).map(candidate).collect(),
        }
    }

    /// The nearest value; of several that are as near, the smallest.
    pub fn chosen(&self) -> u32 {
        let distances = self.candidates.iter().map(|candidate| candidate.distance);
        let least = distances.fold(f64::INFINITY, f64::min);
        let nearest = |candidate: &&Candidate| candidate.distance <= least + AS_NEAR;
        let chosen = self.candidates.iter().find(nearest);
        chosen.expect("there are values to choose from").value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(distances: &[(u32, f64)]) -> Choice {
        let candidate = |&(value, distance): &(u32, f64)| Candidate {
            value,
            send_delay_us: 1.0,
            receive_delay_us: 1.0,
            distance,
        };
        Choice {
            key: "a.b",
            published: NO_OFFLOAD,
            candidates: distances.iter().map(candidate).collect(),
        }
    }

    #[test]
    fn the_nearest_is_chosen_and_of_equals_the_smallest() {
        assert_eq!(choice(&[(1, 3.0), (2, 0.5), (4, 2.0)]).chosen(), 2);
        assert_eq!(choice(&[(1, 3.0), (2, 0.51), (4, 0.5)]).chosen(), 2);
        assert_eq!(choice(&[(1, f64::INFINITY), (2, 9.0)]).chosen(), 2);
    }
}
