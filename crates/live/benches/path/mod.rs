//! A network path with a delay.

use crate::wire::{FAR, NEAR, apart, leave_namespace, run};
use baton_iolib::sleep;
use baton_live::Clock;
use baton_live::port::{
    Batch, FaultProfile, FaultSpec, Faults, Offload, Offloads, PacketConfig, PacketSocket, Port,
    RingKind,
};
use baton_wire::Span;
use rustix::event::{PollFd, PollFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The relay's ends of the two veth pairs.
const INNER: [&str; 2] = ["ra", "rb"];
/// Interval at which the relay checks whether to end.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Runs `work` in a new network namespace with the two ends of a path, which delays frames in both directions.
pub fn on_path(delay: Duration, work: &mut (dyn FnMut() + Send)) {
    apart(|| {
        for (outer, inner) in [NEAR, FAR].into_iter().zip(INNER) {
            let line = format!("link add {outer} type veth peer name {inner}");
            run("ip", &line.split(' ').collect::<Vec<_>>());
            run("ip", &["link", "set", outer, "up"]);
        }
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let (ready, is_ready) = channel();
            let (moved, is_moved) = channel();
            let ended = &ended;
            scope.spawn(move || {
                leave_namespace();
                ready
                    .send(rustix::thread::gettid())
                    .expect("the other thread waits");
                is_moved
                    .recv()
                    .expect("the interfaces have been moved here");
                let ends = INNER.map(|name| open(name, delay));
                ready
                    .send(rustix::thread::gettid())
                    .expect("the other thread waits");
                relay(ends, ended);
            });
            let thread = is_ready.recv().expect("the relay starts");
            let thread = thread.as_raw_nonzero().to_string();
            for name in INNER {
                run("ip", &["link", "set", name, "netns", &thread]);
            }
            moved.send(()).expect("the other thread waits");
            is_ready.recv().expect("the relay has opened its ports");
            work();
            ended.store(true, Ordering::Relaxed);
        });
    });
}

/// Opens a port on the interface that delays sent frames.
fn open(name: &str, delay: Duration) -> Faults<PacketSocket> {
    run("ip", &["link", "set", name, "up"]);
    let switch_off = Offloads::of(name).switch_off(&Offload::OF_PEER);
    switch_off.expect("the interface has these offloads");
    let at_once = PacketConfig {
        ring: RingKind::Slots,
        ..PacketConfig::default()
    };
    let port = PacketSocket::open(name, &at_once).expect("run as root");
    let faults = FaultSpec {
        transmit: FaultProfile {
            delay: Span::from(delay),
            ..FaultProfile::default()
        },
        ..FaultSpec::default()
    };
    Faults::new(port, &faults, 1)
}

/// Forwards frames between the two ends.
fn relay(mut ends: [Faults<PacketSocket>; 2], ended: &AtomicBool) {
    let clock = Clock::start();
    let (mut frames, mut batches) = (Vec::new(), [Batch::default(), Batch::default()]);
    while !ended.load(Ordering::Relaxed) {
        for from in [0, 1] {
            let now = clock.now();
            ends[from]
                .receive(now, &mut frames)
                .expect("the interface exists");
            frames
                .drain(..)
                .for_each(|frame| batches[1 - from].push(&frame));
        }
        let now = clock.now();
        for (end, batch) in ends.iter_mut().zip(&mut batches) {
            end.send(now, batch).expect("the interface exists");
        }
        let due = ends.iter().filter_map(Port::poll_timeout).min();
        let due = due.map(|due| Duration::from(due.saturating_since(now)));
        let readable = |end| PollFd::from_borrowed_fd(end, PollFlags::IN);
        let fds = ends.iter().filter_map(|end| end.fd().map(readable));
        let mut fds: Vec<_> = fds.collect();
        sleep(
            &mut fds,
            Some(due.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)),
        )
        .expect("poll succeeds");
    }
}
