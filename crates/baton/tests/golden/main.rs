//! Short runs over all features, whose complete results are compared with recorded ones, to the last bit.
//!
//! `golden.toml` holds, for each run, a few headline numbers, to see what moved and by how much, and a hash of each part of its results.
//! Configuration is no part of them, nor are commit, format version and facts about the workload in words. Each run also leaves its results
//! as lines of `key = value` in `target/tmp/golden/`: `diff` those of two commits to see every number that moved.
//!
//! Results change on purpose only. Then record them again, and commit `golden.toml` with a message that says what moved and why:
//!
//!     BATON_RECORD=1 cargo test -p baton --profile ci --test golden
//!
//! With a part of a run's name at the end only the runs that have it in their names are recorded.

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

/// New records, by the names of their runs.
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
                let mut new = new.lock().expect("nobody panics while holding it");
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

/// A test that no record is of a run that is no more.
fn all_are_run(records: &Records, runs: BTreeSet<String>) -> Trial {
    let records: BTreeSet<String> = records.keys().cloned().collect();
    Trial::test("all records are of runs", move || {
        assert_eq!(records, runs, "recorded, and run");
        Ok(())
    })
}

/// Runs it, and sees that it does what it is there for.
fn results(run: &Run) -> Result<Recorded, Failed> {
    let lines = Lines::of(&(run.results)()?);
    lines.keep(&run.name);
    let exercised = exercised::of(&run.name);
    for key in exercised {
        let number = lines.number(key).unwrap_or(0.0);
        if number <= 0.0 {
            return Err(format!("the run is there for {key}, which is {number}").into());
        }
    }
    Ok(Recorded {
        headline: lines.headline(exercised),
        hash: lines.hashes(),
    })
}

/// Says which parts differ from the record, and how the headline moved.
fn compare(run: &Run, found: &Recorded, recorded: Option<&Recorded>) -> Result<(), Failed> {
    let recorded = recorded.ok_or("there is no record of this run")?;
    let moved = differing(&recorded.hash, &found.hash);
    if moved.is_empty() {
        // Hashes are equal, so a headline that differs was edited.
        assert_eq!(recorded.headline, found.headline, "headline numbers");
        return Ok(());
    }
    let mut text = format!("the results have moved in {}\n", moved.join(", "));
    let keys = recorded.headline.keys().chain(found.headline.keys());
    for key in keys.collect::<BTreeSet<_>>() {
        let (was, is) = (recorded.headline.get(key), found.headline.get(key));
        text += &format!("    {key}: {}\n", digest::change(was, is));
    }
    let path = Lines::path(&run.name);
    text += &format!("    all of them: {}", path.display());
    Err(text.into())
}

/// The keys whose values are not the same in both.
fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |key: &&String| one.get(*key) != other.get(*key);
    keys.into_iter().filter(differs).cloned().collect()
}
