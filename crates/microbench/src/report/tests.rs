use super::*;
use crate::measure::Measurement;
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
fn a_receive_test_is_the_send_test_of_its_partner() {
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

/// Returns a measurement without trials.
fn measured(test: Test, best: f64) -> Measurement {
    Measurement {
        test,
        best,
        best_trial: 0,
        goals: Vec::new(),
        trials: Vec::new(),
    }
}

#[test]
fn the_best_partner_sends_or_receives_most() {
    // The slower of sender and receiver limits each pair.
    let (send, receive) = ([300.0, 200.0, 100.0], [150.0, 120.0, 310.0]);
    let mut results = Results::default();
    for point in pairs(3) {
        let Pairing {
            under_test,
            partner,
            ..
        } = point.pairing;
        let best = match point.test {
            Test::UdpReceive18 => f64::min(receive[under_test], send[partner]),
            _ => f64::min(send[under_test], receive[partner]),
        };
        results.insert(point, measured(point.test, best));
    }
    let (best_sender, best_receiver) = (0, 2);
    let expected = Partners {
        large_receiver: best_receiver,
        large_sender: best_sender,
        small_receiver: best_receiver,
        small_sender: best_sender,
        acceptor: best_receiver,
        initiator: best_sender,
    };
    assert_eq!(Partners::find(3, &results), expected);
}
