//! Accepted values of numbers.

use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Accepted values of a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Whether only whole numbers are accepted.
    pub whole: bool,
    /// Minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Bound that the number must exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_than: Option<f64>,
    /// Maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// Whether only powers of two are accepted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub power_of_two: bool,
    /// Whether 0 is accepted even if it is below the minimum.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub or_zero: bool,
    /// The accepted values, if they are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<i64>,
}

impl Range {
    /// Returns the range of a schema for numbers.
    pub(super) fn of(schema: &Value, whole: bool) -> Self {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let says = |key: &str| schema.get(key).is_some_and(|value| value == true);
        let only = schema.get("enum").and_then(Value::as_array);
        // TOML's largest whole number is that of signed 64 bits.
        let of_type = match schema.get("format").and_then(Value::as_str) {
            Some("uint8") => Some(u8::MAX.into()),
            Some("uint16") => Some(u16::MAX.into()),
            Some("uint32") => Some(u32::MAX.into()),
            Some("uint64" | "uint") => Some(i64::MAX as f64),
            _ => None,
        };
        Self {
            whole,
            least: number("minimum"),
            more_than: number("exclusiveMinimum"),
            most: number("maximum").or(of_type),
            power_of_two: says("x-power-of-two"),
            or_zero: says("x-or-zero"),
            only: only
                .into_iter()
                .flatten()
                .filter_map(Value::as_i64)
                .collect(),
        }
    }

    /// Returns whether the range contains a number.
    pub fn contains(&self, number: f64) -> bool {
        if self.or_zero && number == 0.0 {
            return true;
        }
        let enough = self.least.is_none_or(|least| number >= least)
            && self.more_than.is_none_or(|bound| number > bound);
        let one_of = self.only.is_empty() || self.only.iter().any(|&only| only as f64 == number);
        let power = !self.power_of_two || (number >= 1.0 && (number as u64).is_power_of_two());
        enough && self.most.is_none_or(|most| number <= most) && one_of && power
    }

    /// Describes the accepted values for messages: `a whole number from 1 to 8`.
    pub fn expected(&self) -> String {
        if !self.only.is_empty() {
            return self.to_string();
        }
        match (self.power_of_two, self.whole) {
            (true, _) => self.to_string(),
            (false, whole) => {
                let kind = if whole { "a whole number" } else { "a number" };
                match self.bounds() {
                    Some(bounds) => format!("{}{kind}{bounds}", self.zero()),
                    None => kind.to_owned(),
                }
            }
        }
    }

    fn zero(&self) -> &'static str {
        if self.or_zero { "0 or " } else { "" }
    }

    fn bounds(&self) -> Option<String> {
        let shown = |number: f64| match self.whole {
            // The largest number of 64 bits cannot be represented as f64.
            true if number >= i64::MAX as f64 => i64::MAX.to_string(),
            true => format!("{number:.0}"),
            false => number.to_string(),
        };
        Some(match (self.least, self.more_than, self.most.map(shown)) {
            (_, Some(bound), Some(most)) => {
                format!(" above {}, at most {most}", shown(bound))
            }
            (_, Some(bound), None) => format!(" above {}", shown(bound)),
            (Some(least), _, Some(most)) => format!(" from {} to {most}", shown(least)),
            (Some(least), _, None) => format!(" of at least {}", shown(least)),
            (None, None, Some(most)) => format!(" of at most {most}"),
            (None, None, None) => return None,
        })
    }
}

/// Writes the range for tables: `1 to 8`, `33 or 66`, `a power of two from 64 to 4096`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.only.is_empty() {
            let only: Vec<String> = self.only.iter().map(i64::to_string).collect();
            return f.write_str(&only.join(" or "));
        }
        let bounds = self.bounds().unwrap_or_default();
        let zero = self.zero();
        if self.power_of_two {
            return write!(f, "{zero}a power of two{bounds}");
        }
        match bounds.trim_start() {
            "" => f.write_str("any number"),
            bounds => {
                let bounds = bounds.strip_prefix("from ").unwrap_or(bounds);
                let bounds = bounds.strip_prefix("of ").unwrap_or(bounds);
                write!(f, "{zero}{bounds}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn range(schema: Value) -> Range {
        let whole = schema["type"] == "integer";
        Range::of(&schema, whole)
    }

    #[test]
    fn ranges_are_described_in_words() {
        let integer = |mut schema: Value| {
            schema["type"] = "integer".into();
            schema["format"] = "uint32".into();
            range(schema)
        };
        let mips = integer(json!({"minimum": 1, "maximum": 8}));
        assert_eq!(mips.to_string(), "1 to 8");
        assert_eq!(mips.expected(), "a whole number from 1 to 8");
        let any = integer(json!({"minimum": 0}));
        assert_eq!(any.expected(), "a whole number from 0 to 4294967295");
        let block = integer(json!({"minimum": 64, "maximum": 128, "x-power-of-two": true}));
        assert_eq!(block.expected(), "a power of two from 64 to 128");
        let zero = integer(json!({"minimum": 64, "x-or-zero": true}));
        assert_eq!(zero.to_string(), "0 or 64 to 4294967295");
        let few = integer(json!({"minimum": 0, "enum": [33, 66]}));
        assert_eq!(few.expected(), "33 or 66");
        let seconds = range(json!({"type": "number", "exclusiveMinimum": 0, "maximum": 5}));
        assert_eq!(seconds.expected(), "a number above 0, at most 5");
        assert_eq!(range(json!({"type": "number"})).expected(), "a number");
    }

    #[test]
    fn a_range_includes_or_excludes_its_bounds_as_declared() {
        let block = Range::of(
            &json!({"minimum": 64, "maximum": 256, "x-power-of-two": true, "x-or-zero": true}),
            true,
        );
        for (number, inside) in [(0.0, true), (32.0, false), (64.0, true), (96.0, false)] {
            assert_eq!(block.contains(number), inside, "{number}");
        }
        let share = Range::of(&json!({"exclusiveMinimum": 0, "maximum": 1}), false);
        assert!(!share.contains(0.0) && share.contains(1.0) && !share.contains(f64::NAN));
    }
}
