//! Single values that flags set.

use super::source::Sources;
use super::tree::Node;
use super::{keys, parts, units};
use std::str::FromStr;

/// A value for one key, from `--set KEY=VALUE` or from a flag that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    flag: String,
    path: String,
    value: String,
}

impl Setting {
    /// Creates a value that is given by a flag of its own, such as `--seed`.
    pub fn of_flag(flag: &str, path: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        Self {
            flag: format!("{flag} {value}"),
            path: path.to_owned(),
            value,
        }
    }

    /// Creates a value as if it were given by `--set`.
    pub fn of_set(path: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        Self {
            flag: format!("--set {path}={value}"),
            path: path.to_owned(),
            value,
        }
    }

    /// Replays a log in its own order, as the papers did.
    pub fn log_in_order() -> Self {
        Self::of_set("workload.order", "log")
    }

    /// Returns whether the key concerns only logs.
    pub(super) fn says_how_logs_are_read(&self) -> bool {
        let of_logs = [
            "workload.format",
            "workload.allow_skipped",
            "workload.order",
        ];
        of_logs.contains(&self.path.as_str())
    }

    /// Returns the flag as it was written.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// Returns the value in the unit of its key, if it is a number with another unit.
    fn in_unit_of_key(&self) -> Option<String> {
        let has_unit = self.value.starts_with(|first: char| first.is_ascii_digit())
            && self
                .value
                .ends_with(|last: char| last.is_ascii_alphabetic());
        let key = has_unit.then(|| keys::all().iter().find(|key| key.path == self.path))??;
        units::converted(&self.value, key.unit.as_deref()?)
    }

    /// Returns a tree with only this value.
    pub(super) fn to_node(&self, sources: &mut Sources) -> Node {
        let in_unit = self.in_unit_of_key();
        let value = Node::parse_flag(sources, &self.flag, in_unit.as_ref().unwrap_or(&self.value));
        let mut node = Node::at_path(&self.path, value);
        parts::expand_name(&mut node);
        node
    }
}

/// Parses `KEY=VALUE`: the key is a path with dots, the value TOML or else a string.
impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected KEY=VALUE, as in nic.mips=600";
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| format!("there is no `=`; {expected}"))?;
        let (path, value) = (path.trim(), value.trim());
        if path.split('.').any(str::is_empty) {
            return Err(format!("{path:?} is not a key; {expected}"));
        }
        if value.is_empty() {
            return Err(format!("there is no value; {expected}"));
        }
        Ok(Self {
            flag: format!("--set {text}"),
            path: path.to_owned(),
            value: value.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_value_are_split_at_the_first_equals_sign() {
        let setting: Setting = "name=a=b".parse().expect("a setting");
        assert_eq!(
            (setting.path.as_str(), setting.value.as_str()),
            ("name", "a=b")
        );
    }

    #[test]
    fn a_setting_without_key_or_value_is_refused() {
        for text in ["nic.mips", "=600", "nic..mips=600", "nic.mips=", ".=1"] {
            assert!(
                text.parse::<Setting>()
                    .is_err_and(|e| e.contains("KEY=VALUE")),
                "{text}"
            );
        }
    }
}
