//! Excerpts of public logs, which are not part of this project. They are in the folder that `BATON_DATA` names, or in `shared/data` next to the
//! workspace.

use std::path::PathBuf;

/// Returns the path of an excerpt, whether it exists or not.
pub fn path(name: &str) -> PathBuf {
    let folder = match std::env::var_os("BATON_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    folder.join(name)
}

/// Returns why a test that needs these excerpts cannot run, for the list of tests, or `None` if all exist. Also prints the reason, because a quiet
/// list does not contain it.
pub fn missing(names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !path(name).is_file())?;
    eprintln!(
        "ignored: a test that needs {missing}; set BATON_DATA to the folder of the public logs"
    );
    Some(format!("BATON_DATA has no {missing}"))
}
