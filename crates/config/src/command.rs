//! Command lines that repeat runs.

use super::{Planned, Request};
use std::borrow::Cow;

impl Request {
    /// Returns a command line that repeats one run of this request.
    pub fn command_of(&self, run: &Planned) -> String {
        self.command(run.is_variant.then_some(&*run.experiment.name))
    }

    /// Returns a command line that repeats this request, or one variant of it.
    pub fn command(&self, variant: Option<&str>) -> String {
        let mut words = vec![format!("baton run {}", quoted(&self.experiment))];
        if let Some(variant) = variant {
            words.push(format!("--variant {}", quoted(variant)));
        }
        if let Some(profile) = &self.profile {
            words.push(format!("--profile {}", quoted(profile)));
        }
        if let Some(log) = &self.log {
            words.push(format!("--log {}", quoted(&log.display().to_string())));
        }
        for setting in &self.settings {
            let (flag, value) = setting
                .flag()
                .split_once(' ')
                .unwrap_or((setting.flag(), ""));
            words.push(format!("{flag} {}", quoted(value)));
        }
        words.join(" ")
    }
}

/// Joins words into a command line.
pub fn command_line(words: impl Iterator<Item = String>) -> String {
    words
        .map(|word| quoted(&word).into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setting;

    #[test]
    fn words_with_spaces_are_quoted() {
        assert_eq!(quoted("nic.mips=600"), "nic.mips=600");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn the_command_contains_everything_that_changes_the_run() {
        let request = Request {
            experiment: "x.toml".to_owned(),
            log: Some("my log".into()),
            settings: vec![
                "nic.mips=600".parse().expect("a setting"),
                Setting::of_flag("--seed", "run.seed", 7),
            ],
            ..Request::default()
        };
        let expected =
            "baton run x.toml --variant 'no handoff' --log 'my log' --set nic.mips=600 --seed 7";
        assert_eq!(request.command(Some("no handoff")), expected);
    }
}
