//! Sequences of socket calls give the same results in the kernel, preloaded, and with connections that move.

use baton_sequences::Sequence;
use baton_sequences::compare::{Difference, MOST_FAILURES, Place, Report, WAYS, compare};
use baton_testkit::needs::{self, Need};
use libtest_mimic::Arguments;
use std::path::{Path, PathBuf};

/// Number of random sequences, unless `BATON_SEQUENCES` specifies another one; those in the corpus always run.
const SEQUENCES: u64 = 60;
/// Sequences that run in one batch.
const BATCH: usize = 2000;

fn main() {
    needs::run(
        &Arguments::from_args(),
        Need::Root,
        &[(
            "sequences of calls have the same results as in the kernel",
            differ_nowhere,
        )],
    );
}

/// Returns the path of the program `baton`: next to this crate's program, unless `BATON` names it.
fn baton() -> PathBuf {
    if let Some(named) = std::env::var_os("BATON") {
        return named.into();
    }
    let own = Path::new(env!("CARGO_BIN_EXE_baton-sequences"));
    let found = own.with_file_name("baton");
    assert!(
        found.exists(),
        "{} does not exist: build baton, or set BATON to its path",
        found.display()
    );
    found
}

/// Returns the sequence that was named, or those of a range of seeds, or else the corpus and the first seeds.
fn sequences() -> Vec<Sequence> {
    let corpus = include_str!("corpus")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let mut sequences: Vec<Sequence> = corpus
        .map(|line| line.parse().expect("a sequence"))
        .collect();
    if let Ok(text) = std::env::var("BATON_SEQUENCE") {
        return vec![text.parse().expect("a sequence")];
    }
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().expect("a number"))
    };
    let count = number("BATON_SEQUENCES");
    if let Some(seed) = number("BATON_SEED") {
        return (seed..seed + count.unwrap_or(1))
            .map(Sequence::of_seed)
            .collect();
    }
    sequences.extend((0..count.unwrap_or(SEQUENCES)).map(Sequence::of_seed));
    sequences
}

fn tell((sequence, difference): &(Sequence, Difference)) {
    println!(
        "{sequence}\n    {:?}, {}: in the kernel {}, here {}",
        difference.way, difference.call, difference.kernel, difference.here
    );
    println!(
        "    replay with: BATON_SEQUENCE='{sequence}' cargo test -p baton-sequences --test sequences"
    );
}

fn differ_nowhere() {
    let place =
        Place::make(&baton(), Path::new(env!("CARGO_BIN_EXE_baton-sequences"))).expect("a place");
    let mut report = Report::default();
    let sequences = sequences();
    for batch in sequences.chunks(BATCH) {
        let known = report.failures.len();
        compare(&place, batch, &WAYS, &mut report).expect("they run");
        report.failures[known..].iter().for_each(tell);
        if report.failures.len() >= MOST_FAILURES {
            break;
        }
    }
    let (there, back) = place.moves().expect("the adapter counts");
    println!(
        "{} sequences, {there} moves to the adapter and {back} back; differences: documented {:?}, not reproduced {}, like those printed {}",
        report.count, report.documented, report.unsteady, report.repeated
    );
    assert!(
        report.failures.is_empty(),
        "{} sequences differ",
        report.failures.len()
    );
    assert!(sequences.len() < 50 || there > 0, "connections moved");
}
