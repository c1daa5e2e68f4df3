//! Measures the frames per second of each kind of port in one run: TAP, packet sockets and AF_XDP sockets, on a TAP device and a veth pair in a new
//! network namespace. Needs root and two cores.
//!
//! *Received*: a packet socket at the other end sends as fast as it can from one core, and the port receives on another. *Sent*: the port sends as
//! fast as it can, and the kernel receives the frames and drops them. The kinds take turns, and each figure is that of the best round, because other
//! load of the machine can only slow a round down.

use baton_live::port::{
    AfXdp, AfXdpConfig, Batch, PacketConfig, PacketSocket, Port, RingKind, Tap,
};
use baton_live::xdp::Mode;
use baton_wire::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity, unshare_unsafe};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(500);
/// Frame lengths without the check sequence: the minimum, and the maximum at the usual MTU.
const SIZES: [usize; 2] = [60, 1514];
const BATCH: usize = 64;

type Open = fn() -> Box<dyn Port>;

/// Each kind of port: its name, the interface at the other end, and a function that opens it.
const KINDS: [(&str, &str, Open); 5] = [
    ("TAP", "tap", || {
        Box::new(Tap::open("tap", [2; 6]).expect("a TAP device"))
    }),
    ("packet socket, slots", "vb", || {
        packet_socket("va", RingKind::Slots)
    }),
    ("packet socket, blocks", "vb", || {
        packet_socket("va", RingKind::Blocks)
    }),
    ("AF_XDP, native", "vb", || af_xdp(Mode::Native)),
    ("AF_XDP, generic", "vb", || af_xdp(Mode::Generic)),
];

fn packet_socket(name: &str, ring: RingKind) -> Box<dyn Port> {
    let config = PacketConfig {
        ring,
        ..PacketConfig::default()
    };
    Box::new(PacketSocket::open(name, &config).expect("a packet socket"))
}

fn af_xdp(mode: Mode) -> Box<dyn Port> {
    let config = AfXdpConfig {
        mode: Some(mode),
        ..AfXdpConfig::default()
    };
    Box::new(AfXdp::open("va", &config).expect("AF_XDP sockets"))
}

fn main() {
    // `cargo bench` passes this argument, and `cargo test` does not.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    leave_namespace();
    ip("link add va type veth peer name vb");
    for name in ["va", "vb"] {
        ip(&format!("link set {name} up"));
    }
    println!("{:<24}{:>28}{:>28}", "", "60 bytes", "1514 bytes");
    let half = format!("{:>14}{:>14}", "received", "sent");
    println!("{:<24}{half}{half}   thousand frames/s (Gbit/s)", "");
    let mut rates = KINDS.map(|_| [[[0.0; ROUNDS]; 2]; SIZES.len()]);
    for round in 0..ROUNDS {
        for ((_, far, open), rates) in KINDS.iter().zip(&mut rates) {
            for (size, rates) in SIZES.into_iter().zip(rates) {
                rates[0][round] = received(*open, far, size);
                rates[1][round] = sent(*open, far, size);
            }
        }
    }
    for ((name, ..), rates) in KINDS.iter().zip(&mut rates) {
        print!("{name:<24}");
        for (size, rates) in SIZES.into_iter().zip(rates) {
            for rounds in rates {
                let rate = rounds.iter().copied().fold(0.0, f64::max);
                let gbit = rate * size as f64 * 8.0 / 1e9;
                print!("{:>14}", format!("{:.0} ({gbit:.1})", rate / 1e3));
            }
        }
        println!();
    }
}

/// Returns the frames per second that a port receives while another port sends.
fn received(open: Open, far: &str, size: usize) -> f64 {
    let done = AtomicBool::new(false);
    let send = || {
        let mut sender = packet_socket(far, RingKind::Slots);
        let (mut batch, frame) = (Batch::default(), frame(size));
        while !done.load(Ordering::Relaxed) {
            fill(&mut batch, &frame);
            sender
                .send(Time::ZERO, &mut batch)
                .expect("the interface exists");
        }
    };
    let receive = || {
        let mut port = open();
        ip(&format!("link set {far} up"));
        thread::scope(|scope| {
            scope.spawn(|| on_core(0, send));
            let mut frames = Vec::new();
            let (mut start, mut count) = (Instant::now(), 0);
            let mut is_warm = false;
            while start.elapsed() < TIME {
                port.receive(Time::ZERO, &mut frames)
                    .expect("the interface exists");
                if frames.is_empty() {
                    wait(&*port);
                }
                count += frames.drain(..).filter(|frame| frame.len() == size).count();
                if !is_warm && start.elapsed() > TIME / 5 {
                    (start, count, is_warm) = (Instant::now(), 0, true);
                }
            }
            let rate = count as f64 / start.elapsed().as_secs_f64();
            done.store(true, Ordering::Relaxed);
            rate
        })
    };
    on_core(1, receive)
}

/// Returns the frames per second of a sending port that the other end receives.
fn sent(open: Open, far: &str, size: usize) -> f64 {
    let send = || {
        let mut port = open();
        ip(&format!("link set {far} up"));
        let (mut batch, frame) = (Batch::default(), frame(size));
        let (before, start) = (arrived(far), Instant::now());
        while start.elapsed() < TIME {
            fill(&mut batch, &frame);
            port.send(Time::ZERO, &mut batch)
                .expect("the interface exists");
        }
        (arrived(far) - before) as f64 / start.elapsed().as_secs_f64()
    };
    on_core(1, send)
}

/// Runs `work` in a new thread on this core.
fn on_core<T: Send>(core: usize, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // Threads inherit the affinity of their parent, which may be bound to another core.
            let mut cores = CpuSet::new();
            cores.set(core);
            sched_setaffinity(None, &cores).expect("the machine has two cores");
            work()
        });
        thread.join().expect("no panic")
    })
}

/// Returns a frame to an address that nobody has, with an EtherType for experiments (IEEE 802).
fn frame(size: usize) -> Vec<u8> {
    let mut frame = vec![0; size];
    frame[..12].fill(2);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn fill(batch: &mut Batch, frame: &[u8]) {
    while batch.len() < BATCH {
        batch.push(frame);
    }
}

fn wait(port: &dyn Port) {
    let fd = port.fd().expect("a port on an interface has one");
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).expect("poll succeeds");
}

/// Returns the number of frames that the kernel has received on an interface.
fn arrived(name: &str) -> u64 {
    let output = Command::new("ip")
        .args(["-s", "-j", "link", "show", "dev", name])
        .output();
    let text = output.expect("ip is installed").stdout;
    let all: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    all[0]["stats64"]["rx"]["packets"]
        .as_u64()
        .expect("a number")
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.expect("ip is installed").success(), "ip {arguments}");
}

#[allow(unsafe_code)]
fn leave_namespace() {
    // SAFETY: a network namespace does not affect memory or open descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.expect("run as root");
}
