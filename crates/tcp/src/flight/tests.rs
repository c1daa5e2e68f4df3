use super::*;
use proptest::prelude::*;

/// Near the wrap-around of sequence numbers.
const UNA: SeqNr = SeqNr(u32::MAX - 50);

fn at(us: u64) -> Moment {
    Moment::default() + Span::from_us(us)
}

/// Ten segments of ten numbers, sent a microsecond apart.
fn ten() -> Flight {
    let mut flight = Flight::default();
    for number in 0..10 {
        flight.sent(
            UNA,
            UNA + 10 * number,
            UNA + 10 * (number + 1),
            at(number.into()),
        );
    }
    flight
}

fn ends(flight: &Flight) -> Vec<u32> {
    flight.segments.iter().map(|sent| sent.end - UNA).collect()
}

/// Returns the segments that newly arrive when the peer reports these numbers.
fn report(flight: &mut Flight, start: u32, end: u32) -> Vec<Sent> {
    let mut arrived = Vec::new();
    flight.report(UNA, UNA + start, UNA + end, |sent| arrived.push(*sent));
    arrived
}

fn detect(flight: &mut Flight, latest: Sent, now_us: u64, lost_after_us: u64) -> Found {
    flight.detect(
        UNA,
        &Judgment {
            now: at(now_us),
            latest,
            lost_after: Span::from_us(lost_after_us),
        },
        |_, _| (),
    )
}

#[test]
fn segments_are_cut_where_reports_are() {
    let mut flight = ten();
    assert_eq!(report(&mut flight, 25, 40).len(), 2);
    assert_eq!(ends(&flight), [10, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]);
    flight.verify(UNA, UNA + 100).expect("in order");
}

#[test]
fn only_whole_segments_are_reported() {
    let flight = ten();
    let whole = |start: u32, end: u32| {
        let (start, end) = (UNA + start, UNA + end);
        let block = flight.whole_segments(UNA, SackBlock { start, end });
        (block.start - UNA, block.end - UNA)
    };
    assert_eq!(whole(20, 40), (20, 40));
    assert_eq!(whole(25, 40), (30, 40));
    assert_eq!(whole(20, 45), (20, 40));
    assert_eq!(whole(95, 100), (100, 100));
    assert_eq!(whole(91, 99), (100, 100));
    assert_eq!(whole(35, 36), (40, 40));
    assert_eq!(whole(90, 105), (90, 105), "beyond the data: unchanged");
}

#[test]
fn segments_sent_before_an_arrived_one_are_lost_in_time() {
    let mut flight = ten();
    let latest = *report(&mut flight, 40, 50).last().expect("it arrived");
    let found = detect(&mut flight, latest, 50, 60);
    assert_eq!((found.lost, found.wait), (false, Span::from_us(13)));
    let found = detect(&mut flight, latest, 61, 60);
    assert_eq!((found.lost, found.wait), (true, Span::from_us(2)));
    assert_eq!(
        (flight.lost(), flight.first_lost(UNA)),
        (20, Some((UNA, UNA + 10)))
    );
    let found = detect(&mut flight, latest, 1000, 60);
    assert_eq!((found.lost, found.wait), (true, Span::ZERO));
    assert_eq!(flight.lost(), 40, "what was sent later is not judged");
}

#[test]
fn the_order_decides_when_times_are_equal() {
    let mut flight = Flight::default();
    flight.sent(UNA, UNA, UNA + 10, at(0));
    flight.sent(UNA, UNA + 10, UNA + 20, at(5));
    // At the same moment, new data and then the first segment again.
    flight.sent(UNA, UNA + 20, UNA + 30, at(9));
    flight.sent(UNA, UNA, UNA + 10, at(9));
    let latest = report(&mut flight, 20, 30)[0];
    detect(&mut flight, latest, 100, 10);
    assert_eq!(
        flight.first_lost(UNA),
        Some((UNA + 10, UNA + 20)),
        "not what went after it"
    );
}

#[test]
fn retransmitting_in_smaller_pieces_keeps_the_rest_lost() {
    let mut flight = ten();
    flight.lose_all(UNA);
    assert_eq!(flight.lost(), 100);
    flight.sent(UNA, UNA, UNA + 7, at(20));
    assert_eq!(flight.first_lost(UNA), Some((UNA + 7, UNA + 10)));
    assert_eq!((flight.lost(), flight.again_segments()), (93, 1));
    flight.forgive(UNA);
    assert_eq!((flight.lost(), flight.first_lost(UNA)), (0, None));
    flight.verify(UNA, UNA + 100).expect("in order");
}

#[test]
fn a_timeout_marks_the_first_and_the_old_segments_lost() {
    let mut flight = ten();
    flight.time_out(UNA, at(13), Span::from_us(10), |_, _| ());
    assert_eq!(flight.lost(), 40);
    let mut flight = ten();
    flight.time_out(UNA, at(10), Span::from_us(100), |_, _| ());
    assert_eq!(flight.lost(), 10);
}

#[test]
fn memory_is_released_when_nothing_is_in_flight() {
    let mut flight = Flight::default();
    for number in 0..1000 {
        flight.sent(UNA, UNA + number, UNA + number + 1, at(0));
    }
    flight.advance(UNA, UNA + 1000, |_| ());
    assert!(flight.segments.capacity() <= KEPT_CAPACITY);
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Again(u32, u32),
    Acknowledge(u32),
    Report(u32, u32),
    Detect,
    TimeOut,
    Forgive,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..20).prop_map(Step::Send),
        2 => (0u32..100, 1u32..20).prop_map(|(from, len)| Step::Again(from, len)),
        2 => (0u32..40).prop_map(Step::Acknowledge),
        3 => (0u32..100, 1u32..30).prop_map(|(from, len)| Step::Report(from, len)),
        2 => Just(Step::Detect),
        1 => Just(Step::TimeOut),
        1 => Just(Step::Forgive),
    ]
}

proptest! {
    /// Counts and order hold whatever happens, and each number arrives at most once.
    #[test]
    fn counts_and_order_of_segments_in_flight_hold(steps in prop::collection::vec(step(), 1..80)) {
        let mut flight = Flight::default();
        let (mut una, mut max, mut now) = (UNA, UNA, 0);
        let mut latest: Option<Sent> = None;
        for step in steps {
            now += 3;
            let len = max - una;
            match step {
                Step::Send(len) => {
                    flight.sent(una, max, max + len, at(now));
                    max += len;
                }
                Step::Again(from, count) if from < len => {
                    let seq = una + from;
                    flight.sent(una, seq, (seq + count).earliest(max), at(now));
                }
                Step::Acknowledge(count) => {
                    let ack = (una + count).earliest(max);
                    flight.advance(una, ack, |sent| latest = Some(*sent));
                    una = ack;
                }
                Step::Report(from, count) if from + count <= len => {
                    flight.report(una, una + from, una + from + count, |sent| latest = Some(*sent));
                }
                Step::Detect => {
                    if let Some(latest) = latest {
                        let lost_after = Span::from_us(5);
                        flight.detect(una, &Judgment { now: at(now), latest, lost_after }, |_, _| ());
                    }
                }
                Step::TimeOut => flight.time_out(una, at(now), Span::from_us(4), |_, _| ()),
                Step::Forgive => flight.forgive(una),
                _ => {}
            }
            prop_assert_eq!(flight.verify(una, max), Ok(()));
            prop_assert_eq!(flight.first_lost(una).is_some(), flight.lost() > 0);
        }
    }
}
