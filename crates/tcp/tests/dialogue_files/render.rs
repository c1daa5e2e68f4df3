//! What was sent, as a dialogue would have it.

use crate::segment::{ECN_NAMES, LETTERS, OptionsText, SegmentText};
use baton_wire::Span;
use std::fmt::Write;

/// A relative number: before the initial one it is negative.
fn shown(value: u32) -> i64 {
    if value > u32::MAX - (1 << 24) {
        i64::from(value as i32)
    } else {
        value.into()
    }
}

/// A segment in the grammar.
pub fn segment(segment: &SegmentText) -> String {
    let letters = LETTERS.iter();
    let mut text: String = letters
        .filter(|(_, flag)| segment.flags.contains(*flag))
        .map(|(letter, _)| letter)
        .collect();
    if text.is_empty() {
        text.push('-');
    }
    let (start, end) = (segment.start, segment.end);
    let len = end.wrapping_sub(start);
    write!(text, " {}:{}({len})", shown(start), shown(end)).expect("a string takes all");
    if let Some(ack) = segment.ack {
        write!(text, " ack {}", shown(ack)).expect("a string takes all");
    }
    if let Some(window) = segment.window {
        write!(text, " win {window}").expect("a string takes all");
    }
    if let Some(list) = &segment.options {
        write!(text, " <{}>", options(list)).expect("a string takes all");
    }
    let name = ECN_NAMES.iter().find(|(_, ecn)| segment.ecn == Some(*ecn));
    if let Some((name, _)) = name {
        write!(text, " {name}").expect("a string takes all");
    }
    text
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
    parts.join(",")
}

/// Seconds since the start, exactly.
pub fn seconds(span: Span) -> String {
    let ps = span.as_ps();
    let text = format!("{}.{:012}", ps / 1_000_000_000_000, ps % 1_000_000_000_000);
    let end = text
        .trim_end_matches('0')
        .len()
        .max(text.find('.').expect("it has one") + 4);
    text[..end].into()
}
