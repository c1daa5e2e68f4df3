//! A store keeps each result exactly once, whatever processes use it and however they end.

use baton_study::{
    Claim, Digest, Ended, Head, Key, Outcome, Patience, Status, Store, StoreError, Study, StudyRun,
    carry_out, collect_garbage, merge,
};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Short times between signs of life, and until a process counts as dead.
const HASTY: Patience = Patience {
    renew_every: Duration::from_millis(10),
    dead_after: Duration::from_millis(200),
};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn open(folder: &TempDir) -> Store {
    Store::open(folder.path(), HASTY).expect("a store")
}

fn key(number: usize) -> Key {
    Digest::new().part(&number.to_le_bytes()).key()
}

/// Returns the outcome of a run that failed. It has no results, but the store keeps it like any other.
fn outcome(number: usize) -> Outcome {
    Outcome::Failed(format!("run {number}"))
}

fn put(store: &Store, number: usize) {
    let outcome = outcome(number);
    let head = Head::new(key(number), "test", 0.5, &outcome);
    store.put(&head, &outcome).expect("it can be stored");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect()
}

fn is_mine(claim: &Claim) -> bool {
    matches!(claim, Claim::Mine(_))
}

#[test]
fn several_processes_do_each_run_once() {
    let folder = folder();
    let keys: Vec<Key> = (0..150).map(key).collect();
    let times: Vec<AtomicUsize> = keys.iter().map(|_| AtomicUsize::new(0)).collect();
    let process = || {
        let store = open(&folder);
        let run = |number: usize| {
            times[number].fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_micros(200));
            Ok::<Outcome, StoreError>(outcome(number))
        };
        carry_out(&store, &keys, "test", 2, &|| false, &run).expect("all runs are done")
    };
    let done = thread::scope(|scope| {
        let processes: Vec<_> = (0..3).map(|_| scope.spawn(process)).collect();
        let done = processes
            .into_iter()
            .map(|process| process.join().expect("the thread ends"));
        done.collect::<Vec<usize>>()
    });
    assert!(times.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    assert_eq!(done.iter().sum::<usize>(), keys.len());
    let store = open(&folder);
    for (number, key) in keys.iter().enumerate() {
        assert_eq!(
            store.head(*key).expect("is there").error,
            Some(format!("run {number}"))
        );
    }
    for left in ["leases", "parts"] {
        assert_eq!(names(&folder.path().join(left)), [""; 0], "{left}");
    }
}

#[test]
fn runs_of_a_dead_process_are_taken_over_at_once() {
    let folder = folder();
    let dead = open(&folder);
    let lease = dead.claim(key(1)).expect("can be claimed");
    assert!(is_mine(&lease));
    let other = open(&folder);
    assert!(matches!(other.claim(key(1)), Ok(Claim::Held(_))));
    let workers = Status::of(&other).expect("can be read").workers;
    assert_eq!(
        (workers.len(), workers[0].lives, workers[0].runs.as_slice()),
        (1, true, &[key(1)][..])
    );
    // The lease of the dead process remains, but no process holds its lock.
    std::mem::forget(lease);
    drop(dead);
    let taken = other.claim(key(1)).expect("can be claimed");
    assert!(is_mine(&taken));
    let third = open(&folder);
    assert!(
        matches!(third.claim(key(1)), Ok(Claim::Held(_))),
        "the process that took the run over holds it"
    );
    put(&other, 1);
    let Claim::Mine(lease) = taken else {
        unreachable!("the claim succeeded")
    };
    lease.end().expect("can be ended");
    assert!(matches!(third.claim(key(1)), Ok(Claim::Done)));
    assert_eq!(names(&folder.path().join("leases")), [""; 0]);
}

#[test]
fn a_released_lease_can_be_taken() {
    let folder = folder();
    let (one, other) = (open(&folder), open(&folder));
    drop(one.claim(key(1)));
    assert!(is_mine(&other.claim(key(1)).expect("can be claimed")));
}

#[test]
fn a_process_on_another_host_is_alive_while_it_updates_its_file() {
    let folder = folder();
    let store = open(&folder);
    let lease = folder.path().join("leases").join(format!("{}.0", key(1)));
    let elsewhere = r#"{"id":"far-1-2","host":"far","system":"another","process":1,"began_s":1}"#;
    fs::write(&lease, elsewhere).expect("a file");
    let file = File::options().write(true).open(&lease).expect("a file");
    for _ in 0..8 {
        let Ok(Claim::Held(owner)) = store.claim(key(1)) else {
            panic!("the other process is alive")
        };
        assert_eq!(owner.host, "far");
        thread::sleep(HASTY.dead_after / 4);
        file.set_modified(SystemTime::now())
            .expect("the time can be set");
    }
    assert!(matches!(store.claim(key(1)), Ok(Claim::Held(_))));
    thread::sleep(HASTY.dead_after * 2);
    assert!(is_mine(&store.claim(key(1)).expect("can be claimed")));
}

#[test]
fn a_failure_ends_the_other_runs_and_is_retried() {
    let folder = folder();
    let store = open(&folder);
    let keys: Vec<Key> = (0..10).map(key).collect();
    let fails = AtomicBool::new(true);
    let run = |number: usize| match number {
        4 if fails.load(Ordering::Relaxed) => Err(StoreError::Other {
            path: "log".into(),
            found: "nothing".to_owned(),
            expected: "a log",
        }),
        _ => Ok(outcome(number)),
    };
    let all = |store| carry_out(store, &keys, "test", 1, &|| false, &run);
    assert!(matches!(
        all(&store),
        Err(Ended::Failed(StoreError::Other { .. }))
    ));
    assert_eq!(keys.iter().filter(|key| store.has(**key)).count(), 4);
    fails.store(false, Ordering::Relaxed);
    assert!(matches!(all(&store), Ok(6)));
    let stopped = carry_out(&store, &[key(99)], "test", 1, &|| true, &run);
    assert!(matches!(stopped, Err(Ended::Stopped)));
    assert!(!store.has(key(99)));
}

#[test]
fn partly_written_files_of_dead_processes_are_removed() {
    let folder = folder();
    let store = open(&folder);
    let parts = folder.path().join("parts");
    let living = &names(&folder.path().join("workers"))[0];
    fs::write(parts.join(format!("{living}.abc.part")), "half").expect("a file");
    fs::write(parts.join("host-1-2.abc.part"), "half").expect("a file");
    drop(open(&folder));
    assert_eq!(names(&parts), [format!("{living}.abc.part")]);
    drop(store);
}

fn study(name: &str, runs: std::ops::Range<usize>) -> Study {
    let run = |number| StudyRun {
        key: key(number),
        variant: None,
        seed: 1,
        values: Vec::new(),
    };
    Study {
        name: name.to_owned(),
        columns: Vec::new(),
        runs: runs.map(run).collect(),
        command: None,
    }
}

#[test]
fn results_of_several_folders_are_merged() {
    let (here, there) = (folder(), folder());
    let (ours, theirs) = (open(&here), open(&there));
    study("s", 0..6).save(&theirs).expect("it can be stored");
    (0..4).for_each(|number| put(&ours, number));
    (2..6).for_each(|number| put(&theirs, number));
    let odd = Outcome::Failed("another reason".to_owned());
    theirs
        .put(&Head::new(key(3), "test", 1.0, &odd), &odd)
        .expect("it can be stored");
    let merged = merge(there.path(), &ours).expect("can be merged");
    assert_eq!((merged.new, merged.same, merged.studies), (2, 1, 1));
    assert_eq!(merged.different, [key(3)]);
    assert_eq!(
        ours.head(key(3)).expect("is there").error.as_deref(),
        Some("run 3")
    );
    let status = Status::of(&ours).expect("can be read");
    let s = &status.studies[0];
    assert_eq!(
        (status.runs, s.runs, s.done, s.failed, s.took_s),
        (6, 6, 6, 6, 3.0)
    );
}

#[test]
fn runs_that_no_study_uses_can_be_removed() {
    let folder = folder();
    let store = open(&folder);
    study("s", 0..3).save(&store).expect("it can be stored");
    (0..5).for_each(|number| put(&store, number));
    let dead = open(&folder);
    std::mem::forget(dead.claim(key(9)));
    let worker = names(&folder.path().join("workers"));
    drop(dead);
    let counted = collect_garbage(&store, true).expect("can be read");
    assert_eq!((counted.runs, counted.leases), (2, 1));
    assert!(counted.bytes > 0 && store.has(key(4)));
    assert_eq!(
        collect_garbage(&store, false).expect("can be removed"),
        counted
    );
    assert!(store.has(key(2)) && !store.has(key(3)) && !store.has(key(4)));
    assert_eq!(names(&folder.path().join("leases")), [""; 0]);
    let again = collect_garbage(&store, false).expect("can be read");
    assert_eq!(
        (again.runs, again.leases, again.workers),
        (0, 0, 0),
        "{worker:?}"
    );
}

#[test]
fn a_folder_with_other_content_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("mine.txt"), "x").expect("a file");
    let refused = Store::open(folder.path(), HASTY).expect_err("the folder is not a store");
    assert!(
        refused
            .to_string()
            .contains("has no results of `baton sweep`"),
        "{refused}"
    );
    assert_eq!(names(folder.path()), ["mine.txt"]);
    let missing = Store::check(&folder.path().join("none")).expect_err("the folder does not exist");
    assert!(
        missing.to_string().contains("there is no such folder"),
        "{missing}"
    );
}
