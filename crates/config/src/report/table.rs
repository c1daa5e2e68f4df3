//! `[table]`: what to print of each point of a study.

use super::{Form, Places};
use crate::source::{Diagnostic, Sources};
use crate::tree::{Node, Value};
use baton_study::table::metrics::Metric;

/// What to print of each point, beside what is published of it.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Above it.
    pub title: Option<String>,
    /// Below it.
    pub note: Option<String>,
    /// In this order.
    pub metrics: Vec<&'static Metric>,
    /// Those of which it is also said how they differ from another point: the first, where nobody says which.
    pub compared: Vec<&'static Metric>,
    /// The point that they are compared with, as the condition of this number says.
    pub(super) beside: Option<usize>,
    /// The same by points, when these are known.
    pub against: Vec<Option<usize>>,
    /// How they are compared.
    pub form: Form,
}

const KEYS: [&str; 6] = ["title", "note", "metrics", "compared", "against", "as"];

impl TablePlan {
    /// Whether it is also said how a metric differs from another point.
    pub fn is_compared(&self, metric: &Metric) -> bool {
        self.compared.iter().any(|one| one.name == metric.name)
    }

    /// Reads `[table]`.
    ///
    /// # Errors
    /// It does not say what it must.
    pub(super) fn read(
        sources: &Sources,
        node: &Node,
        places: &mut Places,
    ) -> Result<Self, Diagnostic> {
        super::only(sources, node, &KEYS, "[table]")?;
        let text = |key: &str| match node.get(key) {
            None => Ok(None),
            Some(Node {
                value: Value::String(text),
                ..
            }) => Ok(Some(text.trim().to_owned())),
            Some(other) => {
                Err(sources.diagnose(&other.origin, format!("table.{key}: expected a text")))
            }
        };
        let form = match (text("as")?.as_deref(), node.get("as")) {
            (None | Some("percent"), _) => Form::Percent,
            (Some("ratio"), _) => Form::Ratio,
            (Some(_), other) => {
                let place = other.map_or(&node.origin, |other| &other.origin);
                return Err(sources.diagnose(place, "table.as: expected \"percent\" or \"ratio\""));
            }
        };
        let metrics = super::metrics(sources, node, "table.metrics", node.get("metrics"))?;
        let compared = match node.get("compared") {
            None => vec![metrics[0]],
            compared => super::metrics(sources, node, "table.compared", compared)?,
        };
        let is_shown = |one: &&Metric| metrics.iter().any(|metric| metric.name == one.name);
        if let Some(other) = compared.iter().find(|one| !is_shown(one)) {
            let place = node.get("compared").unwrap_or(node);
            let message = format!(
                "table.compared: {} is none of `metrics`; expected some of them",
                other.name
            );
            return Err(sources.diagnose(&place.origin, message));
        }
        Ok(Self {
            title: text("title")?,
            note: text("note")?,
            metrics,
            compared,
            beside: places.read(sources, node.get("against"))?,
            against: Vec::new(),
            form,
        })
    }
}
