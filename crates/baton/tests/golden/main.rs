//! Short runs of all features. Their complete results must be equal to the recorded ones, to the last bit.
//!
//! For each run, `golden.toml` has a hash of each part of its results, and a few headline numbers that show what changed and by how much. The results
//! do not include the configuration, the commit, the version of the format and the description of the workload. Each run also writes its results as
//! lines of `key = value` to `target/tmp/golden/`: `diff` the files of two commits to see every number that changed.
//!
//! Results may change only on purpose. If they do, record them again, and commit `golden.toml` with a message that says what changed and why:
//!
//!     BATON_RECORD=1 cargo test -p baton --profile ci --test golden
//!
//! To record only some runs, append a part of their names.

mod digest;
mod exercised;
mod recorded;
mod runs;

use digest::Lines;
use libtest_mimic::{Arguments, Failed, Trial};
use recorded::{Recorded, Records};
use runs::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// New records by the names of their runs, shared by all tests.
type New = Arc<Mutex<Records>>;

fn main() {
    let arguments = Arguments::from_args();
    let is_recording = std::env::var_os("BATON_RECORD").is_some();
    let (runs, records, new) = (runs::all(), Arc::new(recorded::read()), New::default());
    let names: BTreeSet<String> = runs.iter().map(|run| run.name.clone()).collect();
    let trial = |run: Run| {
        let (new, records) = (Arc::clone(&new), Arc::clone(&records));
        Trial::test(run.name.clone(), move || {
            let found = results(&run)?;
            if is_recording {
                let mut new = new.lock().expect("no test panics while it holds the lock");
                new.insert(run.name, found);
                return Ok(());
            }
            compare(&run, &found, records.get(&run.name))
        })
    };
    let mut trials: Vec<Trial> = runs.into_iter().map(trial).collect();
    if !is_recording {
        trials.push(all_are_run(&records, names.clone()));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if is_recording && !arguments.list {
        let new = std::mem::take(&mut *new.lock().expect("all runs are over"));
        recorded::write(Records::clone(&records), new, &names);
    }
    conclusion.exit();
}

/// Returns a test that checks that every run has a record, and every record a run.
fn all_are_run(records: &Records, runs: BTreeSet<String>) -> Trial {
    let records: BTreeSet<String> = records.keys().cloned().collect();
    Trial::test("all records are of runs", move || {
        assert_eq!(records, runs, "records and runs differ");
        Ok(())
    })
}

/// Returns the results of a run, and checks that it exercised the feature that it tests.
fn results(run: &Run) -> Result<Recorded, Failed> {
    let lines = Lines::of(&(run.results)()?);
    lines.keep(&run.name);
    let exercised = exercised::of(&run.name);
    for key in exercised {
        let number = lines.number(key).unwrap_or(0.0);
        if number <= 0.0 {
            return Err(
                format!("{key} is {number}, so the run does not exercise its feature").into(),
            );
        }
    }
    Ok(Recorded {
        headline: lines.headline(exercised),
        hash: lines.hashes(),
    })
}

/// Compares results with the record. An error names the parts that differ, and shows how the headline numbers changed.
fn compare(run: &Run, found: &Recorded, recorded: Option<&Recorded>) -> Result<(), Failed> {
    let recorded = recorded.ok_or("there is no record of this run")?;
    let moved = differing(&recorded.hash, &found.hash);
    if moved.is_empty() {
        // The hashes are equal, so if headline numbers differ, somebody has edited the file.
        assert_eq!(recorded.headline, found.headline, "headline numbers");
        return Ok(());
    }
    let mut text = format!("the results have changed in {}\n", moved.join(", "));
    let keys = recorded.headline.keys().chain(found.headline.keys());
    for key in keys.collect::<BTreeSet<_>>() {
        let (was, is) = (recorded.headline.get(key), found.headline.get(key));
        text += &format!("    {key}: {}\n", digest::change(was, is));
    }
    let path = Lines::path(&run.name);
    text += &format!("    all results: {}", path.display());
    Err(text.into())
}

/// Returns the keys whose values differ or that only one map has.
fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |key: &&String| one.get(*key) != other.get(*key);
    keys.into_iter().filter(differs).cloned().collect()
}
