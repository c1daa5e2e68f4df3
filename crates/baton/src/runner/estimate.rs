//! Estimates the remaining time of jobs.
//!
//! The work of a job before its first progress report (reading a log, for example) says nothing about its later rate, and a job that has
//! not begun takes about as long as the others. Rates over all jobs ignore both: they overestimated the remaining time by factors of 1.3 to
//! 2.7.

/// State of a job. Times are seconds since the first job began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Job {
    #[default]
    Waiting,
    Preparing {
        begun: f64,
    },
    Running {
        begun: f64,
        /// Time and share of the first progress report.
        first: (f64, f64),
        share: f64,
        now: f64,
    },
    Done {
        took: f64,
    },
}

/// Estimates for all jobs, on a number of threads.
#[derive(Clone, Debug)]
pub struct Estimate {
    threads: usize,
    jobs: Vec<Job>,
}

/// Share of a job below which its rate is not known.
const LEAST_SHARE: f64 = 0.02;

impl Estimate {
    /// Creates an estimate for jobs that have not begun.
    pub fn new(jobs: usize, threads: usize) -> Self {
        Self {
            threads: threads.max(1),
            jobs: vec![Job::Waiting; jobs],
        }
    }

    /// Records that a job begins.
    pub fn begin(&mut self, job: usize, now: f64) {
        self.jobs[job] = Job::Preparing { begun: now };
    }

    /// Records that a job has done this share of its work.
    pub fn advance(&mut self, job: usize, share: f64, now: f64) {
        let share = share.clamp(0.0, 1.0);
        let (begun, first) = match self.jobs[job] {
            Job::Running { begun, first, .. } => (begun, first),
            Job::Preparing { begun } => (begun, (now, share)),
            Job::Waiting | Job::Done { .. } => (now, (now, share)),
        };
        self.jobs[job] = Job::Running {
            begun,
            first,
            share,
            now,
        };
    }

    /// Records that a job is done.
    pub fn end(&mut self, job: usize, now: f64) {
        let begun = match self.jobs[job] {
            Job::Preparing { begun } | Job::Running { begun, .. } => begun,
            Job::Waiting | Job::Done { .. } => now,
        };
        self.jobs[job] = Job::Done { took: now - begun };
    }

    /// Returns the number of jobs that are done.
    pub fn done(&self) -> usize {
        let is_done = |job: &&Job| matches!(job, Job::Done { .. });
        self.jobs.iter().filter(is_done).count()
    }

    /// Returns the share of all work that is done.
    pub fn share(&self) -> f64 {
        let share = |job: &Job| match job {
            Job::Done { .. } => 1.0,
            Job::Running { share, .. } => *share,
            Job::Waiting | Job::Preparing { .. } => 0.0,
        };
        self.jobs.iter().map(share).sum::<f64>() / self.jobs.len().max(1) as f64
    }

    /// Returns the seconds until all jobs are done, or `None` if nothing is known about them.
    pub fn left(&self, now: f64) -> Option<f64> {
        let known = self.jobs.iter().filter_map(Job::took);
        let (count, sum) = known.fold((0.0, 0.0), |(count, sum), took| (count + 1.0, sum + took));
        let usual = (count > 0.0).then(|| sum / count)?;
        let begun = self.jobs.iter().filter_map(|job| job.left(usual, now));
        let mut threads: Vec<f64> = begun.collect();
        let waiting = self.jobs.iter().filter(|job| **job == Job::Waiting);
        for _ in waiting {
            if threads.len() < self.threads {
                threads.push(usual);
            } else {
                let first = threads.iter_mut().min_by(|a, b| a.total_cmp(b))?;
                *first += usual;
            }
        }
        threads.into_iter().max_by(f64::total_cmp)
    }
}

impl Job {
    /// Returns the measured or estimated duration of the whole job, or `None` if it is not known yet.
    fn took(&self) -> Option<f64> {
        match *self {
            Self::Done { took } => Some(took),
            Self::Running { begun, now, .. } => Some(now - begun + self.rest()?),
            Self::Waiting | Self::Preparing { .. } => None,
        }
    }

    /// Returns the time from the last progress report to the end of the job, at the rate since the first report.
    fn rest(&self) -> Option<f64> {
        let Self::Running {
            first: (since, share_then),
            share,
            now,
            ..
        } = *self
        else {
            return None;
        };
        let done = share - share_then;
        (done >= LEAST_SHARE).then(|| (now - since) / done * (1.0 - share))
    }

    /// Returns the remaining time of the job, if it has begun and is not done.
    fn left(&self, usual: f64, now: f64) -> Option<f64> {
        match *self {
            Self::Waiting | Self::Done { .. } => None,
            Self::Preparing { begun } => Some((usual - (now - begun)).max(0.0)),
            Self::Running {
                begun, now: told, ..
            } => {
                let rest = self.rest().unwrap_or(usual - (told - begun));
                Some((rest - (now - told)).max(0.0))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_before_the_first_progress_report_does_not_count_as_slow_progress() {
        let mut jobs = Estimate::new(1, 1);
        jobs.begin(0, 0.0);
        assert_eq!(jobs.left(4.0), None);
        jobs.advance(0, 0.0, 5.0);
        jobs.advance(0, 0.25, 7.0);
        assert_eq!(jobs.left(7.0), Some(6.0));
        assert_eq!(jobs.left(8.0), Some(5.0));
    }

    #[test]
    fn waiting_jobs_are_estimated_to_take_as_long_as_the_others() {
        let mut jobs = Estimate::new(5, 2);
        jobs.begin(0, 0.0);
        jobs.begin(1, 0.0);
        jobs.end(0, 10.0);
        jobs.begin(2, 10.0);
        jobs.advance(1, 0.0, 0.0);
        jobs.advance(1, 0.5, 10.0);
        // Jobs 0 and 1 take 10 s and 20 s, so others take 15 s: job 1 has 10 s left, job 2 15 s; then jobs 3 and 4 begin.
        assert_eq!(jobs.left(10.0), Some(30.0));
        assert_eq!((jobs.done(), jobs.share()), (1, 0.3));
    }

    proptest! {
        /// For jobs that are all alike and advance evenly, the estimate is exact to the second, whatever precedes the first progress
        /// report.
        #[test]
        fn jobs_of_equal_length_are_estimated_exactly(count in 1usize..20, threads in 1usize..5, start in 0.0..5.0f64, each in 1.0..50.0f64, at in 0.1..0.9f64) {
            let mut jobs = Estimate::new(count, threads);
            let running = threads.min(count);
            for job in 0..running {
                jobs.begin(job, 0.0);
                jobs.advance(job, 0.0, start);
                jobs.advance(job, at, start + each * at);
            }
            let rounds = count.div_ceil(threads) as f64;
            let expected = each * (1.0 - at) + (rounds - 1.0) * (start + each);
            let left = jobs.left(start + each * at).expect("known");
            prop_assert!((left - expected).abs() < 1e-6 * (1.0 + expected), "{left} {expected}");
        }
    }
}
