use super::*;
use crate::frame::LinkRate;
use crate::measure::TrialLength;
use crate::port::{Place, Resource};
use crate::simulated::{route, serve};
use baton_wire::Span;
use baton_workload::packets::{LeftOut, PacketTrace, StandIn, TracePacket};
use baton_workload::{Replay, SessionRule};

const WARM_UP: Span = Span::from_ms(5);
const DURATION: Span = Span::from_ms(20);

fn host(name: &str) -> HostConfig {
    crate::profile::host(name)
}

fn nic(name: &str) -> NicHardware {
    crate::profile::nic(name)
}

/// Returns a host on which applications cost nothing.
fn fast_host() -> HostConfig {
    let mut fast = host("athlon-2600");
    fast.clock_mhz = 100_000;
    fast.instructions_per_cycle = 16;
    fast
}

/// Returns machines that all have the same NIC and host.
fn alike<'a>(nic: &'a NicHardware, host: &'a HostConfig) -> Machines<'a> {
    Machines {
        nic,
        host,
        client_nic: nic,
        client_host: host,
    }
}

/// Returns packets of one length to many networks.
fn packets(len: u16, ttl: u8) -> RouterTraffic {
    let packet = |number: u8| TracePacket {
        len,
        src: [11, 0, number, 1].into(),
        dst: [12, 0, number, 1].into(),
        protocol: 17,
        ttl,
    };
    RouterTraffic::of(&PacketTrace {
        name: "packets of one length".to_owned(),
        packets: (0..64).map(packet).collect(),
        left_out: LeftOut::default(),
    })
}

#[test]
fn an_ideal_nic_forwards_at_line_rate() {
    let (nic, host) = (NicHardware::default(), fast_host());
    for len in [46, 1_500] {
        let traffic = packets(len, 64);
        // Slightly below line rate, to allow for the granularity of a client's clock and of the wire.
        let rate = 0.9999 * traffic.line_rate(LinkRate::GIGABIT);
        for drivers in Drivers::ALL {
            let machines = alike(&nic, &host);
            let trial = route(&machines, drivers, &traffic, rate, [WARM_UP, DURATION]);
            let trial = trial.expect("it can be simulated");
            assert_eq!(trial.loss_ratio(), 0.0, "{trial:?}");
            assert!(full(&trial.uses).contains(&Resource::Wire), "{trial:?}");
        }
    }
}

#[test]
fn the_host_is_the_bottleneck_of_an_ideal_nic() {
    let (nic, fast, mut slow) = (NicHardware::default(), fast_host(), host("athlon-2600"));
    slow.driver.route = 10_000;
    let machines = Machines {
        host: &slow,
        ..alike(&nic, &fast)
    };
    for drivers in Drivers::ALL {
        let traffic = packets(46, 64);
        let found = measure_router(&machines, drivers, &traffic, &short()).expect("it works");
        // 10,000 instructions plus those of the drivers at 2083 MHz.
        assert!((150.0..200.0).contains(&found.kpps), "{found:?}");
        let best = found.best.expect("there is one");
        assert!(full(&best.uses).contains(&Resource::Host), "{best:?}");
    }
}

fn short() -> RouterSettings {
    RouterSettings {
        width: 0.02,
        trials: TrialLength::of_frames(3_000),
    }
}

#[test]
fn nothing_is_lost_below_the_rate_without_drops() {
    let (server, client) = (host("athlon-2600"), host("athlon-2000"));
    let (under_test, client_nic) = (nic("nic-ace"), nic("nic-intel-desktop"));
    let machines = Machines {
        nic: &under_test,
        host: &server,
        client_nic: &client_nic,
        client_host: &client,
    };
    let traffic = RouterTraffic::of(&StandIn::Mem.generate(3, 4_000));
    let found = measure_router(&machines, Drivers::Interrupt, &traffic, &short());
    let kpps = found.expect("it works").kpps;
    let at = |share: f64, duration: Span| {
        let rate = share * kpps * 1e3;
        route(
            &machines,
            Drivers::Interrupt,
            &traffic,
            rate,
            [WARM_UP, duration],
        )
        .expect("it works")
    };
    for share in [0.3, 0.6, 0.9] {
        let trial = at(share, DURATION);
        assert_eq!(trial.loss_ratio(), 0.0, "{trial:?}");
    }
    // Packet memory on the NIC absorbs a short overload.
    let long = Span::from_ms(100);
    let above = at(1.3, long);
    assert!(above.loss_ratio() > 0.05, "{above:?}");
    assert!(
        above.losses.total() + above.too_many > 0,
        "the place is known: {above:?}"
    );
    assert_eq!(above, at(1.3, long), "the same bits");
}

#[test]
fn polling_drivers_have_no_interrupts() {
    let (nic, host) = (nic("nic-3com"), host("athlon-2600"));
    let machines = alike(&nic, &host);
    let traffic = RouterTraffic::of(&StandIn::Adv.generate(3, 4_000));
    let interrupts = |drivers| {
        let trial = route(&machines, drivers, &traffic, 100e3, [WARM_UP, DURATION]);
        let trial = trial.expect("it works");
        assert!(trial.forwarded > 1_900, "{trial:?}");
        trial.interrupts
    };
    assert_eq!(interrupts(Drivers::Polling), 0);
    assert!(interrupts(Drivers::Interrupt) > 100);
}

#[test]
fn packets_that_are_not_forwarded_do_not_count_as_lost() {
    let (nic, host) = (NicHardware::default(), fast_host());
    let traffic = packets(100, 1);
    let machines = alike(&nic, &host);
    let trial = route(
        &machines,
        Drivers::Interrupt,
        &traffic,
        50e3,
        [WARM_UP, DURATION],
    );
    let trial = trial.expect("it works");
    assert!(trial.refused > 990, "TTLs are exceeded: {trial:?}");
    assert_eq!((trial.forwarded, trial.loss_ratio()), (0, 0.0), "{trial:?}");
    assert_eq!(trial.losses.at(Place::NoDescriptor), 0);
}

#[test]
fn directions_have_about_as_many_packets() {
    for one in StandIn::ALL {
        let traffic = RouterTraffic::of(&one.generate(5, 10_000));
        let [first, second] = traffic.shares();
        assert!((first - second).abs() < 0.02, "{}: {first}", traffic.name);
        assert!(traffic.routes() > 300);
    }
    let one_way = RouterTraffic::of(&PacketTrace {
        name: "one".to_owned(),
        packets: vec![StandIn::Adv.generate(1, 1).packets[0]],
        left_out: LeftOut::default(),
    });
    assert_eq!(one_way.shares().iter().sum::<f64>(), 1.0);
    assert!(
        one_way.line_rate(LinkRate::GIGABIT) > 80e3,
        "{}",
        one_way.line_rate(LinkRate::GIGABIT)
    );
}

fn log() -> Replay {
    let log = StandInLog::WorldCup.generate(1);
    Replay::new(&log, SessionRule::PIPELINED).expect("it has sizes")
}

fn few(users: u32) -> WebSettings {
    WebSettings {
        machines: 2,
        users: vec![users],
        warm_up: 500,
        responses: 2_000,
    }
}

#[test]
fn a_web_server_on_an_ideal_nic_fills_the_wire() {
    let (nic, host, log) = (NicHardware::default(), fast_host(), log());
    let trial = serve(&alike(&nic, &host), &log, &few(24), 24).expect("it works");
    assert!(full(&trial.uses).contains(&Resource::Wire), "{trial:?}");
    assert!((850.0..949.0).contains(&trial.mbps()), "{}", trial.mbps());
    assert_eq!((trial.lost_frames, trial.lost_connections), (0, 0));
    let again = serve(&alike(&nic, &host), &log, &few(24), 24).expect("it works");
    assert_eq!(trial, again, "the same bits");
}

#[test]
fn work_of_kernel_and_application_costs_the_server_time() {
    let (nic, client, log) = (NicHardware::default(), fast_host(), log());
    let rate = |scale: u32| {
        let mut server = host("athlon-2600");
        let of = &mut server.scale;
        (of.network_stack, of.application) = (scale, scale);
        let machines = Machines {
            host: &server,
            ..alike(&nic, &client)
        };
        let trial = serve(&machines, &log, &few(24), 24).expect("it works");
        assert!(full(&trial.uses).contains(&Resource::Host), "{trial:?}");
        trial.requests_per_s()
    };
    let (dear, dearer) = (rate(1_500), rate(3_000));
    assert!((1.7..2.1).contains(&(dear / dearer)), "{dear} and {dearer}");
}

#[test]
fn lost_frames_do_not_stop_the_clients() {
    let (client, log) = (fast_host(), log());
    let mut lossy = NicHardware::default();
    lossy.memory.receive_bytes = 2_048;
    lossy.processor.receive_ns = 20_000;
    let ideal = NicHardware::default();
    let machines = Machines {
        nic: &lossy,
        ..alike(&ideal, &client)
    };
    let trial = serve(&machines, &log, &few(64), 64).expect("it works");
    assert!(trial.lost_frames > 0, "{trial:?}");
    assert!(trial.responses > 1_900, "{trial:?}");
}
