//! Tests of scripts from logs.

use super::*;
use crate::Content;
use crate::log::Log;
use crate::log::ReadOptions;
use std::path::Path;

const TEXT: &str = "\
1,30/Apr/1998,22:00:00,/a,200,500
2,30/Apr/1998,22:00:01,/b,200,70
1,30/Apr/1998,22:00:04,/b,304,-
1,30/Apr/1998,22:00:09,/a,200,500
2,30/Apr/1998,22:01:00,/a,206,10
";

fn replay(rule: SessionRule) -> Replay {
    let log =
        Log::from_reader(Path::new("test"), TEXT.as_bytes(), &ReadOptions::default()).unwrap();
    Replay::new(&log, rule).unwrap()
}

fn bytes(script: &[RequestSpec]) -> Vec<u64> {
    script.iter().map(|r| r.bytes).collect()
}

#[test]
fn connections_come_in_order_and_start_again() {
    let mut replay = replay(SessionRule::PAPERS);
    assert_eq!((replay.connections(), replay.requests()), (3, 5));
    let mut script = Vec::new();
    for lap in 0..3 {
        assert_eq!(replay.laps(), lap);
        for expected in [&[500, 0, 500][..], &[70], &[10]] {
            replay.next_connection(&mut script);
            assert_eq!(bytes(&script), expected);
            assert!(
                script
                    .iter()
                    .all(|r| !r.pipelined && r.content == Content::Static && r.wait_ps == 0)
            );
        }
    }
    replay.seek(4);
    replay.next_connection(&mut script);
    assert_eq!(bytes(&script), [70]);
}

#[test]
fn requests_under_five_seconds_apart_are_pipelined_where_asked_for() {
    let mut replay = replay(SessionRule::PIPELINED);
    let mut script = Vec::new();
    replay.next_connection(&mut script);
    assert_eq!(
        script.iter().map(|r| r.pipelined).collect::<Vec<_>>(),
        [false, true, false]
    );
}

#[test]
fn every_request_fits_its_file() {
    let mut replay = replay(SessionRule::PAPERS);
    let mut script = Vec::new();
    for _ in 0..replay.connections() {
        replay.next_connection(&mut script);
        assert!(
            script
                .iter()
                .all(|r| r.bytes <= replay.files().size(r.file))
        );
    }
}

#[test]
fn replayers_get_equal_shares_and_together_everything() {
    let whole = replay(SessionRule::PAPERS);
    let mut parts = whole.split(2);
    assert_eq!(parts.len(), 2);
    let mut script = Vec::new();
    // The first connection has three requests; the other two, with one each, compensate for it.
    parts[0].next_connection(&mut script);
    assert_eq!(bytes(&script), [500, 0, 500]);
    for expected in [70, 10, 70] {
        parts[1].next_connection(&mut script);
        assert_eq!(bytes(&script), [expected]);
    }
    assert_eq!([parts[0].requests(), parts[1].requests()], [3, 2]);
    assert_eq!([parts[0].laps(), parts[1].laps()], [1, 1]);
}

#[test]
fn a_log_has_no_more_replayers_than_connections() {
    assert_eq!(replay(SessionRule::PAPERS).split(9).len(), 3);
}

/// Creates a log of connections with one request each, whose sizes are 1, 2, 3 and so on.
fn numbered(connections: u32) -> Replay {
    let line = |n: u32| format!("{n},30/Apr/1998,22:00:00,/{n},200,{n}\n");
    let text: String = (1..=connections).map(line).collect();
    let log =
        Log::from_reader(Path::new("test"), text.as_bytes(), &ReadOptions::default()).unwrap();
    Replay::new(&log, SessionRule::PAPERS).unwrap()
}

fn pass(replay: &mut Replay) -> Vec<u64> {
    let mut script = Vec::new();
    let mut next = || {
        replay.next_connection(&mut script);
        script[0].bytes
    };
    (0..1000).map(|_| next()).collect()
}

#[test]
fn each_seed_draws_an_order_of_blocks_and_each_pass_has_all_of_the_log() {
    let [mut first, mut again, mut other] = [1, 1, 2].map(|seed| numbered(1000).drawn(seed));
    let passes = [pass(&mut first), pass(&mut first)];
    assert_eq!(passes, [pass(&mut again), pass(&mut again)]);
    assert_ne!(passes[0], pass(&mut other));
    assert_ne!(passes[0], passes[1]);
    for drawn in passes {
        let neighbours = drawn
            .windows(2)
            .filter(|pair| pair[0] % 1000 + 1 == pair[1]);
        assert!(neighbours.count() >= 1000 - 2 * BLOCKS, "blocks are kept");
        let mut all = drawn;
        all.sort_unstable();
        assert_eq!(all, (1..=1000).collect::<Vec<_>>());
    }
}

#[test]
fn a_share_of_a_log_can_be_shuffled() {
    let parts = numbered(10).split(3);
    let drawn = parts
        .into_iter()
        .zip(0..)
        .map(|(part, seed)| part.drawn(seed));
    let mut bytes: Vec<u64> = drawn
        .flat_map(|mut part| {
            let mut script = Vec::new();
            let count = part.connections();
            let mut next = move || {
                part.next_connection(&mut script);
                script[0].bytes
            };
            (0..count).map(|_| next()).collect::<Vec<_>>()
        })
        .collect();
    bytes.sort_unstable();
    assert_eq!(bytes, (1..=10).collect::<Vec<_>>());
}
