//! `[figure]`: what to draw of a study.

use super::keys;
use super::source::{Diagnostic, Sources};
use super::suggest;
use super::sweep::Sweep;
use super::tree::{Node, Value};
use baton_study::table::metrics::{self, Metric};

/// What to draw of a study: metrics over a key that is swept, with a line for each value of the other keys.
#[derive(Clone, Debug)]
pub struct FigurePlan {
    /// Above it.
    pub title: String,
    /// The key of the horizontal axis.
    pub x: String,
    /// Below that.
    pub x_label: String,
    /// A panel for each.
    pub y: Vec<&'static Metric>,
    /// Swept keys that tell lines apart, beside the variant.
    pub series: Vec<String>,
    /// Whether the horizontal axis is one of logarithms.
    pub log_x: bool,
    /// Whether the vertical ones are.
    pub log_y: bool,
}

const KEYS: [&str; 5] = ["title", "x", "y", "log_x", "log_y"];

impl FigurePlan {
    /// Reads `[figure]` of a study of this name.
    ///
    /// # Errors
    /// It cannot be drawn.
    pub fn read(
        sources: &Sources,
        node: &Node,
        name: &str,
        sweep: &Sweep,
    ) -> Result<Self, Diagnostic> {
        for (key, entry) in node.table().into_iter().flatten() {
            if !KEYS.contains(&key.as_str()) {
                let known = KEYS.join(", ");
                let message = format!("unknown key `{key}` in [figure]; expected one of {known}");
                return Err(sources.diagnose(&entry.key, message));
            }
        }
        let place = |key: &str| node.get(key).map_or(&node.origin, |node| &node.origin);
        let wrong = |key: &str, expected: &str| {
            sources.diagnose(place(key), format!("figure.{key}: expected {expected}"))
        };
        let swept: Vec<&str> = sweep.keys().map(|(path, _)| path.as_str()).collect();
        let x = node.get("x").and_then(Node::string);
        let Some(x) = x.filter(|x| swept.contains(x)) else {
            let expected = format!("a key that is swept: {}", swept.join(", "));
            return Err(wrong("x", &expected));
        };
        let title = match node.get("title").map(Node::string) {
            None => name,
            Some(Some(title)) => title,
            Some(None) => return Err(wrong("title", "a text")),
        };
        let switch = |key: &str| match node.get(key).map(|node| &node.value) {
            None => Ok(false),
            Some(Value::Boolean(truth)) => Ok(*truth),
            Some(_) => Err(wrong(key, "true or false")),
        };
        // Keys that are zipped with that of the axis say the same as it does.
        let others = sweep.axes.iter().filter(|axis| !axis.has(x));
        let unit = keys::all().iter().find(|key| key.path == x);
        let unit = unit.and_then(|key| key.unit.as_deref());
        Ok(Self {
            title: title.to_owned(),
            x: x.to_owned(),
            x_label: unit.map_or(x.to_owned(), |unit| format!("{x}, {unit}")),
            y: metrics(sources, node)?,
            series: others.map(|axis| axis.keys[0].0.clone()).collect(),
            log_x: switch("log_x")?,
            log_y: switch("log_y")?,
        })
    }
}

/// What `y` names: a metric, or a list of them.
fn metrics(sources: &Sources, figure: &Node) -> Result<Vec<&'static Metric>, Diagnostic> {
    let metric = |node: &Node| {
        let found = node.string().unwrap_or_default();
        metrics::find(found).ok_or_else(|| {
            let meant = suggest::name(found, metrics::ALL.iter().map(|metric| metric.name));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let message =
                format!("figure.y: expected a column that `baton list columns` shows{meant}");
            sources.diagnose(&node.origin, message)
        })
    };
    match figure.get("y") {
        Some(Node {
            value: Value::Array(items),
            ..
        }) if !items.is_empty() => items.iter().map(metric).collect(),
        y => Ok(vec![metric(y.unwrap_or(figure))?]),
    }
}
