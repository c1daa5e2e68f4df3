//! The user's measurements: a CSV file of metrics and values.

use super::{Places, published};
use crate::failure::Failure;
use crate::source::{Kind, Sources};
use crate::tree::{Node, Value};
use std::fs;
use std::path::Path;

const EXPECTED: &str = "expected a table (CSV) with the columns `metric` and `value`, and a column for everything else that identifies \
                        a point of the study: `variant`, and keys that are swept";

/// Reads the file. Besides `metric` and `value`, it may have the columns `tolerance`, `source`, `variant`, `against` (another variant) and
/// keys, with or without the prefix `config.`.
///
/// # Errors
/// Fails if the file cannot be read or is not valid.
pub fn read(
    sources: &mut Sources,
    path: &Path,
    places: &mut Places,
) -> Result<Vec<published::Draft>, Failure> {
    let name = path.display().to_string();
    let bad = |why: String| Failure::BadInput(format!("--measured {name}: {why}"));
    let text = fs::read_to_string(path)
        .map_err(|error| bad(format!("{}; {EXPECTED}", crate::reason(&error))))?;
    let number = sources.add(Kind::File, &name, &text);
    let mut lines = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let head = lines
        .headers()
        .map_err(|error| bad(format!("{error}; {EXPECTED}")))?
        .clone();
    if ["metric", "value"]
        .iter()
        .any(|wanted| !head.iter().any(|column| column == *wanted))
    {
        let found = head.iter().collect::<Vec<_>>().join(", ");
        return Err(bad(format!("has the columns {found}; {EXPECTED}")));
    }
    let mut drafts = Vec::new();
    for line in lines.records() {
        let line = line.map_err(|error| bad(format!("{error}; {EXPECTED}")))?;
        let start = line
            .position()
            .map_or(0, |position| position.byte() as usize);
        let end = text[start..]
            .find('\n')
            .map_or(text.len(), |end| start + end);
        let origin = Sources::at(number, start..end);
        let leaf = |value| Node {
            origin: origin.clone(),
            value,
        };
        let cells = || {
            head.iter()
                .zip(line.iter())
                .filter(|(_, cell)| !cell.is_empty())
        };
        // In this case the value is a difference, written as text, as in a study file.
        let is_relative = cells().any(|(column, _)| column == "against");
        let mut node = Node::empty(origin.clone());
        node.merge(Node::at_path("source", leaf(Value::String(name.clone()))));
        let mut value = Node::empty(origin.clone());
        let mut metric = "";
        for (column, cell) in cells() {
            match column {
                "metric" => metric = cell,
                "value" if is_relative => {
                    value.merge(Node::at_path(column, leaf(Value::String(cell.to_owned()))));
                }
                "value" | "tolerance" => value.merge(Node::at_path(column, leaf(plain(cell)))),
                "source" => node.merge(Node::at_path(column, leaf(Value::String(cell.to_owned())))),
                "variant" => node.merge(Node::at_path("at.name", leaf(plain(cell)))),
                "against" => node.merge(Node::at_path("against.name", leaf(plain(cell)))),
                key => {
                    let key = key.strip_prefix("config.").unwrap_or(key);
                    node.merge(Node::at_path(&format!("at.{key}"), leaf(plain(cell))));
                }
            }
        }
        node.merge(Node::at_path(&format!("values.{metric}"), value));
        let read = published::read(sources, &node, Some(published::Status::Measured), places);
        drafts.extend(read.map_err(|diagnostic| Failure::BadInput(diagnostic.to_string()))?);
    }
    match drafts.is_empty() {
        true => Err(bad(format!("has no rows; {EXPECTED}"))),
        false => Ok(drafts),
    }
}

/// Parses a cell as a number or a boolean, or else takes it as text.
fn plain(cell: &str) -> Value {
    if let Ok(number) = cell.parse() {
        return Value::Integer(number);
    }
    match (cell.parse::<f64>(), cell) {
        (Ok(number), _) if number.is_finite() => Value::Float(number),
        (_, "true") => Value::Boolean(true),
        (_, "false") => Value::Boolean(false),
        _ => Value::String(cell.to_owned()),
    }
}
