//! Tests of complete generated logs: determinism, connections, presets, hand-written specifications.

use super::*;
use crate::analyse::Analysis;
use crate::fit::FitError;
use crate::log::{Layout, ReadOptions, write_log};
use crate::session::{SessionRule, Sessions};
use std::path::Path;

/// A specification as in an experiment file.
const BY_HAND: &str = r#"
[connections]
requests = { constant = 5 }
pause_s = { log-normal = { median = 2, sigma = 1.5, max = 60 } }
per_client = 3
requests_per_s = 20

[locality]
burst_share = 0.3
gap = { steps = [{ share = 0.5, value = 10 }, { share = 0.5, value = 1000 }] }

[[files.classes]]
count = 10
requests = 0.6
not_modified = 0.25
size = { constant = 500 }

[[files.classes]]
count = 1000
requests = 0.4
size = { log-normal-pareto = { median = 4000, sigma = 1.0, tail_share = 0.1, tail_exponent = 1.2, max = 1e6 } }
"#;

fn by_hand() -> GeneratorSpec {
    toml::from_str(BY_HAND).unwrap()
}

#[test]
fn a_specification_written_by_hand_is_followed() {
    let log = by_hand().generate(3, 30_000).unwrap();
    assert_eq!(log.requests.len(), 30_000);
    assert!(log.requests.is_sorted_by_key(|r| r.time_us));
    let popular: Vec<_> = log.requests.iter().filter(|r| r.file < 10).collect();
    assert_eq!(popular.len(), 18_000);
    let full = popular
        .iter()
        .filter(|r| r.bytes == 500 && r.status == 200)
        .count();
    let not_modified = popular
        .iter()
        .filter(|r| r.bytes == 0 && r.status == 304)
        .count();
    assert_eq!(full + not_modified, 18_000);
    assert!(
        (4300..4700).contains(&not_modified),
        "{not_modified} of 18,000 not modified, not a quarter"
    );
    let duration_s = Analysis::of(&log, SessionRule::PAPERS).totals.duration_s();
    assert!(
        (1450.0..1700.0).contains(&duration_s),
        "30,000 requests at 20/s in {duration_s} s"
    );
}

#[test]
fn the_rule_of_the_papers_finds_the_connections_again() {
    let log = by_hand().generate(3, 30_000).unwrap();
    let sessions = Sessions::new(&log.requests, SessionRule::PAPERS);
    assert_eq!(sessions.len(), 6000);
    assert!(sessions.iter().all(|c| c.len() == 5));
    let per_client = 6000.0 / log.clients.len() as f64;
    assert!(
        (2.5..3.2).contains(&per_client),
        "{per_client} connections per client"
    );
}

#[test]
fn seed_and_number_of_requests_determine_the_log() {
    let spec = Preset::Demo.spec();
    let log = |seed| spec.generate(seed, 5000).unwrap().requests;
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}

#[test]
fn the_first_requests_are_the_same_on_every_machine() {
    let log = Preset::Demo.spec().generate(1, 2000).unwrap();
    let digest = log.requests.iter().fold(0u64, |d, r| {
        [r.time_us, r.bytes, u64::from(r.client), u64::from(r.file)]
            .iter()
            .fold(d, |d, v| {
                d.rotate_left(5)
                    .wrapping_add(*v)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            })
    });
    assert_eq!(digest, 0x385b_7a50_4863_e3f7, "{digest:#x}");
}

#[test]
fn a_generated_log_written_and_read_is_the_same() {
    let log = Preset::Demo.spec().generate(9, 5000).unwrap();
    let mut text = Vec::new();
    write_log(&log, Layout::Common, &mut text).unwrap();
    let again = Log::from_reader(
        Path::new("demo.log"),
        text.as_slice(),
        &ReadOptions::default(),
    )
    .unwrap();
    assert_eq!(
        (again.format, again.skipped.total(), again.resorted),
        (Format::Common, 0, false)
    );
    for (a, b) in log.requests.iter().zip(&again.requests) {
        assert_eq!(
            (a.time_us, a.bytes, a.status, a.method),
            (b.time_us, b.bytes, b.status, b.method)
        );
        assert_eq!(log.urls.get(a.file), again.urls.get(b.file));
        assert_eq!(log.clients.get(a.client), again.clients.get(b.client));
    }
    assert_eq!(log.requests.len(), again.requests.len());
}

#[test]
fn no_requests_is_an_empty_log() {
    let log = Preset::Demo.spec().generate(1, 0).unwrap();
    assert!(log.requests.is_empty() && log.replayable().is_err());
}

#[test]
fn misspelled_and_invalid_parameters_are_named() {
    let error = |from: &str, to: &str| {
        assert!(BY_HAND.contains(from), "{from}");
        match toml::from_str::<GeneratorSpec>(&BY_HAND.replacen(from, to, 1)) {
            Ok(spec) => spec.generate(1, 10).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert!(error("per_client = 3", "per_clinet = 3").contains("unknown field `per_clinet`"));
    assert_eq!(
        error("per_client = 3", "per_client = 0.5"),
        "connections.per_client is 0.5; expected a number of at least 1"
    );
    assert_eq!(
        error("count = 10", "count = 0"),
        "files.classes.count is 0; expected 1 to 10,000,000"
    );
    assert_eq!(
        error("burst_share = 0.3", "burst_share = 3"),
        "locality.burst_share is 3; expected a share from 0 to 1"
    );
    assert_eq!(
        error("share = 0.5", "share = 0.4"),
        "sum of locality.gap.steps.share is 0.9; expected 1"
    );
    let pareto =
        "files.classes.size.log-normal-pareto.tail_share is 2; expected a number between 0 and 1";
    assert_eq!(error("tail_share = 0.1", "tail_share = 2"), pareto);
    assert_eq!(
        error("requests_per_s = 20", "requests_per_s = -1"),
        "connections.requests_per_s is -1; expected a number above 0"
    );
}

#[test]
fn presets_have_names_and_pass_their_own_check() {
    for preset in Preset::ALL {
        assert_eq!(Preset::from_name(preset.name()), Some(preset));
        preset.spec().check().unwrap();
        let text = toml::to_string(&preset.spec()).unwrap();
        assert_eq!(
            toml::from_str::<GeneratorSpec>(&text).unwrap(),
            preset.spec()
        );
    }
    assert_eq!(Preset::from_name("clarknet"), None);
}

fn analyse(preset: Preset, seed: u64) -> Analysis {
    let log = preset.spec().generate(seed, preset.requests()).unwrap();
    Analysis::of(&log, SessionRule::PAPERS)
}

fn assert_published(analysis: &Analysis, mean_bytes: f64, hits_4_8_16_mib: [f64; 3]) {
    let mean = analysis.totals.mean_bytes();
    assert!(
        (mean / mean_bytes - 1.0).abs() < 0.03,
        "mean response {mean}, published {mean_bytes}"
    );
    for (mib, published) in [4, 8, 16].into_iter().zip(hits_4_8_16_mib) {
        let hits = analysis.locality.byte_hits(mib).unwrap();
        assert!(
            (hits - published).abs() < 0.02,
            "{mib} MB hits {hits}, published {published}"
        );
    }
    let lifetimes = analysis.lifetimes.as_ref().unwrap();
    let (top, bottom) = (
        lifetimes.top_packets(10).unwrap(),
        lifetimes.bottom_half_packets(),
    );
    assert!(
        top > 0.45,
        "the top tenth of the connections has {top} of the packets"
    );
    assert!(
        bottom < 0.10,
        "the bottom half of the connections has {bottom} of the packets"
    );
}

/// Stand-ins have the published mean response and locality.
#[test]
fn stand_ins_are_within_a_few_points_of_the_published_numbers() {
    for preset in Preset::DATA_CACHING {
        for seed in [1, 2] {
            let log = preset.spec().generate(seed, preset.requests()).unwrap();
            let error = FitError::against(&preset.published().unwrap(), &log).unwrap();
            assert_eq!(error.rows.len(), 4);
            for row in &error.rows {
                assert!(
                    row.error().abs() < 0.04,
                    "{} {seed}: {row:?}",
                    preset.name()
                );
            }
        }
    }
}

#[test]
fn half_of_the_files_of_a_delivery_network_are_requested_once() {
    let analysis = analyse(Preset::Cdn, 1);
    let once = analysis.popularity.once as f64;
    let requested = analysis.totals.urls as f64;
    assert!(
        (0.4..0.6).contains(&(once / requested)),
        "{once} of {requested}"
    );
    assert!((150e3..250e3).contains(&analysis.totals.mean_bytes()));
}

#[test]
fn the_ibm_preset_matches_the_published_numbers() {
    for seed in [1, 2] {
        assert_published(&analyse(Preset::Ibm, seed), 2755.0, [0.44, 0.52, 0.60]);
    }
}

#[test]
fn the_world_cup_lifetimes_preset_matches_the_published_numbers() {
    for seed in [1, 2] {
        let analysis = analyse(Preset::WorldCupLifetimes, seed);
        assert_published(&analysis, 7511.0, [0.49, 0.66, 0.83]);
        let not_modified = analysis
            .statuses
            .iter()
            .find(|s| s.status == 304)
            .unwrap()
            .requests;
        assert!(
            (0.12..0.14).contains(&(not_modified as f64 / 200_000.0)),
            "{not_modified} of 200,000 not modified"
        );
    }
}
