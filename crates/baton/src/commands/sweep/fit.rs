//! `baton sweep --fit`: finds the constants of `[fit]` with which a study comes closest to the given numbers.
//!
//! Each round changes every constant slightly to find its influence on each number, and then takes the best of a few steps towards the
//! least squares of the distances (Levenberg and Marquardt), which are measured in tolerances. All results are stored as usual, so that a
//! fit that is started again continues.

use crate::beside::{Comparison, Metrics, Outcome, RESPONSES, label};
use crate::config::{self, Constant, FitPlan, ReportPlan, Request, Setting};
use crate::failure::Failure;
use crate::runner::{Interrupt, Sweep};
use baton_report::{width, wrapped};
use baton_sim::config::Experiment;
use baton_stats::damped_step;
use baton_study::table::Cell;
use baton_study::{Key, Store, Study};
use toml::{Table, Value};

/// Distance in tolerances beyond which additional distance counts less and less, so that no number outweighs all others.
const FAR: f64 = 10.0;

/// Distance of a number without a result, in tolerances.
const NOTHING: f64 = 10.0 * FAR;

/// Dampings that are tried: steps with less damping are longer.
const DAMPINGS: [f64; 4] = [0.003, 0.1, 1.0, 10.0];

/// Improvement in a round, as a share of the distance, below which the fit ends.
const LITTLE: f64 = 0.01;

/// Values that all runs of a fit share.
pub struct Fitter<'a> {
    pub request: &'a Request,
    pub plan: &'a FitPlan,
    pub store: &'a Store,
    pub threads: usize,
    pub interrupt: &'a Interrupt,
}

/// Result of a fit.
pub struct Fitted {
    /// Keys and values.
    pub constants: Vec<(String, f64)>,
    /// The constants as settings, as a user would set them.
    pub settings: Vec<Setting>,
    /// Number of rounds.
    pub rounds: usize,
    /// Whether another round would bring no improvement.
    pub settled: bool,
}

/// Values of all constants, and the resulting distance of each number.
#[derive(Clone)]
struct Trial {
    values: Vec<f64>,
    distances: Vec<f64>,
}

impl Trial {
    /// Returns the root mean square of the distances, in tolerances.
    fn distance(&self) -> f64 {
        let squares = self.distances.iter().map(|distance| distance * distance);
        (squares.sum::<f64>() / self.distances.len() as f64).sqrt()
    }
}

impl Fitter<'_> {
    /// Finds the constants, and reports the progress to `say`.
    ///
    /// # Errors
    /// Fails if the study has no numbers to fit to, if a run cannot be started or stored, or if the user interrupts.
    pub fn fit(&self, say: &dyn Fn(&str) -> Result<(), Failure>) -> Result<Fitted, Failure> {
        let constants = &self.plan.constants;
        let start = constants
            .iter()
            .map(|constant| constant.allowed(constant.start));
        let mut best = self.first(start.collect())?;
        say(&self.line("Begins", &best))?;
        let (mut round, mut settled) = (0, false);
        while !settled && round < self.plan.rounds {
            round += 1;
            let slopes = self.slopes(&best)?;
            let steps = self.steps(&best, &slopes);
            let before = best.distance();
            for trial in self.try_all(steps)? {
                if trial.distance() < best.distance() {
                    best = trial;
                }
            }
            say(&self.line(&format!("Round {round}"), &best))?;
            settled = best.distance() > (1.0 - LITTLE) * before;
        }
        let paths = constants.iter().map(|constant| constant.path.clone());
        Ok(Fitted {
            constants: paths.zip(best.values.iter().copied()).collect(),
            settings: self.settings(&best.values).collect(),
            rounds: round,
            settled,
        })
    }

    /// Runs the study with the first values, and checks that there are numbers to fit to.
    fn first(&self, values: Vec<f64>) -> Result<Trial, Failure> {
        let first = self.try_all(vec![values])?.remove(0);
        if first.distances.is_empty() {
            let kinds: Vec<&str> = self.plan.targets.iter().map(|kind| kind.name()).collect();
            return Err(Failure::BadInput(format!(
                "{}: nothing to fit to; expected numbers with the status {} and a tolerance",
                self.request.experiment,
                kinds.join(" or ")
            )));
        }
        Ok(first)
    }

    /// Checks that a run has responses: a run that is too short has no results.
    fn check_length(report: &ReportPlan, point: usize, run: &Metrics) -> Result<(), Failure> {
        match run.get(RESPONSES) {
            Some(Cell::Integer(0)) => Err(Failure::BadInput(format!(
                "{}: a run had no complete response; measure more packets (run.measured_packets, --packets N)",
                label(report, point)
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the influence of each constant on each number.
    fn slopes(&self, at: &Trial) -> Result<Vec<Vec<f64>>, Failure> {
        let constants = self.plan.constants.iter().enumerate();
        let beside = constants.map(|(number, constant)| {
            let mut values = at.values.clone();
            values[number] = beside(constant, at.values[number]);
            values
        });
        let trials = self.try_all(beside.collect())?;
        let slope = |(number, trial): (usize, &Trial)| {
            let change = trial.values[number] - at.values[number];
            let pairs = trial.distances.iter().zip(&at.distances);
            pairs.map(|(there, here)| (there - here) / change).collect()
        };
        Ok(trials.iter().enumerate().map(slope).collect())
    }

    /// Returns values of the constants that may come closer to the numbers.
    fn steps(&self, at: &Trial, slopes: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let bold = |damping| self.moved(at, &damped_step(&at.distances, slopes, damping));
        let tried = DAMPINGS.map(bold).into_iter();
        let mut all: Vec<Vec<f64>> = Vec::new();
        for values in tried.chain(self.beside_multiples(at, slopes)) {
            if values != at.values && !all.contains(&values) {
                all.push(values);
            }
        }
        all
    }

    /// Returns all combinations in which each constant that must be a multiple of a number stays, or moves to the next multiple below or
    /// above, which a step towards the least squares may be too short to reach. The other constants change accordingly.
    fn beside_multiples(&self, at: &Trial, slopes: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let constants = self.plan.constants.iter();
        let multiples: Vec<Option<f64>> = constants.map(|constant| constant.multiple_of).collect();
        let coarse = multiples.iter().flatten().count() as u32;
        let combination = |number: usize| {
            let mut rest = number;
            let mut step = vec![0.0; multiples.len()];
            let mut distances = at.distances.clone();
            for (place, multiple) in multiples.iter().enumerate() {
                let Some(multiple) = multiple else { continue };
                step[place] = multiple * ((rest % 3) as f64 - 1.0);
                rest /= 3;
                let slopes = distances.iter_mut().zip(&slopes[place]);
                slopes.for_each(|(distance, slope)| *distance += slope * step[place]);
            }
            let fine = (0..multiples.len()).filter(|&place| multiples[place].is_none());
            let fine: Vec<usize> = fine.collect();
            let their_slopes: Vec<Vec<f64>> = fine.iter().map(|&n| slopes[n].clone()).collect();
            let along = damped_step(&distances, &their_slopes, DAMPINGS[0]);
            fine.into_iter().zip(along).for_each(|(n, by)| step[n] = by);
            self.moved(at, &step)
        };
        (0..3usize.pow(coarse)).map(combination).collect()
    }

    /// Returns the allowed values closest to those after a step.
    fn moved(&self, at: &Trial, step: &[f64]) -> Vec<f64> {
        let moved = self.plan.constants.iter().zip(at.values.iter().zip(step));
        let moved = moved.map(|(constant, (value, step))| constant.allowed(value + step));
        moved.collect()
    }

    fn settings(&self, values: &[f64]) -> impl Iterator<Item = Setting> {
        let constants = self.plan.constants.iter().zip(values);
        constants.map(|(constant, value)| Setting::of_set(&constant.path, value))
    }

    /// Runs the study with all of these values, in parallel as far as threads permit.
    fn try_all(&self, all: Vec<Vec<f64>>) -> Result<Vec<Trial>, Failure> {
        let mut runs: Vec<(Key, Experiment)> = Vec::new();
        let mut planned = Vec::with_capacity(all.len());
        for values in all {
            let mut request = self.request.clone();
            request.settings.extend(self.settings(&values));
            let plan = config::study(&request, self.threads)?;
            let report = plan.report.clone();
            let (study, of_study) = plan.identified(self.store)?;
            let wanted = self.wanted(&report);
            let of_study = of_study.into_iter().enumerate();
            let of_study = of_study.filter(|(number, _)| wanted.contains(&(number / report.seeds)));
            for (_, run) in of_study {
                if !runs.iter().any(|(key, _)| *key == run.0) {
                    runs.push(run);
                }
            }
            planned.push((values, report, study));
        }
        runs.retain(|(key, _)| !self.store.has(*key));
        let sweep = Sweep {
            store: self.store,
            runs: &runs,
            threads: self.threads,
        };
        sweep.carry_out(self.interrupt)?;
        let trial = |(values, report, study): (Vec<f64>, ReportPlan, Study)| {
            Ok(Trial {
                values,
                distances: self.distances(&report, &study)?,
            })
        };
        planned.into_iter().map(trial).collect()
    }

    /// Returns the points of the numbers to fit to.
    fn wanted(&self, report: &ReportPlan) -> Vec<usize> {
        let numbers = report.numbers.iter();
        let numbers = numbers.filter(|number| self.plan.targets.contains(&number.status));
        let points = numbers.flat_map(|number| [Some(number.point), number.against]);
        points.flatten().collect()
    }

    fn distances(&self, report: &ReportPlan, study: &Study) -> Result<Vec<f64>, Failure> {
        let outcome = Outcome::read(report, self.store, study)?;
        for (number, run) in outcome.runs.iter().enumerate() {
            Self::check_length(report, number / report.seeds, run)?;
        }
        let rows = Comparison::published(&outcome).into_iter();
        let targets = rows.filter(|row| {
            let number = row.number;
            number.is_some_and(|number| {
                number.tolerance.is_some() && self.plan.targets.contains(&number.status)
            })
        });
        let distance = |row: Comparison<'_>| tempered(row.distance().unwrap_or(NOTHING));
        Ok(targets.map(distance).collect())
    }

    fn line(&self, when: &str, trial: &Trial) -> String {
        let constants = self.plan.constants.iter().zip(&trial.values);
        let constants = constants.map(|(constant, value)| format!("{} = {value}", constant.path));
        let constants: Vec<String> = constants.collect();
        let within = trial.distances.iter();
        let within = within.filter(|distance| distance.abs() <= 1.0).count();
        wrapped(
            &format!(
                "{when}: {:.2} tolerances off, {within} of {} numbers within their tolerance; {}",
                trial.distance(),
                trial.distances.len(),
                constants.join(", ")
            ),
            width(),
            2,
        )
    }
}

impl Fitted {
    /// Returns the constants as lines for a profile.
    pub fn lines(&self) -> String {
        let mut profile = Table::new();
        for (path, value) in &self.constants {
            let mut table = &mut profile;
            let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
            for part in above.split('.').filter(|part| !part.is_empty()) {
                let entry = table.entry(part).or_insert(Value::Table(Table::new()));
                table = entry.as_table_mut().expect("a key is not also a table");
            }
            let whole = value.fract() == 0.0;
            let value = if whole {
                Value::Integer(*value as i64)
            } else {
                Value::Float(*value)
            };
            table.insert(key.to_owned(), value);
        }
        profile.to_string()
    }
}

/// Returns a distance, with the part beyond [`FAR`] replaced by its logarithm.
fn tempered(distance: f64) -> f64 {
    let size = distance.abs().min(NOTHING);
    let beyond = (size / FAR).max(1.0).ln();
    size.min(FAR).copysign(distance) * (1.0 + beyond)
}

/// Returns a value that shows the influence of the constant: a step above `value`, or below if that is not allowed.
fn beside(constant: &Constant, value: f64) -> f64 {
    let above = constant.allowed(value + constant.step);
    match above > value {
        true => above,
        false => constant.allowed(value - constant.step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_distance_counts_less_than_in_proportion_but_still_grows() {
        assert_eq!(tempered(-2.5), -2.5);
        assert_eq!(tempered(10.0), 10.0);
        assert!(tempered(11.0) > 10.0 && tempered(11.0) < 11.0);
        assert!(tempered(-80.0) < tempered(-40.0));
        assert_eq!(tempered(f64::INFINITY), tempered(NOTHING));
    }

    #[test]
    fn a_constant_at_its_limit_is_changed_downwards() {
        let constant = Constant {
            path: "nic.mips".to_owned(),
            from: 10.0,
            to: 100.0,
            start: 50.0,
            step: 7.5,
            whole: true,
            multiple_of: None,
        };
        assert_eq!(beside(&constant, 50.0), 58.0);
        assert_eq!(beside(&constant, 100.0), 93.0);
        assert_eq!(constant.allowed(101.0), 100.0);
        let multiple_of = Some(30.0);
        let by_thirties = Constant {
            multiple_of,
            ..constant
        };
        assert_eq!(by_thirties.allowed(101.0), 90.0);
        assert_eq!(by_thirties.allowed(1.0), 30.0);
    }
}
