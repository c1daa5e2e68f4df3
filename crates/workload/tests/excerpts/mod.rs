//! Public logs, which are no part of this project: in the folder that `BATON_DATA` names, or in `shared/data` beside the workspace.

use std::path::PathBuf;

/// The path of an excerpt, whether it is there or not.
pub fn path(name: &str) -> PathBuf {
    let folder = match std::env::var_os("BATON_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    folder.join(name)
}

/// Why a test that needs these cannot run, in words for the list of tests; `None` if all are there. Says so at once, too: a quiet list
/// has no words.
pub fn missing(names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !path(name).is_file())?;
    eprintln!(
        "ignored: a test that needs {missing}; set BATON_DATA to the folder of the public logs"
    );
    Some(format!("BATON_DATA has no {missing}"))
}
