//! Scripts from logs.

use super::*;
use crate::log::Log;
use std::path::Path;

const TEXT: &str = "\
1,30/Apr/1998,22:00:00,/a,200,500
2,30/Apr/1998,22:00:01,/b,200,70
1,30/Apr/1998,22:00:04,/b,304,-
1,30/Apr/1998,22:00:09,/a,200,500
2,30/Apr/1998,22:01:00,/a,206,10
";

fn replay(rule: SessionRule) -> Replay {
    let log = Log::from_reader(Path::new("test"), TEXT.as_bytes(), None).unwrap();
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
                    .all(|r| !r.pipelined && !r.dynamic && r.think_us == 0)
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
    // The first connection has three requests; the two others, with one each, make up for it.
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
