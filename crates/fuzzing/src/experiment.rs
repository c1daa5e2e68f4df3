//! Experiment files: TOML that users write.

use baton_config::{Failure, Request, plan};
use std::io::Write;

/// Plans the input as an experiment file. The file must be accepted, or rejected as bad input with a message that names it.
pub fn experiment(data: &[u8]) {
    let mut file = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a temporary file can be made");
    file.write_all(data)
        .expect("a temporary file can be written");
    let request = Request {
        experiment: file.path().display().to_string(),
        ..Request::default()
    };
    match plan(&request) {
        Ok(plan) => assert!(!plan.runs.is_empty(), "a plan has a run"),
        Err(Failure::BadInput(message)) => {
            assert!(message.contains(".toml"), "{message:?} names the file");
        }
        Err(other) => panic!("expected BadInput as the only kind of failure, got {other}"),
    }
}
