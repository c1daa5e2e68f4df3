//! Links between real processes: one process notices that the other is killed, and data arrives in both directions.

mod peer;
mod traffic;

use baton_bus::link::LinkError;
use baton_iolib::{
    AdapterAddress, AdapterListener, AnyHostLink, Geometry, Limits, LiveLink, Spin, wait,
};
use baton_wire::{Span, Time};
use libtest_mimic::{Arguments, Trial};
use peer::{Peer, Role};
use rustix::process::Pid;
use rustix::thread::gettid;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How a side waits: asleep until its doorbell rings, or by polling.
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

/// Returns the time since `start`.
fn now_since(start: Instant) -> Time {
    Time::ZERO + Span::from_us(start.elapsed().as_micros() as u64)
}

/// Longer than any operation takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);
/// Maximum number of times that a sleeping side is woken, by the start and by the end of the other side.
const MOST_WAKE_UPS: u32 = 3;

/// Kills `peer` while this side waits. Checks that this side wakes, and that its next `get` reports the end of the peer. The link's time
/// advances by a second with each attempt.
fn death_is_noticed<L: LiveLink>(
    link: &mut L,
    peer: Peer,
    waiting: Waiting,
    mut get: impl FnMut(&mut L, Time) -> Result<(), LinkError>,
) {
    let turns = Arc::new(AtomicU32::new(0));
    let killing = std::thread::spawn({
        let (turns, this) = (turns.clone(), gettid());
        move || {
            let waits = || match waiting {
                Waiting::Asleep => sleeps(this),
                Waiting::Spinning => turns.load(Ordering::Relaxed) > 1000,
            };
            while !waits() {
                std::thread::yield_now();
            }
            peer.kill();
        }
    });
    let mut spin = Spin::new(Duration::ZERO);
    for turn in 0_u32.. {
        turns.store(turn, Ordering::Relaxed);
        let is_dead = killing.is_finished();
        match get(link, Time::ZERO + Span::from_ms(1000 * u64::from(turn))) {
            Ok(()) => assert!(!is_dead, "`get` does not report that the peer was killed"),
            Err(LinkError::Gone) => break,
            Err(error) => panic!("{error}"),
        }
        if matches!(waiting, Waiting::Asleep) {
            assert!(turn < MOST_WAKE_UPS, "the side wakes without a reason");
            wait(link, &mut spin, Some(LONG)).expect("the system can wait");
        }
    }
    killing.join().expect("no panic");
}

/// Returns whether a thread of this process sleeps in the kernel.
fn sleeps(thread: Pid) -> bool {
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let stat = std::fs::read_to_string(stat).expect("the thread runs");
    // The state is the first field after the name, which may contain spaces and parentheses: proc(5).
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('S'))
}

fn adapter_is_killed(role: Role, waiting: Waiting) {
    let peer = Peer::start(role);
    let mut link = peer.connect(&Geometry::default());
    death_is_noticed(&mut link, peer, waiting, |link, now| {
        baton_bus::HostLink::get(link, now, &mut Vec::new())
    });
}

fn host_is_killed(role: Role, waiting: Waiting) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("adapter.sock");
    let mut listener = AdapterListener::bind(&path, Limits::default()).expect("a socket");
    let peer = Peer::start_at(role, &AdapterAddress::Unix(path));
    let mut link = loop {
        if let Some(link) = listener.accept(&[]) {
            break link;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(link.application().pid, Some(peer.pid()));
    death_is_noticed(&mut link, peer, waiting, |link, now| {
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
