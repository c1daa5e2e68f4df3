//! Formatting of segments as text.

use super::{ECN_NAMES, LETTERS, OptionsText, SegmentText};
use std::fmt;

/// Converts a relative number for display; numbers before the initial one are negative.
fn shown(value: u32) -> i64 {
    if value > u32::MAX - (1 << 24) {
        i64::from(value as i32)
    } else {
        value.into()
    }
}

impl fmt::Display for SegmentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = LETTERS
            .iter()
            .filter(|(_, flag)| self.flags.contains(*flag));
        let letters: String = flags.map(|(letter, _)| letter).collect();
        let (start, end) = (self.start, self.end);
        let len = end.wrapping_sub(start);
        let flags = if letters.is_empty() { "-" } else { &letters };
        write!(f, "{flags} {}:{}({len})", shown(start), shown(end))?;
        if let Some(ack) = self.ack {
            write!(f, " ack {}", shown(ack))?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(f, " urg {urgent}")?;
        }
        if let Some(list) = &self.options {
            write!(f, " <{}>", options(list))?;
        }
        let name = ECN_NAMES.iter().find(|(_, ecn)| self.ecn == Some(*ecn));
        name.map_or(Ok(()), |(name, _)| write!(f, " {name}"))
    }
}

fn options(options: &OptionsText) -> String {
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| format!("mss {mss}")));
    parts.extend(options.sack_permitted.then(|| "sackOK".into()));
    parts.extend(
        options
            .timestamps
            .map(|(value, echo)| format!("TS val {} ecr {}", shown(value), shown(echo))),
    );
    parts.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
    if !options.sack.is_empty() {
        let blocks = options.sack.iter();
        let blocks: Vec<String> = blocks
            .map(|(start, end)| format!("{}:{}", shown(*start), shown(*end)))
            .collect();
        parts.push(format!("sack {}", blocks.join(" ")));
    }
    parts.extend(options.fast_open.map(|option| {
        let kind = if option.experimental { "FOEXP" } else { "FO" };
        match option.cookie.is_request() {
            true => kind.into(),
            false => format!("{kind} {:?}", option.cookie),
        }
    }));
    parts.join(",")
}
