//! `[[published]]`: published numbers and their points in the study.

use super::form::{self, Form, Tolerance};
use super::{Places, metric};
use crate::source::{Diagnostic, Origin, Sources};
use crate::tree::{Node, Value};
use baton_study::table::metrics::Metric;

baton_named::named! {
    /// What the model knew of a number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Status {
        /// Constants were fitted to the number.
        Given => "given",
        /// Nothing was fitted to the number.
        Predicted => "predicted",
        /// Nothing was fitted to the number, and the model had predicted it before its developers knew it.
        PredictedBefore => "predicted-before",
        /// The user measured the number.
        Measured => "measured",
    }
}

impl Status {
    /// Kinds that study files may name.
    const NAMED: [Self; 3] = [Self::Given, Self::Predicted, Self::PredictedBefore];

    /// Kinds that constants may be fitted to, which excludes predictions.
    pub(super) const FITTED: [Self; 2] = [Self::Given, Self::Measured];
}

/// A number before the points of the study are known.
#[derive(Clone, Debug)]
pub struct Draft {
    pub origin: Origin,
    pub source: String,
    pub status: Status,
    pub metric: &'static Metric,
    pub form: Form,
    pub value: f64,
    pub tolerance: Option<Tolerance>,
    /// Numbers of the conditions for the number's point, and for the point that it is compared with.
    pub at: Option<usize>,
    pub against: Option<usize>,
}

/// Points of the values, by the numbers of conditions.
enum Points {
    One(Option<usize>),
    Several(Vec<Option<usize>>),
}

impl Points {
    /// Returns the values of a metric, each with its point.
    fn values<'a>(
        &self,
        sources: &Sources,
        node: &'a Node,
    ) -> Result<Vec<(&'a Node, Option<usize>)>, Diagnostic> {
        match (self, &node.value) {
            (Self::One(point), _) => Ok(vec![(node, *point)]),
            (Self::Several(points), Value::Array(values)) if values.len() == points.len() => {
                let values = values.iter().zip(points.iter().copied());
                Ok(values
                    .filter(|(value, _)| value.string() != Some("-"))
                    .collect())
            }
            (Self::Several(points), _) => {
                let message = format!(
                    "expected {} values in a list, one for each point of `at`, or \"-\"",
                    points.len()
                );
                Err(sources.diagnose(&node.origin, message))
            }
        }
    }
}

const KEYS: [&str; 6] = ["source", "status", "at", "against", "values", "tolerance"];

/// Reads one table of `[[published]]`, or a line of the user's measurements, which already has a status.
///
/// # Errors
/// Fails if the table is not valid.
pub fn read(
    sources: &Sources,
    node: &Node,
    status: Option<Status>,
    places: &mut Places,
) -> Result<Vec<Draft>, Diagnostic> {
    super::only(sources, node, &KEYS, "[[published]]")?;
    let wrong = |key: &str, expected: &str| {
        let place = node.get(key).map_or(&node.origin, |node| &node.origin);
        sources.diagnose(place, format!("published.{key}: expected {expected}"))
    };
    let text = |key: &str| node.get(key).and_then(Node::string);
    let source = text("source")
        .ok_or_else(|| wrong("source", "where it is published, as source = \"Table 1\""))?;
    let named = || {
        let name = text("status");
        let mut all = Status::NAMED.into_iter();
        all.find(|status| Some(status.name()) == name)
    };
    let status = status.or_else(named).ok_or_else(|| {
        wrong(
            "status",
            "\"given\" (fitted to), \"predicted\" or \"predicted-before\" (predicted before it was known)",
        )
    })?;
    let at = match node.get("at").map(|node| &node.value) {
        Some(Value::Array(points)) => {
            let points = points.iter();
            let points = points.map(|point| places.read(sources, Some(point)));
            Points::Several(points.collect::<Result<_, _>>()?)
        }
        _ => Points::One(places.read(sources, node.get("at"))?),
    };
    let against = places.read(sources, node.get("against"))?;
    let common = node.get("tolerance");
    let common = common
        .map(|node| form::tolerance(sources, node))
        .transpose()?;
    let values = node.get("values").and_then(Node::table);
    let values = values.filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| {
        wrong(
            "values",
            "a table of metrics, as values = { request_rate_per_s = 23031 }",
        )
    })?;
    let mut drafts = Vec::with_capacity(values.len());
    for (name, entry) in values {
        let metric = metric(sources, "published.values", name, &entry.key)?;
        let own = entry.node.table().is_some();
        if own {
            super::only(sources, &entry.node, &["value", "tolerance"], name)?;
        }
        let value = if own { entry.node.get("value") } else { None };
        let tolerance = if own {
            entry.node.get("tolerance")
        } else {
            None
        };
        let tolerance = tolerance
            .map(|node| form::tolerance(sources, node))
            .transpose()?;
        for (value, at) in at.values(sources, value.unwrap_or(&entry.node))? {
            let (form, number) = form::value(sources, value, against.is_some())?;
            drafts.push(Draft {
                origin: entry.key.clone(),
                source: source.to_owned(),
                status,
                metric,
                form,
                value: number,
                tolerance: tolerance.or(common),
                at,
                against,
            });
        }
    }
    drafts.sort_by_key(|draft| sources.start(&draft.origin));
    Ok(drafts)
}
