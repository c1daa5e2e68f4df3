//! Plays dialogues that run machines and check the results: the files in `dialogues`.
//!
//! | line | meaning |
//! |---|---|
//! | `profile NAME` | begins with this profile in place of the defaults |
//! | `set KEY = VALUE , ...` | settings of all following runs, in TOML |
//! | `run NAME [with KEY = VALUE , ...]` | a run that completes without a client failing |
//! | `attempt NAME [with ...]` | a run that may end in another way |
//! | `refused [with ...] => TEXT` | an experiment that is refused; the message begins with the text |
//! | `same NAME NAME` | two runs with equal results |
//! | `? VALUE OPERATOR VALUE` | the operators are `<`, `>`, `=`, `in` with a range `FROM..TO`, and `has` for lists |
//!
//! A value is a number, a result `NAME:PATH`, or terms of these with `+`, `-`, `*` and `/`. A `+` in a path is the sum over all entries. `none`
//! stands for a result that is not there. Interconnects and the hardware of NICs are set by name.

use crate::checked::{complete, results, run};
use baton_bus::interconnect::InterconnectConfig;
use baton_config::parts::shipped_nic;
use baton_sim::config::Experiment;
use baton_testkit::dialogue::{Play, same, value};
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Table;

#[derive(Default)]
pub struct Player {
    config: Table,
    runs: BTreeMap<String, Value>,
}

impl Play for Player {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            ["profile", name] => {
                let profile = baton_config::profile(name).expect("the profile is valid");
                self.config = Table::try_from(profile).expect("a table");
            }
            ["set", ref settings @ ..] => set(&mut self.config, settings)?,
            ["run", name, ref settings @ ..] => {
                let done = complete(&self.experiment(settings)?);
                self.runs.insert(name.to_owned(), json(&done));
            }
            ["attempt", name, ref settings @ ..] => {
                let done = results(&self.experiment(settings)?);
                self.runs.insert(name.to_owned(), json(&done));
            }
            ["refused", ref rest @ ..] => {
                let end = rest
                    .iter()
                    .position(|word| *word == "=>")
                    .ok_or("expected `=>`")?;
                let error = run(&self.experiment(&rest[..end])?).expect_err("it cannot be run");
                let (error, expected) = (error.to_string(), rest[end + 1..].join(" "));
                return same(&true, &error.starts_with(&expected)).map_err(|_| error);
            }
            ["same", one, other] => {
                let [one, other] = [one, other].map(|name| {
                    let run = self
                        .runs
                        .get(name)
                        .expect("a run")
                        .as_object()
                        .expect("results");
                    run.iter()
                        .filter(|(key, _)| *key != "experiment")
                        .collect::<Vec<_>>()
                });
                return same(&one, &other);
            }
            ["?", ref what @ ..] => return self.check(what),
            _ => return Err("there is no such line".to_owned()),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn json(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("numbers and names")
}

/// Changes settings, which commas between spaces separate.
fn set(config: &mut Table, settings: &[&str]) -> Result<(), String> {
    for setting in settings.split(|word| *word == ",") {
        let [path, "=", value @ ..] = setting else {
            return Err(format!("expected KEY = VALUE, found {setting:?}"));
        };
        let mut one: Table = format!("value = {}", value.join(" "))
            .parse()
            .map_err(|error| format!("{error}"))?;
        let value = match (*path, &one["value"]) {
            ("interconnect", toml::Value::String(name)) => {
                toml::Value::try_from(InterconnectConfig::preset(name)).expect("a table")
            }
            ("nic.hardware", toml::Value::String(name)) => {
                toml::Value::try_from(shipped_nic(name)).expect("a table")
            }
            _ => one.remove("value").expect("it is there"),
        };
        let (folders, key) = path.rsplit_once('.').unwrap_or(("", path));
        let folders = folders.split('.').filter(|name| !name.is_empty());
        let table = folders.fold(&mut *config, |table, name| {
            let inner = table.entry(name).or_insert_with(|| Table::new().into());
            inner.as_table_mut().expect("a table")
        });
        table.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Returns a number at a path; a `+` stands for all entries, whose numbers are added.
fn number(value: &Value, path: &[&str]) -> Option<f64> {
    match (path, value) {
        ([], value) => value.as_f64(),
        (["+", rest @ ..], Value::Array(all)) => {
            Some(all.iter().filter_map(|one| number(one, rest)).sum())
        }
        (["+", rest @ ..], Value::Object(all)) => {
            Some(all.values().filter_map(|one| number(one, rest)).sum())
        }
        ([key, rest @ ..], value) => number(value.pointer(&format!("/{key}"))?, rest),
    }
}

impl Player {
    fn experiment(&self, settings: &[&str]) -> Result<Experiment, String> {
        let mut config = self.config.clone();
        if let ["with", settings @ ..] = settings {
            set(&mut config, settings)?;
        }
        config.try_into().map_err(|error| format!("{error}"))
    }

    fn result(&self, text: &str) -> Result<(&Value, Vec<String>), String> {
        let (name, path) = text
            .split_once(':')
            .ok_or_else(|| format!("{text} is no value"))?;
        let run = self
            .runs
            .get(name)
            .ok_or_else(|| format!("there is no run {name}"))?;
        Ok((run, path.split('.').map(str::to_owned).collect()))
    }

    fn operand(&self, text: &str) -> Result<f64, String> {
        if let Ok(number) = text.parse() {
            return Ok(number);
        }
        let (run, path) = self.result(text)?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        number(run, &path).ok_or_else(|| format!("there is no number {text}"))
    }

    /// Evaluates an expression of operands and operators; `*` and `/` bind more tightly than `+` and `-`.
    fn number(&self, words: &[&str]) -> Result<f64, String> {
        let (mut sum, mut sign) = (0.0, 1.0);
        let mut product = self.operand(words.first().ok_or("expected a value")?)?;
        for pair in words[1..].chunks(2) {
            let [operator, operand] = pair else {
                return Err("expected an operator and a value".to_owned());
            };
            let operand = self.operand(operand)?;
            match *operator {
                "*" => product *= operand,
                "/" => product /= operand,
                _ => {
                    sum += sign * product;
                    (sign, product) = (if *operator == "-" { -1.0 } else { 1.0 }, operand);
                }
            }
        }
        Ok(sum + sign * product)
    }

    fn check(&self, words: &[&str]) -> Result<(), String> {
        let at = words
            .iter()
            .position(|word| ["<", ">", "=", "in", "has"].contains(word));
        let at = at.ok_or("expected an operator")?;
        let (left, operator, right) = (&words[..at], words[at], &words[at + 1..]);
        if let (&[left], "=", &[right]) = (left, operator, right)
            && right.parse::<f64>().is_err()
            && !right.contains(':')
        {
            let (run, path) = self.result(left)?;
            let found = run.pointer(&format!("/{}", path.join("/")));
            let found = found.filter(|found| !found.is_null());
            return same(
                right,
                found.map_or("none", |found| found.as_str().unwrap_or("something")),
            );
        }
        if let (&[left], "has") = (left, operator) {
            let (run, path) = self.result(left)?;
            let list = run.pointer(&format!("/{}", path.join("/")));
            let list = list.and_then(Value::as_array).ok_or("it is no list")?;
            let is_there = list.iter().any(|one| *one == right.concat().as_str());
            return same(&true, &is_there).map_err(|_| format!("found {list:?}"));
        }
        let left = self.number(left)?;
        let holds = match operator {
            "in" => {
                let (from, to) = right
                    .first()
                    .and_then(|range| range.split_once(".."))
                    .ok_or("expected FROM..TO")?;
                (value::<f64>(from)?..=value(to)?).contains(&left)
            }
            "<" => left < self.number(right)?,
            ">" => left > self.number(right)?,
            _ => left == self.number(right)?,
        };
        same(&true, &holds).map_err(|_| format!("found {left}"))
    }
}
