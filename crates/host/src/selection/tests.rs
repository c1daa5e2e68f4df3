use super::*;
use std::net::{IpAddr, Ipv4Addr};

pub(super) fn view(port: u16, enqueues_before: u32, enqueues: u32) -> View {
    let addr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    View {
        local: Endpoint::new(addr, port),
        remote: Endpoint::new(addr, 40_000),
        age: Span::ZERO,
        requests: 1,
        enqueues_before,
        enqueues,
        bytes_sent: 0,
        bytes_in_send_buffer: 0,
        response_bytes: 0,
        receives: 0,
        foreseen_enqueues: None,
        failures: 0,
        was_offloaded: false,
        nic_connections: 0,
        nic_soft_limit: 10,
    }
}

pub(super) fn life(port: u16, enqueues: u32) -> Life {
    let View { local, remote, .. } = view(port, 0, enqueues);
    Life {
        local,
        remote,
        requests: 1,
        enqueues,
        bytes_sent: 0,
    }
}

#[test]
fn first_come_first_served_asks_once() {
    assert_eq!(Fcfs.on_established(&view(80, 0, 0)), Decision::HandOff);
    assert_eq!(Fcfs.on_send(&view(80, 0, 1)), Decision::Stay);
    assert!(!Fcfs.reconsiders(&view(80, 0, 1)));
}

#[test]
fn a_threshold_is_reached_once() {
    let mut policy = Threshold { enqueues: 4 };
    assert_eq!(policy.on_established(&view(80, 0, 0)), Decision::Stay);
    assert_eq!(policy.on_send(&view(80, 0, 3)), Decision::Stay);
    assert_eq!(policy.on_send(&view(80, 3, 4)), Decision::HandOff);
    assert_eq!(
        policy.on_send(&view(80, 1, 7)),
        Decision::HandOff,
        "many pages at once"
    );
    assert_eq!(policy.on_send(&view(80, 4, 5)), Decision::Stay);
    let mut at_once = Threshold { enqueues: 0 };
    assert_eq!(at_once.on_established(&view(80, 0, 0)), Decision::HandOff);
    assert_eq!(at_once.on_send(&view(80, 0, 1)), Decision::Stay);
}

#[test]
fn policies_are_not_asked_before_they_may_choose() {
    let before = view(80, 0, 3);
    let after = View {
        receives: 2,
        ..view(80, 3, 4)
    };
    let looks = |policy: &dyn Selection| {
        [before, after].map(|view| {
            let NextLook { enqueues, receives } = policy.next_look(&view);
            (enqueues, receives)
        })
    };
    let never = (u32::MAX, u32::MAX);
    assert_eq!(looks(&Never), [never, never]);
    assert_eq!(looks(&Fcfs), [never, never]);
    assert_eq!(looks(&Threshold { enqueues: 4 }), [(4, u32::MAX), never]);
    assert_eq!(looks(&AtReceive { receives: 2 }), [(u32::MAX, 2), never]);
    let alternate = Alternate { enqueues: 4 };
    assert_eq!(looks(&alternate), [(4, u32::MAX), (8, u32::MAX)]);
    let retry = Retry::new(Box::new(Never));
    assert_eq!(looks(&retry), [never, never]);
    let refused = View {
        failures: 1,
        ..before
    };
    let again = NextLook {
        enqueues: 4,
        ..NextLook::NEVER
    };
    assert_eq!(retry.next_look(&refused), again, "a refusal is not final");
    let ports: Vec<(u16, Box<dyn Selection>)> = vec![(80, Box::new(alternate))];
    let by_port = PerPort::new(ports, Box::new(Never));
    assert_eq!(looks(&by_port), [(4, u32::MAX), (8, u32::MAX)]);
    assert_eq!(by_port.next_look(&view(81, 0, 1)), NextLook::NEVER);
}

#[test]
fn connections_change_sides_at_every_nth_enqueue() {
    let mut policy = Alternate { enqueues: 4 };
    assert_eq!(policy.on_established(&view(80, 0, 0)), Decision::Stay);
    let moves = |(before, now)| {
        let view = view(80, before, now);
        assert_eq!(
            policy.on_send(&view) == Decision::HandOff,
            policy.takes_back(&view)
        );
        assert!(policy.reconsiders(&view));
        policy.takes_back(&view)
    };
    let moved = [(2, 3), (3, 4), (4, 7), (7, 8), (8, 20), (20, 23)].map(moves);
    assert_eq!(moved, [false, true, false, true, true, false]);
}

#[test]
fn the_nth_read_hands_off() {
    let mut policy = AtReceive { receives: 2 };
    let read = |receives| View {
        receives,
        ..view(80, 0, 0)
    };
    assert_eq!(policy.on_established(&read(0)), Decision::Stay);
    let decisions = [1, 2, 3].map(|receives| policy.on_receive(&read(receives)));
    assert_eq!(
        decisions,
        [Decision::Stay, Decision::HandOff, Decision::Stay]
    );
    assert_eq!(policy.on_send(&read(2)), Decision::Stay);
}

#[test]
fn a_refused_handoff_is_retried_when_there_is_space() {
    let mut policy = Retry::new(Box::new(Threshold { enqueues: 4 }));
    let refused = View {
        failures: 1,
        ..view(80, 5, 6)
    };
    assert_eq!(policy.on_send(&view(80, 5, 6)), Decision::Stay);
    assert_eq!(policy.on_send(&view(80, 3, 4)), Decision::HandOff);
    assert!(policy.reconsiders(&refused));
    assert_eq!(policy.on_send(&refused), Decision::HandOff);
    let full = View {
        nic_connections: refused.nic_soft_limit,
        ..refused
    };
    assert_eq!(policy.on_send(&full), Decision::Stay);
    let back = View {
        failures: 0,
        was_offloaded: true,
        ..refused
    };
    assert_eq!(policy.on_send(&back), Decision::HandOff);
}

#[test]
fn each_port_has_its_policy() {
    let text = r#"
        policy = "per-port"
        default = { policy = "never" }
        ports = [
            { port = 80, selection = { policy = "fcfs" } },
            { port = 8080, selection = { policy = "threshold", enqueues = 2 } },
        ]
    "#;
    let config: SelectionConfig = toml::from_str(text).expect("a policy");
    let mut policy = config.build();
    assert_eq!(policy.on_established(&view(80, 0, 0)), Decision::HandOff);
    assert_eq!(policy.on_established(&view(8080, 0, 0)), Decision::Stay);
    assert_eq!(policy.on_send(&view(8080, 1, 2)), Decision::HandOff);
    assert_eq!(policy.on_established(&view(22, 0, 0)), Decision::Stay);
    assert_eq!(policy.on_send(&view(22, 1, 2)), Decision::Stay);
    assert!(!policy.reconsiders(&view(22, 1, 2)));
}

#[test]
fn an_invalid_configuration_is_refused_with_a_reason() {
    for (text, complaint) in [
        (r#"policy = "sometimes""#, "unknown variant `sometimes`"),
        (r#"policy = "threshold""#, "missing field `enqueues`"),
        (
            "policy = \"threshold\"\nenqueues = 4\nbytes = 3",
            "unknown field `bytes`",
        ),
    ] {
        let error = toml::from_str::<SelectionConfig>(text).expect_err("no policy");
        assert!(error.to_string().contains(complaint), "{error}");
    }
}
