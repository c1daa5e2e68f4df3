//! Results as lines, with a hash of each part and a few headline numbers.

use serde_json::Value;
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Keys that describe the run and the program, and are not results.
const NO_RESULTS: [&str; 4] = ["commit", "experiment", "version", "workload"];

/// The name of the part with all values outside of tables and lists.
const WHOLE: &str = "run";

/// The headline numbers. Not every run has all of them.
const HEADLINE: [&str; 18] = [
    "packets",
    "measured_s",
    "clients.request_rate",
    "clients.content_mbps",
    "clients.response_ms.mean",
    "clients.response_ms.p99",
    "clients.retransmissions",
    "host.idle_percent",
    "host.network_stack_percent",
    "host.host_packets.l2_misses",
    "host.retransmissions",
    "nic.idle_percent",
    "nic.send_delay_us.p50",
    "nic.receive_delay_us.p50",
    "handoff.accepted",
    "handoff.restored",
    "interconnect.utilisation_percent",
    "offload.host_transfers.transfers",
];

/// All results of a run: dotted keys in alphabetical order, each with its value.
pub struct Lines(Vec<(String, Value)>);

impl Lines {
    /// Returns the results in a JSON document.
    pub fn of(results: &Value) -> Self {
        let mut lines = Vec::new();
        for (key, value) in sorted(results) {
            if !NO_RESULTS.contains(&key) {
                flatten(key, value, &mut lines);
            }
        }
        Self(lines)
    }

    /// Returns the number at `key`.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::as_f64)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let line = self.0.iter().find(|(of, _)| of == key);
        line.map(|(_, value)| value)
    }

    /// Returns the headline numbers and the values of the keys in `more`.
    pub fn headline(&self, more: &[&str]) -> BTreeMap<String, toml::Value> {
        let number = |key: &&str| {
            let value = toml::Value::try_from(self.value(key)?).ok()?;
            Some(((*key).to_owned(), value))
        };
        HEADLINE.iter().chain(more).filter_map(number).collect()
    }

    /// Returns a hash of each part of the results. Each table or list at the top level is a part. All other values are one part.
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let mut parts = BTreeMap::<&str, String>::new();
        for (key, value) in &self.0 {
            let part = key.split_once('.').map_or(WHOLE, |(part, _)| part);
            let text = parts.entry(part).or_default();
            writeln!(text, "{key} = {value}").expect("writing to a string cannot fail");
        }
        let hash = |text: String| format!("{:016x}", SipHasher13::new().hash(text.as_bytes()));
        let named = |(part, text): (&str, String)| (part.to_owned(), hash(text));
        parts.into_iter().map(named).collect()
    }

    /// Returns the path of the file with the results of the run of this name.
    pub fn path(name: &str) -> PathBuf {
        let name = name.replace(|letter: char| !letter.is_alphanumeric(), "-");
        PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("golden")
            .join(format!("{name}.txt"))
    }

    /// Writes the results to that file, so that people can compare them.
    pub fn keep(&self, name: &str) {
        let lines = self.0.iter();
        let text: String = lines
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        let path = Self::path(name);
        let folder = path.parent().expect("the path has a folder");
        std::fs::create_dir_all(folder).expect("a folder for results");
        std::fs::write(&path, text).expect("a file for results");
    }
}

/// Describes how a headline number changed.
pub fn change(was: Option<&toml::Value>, is: Option<&toml::Value>) -> String {
    let (Some(was), Some(is)) = (was, is) else {
        return match is {
            Some(is) => format!("{is}, was missing"),
            None => "is missing now".to_owned(),
        };
    };
    if was == is {
        return format!("{is}, unchanged");
    }
    match (number(was), number(is)) {
        (Some(from), Some(to)) if from != 0.0 => {
            format!("{is}, was {was} ({:+.3} %)", 100.0 * (to / from - 1.0))
        }
        _ => format!("{is}, was {was}"),
    }
}

/// Returns an integer or floating-point value as a number.
fn number(value: &toml::Value) -> Option<f64> {
    let whole = value.as_integer().map(|value| value as f64);
    whole.or_else(|| value.as_float())
}

/// Returns the entries of an object in alphabetical order, whatever order the map has.
fn sorted(value: &Value) -> Vec<(&str, &Value)> {
    let object = value.as_object().expect("an object");
    let mut entries: Vec<(&str, &Value)> =
        object.iter().map(|(key, value)| (&**key, value)).collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

fn flatten(key: &str, value: &Value, lines: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(_) => {
            for (name, value) in sorted(value) {
                flatten(&format!("{key}.{name}"), value, lines);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                flatten(&format!("{key}.{index}"), value, lines);
            }
        }
        _ => lines.push((key.to_owned(), value.clone())),
    }
}
