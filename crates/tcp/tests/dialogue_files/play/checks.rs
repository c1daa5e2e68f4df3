//! Assertions of dialogues.

use super::Player;
use baton_tcp::{CloseReason, Event, Limit, PathError, Refusal};
use baton_testkit::dialogue::same;
use baton_wire::{Span, Time};
use serde_json::Value;
use std::fmt::Debug;

/// Returns whether dialogues may omit an event.
pub(super) fn is_minor(event: &Event) -> bool {
    matches!(
        event,
        Event::Readable | Event::Acknowledged(_) | Event::TransmitTimes
    )
}

/// Returns the name of a variant in dialogues: `TimedOut` is `timed-out`.
fn name_of(variant: &impl Debug) -> String {
    let text = format!("{variant:?}");
    let end = text.find(|letter: char| !letter.is_alphanumeric());
    let letters = text[..end.unwrap_or(text.len())].char_indices();
    let parts = letters.map(|(at, letter)| match at > 0 && letter.is_uppercase() {
        true => format!("-{}", letter.to_ascii_lowercase()),
        false => letter.to_ascii_lowercase().to_string(),
    });
    parts.collect()
}

/// Returns an event's name in dialogues.
pub(super) fn event_name(event: &Event) -> String {
    match event {
        Event::Acknowledged(len) => format!("acknowledged {len}"),
        Event::Closed(CloseReason::Unreachable(error)) => format!("closed {}", name_of(error)),
        Event::Closed(reason) => format!("closed {}", name_of(reason)),
        other => name_of(other),
    }
}

pub(super) fn path_error(name: &str) -> Result<PathError, String> {
    let all = [
        PathError::HostUnreachable,
        PathError::NetUnreachable,
        PathError::PortUnreachable,
        PathError::ProtocolUnreachable,
        PathError::AdminProhibited,
        PathError::TimeExceeded,
        PathError::ParameterProblem,
    ];
    let found = all.into_iter().find(|error| name_of(error) == name);
    found.ok_or_else(|| format!("expected the name of an ICMP error, found `{name}`"))
}

/// Returns a word as checks compare it: milliseconds, as in `200ms`, are converted to microseconds.
fn in_us(word: &str) -> String {
    let ms = word.strip_suffix("ms").and_then(|ms| ms.parse().ok());
    ms.map_or_else(
        || word.to_owned(),
        |ms| Span::from_ms(ms).as_us().to_string(),
    )
}

fn or_none(found: Option<impl ToString>) -> String {
    found.map_or_else(|| "none".to_owned(), |found| found.to_string())
}

/// Returns a number, or a truth value as 0 or 1.
fn field(values: serde_json::Result<Value>, field: &str) -> Result<String, String> {
    let values = values.map_err(|error| error.to_string())?;
    match values.get(field) {
        None => Err(format!("there is no field `{field}`")),
        Some(Value::Bool(is)) => Ok(u64::from(*is).to_string()),
        Some(value) => Ok(value.to_string()),
    }
}

impl Player {
    /// Checks the next event of the current peer's connection, skipping minor events; `none` stands for no event.
    pub(super) fn event(&mut self, expected: &str) -> Result<(), String> {
        let events = &mut self.peer().events;
        if expected == "none" {
            return same(expected, &or_none(events.front().map(event_name)));
        }
        while let Some(event) = events.pop_front() {
            let name = event_name(&event);
            if name == expected {
                return Ok(());
            }
            if !is_minor(&event) {
                return same(expected, &name);
            }
        }
        Err(format!("expected the event `{expected}`, got none"))
    }

    /// Checks that a property has the value that follows its name.
    pub(super) fn check(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let value = words.iter().rposition(|word| *word == "=");
        let from = value.map_or(1, |at| at + 1).min(words.len());
        let expected: Vec<String> = words[from..].iter().map(|word| in_us(word)).collect();
        same(&expected.join(" "), &self.property(&words)?)
    }

    /// Returns a property as text, which is empty if it holds.
    fn property(&mut self, words: &[&str]) -> Result<String, String> {
        let (now, start, flow) = (self.now, self.start, self.flow());
        let since_start = |at: Time| (at - start).as_us().to_string();
        let holds = |holds: bool, words: &[&str]| match holds {
            true => Ok(String::new()),
            false => Err(format!("expected {}", words.concat())),
        };
        let refused = self.last_refusal.map(Refusal::name);
        Ok(match *words {
            ["taken"] => refused.unwrap_or_default().to_owned(),
            ["refused", _] => or_none(refused),
            ["stat", name, "=", _] => field(serde_json::to_value(self.stack.stats()), name)?,
            ["refusals", name, "=", _] => {
                let mut all = Refusal::ALL.into_iter();
                let reason = all.find(|reason| reason.name() == name);
                let reason = reason.ok_or("there is no such reason for a refusal")?;
                self.stack.stats().refused.get(reason).to_string()
            }
            ["accept-queue", _] => self.stack.accept_queue_len(self.listener()?).to_string(),
            ["time-wait"] => holds(self.stack.in_time_wait(now, &flow), words)?,
            ["gone"] => {
                let is_known = self.stack.find(&flow).is_some();
                holds(!is_known && !self.stack.in_time_wait(now, &flow), words)?
            }
            ["state", _] => format!("{:?}", self.stack.state(self.id()?)),
            ["info", name, "=", _] => {
                field(serde_json::to_value(self.stack.info(now, self.id()?)), name)?
            }
            ["unread", _] => self.stack.readable_len(self.id()?).to_string(),
            ["urgent", _] => or_none(self.stack.urgent_distance(self.id()?)),
            ["time", ..] => {
                let time = self.stack.poll_transmit_time(self.id()?);
                match (time, words) {
                    (None, _) => "none".to_owned(),
                    (Some(time), ["time", stage, key, ..]) => {
                        same(*stage, &name_of(&time.stage))?;
                        same(*key, &time.key.to_string())?;
                        since_start(time.at)
                    }
                    (Some(time), _) => format!("{time:?}"),
                }
            }
            ["arrived", ..] => {
                or_none(self.stack.arrival_of_last_read(self.id()?).map(since_start))
            }
            ["not-sent", _] => self.stack.not_sent(self.id()?).to_string(),
            ["send-space", _] => self.stack.send_space(self.id()?).to_string(),
            ["soft-error", _] => or_none(self.stack.soft_error(self.id()?).map(|it| name_of(&it))),
            ["limited-by", ..] => {
                let limit = self.stack.info(now, self.id()?).limited_by;
                limit.map_or("nothing", Limit::name).to_owned()
            }
            ["at-rest"] => holds(self.stack.is_at_rest(self.id()?), words)?,
            ["not-at-rest"] => holds(!self.stack.is_at_rest(self.id()?), words)?,
            _ => return Err(format!("there is no property {words:?}")),
        })
    }
}
