//! Results as lines, hashes of their parts, and the numbers that people look at first.

use serde_json::Value;
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Not what a run measured: what was to be run, and who ran it.
const NO_RESULTS: [&str; 4] = ["commit", "experiment", "version", "workload"];

/// The part for what belongs to no table of its own.
const WHOLE: &str = "run";

/// What people look at first; a run has some of them.
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

/// All results of a run: keys with dots, in alphabetical order, each with its value.
pub struct Lines(Vec<(String, Value)>);

impl Lines {
    /// The results in a document.
    pub fn of(results: &Value) -> Self {
        let mut lines = Vec::new();
        for (key, value) in sorted(results) {
            if !NO_RESULTS.contains(&key) {
                flatten(key, value, &mut lines);
            }
        }
        Self(lines)
    }

    /// The number at `key`.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::as_f64)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        let line = self.0.iter().find(|(of, _)| of == key);
        line.map(|(_, value)| value)
    }

    /// The headline numbers, and these.
    pub fn headline(&self, more: &[&str]) -> BTreeMap<String, toml::Value> {
        let number = |key: &&str| {
            let value = toml::Value::try_from(self.value(key)?).ok()?;
            Some(((*key).to_owned(), value))
        };
        HEADLINE.iter().chain(more).filter_map(number).collect()
    }

    /// A hash of each part of the results. Parts are the keys on top; what has no parts itself is together.
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let mut parts = BTreeMap::<&str, String>::new();
        for (key, value) in &self.0 {
            let part = key.split_once('.').map_or(WHOLE, |(part, _)| part);
            let text = parts.entry(part).or_default();
            writeln!(text, "{key} = {value}").expect("a string takes everything");
        }
        let hash = |text: String| format!("{:016x}", SipHasher13::new().hash(text.as_bytes()));
        let named = |(part, text): (&str, String)| (part.to_owned(), hash(text));
        parts.into_iter().map(named).collect()
    }

    /// Where the results of the run of this name are kept.
    pub fn path(name: &str) -> PathBuf {
        let name = name.replace(|letter: char| !letter.is_alphanumeric(), "-");
        PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join("golden")
            .join(format!("{name}.txt"))
    }

    /// Writes them there, for people.
    pub fn keep(&self, name: &str) {
        let lines = self.0.iter();
        let text: String = lines
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        let path = Self::path(name);
        let folder = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(folder).expect("a folder for results");
        std::fs::write(&path, text).expect("a file for results");
    }
}

/// How a headline number moved.
pub fn change(was: Option<&toml::Value>, is: Option<&toml::Value>) -> String {
    let (Some(was), Some(is)) = (was, is) else {
        return match is {
            Some(is) => format!("{is}, was not there"),
            None => "is there no more".to_owned(),
        };
    };
    if was == is {
        return format!("{is}, as it was");
    }
    match (number(was), number(is)) {
        (Some(from), Some(to)) if from != 0.0 => {
            format!("{is}, was {was} ({:+.3} %)", 100.0 * (to / from - 1.0))
        }
        _ => format!("{is}, was {was}"),
    }
}

/// The value as a number, whole or not.
fn number(value: &toml::Value) -> Option<f64> {
    let whole = value.as_integer().map(|value| value as f64);
    whole.or_else(|| value.as_float())
}

/// What is in an object, in an order that does not depend on how it is kept.
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
