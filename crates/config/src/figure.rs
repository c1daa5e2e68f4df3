//! `[figure]`: the figures of a study.

use super::keys;
use super::report::{self, Places};
use super::source::{Diagnostic, Sources};
use super::study::file_name;
use super::sweep::Sweep;
use super::tree::{Node, Value};
use baton_study::table::metrics::Metric;

/// A figure of a study: metrics over a swept key, with a line for each combination of the other keys; bars for each variant; or a stack of
/// parts for each point.
#[derive(Clone, Debug)]
pub struct FigurePlan {
    /// Name that distinguishes the figure from other figures of the study.
    pub name: Option<String>,
    /// Title above the figure.
    pub title: String,
    /// Key on the horizontal axis; `None` if that axis shows the variants or all points.
    pub x: Option<String>,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis of stacks.
    pub y_label: Option<String>,
    /// Metrics with a panel each; for stacks, the parts from below.
    pub y: Vec<&'static Metric>,
    /// Whether a stack is drawn for each point.
    pub stacks: bool,
    /// Swept keys that distinguish lines, besides the variant.
    pub series: Vec<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axes are logarithmic.
    pub log_y: bool,
    /// Numbers of the conditions that choose the points to draw, and the points to compare with.
    pub(super) only: Option<usize>,
    pub(super) beside: Option<usize>,
    /// The points to draw, once they are known.
    pub points: Vec<usize>,
    /// The point that each point is compared with. If empty, values are drawn instead of differences or, for stacks, percentages of the
    /// other point's total.
    pub against: Vec<Option<usize>>,
}

const KEYS: [&str; 10] = [
    "name", "title", "x", "y", "parts", "y_label", "log_x", "log_y", "only", "against",
];

impl FigurePlan {
    /// Reads a figure of the study `name`.
    ///
    /// # Errors
    /// Fails if the figure cannot be drawn.
    pub fn read(
        sources: &Sources,
        node: &Node,
        name: &str,
        sweep: &Sweep,
        places: &mut Places,
    ) -> Result<Self, Diagnostic> {
        report::only(sources, node, &KEYS, "[figure]")?;
        let place = |key: &str| node.get(key).map_or(&node.origin, |node| &node.origin);
        let wrong = |key: &str, expected: &str| {
            sources.diagnose(place(key), format!("figure.{key}: expected {expected}"))
        };
        let swept: Vec<&str> = sweep.keys().map(|(path, _)| path.as_str()).collect();
        let parts = node.get("parts");
        let x = match (parts, node.get("x").or(node.get("y"))) {
            (None, _) => node.get("x").and_then(Node::string),
            (Some(_), None) => Some(VARIANTS),
            (Some(parts), Some(_)) => {
                let message = "figure.parts: parts are drawn for each point; expected neither x nor y with them";
                return Err(sources.diagnose(&parts.origin, message));
            }
        };
        let Some(x) = x.filter(|x| *x == VARIANTS || swept.contains(x)) else {
            let expected = format!("a key that is swept: {}; or {VARIANTS:?}", swept.join(", "));
            return Err(wrong("x", &expected));
        };
        let text = |key: &str| match node.get(key).map(Node::string) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text.to_owned())),
            Some(None) => Err(wrong(key, "a text")),
        };
        let switch = |key: &str| match node.get(key).map(|node| &node.value) {
            None => Ok(false),
            Some(Value::Boolean(truth)) => Ok(*truth),
            Some(_) => Err(wrong(key, "true or false")),
        };
        // Keys that are zipped with the key of the axis carry the same information.
        let others = sweep.axes.iter().filter(|axis| !axis.has(x));
        let unit = keys::all().iter().find(|key| key.path == x);
        let unit = unit.and_then(|key| key.unit.as_deref());
        Ok(Self {
            name: text("name")?.map(|name| file_name(&name)),
            title: text("title")?.unwrap_or_else(|| name.to_owned()),
            x: (x != VARIANTS).then(|| x.to_owned()),
            x_label: unit.map_or(x.to_owned(), |unit| format!("{x}, {unit}")),
            y_label: text("y_label")?,
            y: match parts {
                None => report::metrics(sources, node, "figure.y", node.get("y"))?,
                parts => report::metrics(sources, node, "figure.parts", parts)?,
            },
            stacks: parts.is_some(),
            series: others.map(|axis| axis.keys[0].0.clone()).collect(),
            log_x: switch("log_x")?,
            log_y: switch("log_y")?,
            only: places.read(sources, node.get("only"))?,
            beside: places.read(sources, node.get("against"))?,
            points: Vec::new(),
            against: Vec::new(),
        })
    }
}

/// Name of the horizontal axis of bars.
const VARIANTS: &str = "name";
