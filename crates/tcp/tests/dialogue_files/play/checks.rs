//! Assertions of dialogues.

use super::Player;
use crate::grammar::Check;
use baton_tcp::{CloseReason, Event, Limit, PathError, Refusal};
use serde_json::Value;

/// Returns whether dialogues may omit an event.
pub(super) fn is_minor(event: &Event) -> bool {
    matches!(
        event,
        Event::Readable | Event::Acknowledged(_) | Event::TransmitTimes
    )
}

/// Returns an event's name in dialogues.
pub(super) fn event_name(event: &Event) -> String {
    match event {
        Event::Connected => "connected".into(),
        Event::Acceptable(_) => "acceptable".into(),
        Event::Readable => "readable".into(),
        Event::Urgent => "urgent".into(),
        Event::Acknowledged(len) => format!("acknowledged {len}"),
        Event::TransmitTimes => "transmit-times".into(),
        Event::PeerClosed => "peer-closed".into(),
        Event::Closed(reason) => format!("closed {}", reason_name(*reason)),
    }
}

fn reason_name(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Normal => "normal",
        CloseReason::Reset => "reset",
        CloseReason::Refused => "refused",
        CloseReason::TimedOut => "timed-out",
        CloseReason::Aborted => "aborted",
        CloseReason::Unreachable(error) => path_error_name(error),
    }
}

fn path_error_name(error: PathError) -> &'static str {
    match error {
        PathError::FragmentationNeeded { .. } => "fragmentation-needed",
        PathError::HostUnreachable => "host-unreachable",
        PathError::NetUnreachable => "net-unreachable",
        PathError::PortUnreachable => "port-unreachable",
        PathError::ProtocolUnreachable => "protocol-unreachable",
        PathError::AdminProhibited => "admin-prohibited",
        PathError::TimeExceeded => "time-exceeded",
        PathError::ParameterProblem => "parameter-problem",
    }
}

impl Player {
    /// Checks the next event of the current peer's connection, skipping minor events.
    pub(super) fn event(&mut self, expected: Option<&str>) -> Result<(), String> {
        let events = &mut self.peer().events;
        let Some(expected) = expected else {
            return match events.front() {
                None => Ok(()),
                Some(event) => Err(format!("expected no event, got `{}`", event_name(event))),
            };
        };
        while let Some(event) = events.pop_front() {
            let name = event_name(&event);
            if name == expected {
                return Ok(());
            }
            if !is_minor(&event) {
                return Err(format!("expected the event `{expected}`, got `{name}`"));
            }
        }
        Err(format!("expected the event `{expected}`, got none"))
    }

    pub(super) fn check(&mut self, check: &Check) -> Result<(), String> {
        match check {
            Check::State(name) => {
                let state = format!("{:?}", self.stack.state(self.id()?));
                same("state", name, &state)
            }
            Check::Refused(reason) => {
                let taken = || String::from("taken");
                let expected = reason.clone().unwrap_or_else(taken);
                let got = self
                    .last_refusal
                    .map_or_else(taken, |reason| reason.name().into());
                same("the last segment", &expected, &got)
            }
            Check::Info(field, value) => {
                let info = self.stack.info(self.now, self.id()?);
                field_is(serde_json::to_value(info), field, *value)
            }
            Check::Stat(field, value) => {
                field_is(serde_json::to_value(self.stack.stats()), field, *value)
            }
            Check::Refusals(name, value) => {
                let reason = Refusal::ALL
                    .into_iter()
                    .find(|reason| reason.name() == name);
                let reason =
                    reason.ok_or_else(|| format!("`{name}` is no reason for a refusal"))?;
                same(name, value, &self.stack.stats().refused.get(reason))
            }
            Check::Unread(len) => same("unread", len, &self.stack.readable_len(self.id()?)),
            Check::Urgent(distance) => {
                let got = self.stack.urgent_distance(self.id()?);
                same("urgent", distance, &got)
            }
            Check::TransmitTime(report) => {
                let id = self.id()?;
                let got = self.stack.poll_transmit_time(id).map(|time| {
                    let stage = format!("{:?}", time.stage).to_lowercase();
                    (stage, time.key, (time.at - self.start).as_us())
                });
                same("time", report, &got)
            }
            Check::Arrived(at) => {
                let id = self.id()?;
                let arrived = self.stack.arrival_of_last_read(id);
                same("arrived", at, &arrived.map(|at| (at - self.start).as_us()))
            }
            Check::NotSent(len) => same("not sent", len, &self.stack.not_sent(self.id()?)),
            Check::SendSpace(len) => same("send space", len, &self.stack.send_space(self.id()?)),
            Check::AcceptQueue(len) => {
                let waiting = self.stack.accept_queue_len(self.listener()?);
                same("accept queue", len, &waiting)
            }
            Check::SoftError(error) => {
                same("soft error", error, &self.stack.soft_error(self.id()?))
            }
            Check::LimitedBy(name) => {
                let limit = self.stack.info(self.now, self.id()?).limited_by;
                let limit = limit.map_or("nothing", Limit::name);
                same("limited by", &name.as_str(), &limit)
            }
            Check::AtRest(rest) => same("at rest", rest, &self.stack.is_at_rest(self.id()?)),
            Check::TimeWait => {
                let flow = self.peer().flow;
                same(
                    "in TIME-WAIT",
                    &true,
                    &self.stack.in_time_wait(self.now, &flow),
                )
            }
            Check::Gone => {
                let flow = self.peer().flow;
                let known = self.stack.find(&flow).is_some();
                let waits = self.stack.in_time_wait(self.now, &flow);
                same("known", &(false, false), &(known, waits))
            }
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, got: &T) -> Result<(), String> {
    match expected == got {
        true => Ok(()),
        false => Err(format!("{what}: expected {expected:?}, got {got:?}")),
    }
}

fn field_is(values: serde_json::Result<Value>, field: &str, expected: u64) -> Result<(), String> {
    let values = values.map_err(|error| error.to_string())?;
    let value = values
        .get(field)
        .ok_or_else(|| format!("there is no field `{field}`"))?;
    let number = match value {
        Value::Bool(value) => Some(u64::from(*value)),
        other => other.as_u64(),
    };
    same(field, &Some(expected), &number)
}
