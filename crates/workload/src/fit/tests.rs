//! Fits of generated logs with known parameters.

use super::*;
use crate::generate::Preset;
use crate::log::ReadOptions;
use std::path::Path;

const RULE: SessionRule = SessionRule::PAPERS;

#[test]
fn a_generated_log_is_fitted_closely() {
    let log = Preset::Demo.spec().generate(4, 20_000).unwrap();
    let fit = Fit::of(&log, RULE).unwrap();
    assert!(
        (fit.zipf_exponent - 0.9).abs() < 0.1,
        "{}",
        fit.zipf_exponent
    );
    let error = fit.error(&log, RULE, 8).unwrap();
    for row in &error.rows {
        // Percentiles change in steps.
        let bound = if row.metric.ends_with(" %") {
            0.15
        } else {
            0.06
        };
        assert!(row.error().abs() < bound, "{row:?}");
    }
}

#[test]
fn a_log_compared_with_itself_has_no_error() {
    let log = Preset::Demo.spec().generate(4, 3000).unwrap();
    let error = FitError::between(&log, &log, RULE);
    assert!(error.rows.iter().all(|row| row.error() == 0.0));
    assert_eq!(
        error.row("LRU byte hits, 4 MB").map(|row| row.unit),
        Some(Unit::Share)
    );
}

#[test]
fn a_fit_can_be_written_and_read_back() {
    let log = Preset::Demo.spec().generate(4, 3000).unwrap();
    let spec = Fit::of(&log, RULE).unwrap().spec;
    let text = toml::to_string(&spec).unwrap();
    assert_eq!(toml::from_str::<GeneratorSpec>(&text).unwrap(), spec);
}

#[test]
fn errors_are_absolute_for_shares_and_relative_otherwise() {
    let row = |unit, original, generated| FitRow {
        metric: String::new(),
        unit,
        original,
        generated,
    };
    assert_eq!(row(Unit::Share, 0.5, 0.75).error(), 0.25);
    assert_eq!(row(Unit::Bytes, 200.0, 150.0).error(), -0.25);
    assert_eq!(row(Unit::Count, 0.0, 2.0).error(), 2.0);
}

#[test]
fn a_log_without_sizes_is_not_fitted() {
    let line = "1+1: Tue Aug 22 00:00:05 1995 (/a): Sent text: GET /a HTTP/1.0\n";
    let log =
        Log::from_reader(Path::new("test"), line.as_bytes(), &ReadOptions::default()).unwrap();
    assert!(matches!(
        Fit::of(&log, RULE),
        Err(NotReplayable::NoSizes { .. })
    ));
}
