//! Tests between two ends of a cable in memory.

use baton_live::Clock;
use baton_live::port::{
    Batch, CounterSink, FaultSpec, Faults, LinkInfo, MemoryPort, Port as LivePort, memory_pair,
};
use baton_microbench::{Load, Place, Port, Request, Test};
use baton_tester::{Station, Tester};
use baton_wire::{Span, Time};
use bytes::Bytes;
use std::io;
use std::os::fd::BorrowedFd;

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn request(test: Test, load: Load) -> Request {
    Request {
        test,
        load,
        warm_up: Span::from_ms(5),
        duration: Span::from_ms(50),
    }
}

/// A tester between these ports.
fn tester<'a>(
    ports: [Box<dyn LivePort + Send>; 2],
    interrupted: &'a (dyn Fn() -> bool + Sync),
) -> Tester<'a> {
    let clock = Clock::start();
    let station = |port| Box::new(Station::new(port, None, None, false, clock));
    let [under_test, partner] = ports.map(station);
    Tester::new(under_test, partner, None, interrupted, Box::new(|_| {}))
}

fn cable() -> [Box<dyn LivePort + Send>; 2] {
    let (left, right) = memory_pair(MACS, 1_500);
    [Box::new(left), Box::new(right)]
}

#[test]
fn datagrams_all_arrive_over_a_good_cable() {
    let mut tester = tester(cable(), &|| false);
    for test in [
        Test::UdpSend1472,
        Test::UdpReceive18,
        Test::UdpThreeWay1472,
        Test::UdpThreeWay18,
    ] {
        let trial = tester
            .trial(&request(test, Load::Rate(4_000.0)))
            .expect("memory");
        let ways = if test.is_three_way() { 2 } else { 1 };
        let streams = [trial.sent, trial.received];
        let offered: u64 = streams.iter().map(|stream| stream.offered).sum();
        assert_eq!(offered, 200 * ways, "{test:?}");
        for stream in streams {
            // A machine that is busy with something else has no time to send.
            let late = stream.losses.at(Place::Sender);
            assert_eq!(stream.offered, stream.delivered + late, "{test:?}");
            assert_eq!(stream.losses.total(), late, "{test:?}");
        }
    }
    let details = tester.take_details();
    let arrivals = details[2].partner.arrivals.expect("it received");
    assert_eq!((arrivals.wrong, arrivals.copies, arrivals.stale), (0, 0, 0));
    assert!(arrivals.latency.is_some(), "one clock");
}

#[test]
fn bursts_are_sent_back_to_back() {
    let mut tester = tester(cable(), &|| false);
    let trial = tester
        .trial(&request(Test::UdpSend18, Load::Burst(500)))
        .expect("memory");
    assert_eq!((trial.sent.offered, trial.sent.delivered), (500, 500));
}

/// A port that loses every tenth frame, and does not count the losses.
struct Leaky(MemoryPort, u64);

impl LivePort for Leaky {
    fn receive(&mut self, now: Time, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.0.receive(now, frames)
    }
    fn send(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        let mut kept = Batch::default();
        for frame in batch.iter() {
            self.1 += 1;
            if !self.1.is_multiple_of(10) {
                kept.push(frame);
            }
        }
        batch.sent(batch.len());
        self.0.send(now, &mut kept)
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn link(&self) -> &LinkInfo {
        self.0.link()
    }
    fn counters(&self, _sink: &mut dyn CounterSink) {}
}

#[test]
fn uncounted_losses_are_reported_as_unplaced() {
    let (left, right) = memory_pair(MACS, 1_500);
    let ports: [Box<dyn LivePort + Send>; 2] = [Box::new(right), Box::new(Leaky(left, 0))];
    let mut tester = tester(ports, &|| false);
    let mut load = request(Test::UdpReceive18, Load::Rate(2_000.0));
    load.warm_up = Span::ZERO;
    let trial = tester.trial(&load).expect("memory");
    let losses = trial.received.losses;
    assert_eq!(trial.received.offered, 100);
    assert_eq!(
        losses.total(),
        losses.at(Place::Unplaced) + losses.at(Place::Sender)
    );
    assert_eq!(losses.at(Place::Unplaced), trial.received.sent / 10);
    assert_eq!(trial.loss_ratio(), losses.total() as f64 / 100.0);
}

#[test]
fn late_and_duplicate_frames_are_distinguished() {
    let (left, right) = memory_pair(MACS, 1_500);
    let spec: FaultSpec = "tx:duplicate=5%,reorder=5%,corrupt=5%"
        .parse()
        .expect("faults");
    let faulty = Faults::new(left, &spec, 7);
    let ports: [Box<dyn LivePort + Send>; 2] = [Box::new(faulty), Box::new(right)];
    let mut tester = tester(ports, &|| false);
    let trial = tester
        .trial(&request(Test::UdpSend18, Load::Rate(20_000.0)))
        .expect("memory");
    let details = tester.take_details();
    let arrivals = details[0].partner.arrivals.expect("it received");
    assert!(arrivals.copies > 0 && arrivals.reordered > 0 && arrivals.wrong > 0);
    let stream = trial.sent;
    assert_eq!(stream.offered, stream.delivered + stream.losses.total());
}

#[test]
fn tcp_carries_data_and_opens_connections() {
    let mut tester = tester(cable(), &|| false);
    for test in [Test::TcpSend, Test::TcpReceive] {
        let trial = tester
            .trial(&request(test, Load::Connections(3)))
            .expect("memory");
        assert!(trial.goodput_bytes > 100_000, "{test:?}: {trial:?}");
    }
    for test in [Test::Accept, Test::Initiate] {
        let trial = tester
            .trial(&request(test, Load::Rate(500.0)))
            .expect("memory");
        assert_eq!(trial.offered(), 25, "{test:?}: {trial:?}");
        assert!(trial.connections > 0, "{test:?}: {trial:?}");
        let opened = [trial.received, trial.sent][usize::from(test == Test::Initiate)];
        let late = opened.losses.at(Place::Sender);
        assert_eq!(trial.connections + late, 25, "{test:?}: {trial:?}");
    }
}

#[test]
fn an_interrupt_ends_a_trial() {
    let mut tester = tester(cable(), &|| true);
    let mut load = request(Test::UdpSend18, Load::Rate(10.0));
    load.duration = Span::from_secs(3_600);
    let error = tester.trial(&load).expect_err("interrupted");
    assert_eq!(error.to_string(), "interrupted");
}
