//! What the report says of its NICs, on the profiles that ship with the program.

use baton_microbench::applications::{Drivers, RouterTraffic, StandInLog};
use baton_microbench::measure::TrialLength;
use baton_microbench::report::{
    ApplicationLaboratory, ApplicationPoint, Laboratory, Partners, Point, Results, Statement,
    Verdict, WebLoad, bars, statements,
};
use baton_wire::Span;
use baton_workload::packets::StandIn;
use baton_workload::{Replay, SessionRule};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Trials that are long enough to tell what holds.
const SHORT: TrialLength = TrialLength::Frames {
    frames: 3_000,
    least: Span::from_ms(16),
    most: Span::from_ms(30),
};

/// Measures `points` on two threads.
fn measure(
    laboratory: &Laboratory,
    results: &mut Results,
    points: impl IntoIterator<Item = Point>,
) {
    let points = results.missing(points);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(results));
    let work = || {
        while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let measurement = laboratory.measure(point).expect("it can be simulated");
            found
                .lock()
                .expect("no thread panics")
                .insert(*point, measurement);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
}

/// The best partners, as `baton reproduce nic-microbench` finds them in a minute; of large frames Netgear and 3Com send alike.
const PARTNERS: Partners = Partners {
    large_receiver: 0,
    large_sender: 4,
    small_receiver: 1,
    small_sender: 0,
    acceptor: 1,
    initiator: 1,
};

fn all() -> Vec<Statement> {
    let mut laboratory = Laboratory::of_report();
    laboratory.settings.trials = SHORT;
    laboratory.settings.connections = vec![8];
    let mut results = Results::default();
    let bars = bars(laboratory.nics.len(), &PARTNERS);
    measure(&laboratory, &mut results, bars.iter().map(|bar| bar.point));
    statements(&results, &PARTNERS)
}

#[test]
fn most_statements_hold() {
    let all = all();
    let of = |verdict| -> Vec<&str> {
        let such = all.iter().filter(|one| one.verdict == verdict);
        such.map(|one| one.id).collect()
    };
    let holding = [
        "C1", "C2", "C3", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13",
    ];
    assert_eq!(of(Verdict::Holds), holding, "{all:#?}");
    assert_eq!(of(Verdict::Partly), ["C5", "C14"], "{all:#?}");
}

/// The seed of the command line, if none is given.
const SEED: u64 = 1;

/// Some of the values of the book's page on NICs, as `baton reproduce nic-applications` prints them: all of it takes minutes. Mb/s and thousand
/// packets a second, by the NIC's place in the report's order.
#[test]
fn applications_are_as_published() {
    const WORLD_CUP: usize = 0;
    const ADV: usize = 0;
    let site = StandInLog::WorldCup;
    let log = Replay::new(&site.generate(SEED), SessionRule::PIPELINED).expect("it has sizes");
    let logs = vec![WebLoad {
        name: site.name(),
        replay: log,
    }];
    let traces = vec![RouterTraffic::of(&StandIn::Adv.generate(SEED, 32_768))];
    let mut laboratory = ApplicationLaboratory::of_report(logs, traces);
    laboratory.web.users.truncate(1);
    let web = |nic| ApplicationPoint::Web {
        log: WORLD_CUP,
        nic,
    };
    let router = |drivers, nic| ApplicationPoint::Router {
        drivers,
        trace: ADV,
        nic,
    };
    let published = [
        (web(0), 917.0),
        (web(5), 693.0),
        (router(Drivers::Interrupt, 0), 304.0),
        (router(Drivers::Interrupt, 5), 112.0),
        (router(Drivers::Polling, 4), 240.0),
    ];
    for (point, expected) in published {
        let found = laboratory
            .measure(&point)
            .expect("it can be simulated")
            .value();
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{point:?}: {found}, published {expected}"
        );
    }
}
