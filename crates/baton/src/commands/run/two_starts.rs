//! Runs from two starts: that of the experiment, in which clients come one after another, and an overloaded one, in which all clients
//! connect at the same time. Only if both lead to the same request rate has the run outlasted its start.

use crate::failure::Failure;
use crate::runner::{Interrupt, Job, run_each};
use baton_sim::config::Length;
use baton_sim::results::{NotSteady, Results};
use baton_stats::Estimate;

/// Factor by which the warm-up becomes longer if the two starts give different request rates.
const LONGER: u64 = 4;

/// Runs all jobs. Each closed loop that is measured until it is precise is run from both starts. If their request rates differ, both runs
/// are repeated with a longer warm-up, unless the experiment gives one; if the rates still differ, the run is marked. Jobs that are not
/// done when the user interrupts have no results.
///
/// # Errors
/// Returns the first failure in the order of the jobs.
pub fn run_from_both(
    jobs: &[Job],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Option<Results>>, Failure> {
    let all: Vec<&Job> = jobs.iter().collect();
    let mut results = pairs(&all, threads, interrupt)?;
    let differs = |results: &Option<Results>| {
        let results = results.as_ref();
        results.is_some_and(|run| run.long_run.not_steady.contains(&NotSteady::StartsDiffer))
    };
    let again = jobs.iter().enumerate().filter_map(|(number, job)| {
        let longer = differs(&results[number]).then(|| longer(job))??;
        Some((number, longer))
    });
    let (numbers, again): (Vec<usize>, Vec<Job>) = again.unzip();
    let again = pairs(&again.iter().collect::<Vec<_>>(), threads, interrupt)?;
    for (number, again) in numbers.into_iter().zip(again) {
        if again.is_some() {
            results[number] = again;
        }
    }
    Ok(results)
}

/// Runs all jobs, from both starts if they have two, and compares the request rates of the two starts.
fn pairs(
    jobs: &[&Job],
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Vec<Option<Results>>, Failure> {
    let overloaded = jobs.iter().enumerate();
    let overloaded = overloaded.filter_map(|(number, job)| Some((number, overloaded_of(job)?)));
    let (numbers, overloaded): (Vec<usize>, Vec<Job>) = overloaded.unzip();
    let both: Vec<Job> = jobs.iter().copied().cloned().chain(overloaded).collect();
    let mut results = run_each(&both, threads, interrupt)?;
    let others = results.split_off(jobs.len());
    for (number, other) in numbers.into_iter().zip(others) {
        if let (Some(own), Some(other)) = (&mut results[number], other) {
            let other = other.request_rate();
            own.long_run.overloaded_start = Some(other);
            let percent = own.experiment.run.until_ci_percent.unwrap_or_default();
            if !agree(own.request_rate(), other, percent) {
                own.long_run.not_steady.push(NotSteady::StartsDiffer);
            }
        }
    }
    Ok(results)
}

/// Returns the job with an overloaded start, or `None` if its length is given, if it has a capture or timeline, or if it is no
/// closed loop with a gradual start.
fn overloaded_of(job: &Job) -> Option<Job> {
    let Job {
        experiment,
        captures,
        timeline,
        ..
    } = job;
    let is_closed = experiment.load.rate.is_none() && experiment.load.arrivals.is_none();
    let has_two = is_closed
        && experiment.run.until_ci_percent.is_some()
        && experiment.clients.start_interval_us > 0
        && captures.is_empty()
        && timeline.is_none();
    has_two.then(|| {
        let mut job = job.clone();
        job.experiment.clients.start_interval_us = 0;
        job.experiment.name.push_str(", all clients at once");
        job.replay.push_str(" --set clients.start_interval_us=0");
        job
    })
}

/// Returns the job with a longer warm-up, or `None` if the experiment gives its length.
fn longer(job: &Job) -> Option<Job> {
    let run = &job.experiment.run;
    let is_given = run.warmup_packets.is_some() || run.warmup_responses.is_some();
    let Length::Packets(packets) = run.warmup() else {
        return None;
    };
    let mut job = job.clone();
    job.experiment.run.warmup_packets = Some(LONGER * packets);
    (!is_given).then_some(job)
}

/// Returns whether two rates differ by no more than `percent` of the first, or than their intervals allow.
fn agree(own: Estimate, other: Estimate, percent: f64) -> bool {
    let half = |rate: Estimate| rate.half_width.unwrap_or_default();
    let by_chance = half(own).hypot(half(other));
    (own.mean - other.mean).abs() <= by_chance.max(percent / 100.0 * own.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_sim::config::Experiment;

    #[test]
    fn rates_agree_within_their_intervals_and_within_the_precision() {
        let rate = |mean, half| Estimate {
            mean,
            half_width: Some(half),
        };
        assert!(agree(rate(1000.0, 1.0), rate(1009.0, 1.0), 1.0));
        assert!(!agree(rate(1000.0, 1.0), rate(1011.0, 1.0), 1.0));
        assert!(agree(rate(1000.0, 30.0), rate(1049.0, 40.0), 1.0));
        assert!(!agree(rate(1000.0, 30.0), rate(951.0, 1.0), 1.0));
    }

    #[test]
    fn only_closed_loops_without_a_given_length_have_two_starts() {
        let mut experiment = Experiment::default();
        let job = |experiment: &Experiment| Job::new(experiment.clone(), String::new());
        assert!(overloaded_of(&job(&experiment)).is_none(), "a given length");
        experiment.run.until_ci_percent = Some(1.0);
        let other = overloaded_of(&job(&experiment)).expect("two starts");
        assert_eq!(other.experiment.clients.start_interval_us, 0);
        assert!(overloaded_of(&other).is_none(), "it is overloaded already");
        let longer_one = longer(&job(&experiment)).expect("no warm-up is given");
        assert_eq!(
            longer_one.experiment.run.warmup(),
            Length::Packets(1_600_000)
        );
        assert!(longer(&longer_one).is_none(), "a warm-up is given");
        experiment.load.rate = Some("5000/s".parse().expect("a rate"));
        assert!(overloaded_of(&job(&experiment)).is_none(), "an open loop");
    }
}
