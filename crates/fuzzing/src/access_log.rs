//! Access logs in any format, compressed or not.

use baton_workload::Log;
use baton_workload::log::{Format, FormatSpec, ReadOptions};
use std::path::Path;

/// First byte of inputs whose first line is the format, in the notation of `--format`.
const SPELLED: u8 = 0xfe;

/// Reads the input as a log in the format that the first byte selects, in the format of its first line, or in the detected format.
pub fn access_log(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let (format, text) = if choice == SPELLED {
        let end = text.iter().position(|&c| c == b'\n').unwrap_or(text.len());
        let (spec, text) = text.split_at(end);
        let Ok(spec) = String::from_utf8_lossy(spec).parse::<FormatSpec>() else {
            return;
        };
        assert_eq!(
            spec.to_string().parse(),
            Ok(spec.clone()),
            "the text of a format parses to the same format"
        );
        (Some(spec), text.strip_prefix(b"\n").unwrap_or(text))
    } else {
        let named = Format::ALL.get(usize::from(choice)).copied();
        (named.and_then(FormatSpec::named), text)
    };
    let options = ReadOptions {
        format,
        allow_skipped: true,
        cancelled: None,
    };
    match Log::from_reader(Path::new("input"), text, &options) {
        Ok(log) => check(&log),
        Err(error) => assert!(
            !error.to_string().chars().any(char::is_control),
            "error messages contain no control characters"
        ),
    }
}

fn check(log: &Log) {
    assert!(
        !log.requests.is_empty(),
        "a log without a request is an error"
    );
    let sum: u64 = log.skipped.reasons().map(|(_, found)| found.lines).sum();
    assert_eq!(
        sum,
        log.skipped.total(),
        "each skipped line is counted by its reason"
    );
    assert!((0.0..1.0).contains(&log.skipped.share()));
    assert!(log.requests.is_sorted_by_key(|request| request.time_us));
    assert!(log.forwarded <= log.requests.len() as u64);
    log.warnings();
}
