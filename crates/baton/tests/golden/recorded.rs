//! Reads and writes the file of recorded results, `golden.toml`.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Recorded results by the names of their runs.
pub type Records = BTreeMap<String, Recorded>;

/// The record of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// A few numbers that show people what changed.
    pub headline: BTreeMap<String, toml::Value>,
    /// The hash of each part of the results.
    pub hash: BTreeMap<String, String>,
}

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/golden.toml");

const HEAD: &str = "\
# Results of the runs in `runs/`, written by the test `golden`. They change on purpose only, in a commit that says what moved and why:
#
#   BATON_RECORD=1 cargo test -p baton --profile ci --test golden
#
# Headlines are for people; hashes are what is compared, one for each part of the results.

";

/// Returns all records, or none if there is no file yet.
pub fn read() -> Records {
    match std::fs::read_to_string(PATH) {
        Ok(text) => toml::from_str(&text).unwrap_or_else(|error| panic!("{PATH}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Records::new(),
        Err(error) => panic!("{PATH}: {error}"),
    }
}

/// Writes the file. `new` records replace old ones, and records of runs that no longer exist are dropped.
pub fn write(mut records: Records, new: Records, runs: &BTreeSet<String>) {
    records.extend(new);
    records.retain(|name, _| runs.contains(name));
    let text = toml::to_string(&records).expect("records are TOML");
    std::fs::write(PATH, format!("{HEAD}{text}")).expect("the file can be written");
}
