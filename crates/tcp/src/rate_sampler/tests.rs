use super::*;

const START: Moment = Moment::ZERO;

fn at(ms: u64) -> Moment {
    START + Span::from_secs(1) + Span::from_ms(ms)
}

/// A sampler with the segments that are in flight.
struct Bench {
    flight: Flight,
    sampler: RateSampler,
    una: SeqNr,
    max: SeqNr,
}

impl Bench {
    fn new() -> Self {
        Self {
            flight: Flight::default(),
            sampler: RateSampler::new(),
            una: SeqNr(0),
            max: SeqNr(0),
        }
    }

    fn send(&mut self, ms: u64, len: u32) {
        let (before, end) = (self.max - self.una, self.max + len);
        self.flight.sent(self.una, self.max, end, at(ms));
        self.max = end;
        self.sampler.sent(
            &Transmission {
                at: at(ms),
                order: self.flight.order(),
                end,
                again: false,
                before,
                after: before + len,
                fills_window: false,
            },
            true,
        );
    }

    fn ack(&mut self, ms: u64, up_to: u32) -> Option<RateSample> {
        let ack = SeqNr(up_to);
        let bytes = ack - self.una;
        let sampler = &mut self.sampler;
        self.flight
            .advance(self.una, ack, |sent| sampler.arrived(sent));
        self.una = ack;
        sampler.count(at(ms), bytes);
        let sample = sampler.generate(at(ms), None);
        sampler.clean(&self.flight);
        sample
    }
}

/// The draft's example of a steady flow: a segment each 10 ms, acknowledged 50 ms later.
#[test]
fn a_steady_flow_has_the_rate_of_its_segments() {
    let mut bench = Bench::new();
    let mut last = None;
    for step in 0..20 {
        bench.send(step * 10, 1000);
        if let Some(number) = step.checked_sub(5) {
            last = bench.ack(step * 10, (number as u32 + 1) * 1000);
        }
    }
    let sample = last.expect("segments arrived");
    assert_eq!(sample.rate, 100_000);
    assert_eq!(sample.delivered, 6000);
    assert_eq!(sample.interval, Span::from_ms(60));
    assert_eq!(sample.total_delivered - sample.prior_delivered, 6000);
    assert!(!sample.is_app_limited);
    assert_eq!(
        bench.sampler.sent.len(),
        5,
        "only what is under way is kept"
    );
}

/// 4.1.1.2.2: acknowledgments that come all at once do not make the path look faster than the sending rate.
#[test]
fn compressed_acknowledgments_are_bounded_by_the_sending_rate() {
    let mut bench = Bench::new();
    for step in 0..10 {
        bench.send(step * 10, 1000);
    }
    assert!(bench.ack(200, 1000).is_some());
    let sample = bench.ack(201, 10_000).expect("segments arrived");
    // The first was delivered before the others' samples began: all count from the first transmission on.
    assert_eq!(sample.interval, Span::from_ms(201));
    assert_eq!(sample.delivered, 10_000);
}

#[test]
fn application_limited_data_is_marked_until_it_arrives() {
    let mut bench = Bench::new();
    bench.send(0, 1000);
    bench.sampler.mark_app_limited(1000);
    bench.send(1, 1000);
    assert!(!bench.ack(50, 1000).expect("a sample").is_app_limited);
    assert!(bench.sampler.is_app_limited());
    assert!(bench.ack(51, 2000).expect("a sample").is_app_limited);
    assert!(!bench.sampler.is_app_limited(), "the bubble is gone");
    bench.send(60, 1000);
    assert!(!bench.ack(110, 3000).expect("a sample").is_app_limited);
}

#[test]
fn an_interval_shorter_than_the_minimum_round_trip_is_ignored() {
    let mut bench = Bench::new();
    bench.send(0, 1000);
    let sampler = &mut bench.sampler;
    bench
        .flight
        .advance(SeqNr(0), SeqNr(1000), |sent| sampler.arrived(sent));
    sampler.count(at(5), 1000);
    let sample = sampler.generate(at(5), Some(Span::from_ms(20)));
    assert_eq!(sample.expect("a sample").rate, 0);
}

#[test]
fn losses_since_a_transmission_are_counted() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.send(0, 1000);
    }
    let first = bench.flight.first().expect("it is in flight");
    let lost = bench.sampler.lost(&first, 1000).expect("it is recorded");
    assert_eq!((lost.lost, lost.tx_in_flight), (1000, 1000));
    let sample = bench.ack(30, 4000).expect("segments arrived");
    assert_eq!((sample.lost, sample.tx_in_flight), (1000, 4000));
}

#[test]
fn without_segments_in_flight_a_retransmission_starts_a_new_interval() {
    let mut sampler = RateSampler::new();
    let transmission = |ms, end, again, before| Transmission {
        at: at(ms),
        order: 0,
        end: SeqNr(end),
        again,
        before,
        after: before + 1000,
        fills_window: false,
    };
    sampler.sent(&transmission(0, 1000, false, 0), false);
    sampler.sent(&transmission(1, 2000, false, 1000), false);
    sampler.acknowledged(SeqNr(1000));
    sampler.count(at(50), 1000);
    assert!(sampler.generate(at(50), None).is_some());
    sampler.sent(&transmission(300, 2000, true, 1000), false);
    assert_eq!(sampler.sent.len(), 1);
    sampler.acknowledged(SeqNr(2000));
    sampler.count(at(350), 1000);
    let sample = sampler.generate(at(350), None).expect("a sample");
    assert_eq!(sample.prior_delivered, 1000);
}
