use super::*;
use crate::flight::Flight;

const UNA: SeqNr = SeqNr(u32::MAX - 50);

fn at(ms: u64) -> Moment {
    Moment::default() + Span::from_ms(ms)
}

fn delivery(now: Moment, echo: Option<u32>) -> Delivery {
    Delivery {
        now,
        echo,
        recover: UNA,
        acked: 0,
        delivered: 0,
        reported: 0,
        segments: 0,
        first_rtt: None,
        last_rtt: None,
        original: false,
        reordering: 0,
        duplicate: None,
        echoes_congestion: false,
    }
}

/// Four segments of ten, sent a millisecond apart.
fn four() -> Flight {
    let mut flight = Flight::default();
    for number in 0..4 {
        flight.sent(
            UNA,
            UNA + 10 * number,
            UNA + 10 * (number + 1),
            at(number.into()),
        );
    }
    flight
}

fn report(flight: &mut Flight, rack: &mut Rack, index: u32, mut ack: Delivery) -> Delivery {
    let start = UNA + 10 * index;
    flight.report(UNA, start, start + 10, |sent| {
        rack.arrived(sent, 10, &mut ack)
    });
    if ack.reordering > 0 {
        rack.saw_reordering(ack.reordering / 10);
    }
    ack
}

/// RFC 8985 6.2, step 3.
#[test]
fn reordering_is_detected_when_a_lower_segment_arrives_later() {
    let (mut flight, mut rack) = (four(), Rack::new(UNA));
    report(&mut flight, &mut rack, 1, delivery(at(50), None));
    assert_eq!(rack.reordering_seen(), 0);
    report(&mut flight, &mut rack, 3, delivery(at(51), None));
    assert_eq!(rack.reordering_seen(), 0);
    report(&mut flight, &mut rack, 2, delivery(at(52), None));
    assert_eq!((rack.reordering_seen(), rack.reordering_degree()), (1, 2));
    assert_eq!(rack.min_rtt(), Some(Span::from_ms(48)));
}

/// RFC 8985 6.2, step 2.
#[test]
fn an_ack_counts_for_a_retransmission_only_if_it_can_be_its_own() {
    let judged_by = |now_ms, echo| {
        let (mut flight, mut rack) = (four(), Rack::new(UNA));
        report(&mut flight, &mut rack, 3, delivery(at(50), None));
        flight.sent(UNA, UNA, UNA + 10, at(60));
        report(&mut flight, &mut rack, 0, delivery(at(now_ms), echo));
        let judgment = rack.judgment(at(now_ms), true, 0, Span::ZERO);
        judgment.expect("something arrived").latest.end
    };
    let (fourth, first) = (UNA + 40, UNA + 10);
    assert_eq!(judged_by(61, None), fourth, "faster than any round trip");
    assert_eq!(
        judged_by(120, Some(59)),
        fourth,
        "the echo is of the original"
    );
    assert_eq!(judged_by(120, Some(60)), first);
    assert_eq!(judged_by(120, None), first);
}

/// RFC 8985 6.2, step 4.
#[test]
fn the_reordering_window_follows_the_observations() {
    let (mut flight, mut rack) = (four(), Rack::new(UNA));
    let srtt = Span::from_ms(200);
    report(&mut flight, &mut rack, 1, delivery(at(101), None));
    let window =
        |rack: &Rack, recovering, reported| rack.reordering_window(recovering, reported, srtt);
    assert_eq!(window(&rack, false, 1), Span::from_ms(25));
    assert_eq!(window(&rack, false, 3), Span::ZERO, "as in RFC 6675");
    assert_eq!(window(&rack, true, 1), Span::ZERO);
    report(&mut flight, &mut rack, 0, delivery(at(102), None));
    assert_eq!(
        window(&rack, true, 3),
        Span::from_ms(25),
        "counting is over"
    );
    for times in 2..=8 {
        rack.note_duplicates(true, UNA + 10 * times, UNA + 10 * times + 5);
        let expected = Span::from_ms(25 * u64::from(times)).min(srtt);
        assert_eq!(window(&rack, false, 1), expected);
        rack.note_duplicates(true, UNA + 10 * times, UNA + 100);
        assert_eq!(window(&rack, false, 1), expected, "once a round trip");
    }
    for _ in 0..16 {
        rack.recovered();
    }
    assert_eq!(
        window(&rack, false, 1),
        Span::from_ms(25),
        "it does not last"
    );
}

#[test]
fn the_minimum_round_trip_expires() {
    let mut least = LeastRtt::default();
    let secs = |secs| Moment::default() + Span::from_secs(secs);
    least.sample(secs(1), Span::from_ms(10));
    least.sample(secs(2), Span::from_ms(50));
    assert_eq!(least.get(), Some(Span::from_ms(10)));
    least.sample(secs(200), Span::from_ms(30));
    assert_eq!(least.get(), Some(Span::from_ms(10)));
    least.sample(secs(400), Span::from_ms(40));
    assert_eq!(least.get(), Some(Span::from_ms(30)));
}
