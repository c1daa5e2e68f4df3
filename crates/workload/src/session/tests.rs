//! Tests of the rule on examples, and against a simple model on random logs.

use super::*;
use crate::log::Method;
use proptest::prelude::*;

fn request(time_s: u64, client: u32) -> Request {
    Request {
        time_us: time_s * 1_000_000,
        bytes: 1,
        client,
        file: 0,
        status: 200,
        method: Method::Get,
    }
}

#[test]
fn fifteen_seconds_share_a_connection_and_sixteen_do_not() {
    let requests = [(0, 1), (1, 0), (15, 1), (17, 0), (30, 1), (46, 1)].map(|(t, c)| request(t, c));
    let sessions = Sessions::new(&requests, SessionRule::PAPERS);
    let groups: Vec<_> = sessions.iter().collect();
    assert_eq!(groups, [&[0, 2, 4][..], &[1], &[3], &[5]]);
    assert_eq!(sessions.requests(1), [1]);
    assert_eq!(sessions.len(), 4);
}

#[test]
fn no_requests_make_no_connections() {
    assert!(Sessions::new(&[], SessionRule::PAPERS).is_empty());
}

/// The rule in its simplest form: look back for the client's previous request.
fn naive(requests: &[Request], rule: SessionRule) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for (i, r) in requests.iter().enumerate() {
        let previous = (0..i).rev().find(|&j| requests[j].client == r.client);
        match previous {
            Some(j)
                if r.time_us - requests[j].time_us <= u64::from(rule.persistent_s) * 1_000_000 =>
            {
                let group = groups
                    .iter_mut()
                    .find(|g| g.contains(&(j as u32)))
                    .expect("has a group");
                group.push(i as u32);
            }
            _ => groups.push(vec![i as u32]),
        }
    }
    groups
}

proptest! {
    #[test]
    fn grouping_agrees_with_the_plain_rule(
        mut times in prop::collection::vec((0u64..200, 0u32..5), 0..80),
        persistent_s in 0u32..30,
    ) {
        times.sort_unstable();
        let requests: Vec<_> = times.iter().map(|&(t, c)| request(t, c)).collect();
        let rule = SessionRule { persistent_s, pipeline_s: None };
        let sessions = Sessions::new(&requests, rule);
        let groups: Vec<_> = sessions.iter().map(<[u32]>::to_vec).collect();
        prop_assert_eq!(groups, naive(&requests, rule));
    }
}
