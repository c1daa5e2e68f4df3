//! Figures as Vega-Lite specifications.

#[cfg(all(test, feature = "figures"))]
use super::data::Record;
use super::{Bars, Figure, Groups, Panels};
use serde_json::{Value, json};

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v5.json";

impl Figure {
    /// Returns the figure with its data as a Vega-Lite 5 specification, which <https://vega.github.io/editor> and many libraries can draw.
    pub fn vega_lite(&self) -> Value {
        let (title, views) = match self {
            Self::Curves(curves) => (&curves.title, of_panels(&Panels::from(curves), true)),
            Self::Panels(panels) => (&panels.title, of_panels(panels, false)),
            Self::Bars(bars) => (&bars.title, of_bars(bars)),
            Self::Groups(groups) => (&groups.title, of_groups(groups)),
        };
        json!({
            "$schema": SCHEMA,
            "title": title,
            "data": { "values": self.records().into_iter().map(|record| record.into_iter().collect()).collect::<Vec<Value>>() },
            "vconcat": views,
        })
    }
}

/// Returns a filter for the records of one measure. Records are compared with a value, never by an expression.
fn only(measure: &str) -> Value {
    json!([{ "filter": { "field": "measure", "equal": measure } }])
}

/// Returns the encoding of names in the given order, without a title.
fn names(field: &str) -> Value {
    json!({ "field": field, "type": "nominal", "title": null, "sort": null })
}

fn of_panels(panels: &Panels, bytes: bool) -> Vec<Value> {
    let view = |panel: &super::Panel| {
        let mut x_scale =
            json!({ "type": if panels.log_x { "log" } else { "linear" }, "zero": false });
        let mut x_axis = json!({ "title": panels.x });
        if bytes {
            x_scale["base"] = json!(2);
            x_axis["format"] = json!(".4~s");
        }
        let y_scale = if panel.log_y { "log" } else { "linear" };
        let quantity = |field: &str| json!({ "field": field, "type": "quantitative" });
        let with = |mut channel: Value, name: &str, value: Value| {
            channel[name] = value;
            channel
        };
        let x = with(with(quantity("x"), "scale", x_scale), "axis", x_axis);
        let y = |field: &str| {
            let channel = with(quantity(field), "scale", json!({ "type": y_scale }));
            with(channel, "title", json!(panel.y))
        };
        let dashes = match panel.lines.iter().any(|line| line.dashed) {
            true => json!({ "field": "dashed", "type": "nominal", "title": null, "legend": null }),
            false => names("series"),
        };
        let mut transform = only(&panel.y);
        if panel.log_y {
            let above = json!({ "filter": { "field": "y", "gt": 0 } });
            transform
                .as_array_mut()
                .into_iter()
                .for_each(|all| all.push(above.clone()));
        }
        let of_intervals = json!([
            { "filter": { "field": "low", "valid": true } },
            { "filter": { "field": "low", "gt": if panel.log_y { 0.0 } else { f64::MIN } } },
        ]);
        json!({
            "transform": transform,
            "layer": [
                {
                    "mark": { "type": "line" },
                    "encoding": { "x": x, "y": y("y"), "color": names("series"), "strokeDash": dashes, "detail": { "field": "dashed", "type": "nominal" } },
                },
                {
                    "mark": { "type": "point", "filled": true, "tooltip": { "content": "data" } },
                    "encoding": { "x": x, "y": y("y"), "color": names("series"), "shape": names("series") },
                },
                {
                    "transform": of_intervals,
                    "mark": { "type": "rule" },
                    "encoding": { "x": x, "y": y("low"), "y2": { "field": "high" }, "color": names("series") },
                },
            ],
        })
    };
    panels.panels.iter().map(view).collect()
}

fn of_bars(bars: &Bars) -> Vec<Value> {
    // Parts are stacked from below in their order, which records do not contain.
    let order: Vec<&str> = bars.parts.iter().map(String::as_str).collect();
    vec![json!({
        "mark": { "type": "bar", "tooltip": { "content": "data" } },
        "encoding": {
            "x": { "field": "bar", "type": "nominal", "title": null, "sort": null },
            "y": { "field": "value", "type": "quantitative", "title": bars.y, "scale": { "domain": [0, bars.most] } },
            "color": { "field": "part", "type": "nominal", "title": null, "scale": { "domain": order } },
        },
    })]
}

fn of_groups(groups: &Groups) -> Vec<Value> {
    let view = |panel: &super::GroupPanel| {
        json!({
            "transform": only(&panel.y),
            "mark": { "type": "bar", "tooltip": { "content": "data" } },
            "encoding": {
                "x": { "field": "group", "type": "nominal", "title": null, "sort": null },
                "xOffset": { "field": "series", "type": "nominal", "sort": null },
                "y": { "field": "value", "type": "quantitative", "title": panel.y },
                "color": names("series"),
            },
        })
    };
    groups.panels.iter().map(view).collect()
}

/// Returns the fields that a specification uses and no record has.
#[cfg(all(test, feature = "figures"))]
pub(super) fn unknown_fields(specification: &Value, record: &Record) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut rest = vec![specification];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(field)) = object.get("field")
                    && !record.iter().any(|(name, _)| name == field)
                {
                    unknown.push(field.clone());
                }
                rest.extend(object.values());
            }
            Value::Array(array) => rest.extend(array),
            _ => {}
        }
    }
    unknown
}
