//! The variants of an experiment file: runs that differ in a few values.

use super::Request;
use super::source::{Diagnostic, Sources};
use super::tree::{Node, Value};
use crate::failure::Failure;

/// The values of one variant, including its name.
pub struct Variant {
    /// Name of the variant; `None` if the document has no variants.
    pub name: Option<String>,
    /// Values that the variant sets.
    pub layer: Node,
}

/// Takes `[[variants]]` out of a document. A document without variants is its own only variant.
///
/// # Errors
/// Fails if the variants are not valid.
pub fn take(sources: &Sources, document: &mut Node) -> Result<Vec<Variant>, Diagnostic> {
    let Some(entry) = document.take("variants") else {
        return Ok(vec![Variant {
            name: None,
            layer: Node::empty(document.origin.clone()),
        }]);
    };
    let items = match entry.node.value {
        Value::Array(items) if !items.is_empty() => items,
        _ => {
            let message = "expected [[variants]], each with `name` and `set`";
            return Err(sources.diagnose(&entry.node.origin, message));
        }
    };
    let mut variants: Vec<Variant> = Vec::with_capacity(items.len());
    for item in items {
        let origin = item.origin.clone();
        let variant = take_variant(sources, item)?;
        if variants.iter().any(|other| other.name == variant.name) {
            let name = variant.name.unwrap_or_default();
            return Err(sources.diagnose(
                &origin,
                format!("there is another variant {name:?}; expected unique names"),
            ));
        }
        variants.push(variant);
    }
    Ok(variants)
}

fn take_variant(sources: &Sources, mut item: Node) -> Result<Variant, Diagnostic> {
    let origin = item.origin.clone();
    let name_node = item.take("name").map(|entry| entry.node);
    let Some(name) = name_node.as_ref().and_then(Node::string).map(str::to_owned) else {
        return Err(sources.diagnose(&origin, "a variant needs a `name` in quotes"));
    };
    let mut layer = item
        .take("set")
        .map_or_else(|| Node::empty(origin), |entry| entry.node)
        .expand_dots();
    if layer.table().is_none() {
        return Err(sources.diagnose(
            &layer.origin,
            "expected a table, as in set = { nic.mips = 600 }",
        ));
    }
    if let Some((key, entry)) = item.table().and_then(|table| table.first_key_value()) {
        let message = format!("unknown key `{key}` in a variant; expected `name` and `set`");
        return Err(sources.diagnose(&entry.key, message));
    }
    if let Some(node) = name_node {
        layer.merge(Node::at_path("name", node));
    }
    Ok(Variant {
        name: Some(name),
        layer,
    })
}

/// Returns the requested variants.
///
/// # Errors
/// Fails if a requested variant does not exist.
pub fn choose(variants: Vec<Variant>, request: &Request) -> Result<Vec<Variant>, Failure> {
    if request.variants.is_empty() {
        return Ok(variants);
    }
    let names: Vec<String> = variants.iter().filter_map(|v| v.name.clone()).collect();
    if let Some(unknown) = request
        .variants
        .iter()
        .find(|wanted| !names.contains(wanted))
    {
        let expected = if names.is_empty() {
            "no --variant, because the experiment has no variants".to_owned()
        } else {
            format!("one of {}", names.join(", "))
        };
        return Err(Failure::BadInput(format!(
            "--variant {unknown}: {} has no such variant; expected {expected}",
            request.experiment
        )));
    }
    let wanted = |v: &Variant| {
        v.name
            .as_ref()
            .is_some_and(|name| request.variants.contains(name))
    };
    Ok(variants.into_iter().filter(wanted).collect())
}
