//! Links between real processes: one is killed and the other notices; data goes both ways and arrives.

mod peer;
mod traffic;

use baton_bus::link::LinkError;
use baton_iolib::{
    AdapterAddress, AdapterListener, AnyHostLink, Geometry, Limits, LiveLink, Spin, wait,
};
use baton_wire::{Span, Time};
use libtest_mimic::{Arguments, Trial};
use peer::{Peer, Role};
use std::time::{Duration, Instant};

/// Whoever is not asleep at its bell looks all the time.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Asleep,
    Spinning,
}

fn main() {
    if peer::act_if_asked() {
        return;
    }
    let mut trials = Vec::new();
    for waiting in [Waiting::Asleep, Waiting::Spinning] {
        for role in [Role::SleepingAdapter, Role::SpinningAdapter] {
            let name = format!("{role:?}_is_killed_while_the_host_is_{waiting:?}");
            trials.push(Trial::test(name, move || {
                adapter_is_killed(role, waiting);
                Ok(())
            }));
        }
        for role in [Role::SleepingHost, Role::SpinningHost] {
            let name = format!("{role:?}_is_killed_while_the_adapter_is_{waiting:?}");
            trials.push(Trial::test(name, move || {
                host_is_killed(role, waiting);
                Ok(())
            }));
        }
    }
    for role in [Role::EchoOverMemory, Role::EchoOverTcp] {
        trials.push(Trial::test(
            format!("{role:?}_gives_all_data_back"),
            move || {
                all_data_comes_back(role);
                Ok(())
            },
        ));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Time since `start`.
fn now_since(start: Instant) -> Time {
    Time::ZERO + Span::from_us(start.elapsed().as_micros() as u64)
}

/// Kills `peer` after a while, and sees that `get` says so within a second.
fn is_gone_within_a_second<L: LiveLink>(
    link: &mut L,
    peer: Peer,
    waiting: Waiting,
    mut get: impl FnMut(&mut L, Time) -> Result<(), LinkError>,
) {
    let start = Instant::now();
    let killing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        peer.kill();
        Instant::now()
    });
    let mut spin = Spin::new(Duration::ZERO);
    loop {
        match get(link, now_since(start)) {
            Ok(()) => {}
            Err(LinkError::Gone) => break,
            Err(error) => panic!("{error}"),
        }
        if matches!(waiting, Waiting::Asleep) {
            wait(link, &mut spin, Some(Duration::from_secs(5))).expect("the system can wait");
        }
        assert!(
            start.elapsed() < Duration::from_secs(4),
            "it is not noticed"
        );
    }
    let noticed = Instant::now();
    let killed = killing.join().expect("no panic");
    let took = noticed.saturating_duration_since(killed);
    assert!(took < Duration::from_secs(1), "it took {took:?}");
}

fn adapter_is_killed(role: Role, waiting: Waiting) {
    let peer = Peer::start(role);
    let mut link = peer.connect(&Geometry::default());
    is_gone_within_a_second(&mut link, peer, waiting, |link, now| {
        baton_bus::HostLink::get(link, now, &mut Vec::new())
    });
}

fn host_is_killed(role: Role, waiting: Waiting) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adapter.sock");
    let mut listener = AdapterListener::bind(&path, Limits::default()).expect("a socket");
    let peer = Peer::start_at(role, &AdapterAddress::Unix(path));
    let mut link = loop {
        if let Some(link) = listener.accept(0) {
            break link;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(link.application().pid, Some(peer.pid()));
    is_gone_within_a_second(&mut link, peer, waiting, |link, now| {
        baton_bus::AdapterLink::get(link, now, 9, &mut Vec::new())
    });
}

fn all_data_comes_back(role: Role) {
    let geometry = Geometry {
        ring_depth: 16,
        buffers: 32,
        buffer_bytes: 1024,
        most_sends: 4,
    };
    let peer = Peer::start(role);
    let mut link: AnyHostLink = peer.connect(&geometry);
    for seed in 0..3 {
        traffic::exchange(&mut link, seed, 5_000);
    }
    peer.kill();
}
