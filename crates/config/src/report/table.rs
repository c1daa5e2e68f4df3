//! `[table]`: the table of a study's points.

use super::{Form, Places};
use crate::source::{Diagnostic, Sources};
use crate::tree::{Node, Value};
use baton_study::table::metrics::Metric;

/// Columns of the table, besides the published numbers.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Text above the table.
    pub title: Option<String>,
    /// Text below the table.
    pub note: Option<String>,
    /// Metrics, in order.
    pub metrics: Vec<&'static Metric>,
    /// Metrics that are also compared with another point; by default the first.
    pub compared: Vec<&'static Metric>,
    /// Number of the condition for the point that the metrics are compared with.
    pub(super) beside: Option<usize>,
    /// The point that each point is compared with, once the points are known.
    pub against: Vec<Option<usize>>,
    /// Form of the comparison.
    pub form: Form,
}

const KEYS: [&str; 6] = ["title", "note", "metrics", "compared", "against", "as"];

impl TablePlan {
    /// Returns whether a metric is also compared with another point.
    pub fn is_compared(&self, metric: &Metric) -> bool {
        self.compared.iter().any(|one| one.name == metric.name)
    }

    /// Reads `[table]`.
    ///
    /// # Errors
    /// Fails if the table is not valid.
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
                "table.compared: {} is not in `metrics`; expected metrics that are",
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
