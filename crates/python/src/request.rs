//! Converts requests from Python to requests that an experiment is planned from.

use crate::failure::{bad_input, raise};
use baton_config::{Request, Setting};
use pyo3::prelude::*;
use std::path::PathBuf;

/// An experiment or a study, by location or text, and changes to it.
#[derive(FromPyObject)]
pub struct Asked {
    /// A path, the name of an experiment that ships with Baton, or a shorthand; with `text`, the name used in errors.
    name: String,
    /// Content of a file.
    text: Option<String>,
    /// Paths of keys, and their values as TOML.
    settings: Vec<(String, String)>,
    profile: Option<String>,
    log: Option<PathBuf>,
    variants: Vec<String>,
}

impl Asked {
    /// Returns the equivalent of a request on the command line.
    pub fn request(self) -> Request {
        let settings = self.settings.iter();
        let settings = settings.map(|(path, value)| Setting::of_set(path, value));
        Request {
            experiment: self.name,
            text: self.text,
            settings: settings.collect(),
            profile: self.profile,
            log: self.log,
            variants: self.variants,
            ..Request::default()
        }
    }

    /// Returns the only experiment of a request for one run.
    pub fn experiment(self) -> PyResult<(baton_sim::config::Experiment, Vec<String>)> {
        let request = self.request();
        let mut plan = baton_config::plan(&request).map_err(raise)?;
        let without_effect = plan.without_effect();
        let notes = [plan.notes, without_effect].concat();
        if plan.runs.len() > 1 {
            let names = plan.runs.iter().map(|run| run.experiment.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(bad_input(format!(
                "{}: has the variants {names}; expected one of them as `variant`",
                request.experiment
            )));
        }
        let mut run = plan.runs.remove(0);
        run.measure_long_enough();
        Ok((run.experiment, notes))
    }
}
