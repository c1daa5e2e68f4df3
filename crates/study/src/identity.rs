//! Identification of a run by all that determines its result.

use crate::error::StoreError;
use crate::inputs::Inputs;
use crate::key::{Digest, Key};
use baton_sim::config::{Experiment, WorkloadConfig};
use std::path::PathBuf;

/// Returns the key of a run. It depends on the run's complete configuration, the content of its log (but not its path), and the program
/// that would execute it, `sources`. The experiment's name has no influence; the key replaces it, so that equal runs have equal results.
///
/// # Errors
/// The log cannot be read.
pub fn identify(
    experiment: &mut Experiment,
    sources: &str,
    inputs: &mut Inputs<'_>,
) -> Result<Key, StoreError> {
    experiment.name.clear();
    let mut log = PathBuf::new();
    let mut content = None;
    if let WorkloadConfig::Log { path, .. } = &mut experiment.workload {
        content = Some(inputs.digest(path)?);
        std::mem::swap(path, &mut log);
    }
    let json = serde_json::to_vec(&*experiment).expect("an experiment is JSON");
    if let WorkloadConfig::Log { path, .. } = &mut experiment.workload {
        *path = log;
    }
    let digest = Digest::new().part(sources.as_bytes()).part(&json);
    let digest = content.iter().fold(digest, |digest, key| {
        digest.part(key.to_string().as_bytes())
    });
    let key = digest.key();
    experiment.name = key.short();
    Ok(key)
}
