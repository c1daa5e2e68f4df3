use super::*;
use baton_tcp::{Config, Stack};
use baton_wire::{Endpoint, Flow, Header, Time};

fn segment(seq: u32, len: usize, flags: Flags) -> Segment<Bytes> {
    let end = |port| Endpoint::new("192.0.2.1".parse().expect("an address"), port);
    let mut segment = Segment {
        src: end(1),
        dst: end(2),
        ecn: Default::default(),
        header: Header {
            seq: SeqNr(seq),
            flags,
            ..Header::default()
        },
        payload: Default::default(),
    };
    segment.payload.push(Bytes::from(vec![0; len]));
    segment
}

/// State of a connection, for tests to modify.
fn info() -> Info {
    let end = |port| Endpoint::new("192.0.2.1".parse().expect("an address"), port);
    let mut stack = Stack::<Bytes>::new(Config::default(), 1);
    let flow = Flow {
        local: end(1),
        remote: end(2),
    };
    let conn = stack.connect(Time::ZERO, flow).expect("a connection");
    Info {
        send_mss: 1000,
        congestion_window: 10_000,
        ..stack.info(Time::ZERO, conn)
    }
}

#[test]
fn segments_that_continue_a_burst_join_it() {
    let mut burst = Burst::new(segment(1, 1000, Flags::ACK), 10);
    let next = segment(1001, 1000, Flags::ACK);
    assert!(burst.takes(&next));
    burst.join(next);
    assert!(!burst.takes(&segment(3001, 1000, Flags::ACK)), "a gap");
    assert!(
        !burst.takes(&segment(2001, 1001, Flags::ACK)),
        "larger than the others"
    );
    let mut other = segment(2001, 1000, Flags::ACK);
    other.header.window = 7;
    assert!(!burst.takes(&other), "another window");
    let last = segment(2001, 400, Flags::ACK | Flags::PSH | Flags::FIN);
    assert!(burst.takes(&last));
    burst.join(last);
    assert!(
        !burst.takes(&segment(2401, 400, Flags::ACK)),
        "a short one ends it"
    );
    let (whole, unit) = burst.into_segment();
    assert_eq!((whole.payload_len(), unit), (2400, 1000));
    assert_eq!(whole.header.flags, Flags::ACK | Flags::PSH | Flags::FIN);
}

#[test]
fn control_segments_stay_alone() {
    for flags in [Flags::SYN, Flags::RST, Flags::ACK | Flags::FIN] {
        let burst = Burst::new(segment(1, 1000, flags), 10);
        assert!(!burst.takes(&segment(1001, 1000, flags)));
    }
    let pure_ack = Burst::new(segment(1, 0, Flags::ACK), 10);
    assert!(!pure_ack.takes(&segment(1, 1000, Flags::ACK)));
}

#[test]
fn without_a_rate_a_burst_is_as_large_as_possible() {
    assert_eq!(Pacing::default().segments(&info(), 2), 65);
}

/// Ten segments in 100 ms, doubled in slow start, are 195 bytes in 2^-10 s, so the minimum number of segments applies.
#[test]
fn a_slow_rate_makes_small_bursts() {
    let mut pacing = Pacing::default();
    let slow = Info {
        srtt: Some(Span::from_ms(100)),
        min_rtt: Some(Span::from_ms(100)),
        ..info()
    };
    pacing.update(&slow);
    assert_eq!(pacing.rate(), Some(200_000));
    assert_eq!(pacing.segments(&slow, 2), 2);
    let near = Info {
        srtt: Some(Span::from_us(100)),
        min_rtt: Some(Span::from_us(100)),
        ..info()
    };
    assert_eq!(pacing.segments(&near, 2), 65, "near peers get all at once");
}

#[test]
fn a_burst_is_at_most_half_a_window() {
    assert_eq!(half_window(&info()), 5);
    let least = Info {
        congestion_window: 1000,
        ..info()
    };
    assert_eq!(half_window(&least), 1);
}
