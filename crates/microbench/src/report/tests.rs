use super::*;
use crate::test::Test;

#[test]
fn there_are_96_bars() {
    let partners = Partners {
        large_receiver: 0,
        large_sender: 4,
        small_receiver: 1,
        small_sender: 0,
        acceptor: 1,
        initiator: 4,
    };
    let bars = bars(6, &partners);
    assert_eq!(bars.len(), 96);
    let of_figure = |figure| {
        bars.iter()
            .filter(|bar| bar.series.figure() == figure)
            .count()
    };
    assert_eq!(
        (5..=11).map(of_figure).collect::<Vec<_>>(),
        [18, 24, 12, 12, 6, 6, 18]
    );
}

#[test]
fn what_one_end_sends_the_other_receives() {
    let received = Point::of(Test::TcpReceive, 2, 4);
    assert_eq!(received.measured(), Point::of(Test::TcpSend, 4, 2));
    assert_eq!(
        Point::of(Test::Accept, 0, 1).measured(),
        Point::of(Test::Initiate, 1, 0)
    );
    let results = Results::default();
    assert_eq!(
        results
            .missing([received, Point::of(Test::TcpSend, 4, 2)])
            .len(),
        1,
        "each once"
    );
}
