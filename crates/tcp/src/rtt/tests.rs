use super::*;

fn config() -> Config {
    Config {
        rto_initial_ms: 3000,
        rto_min_ms: 10,
        rto_max_ms: 60_000,
        ..Config::default()
    }
}

#[test]
fn the_example_of_the_rfc_by_hand() {
    let config = config();
    let mut rtt = RttEstimator::new(&config);
    assert_eq!(rtt.rto(&config), Span::from_ms(3000));
    // SRTT 100, RTTVAR 50.
    rtt.sample(Span::from_ms(100), &config);
    assert_eq!(rtt.rto(&config), Span::from_ms(300));
    // RTTVAR 3/4 * 50 + 1/4 * 80 = 57.5, SRTT 7/8 * 100 + 1/8 * 180 = 110.
    rtt.sample(Span::from_ms(180), &config);
    assert_eq!(rtt.rto(&config), Span::from_ms(340));
}

#[test]
fn the_timeout_doubles_up_to_its_limit_until_a_measurement() {
    let config = config();
    let mut rtt = RttEstimator::new(&config);
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.push(rtt.rto(&config).as_us() / 1_000_000);
        rtt.back_off();
    }
    assert_eq!(seen, [3, 6, 12, 24, 48, 60, 60]);
    for _ in 0..300 {
        rtt.back_off();
    }
    assert_eq!(rtt.rto(&config), Span::from_secs(60));
    rtt.sample(Span::from_ms(1), &config);
    assert_eq!(
        rtt.rto(&config),
        Span::from_ms(10),
        "no less than the least"
    );
}

#[test]
fn probes_have_a_backoff_of_their_own() {
    let config = config();
    let mut rtt = RttEstimator::new(&config);
    rtt.back_off();
    assert_eq!(rtt.probe_interval(0, &config), Span::from_secs(3));
    assert_eq!(rtt.probe_interval(2, &config), Span::from_secs(12));
}
