//! Reads the public log excerpts (`baton_testkit::excerpts` says where they are). A test is ignored if one of its excerpts does not exist.

use baton_testkit::excerpts;
use baton_workload::capture::{CaptureAnalysis, CaptureFormat, ConnectionCounts};
use baton_workload::log::{Format, NotReplayable, SkipReason};
use baton_workload::packets::{PacketTrace, StandIn};
use baton_workload::{Analysis, Fit, Log, Replay, SessionRule, Workload};
use libtest_mimic::{Arguments, Trial};

const NASA_JULY: &str = "nasa_http_19950701_first9999.tsv.xz";
const NASA_AUGUST: &str = "nasa_http_19950801_first9999.tsv.xz";
const WORLD_CUP: &str = "worldcup98_day6_sample200k.csv.xz";
const EPA: &str = "epa_http_19950830_00h-12h.log.xz";
const SDSC: &str = "sdsc_http_19950822.log.xz";
const REQUESTS_PER_MINUTE: &str = "worldcup98_requests_per_minute.csv.xz";
const ATM_PACKETS: &str = "atm_link_20000125_packets.csv.xz";
const ATM_CAPTURE: &str = "atm_link_20000125.erf.xz";

/// A test with its name and the excerpts that it reads.
type Test = (&'static str, &'static [&'static str], fn());

const ALL: [Test; 11] = [
    ("nasa_july", &[NASA_JULY], nasa_july),
    ("nasa_august", &[NASA_AUGUST], nasa_august),
    ("world_cup", &[WORLD_CUP], world_cup),
    ("epa", &[EPA], epa),
    (
        "sdsc_is_analysed_but_not_replayed",
        &[SDSC],
        sdsc_is_analysed_but_not_replayed,
    ),
    (
        "other_files_are_refused",
        &[REQUESTS_PER_MINUTE, ATM_PACKETS, ATM_CAPTURE],
        other_files_are_refused,
    ),
    ("atm_capture", &[ATM_CAPTURE], atm_capture),
    (
        "atm_packets_are_those_of_a_router",
        &[ATM_CAPTURE],
        atm_packets_are_those_of_a_router,
    ),
    (
        "every_log_with_sizes_replays_completely",
        &[NASA_JULY, NASA_AUGUST, WORLD_CUP, EPA],
        every_log_with_sizes_replays_completely,
    ),
    (
        "the_fit_of_the_world_cup_is_within_bounds",
        &[WORLD_CUP],
        the_fit_of_the_world_cup_is_within_bounds,
    ),
    (
        "the_fits_of_nasa_are_within_bounds",
        &[NASA_JULY, NASA_AUGUST],
        the_fits_of_nasa_are_within_bounds,
    ),
];

fn main() {
    let trial = |(name, files, test): Test| {
        let run = move || {
            test();
            Ok(())
        };
        let missing = excerpts::missing(files);
        Trial::test(name, run)
            .with_ignored_flag(missing.is_some())
            .with_kind(missing.unwrap_or_default())
    };
    let trials = ALL.map(trial).into();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn read(name: &str) -> Log {
    Log::read(&excerpts::path(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the sum of all response sizes, and the sum of the largest size of each distinct URL, in bytes.
fn bytes(log: &Log) -> (u64, u64) {
    (log.content_bytes(), log.files.footprint())
}

fn nasa_july() {
    let log = read(NASA_JULY);
    assert_eq!(log.format, Format::NasaTsv);
    assert_eq!((log.requests.len(), log.skipped.total()), (9999, 0));
    assert_eq!((log.clients.len(), log.urls.len()), (936, 1165));
    assert_eq!(bytes(&log), (246_472_942, 38_304_696));
    assert!(!log.resorted);
    assert_eq!(log.requests[0].time_us, 804_571_201_000_000);
    assert_eq!(
        log.requests.iter().filter(|r| r.status == 200).count(),
        9012
    );
}

fn nasa_august() {
    let log = read(NASA_AUGUST);
    assert_eq!((log.requests.len(), log.skipped.total()), (9999, 0));
    assert_eq!((log.clients.len(), log.urls.len()), (853, 1323));
    assert_eq!(bytes(&log), (179_517_299, 62_280_905));
    assert_eq!(
        log.requests.iter().filter(|r| r.status == 200).count(),
        9046
    );
}

fn world_cup() {
    let log = read(WORLD_CUP);
    assert_eq!(log.format, Format::WorldCupCsv);
    assert_eq!((log.requests.len(), log.skipped.total()), (200_000, 0));
    assert_eq!((log.clients.len(), log.urls.len()), (17_506, 2731));
    assert_eq!(log.dashes, 8667);
    assert!(log.resorted);
    assert_eq!(
        log.requests.iter().filter(|r| r.status == 200).count(),
        173_924
    );
    // The sizes in the log sum up to 1,502,471,633 bytes. They include those of 77 responses with status 304, which are not sent.
    assert_eq!(bytes(&log), (1_502_471_633 - 199_437, 54_616_868));
}

fn epa() {
    let log = read(EPA);
    assert_eq!(log.format, Format::Epa);
    assert_eq!((log.requests.len(), log.clients.len()), (15_753, 916));
    // One request has no URL. Its size was logged as `-`, like those of 1,796 others.
    assert_eq!(
        (
            log.skipped.total(),
            log.skipped.count(SkipReason::Request),
            log.dashes
        ),
        (1, 1, 1796)
    );
    let first = log.skipped.reasons().next().map(|(_, skipped)| skipped);
    assert_eq!(first.map(|skipped| skipped.first_line), Some(4531));
    // URLs that contain spaces also differ in what follows the space.
    assert_eq!(log.urls.len(), 2993);
    assert_eq!(bytes(&log), (99_541_814, 41_118_564));
}

fn sdsc_is_analysed_but_not_replayed() {
    let log = read(SDSC);
    assert_eq!(log.format, Format::Sdsc);
    // The skipped lines are messages of the server without a path.
    assert_eq!(
        (log.requests.len(), log.skipped.count(SkipReason::Request)),
        (25_430, 2908)
    );
    assert_eq!(log.skipped.total(), 2908);
    let refusal = Replay::new(&log, SessionRule::PAPERS).unwrap_err();
    assert_eq!(
        refusal,
        NotReplayable::NoSizes {
            format: Format::Sdsc
        }
    );
    let analysis = Analysis::of(&log, SessionRule::PAPERS);
    assert!(analysis.sizes.is_none() && analysis.popularity.zipf_exponent > 0.5);
}

fn other_files_are_refused() {
    let others = [
        (REQUESTS_PER_MINUTE, "line 1: \"period,count\""),
        (ATM_PACKETS, "line 1: \"time_s,iface,"),
        (ATM_CAPTURE, "is a packet capture"),
    ];
    for (name, expected) in others {
        let error = Log::read(&excerpts::path(name)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Compares the lengths with the counts of another program, and with the synthetic stand-in for this trace.
fn atm_packets_are_those_of_a_router() {
    let trace = PacketTrace::read(&excerpts::path(ATM_CAPTURE)).unwrap();
    assert_eq!((trace.packets.len(), trace.left_out.total()), (31_249, 0));
    assert!(
        (trace.mean_bytes() - 256.8).abs() < 0.05,
        "{}",
        trace.mean_bytes()
    );
    let stand_in = StandIn::Nlanr.generate(1, 100_000);
    for bytes in [40, 64, 128, 576, 1_400] {
        let difference = trace.share_up_to(bytes) - stand_in.share_up_to(bytes);
        assert!(difference.abs() < 0.02, "{bytes} bytes: {difference}");
    }
}

/// Compares the numbers of packets and connections with the counts of another program.
fn atm_capture() {
    let found = CaptureAnalysis::read(&excerpts::path(ATM_CAPTURE)).unwrap();
    let packets = found.packets;
    assert_eq!(
        (packets.all, packets.tcp, packets.other_ip),
        (31_249, 27_537, 3712)
    );
    assert_eq!(found.format, CaptureFormat::Erf);
    let counts = ConnectionCounts {
        all: 2091,
        whole: 1339,
        begun_before: 490,
        not_ended: 383,
        one_way: 2091,
        stray_segments: 0,
    };
    assert_eq!(found.connections, counts);
    let lifetime_ms = found.lifetime_ms;
    assert_eq!(
        (lifetime_ms.max, lifetime_ms.mean.round()),
        (64_036, 5820.0)
    );
}

fn every_log_with_sizes_replays_completely() {
    for name in [NASA_JULY, NASA_AUGUST, WORLD_CUP, EPA] {
        let log = read(name);
        for rule in [SessionRule::PAPERS, SessionRule::PIPELINED] {
            let mut replay = Replay::new(&log, rule).unwrap();
            let mut script = Vec::new();
            let (mut requests, mut bytes) = (0, 0);
            for _ in 0..replay.connections() {
                replay.next_connection(&mut script);
                requests += script.len();
                bytes += script.iter().map(|r| r.bytes).sum::<u64>();
                assert!(!script[0].pipelined);
            }
            assert_eq!((requests, bytes), (log.requests.len(), log.content_bytes()));
        }
    }
}

/// The largest errors that a fit may have.
struct Bounds {
    /// Relative error of the mean response, of the mean requests and of the mean packets per connection.
    means: f64,
    /// Difference of the shares of requests for the top files.
    popularity: f64,
    /// Difference of LRU byte hits.
    hits: f64,
    /// Difference of the packet shares of long- and short-lived connections.
    lifetimes: f64,
}

fn assert_fits(name: &str, bounds: &Bounds) {
    let log = read(name);
    let fit = Fit::of(&log, SessionRule::PAPERS).unwrap();
    let error = fit.error(&log, SessionRule::PAPERS, 5).unwrap();
    for row in &error.rows {
        let metric = row.metric.as_str();
        let bound = match metric {
            m if m.ends_with(", mean") => bounds.means,
            m if m.starts_with("requests for the top") => bounds.popularity,
            m if m.starts_with("LRU byte hits") => bounds.hits,
            m if m.starts_with("packets of the") => bounds.lifetimes,
            _ => continue,
        };
        assert!(row.error().abs() <= bound, "{name}: {metric}: {row:?}");
    }
    assert_eq!(error.rows.len(), 23);
    assert_eq!(error, fit.error(&log, SessionRule::PAPERS, 5).unwrap());
}

fn the_fit_of_the_world_cup_is_within_bounds() {
    let bounds = Bounds {
        means: 0.02,
        popularity: 0.005,
        hits: 0.04,
        lifetimes: 0.03,
    };
    assert_fits(WORLD_CUP, &bounds);
}

fn the_fits_of_nasa_are_within_bounds() {
    let bounds = Bounds {
        means: 0.05,
        popularity: 0.005,
        hits: 0.06,
        lifetimes: 0.07,
    };
    assert_fits(NASA_JULY, &bounds);
    assert_fits(NASA_AUGUST, &bounds);
}
