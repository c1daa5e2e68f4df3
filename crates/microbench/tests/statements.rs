//! Checks what the report says about its NICs, on the profiles that ship with the program.

use baton_config::parts::{shipped_host, shipped_nic};
use baton_microbench::Profiles;
use baton_microbench::applications::{Drivers, RouterTraffic, StandInLog};
use baton_microbench::report::{
    ApplicationLaboratory, ApplicationPoint, Laboratory, Partners, Point, Results, Verdict,
    WebLoad, bars, pairs, statements,
};
use baton_workload::packets::StandIn;
use baton_workload::{Replay, SessionRule};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The profiles that ship with the program.
const PROFILES: Profiles = Profiles {
    nic: shipped_nic,
    host: shipped_host,
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

/// The best partners according to the report, by their places in its order of NICs.
const PARTNERS: Partners = Partners {
    large_receiver: 0,
    large_sender: 4,
    small_receiver: 1,
    small_sender: 0,
    acceptor: 1,
    initiator: 4,
};

/// Measures everything that `baton reproduce nic-microbench` does.
#[test]
fn all_statements_hold_and_partners_are_found() {
    let laboratory = Laboratory::of_report(&PROFILES);
    let mut results = Results::default();
    let nics = laboratory.nics.len();
    measure(&laboratory, &mut results, pairs(nics));
    let partners = Partners::find(nics, &results);
    assert_eq!(partners, PARTNERS);
    let bars = bars(nics, &partners);
    measure(&laboratory, &mut results, bars.iter().map(|bar| bar.point));
    for one in statements(&results, &partners) {
        assert_eq!(one.verdict, Verdict::Holds, "{one:#?}");
    }
}

/// The seed of the command line, if none is given.
const SEED: u64 = 1;

/// Checks some values of the book's page on NICs that `baton reproduce nic-applications` prints; measuring all takes minutes. Values are
/// Mb/s and thousand packets per second, by the NIC's place in the report's order.
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
    let mut laboratory = ApplicationLaboratory::of_report(&PROFILES, logs, traces);
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
        (web(5), 699.0),
        (router(Drivers::Interrupt, 0), 303.4),
        (router(Drivers::Interrupt, 5), 121.7),
        (router(Drivers::Polling, 4), 231.2),
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
