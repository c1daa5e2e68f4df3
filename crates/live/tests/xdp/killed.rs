//! What happens to connections when their adapter or its broker is killed.

use crate::application::{attach_with, open, serve};
use crate::moving::opened;
use crate::peers::with_far_listeners;
use crate::wire::{NEAR, on_veth};
use baton_host::{Retry, Threshold};
use baton_live::adapter::{AdapterServiceConfig, Listeners};
use baton_live::broker::{Broker, BrokerNotice, DATA_BYTES};
use baton_live::port::FaultSpec;
use baton_live::{Snapshot, ask};
use baton_sockets::broker::BrokerClient;
use baton_sockets::{Adapter, DriverConfig, TcpStream};
use baton_testkit::Pattern;
use baton_testkit::process::{Process, until};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    idle_connections_outlive_a_killed_adapter_and_move_to_the_next,
    busy_connections_of_a_killed_adapter_stay_correct_or_are_reset,
    a_short_answer_in_flight_outlives_a_killed_adapter,
    connections_continue_when_the_broker_is_killed,
    the_next_broker_takes_over_an_adapter_with_its_connections,
    connections_return_through_a_broker_that_did_not_take_them,
    connections_of_an_adapter_killed_without_a_broker_are_reset,
];

/// Environment variable that tells a child process its role and the folder of its sockets.
const CHILD: &str = "BATON_TEST_KILLED_CHILD";
const READY: &str = "ready";
/// Role of an adapter that loses all packets that it sends.
const MUTE: &str = "mute";

/// In a child process that a test has started, runs a broker or an adapter until the process is killed. Returns immediately in any other process.
pub fn serve_parent() {
    let Some(line) = std::env::var_os(CHILD) else {
        return;
    };
    let line = line.into_string().expect("UTF-8");
    let (role, folder) = line.split_once(' ').expect("a role and a folder");
    let folder = Path::new(folder);
    if role == "broker" {
        let _broker = Broker::start(&folder.join("broker"), NEAR, None).expect("XDP");
        println!("{READY}");
        loop {
            thread::park();
        }
    }
    let opened = open(folder);
    let faults = match role {
        MUTE => "tx:loss=100%".parse().expect("a specification"),
        _ => FaultSpec::default(),
    };
    let listeners = Listeners::open(&folder.join("adapter"), None, Default::default());
    println!("{READY}");
    serve(
        opened,
        AdapterServiceConfig::default(),
        &faults,
        listeners.expect("a free path"),
        folder,
        &AtomicBool::new(false),
    );
    std::process::exit(0);
}

/// Starts a child process in a role, and waits until it is ready.
fn start(role: &str, folder: &Path) -> Process {
    let mut command = Command::new(std::env::current_exe().expect("the program's path"));
    command.env(CHILD, format!("{role} {}", folder.display()));
    let process = Process::start(command.stdout(Stdio::piped()));
    assert_eq!(process.line(), READY);
    process
}

/// Runs `work` with a broker at the near end of the veth pair, and listeners at the far end.
fn with_broker(work: impl FnOnce(&Broker, &[TcpListener], &Path) + Send) {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let folder = tempfile::tempdir().expect("a folder");
            let broker = Broker::start(&folder.path().join("broker"), NEAR, None).expect("XDP");
            work(&broker, &listeners, folder.path());
        });
    });
}

/// Attaches an application, all of whose connections move to the adapter at their first write.
fn attach(folder: &Path) -> Adapter {
    attach_with(folder, DriverConfig::default(), Threshold { enqueues: 1 })
}

/// Checks that bytes arrive correctly in both directions.
fn exchange(mut near: &TcpStream, mut far: &std::net::TcpStream, number: usize) {
    let data: Vec<u8> = (0..500 + number)
        .map(|at| (at * 7 + number) as u8)
        .collect();
    let mut arrived = vec![0; data.len()];
    near.write_all(&data).expect("the connection is open");
    far.read_exact(&mut arrived).expect("the data arrives");
    assert!(arrived == data, "the data arrives unchanged");
    arrived.fill(0);
    far.write_all(&data).expect("the connection is open");
    near.read_exact(&mut arrived).expect("the data arrives");
    assert!(arrived == data, "the data arrives unchanged");
}

/// Returns the number of connections on adapters, of handoffs, and of connections that continued in the kernel after their adapter was
/// killed.
fn moved(adapter: &Adapter) -> (usize, u64, u64) {
    let of = |layer: &baton_sockets::kernel::KernelLayer| {
        let (layer, stats) = (layer.layer(), layer.layer().stats());
        (
            layer.on_adapters(),
            stats.handoffs_accepted,
            stats.recovered,
        )
    };
    adapter
        .with_kernel(of)
        .expect("an adapter beside the kernel")
}

/// Returns a counter of the adapter.
fn counter(folder: &Path, name: &str) -> u64 {
    let text = ask(&folder.join("control"), "an adapter").expect("the adapter answers");
    let snapshot: Snapshot = serde_json::from_slice(&text).expect("a snapshot");
    snapshot.counters[name]
}

fn killed_notice(broker: &Broker) -> (usize, usize, usize) {
    let mut found = None;
    until("the broker reports that the adapter has ended", || {
        while let Some(notice) = broker.poll_notice() {
            if let BrokerNotice::Killed {
                complete,
                moving,
                reset,
                ..
            } = notice
            {
                found = Some((complete, moving, reset));
            }
        }
        found.is_some()
    });
    found.expect("a notice")
}

fn idle_connections_outlive_a_killed_adapter_and_move_to_the_next() {
    const CONNECTIONS: usize = 60;
    with_broker(|broker, listeners, folder| {
        let mut process = start("adapter", folder);
        let adapter = attach(folder);
        let pairs: Vec<_> = (0..CONNECTIONS)
            .map(|number| opened(&adapter, &listeners[number % listeners.len()]))
            .collect();
        for round in 1..=3_u64 {
            // A connection that moves to the adapter before the reply has arrived may be counted a moment later.
            let on_adapter = || {
                for (number, (near, far)) in pairs.iter().enumerate() {
                    exchange(near, far, number);
                }
                moved(&adapter).0 == CONNECTIONS
            };
            until("all connections move to the adapter", on_adapter);
            // The adapter answers the question only after it has delivered the last bytes.
            counter(folder, "captured.flows");
            process.kill();
            let (complete, moving, reset) = killed_notice(broker);
            assert_eq!((complete, moving, reset), (CONNECTIONS, 0, 0));
            until("all connections continue in the kernel", || {
                moved(&adapter).2 == round * CONNECTIONS as u64
            });
            for (number, (near, far)) in pairs.iter().enumerate() {
                exchange(near, far, number);
            }
            process = start("adapter", folder);
        }
    });
}

/// The adapter has accepted and sent data that no peer has acknowledged.
fn a_short_answer_in_flight_outlives_a_killed_adapter() {
    with_broker(|broker, listeners, folder| {
        let mut process = start(MUTE, folder);
        let adapter = attach(folder);
        let longest = DATA_BYTES;
        let lens = [0, 1, 2, 701, 1448, 1449, longest, longest + 1, 20_000];
        let mut pairs: Vec<_> = listeners
            .iter()
            .flat_map(|listener| lens.map(|len| (len, opened(&adapter, listener))))
            .collect();
        for (_, (near, far)) in &mut pairs {
            // With this write the connection moves to the adapter, and then all its data is acknowledged.
            near.write_all(b"!").expect("the connection is open");
            far.read_exact(&mut [0]).expect("the kernel has sent it");
        }
        until("all connections move to the adapter", || {
            moved(&adapter).0 == pairs.len()
        });
        let data = Pattern::new(1).bytes(20_000);
        for (len, (near, _)) in &mut pairs {
            let (first, rest) = data[..*len].split_at(*len / 3);
            near.write_all(first).expect("the send buffer has space");
            near.write_all(rest).expect("the send buffer has space");
        }
        let written: usize = 2 * lens.iter().sum::<usize>();
        until("the adapter has sent all data", || {
            counter(folder, "adapter.sent_bytes") == written as u64
        });
        process.kill();
        let short = lens.iter().filter(|len| **len <= longest).count();
        let (long, short) = (2 * (lens.len() - short), 2 * short);
        assert_eq!(killed_notice(broker), (short, 0, long));
        until("connections with few bytes in flight continue", || {
            moved(&adapter).2 == short as u64
        });
        for (number, (len, (mut near, mut far))) in pairs.into_iter().enumerate() {
            if len > longest {
                let lost = near.read(&mut [0]).expect_err("a reset");
                assert_eq!(lost.kind(), ErrorKind::ConnectionReset);
                continue;
            }
            let mut arrived = vec![0; len];
            far.read_exact(&mut arrived).expect("the data arrives");
            assert!(arrived == data[..len], "the data arrives unchanged");
            exchange(&near, &far, number);
        }
    });
}

/// Sends a stream of known bytes in pieces until an error or the end of the time, and pauses on some connections so that they are sometimes idle.
fn send_known(mut near: &TcpStream, seed: usize) -> std::io::Result<usize> {
    let mut sent = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        let len = 1 + (sent * 31 + seed * 977) % 9000;
        let data = Pattern::new(seed as u64).piece(sent as u64, len);
        near.write_all(&data)?;
        sent += len;
        let mut back = vec![0; len];
        near.read_exact(&mut back)?;
        assert!(back == data, "the echo equals what was sent");
        if seed.is_multiple_of(3) {
            thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(sent)
}

/// Echoes the received bytes, which must be correct; returns how the connection ended.
fn echo_known(mut far: &std::net::TcpStream, seed: usize) -> std::io::Result<usize> {
    let (mut at, mut buffer) = (0, [0; 16 * 1024]);
    loop {
        let len = far.read(&mut buffer)?;
        if len == 0 {
            return Ok(at);
        }
        Pattern::new(seed as u64).check(at as u64, &buffer[..len]);
        at += len;
        far.write_all(&buffer[..len])?;
    }
}

fn busy_connections_of_a_killed_adapter_stay_correct_or_are_reset() {
    const CONNECTIONS: usize = 24;
    with_broker(|broker, listeners, folder| {
        let mut process = start("adapter", folder);
        let adapter = attach(folder);
        let pairs: Vec<_> = (0..CONNECTIONS)
            .map(|number| opened(&adapter, &listeners[number % listeners.len()]))
            .collect();
        let is_reset = |error: std::io::Error| {
            let kind = error.kind();
            let reset = matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
            assert!(
                reset,
                "the connection continues or is reset at once: {error}"
            );
        };
        thread::scope(|scope| {
            for (seed, (near, far)) in pairs.into_iter().enumerate() {
                scope.spawn(move || {
                    let outcome = send_known(&near, seed);
                    drop(near);
                    outcome.map_err(is_reset)
                });
                scope.spawn(move || echo_known(&far, seed).map_err(is_reset));
            }
            for _ in 0..4 {
                thread::sleep(Duration::from_millis(400));
                process.kill();
                killed_notice(broker);
                process = start("adapter", folder);
            }
        });
        assert!(moved(&adapter).1 > CONNECTIONS as u64 / 2);
    });
}

fn connections_continue_when_the_broker_is_killed() {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            let mut broker = start("broker", folder);
            let _process = start("adapter", folder);
            let adapter = attach(folder);
            let (near, far) = opened(&adapter, &listeners[0]);
            until("the connection moves to the adapter", || {
                exchange(&near, &far, 1);
                moved(&adapter).0 == 1
            });
            broker.kill();
            for number in 0..20 {
                exchange(&near, &far, number);
            }
            // New connections stay in the kernel.
            let (other, far_other) = opened(&adapter, &listeners[0]);
            for number in 0..20 {
                exchange(&other, &far_other, number);
            }
            assert_eq!(moved(&adapter).0, 1);
            let gone = BrokerClient::connect(&folder.join("broker"));
            assert!(gone.is_err(), "no broker listens");
        });
    });
}

/// Connections on an adapter, with the processes of the adapter and its broker.
struct Served {
    adapter: Adapter,
    pairs: Vec<(TcpStream, std::net::TcpStream)>,
    broker: Process,
    process: Process,
}

impl Served {
    fn start(folder: &Path) -> Self {
        let broker = start("broker", folder);
        let process = start("adapter", folder);
        Self {
            adapter: attach_with(
                folder,
                DriverConfig::default(),
                Retry::new(Box::new(Threshold { enqueues: 1 })),
            ),
            pairs: Vec::new(),
            broker,
            process,
        }
    }

    /// Opens `count` more connections and waits until all connections are on the adapter.
    fn more(&mut self, listeners: &[TcpListener], count: usize) {
        for number in 0..count {
            let pair = opened(&self.adapter, &listeners[number % listeners.len()]);
            self.pairs.push(pair);
        }
        until("all connections move to the adapter", || {
            self.exchange();
            moved(&self.adapter).0 == self.pairs.len()
        });
    }

    fn exchange(&self) {
        for (number, (near, far)) in self.pairs.iter().enumerate() {
            exchange(near, far, number);
        }
    }
}

fn without_broker(work: impl FnOnce(&[TcpListener], &Path) + Send) {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let folder = tempfile::tempdir().expect("a folder");
            work(&listeners, folder.path());
        });
    });
}

/// Kills one broker after another, and then the adapter while its connections are idle.
fn the_next_broker_takes_over_an_adapter_with_its_connections() {
    const CONNECTIONS: usize = 40;
    without_broker(|listeners, folder| {
        let mut served = Served::start(folder);
        served.more(listeners, CONNECTIONS);
        served.broker.kill();
        served.exchange();
        served.broker = start("broker", folder);
        served.exchange();
        // Existing connections stay on the adapter, and more move to it.
        served.more(listeners, CONNECTIONS);
        served.broker.kill();
        let third =
            Broker::start(&folder.join("broker"), NEAR, None).expect("the next broker starts");
        assert_eq!(adopted_notice(&third), 2 * CONNECTIONS);
        served.more(listeners, CONNECTIONS);
        counter(folder, "captured.flows");
        served.process.kill();
        assert_eq!(killed_notice(&third), (3 * CONNECTIONS, 0, 0));
        until("all connections continue in the kernel", || {
            moved(&served.adapter).2 == 3 * CONNECTIONS as u64
        });
        served.exchange();
        served.process = start("adapter", folder);
        served.more(listeners, 1);
    });
}

fn connections_return_through_a_broker_that_did_not_take_them() {
    without_broker(|listeners, folder| {
        let mut served = Served::start(folder);
        served.more(listeners, 20);
        served.broker.kill();
        let next =
            Broker::start(&folder.join("broker"), NEAR, None).expect("the next broker starts");
        // The application does not know the new broker yet.
        next.restore_all();
        until("all connections return to the kernel", || {
            served.exchange();
            moved(&served.adapter).0 == 0
        });
        assert_eq!(next.restore_all(), 0);
        served.exchange();
    });
}

fn adopted_notice(broker: &Broker) -> usize {
    let mut found = None;
    until(
        "the broker reports that it has taken over the adapter",
        || {
            while let Some(notice) = broker.poll_notice() {
                if let BrokerNotice::Adopted { connections, .. } = notice {
                    found = Some(connections);
                }
            }
            found.is_some()
        },
    );
    found.expect("a notice")
}

/// The next broker can use the interface, but knows no previous connections.
fn connections_of_an_adapter_killed_without_a_broker_are_reset() {
    without_broker(|listeners, folder| {
        let mut served = Served::start(folder);
        served.more(listeners, 2);
        served.broker.kill();
        served.process.kill();
        served.broker = start("broker", folder);
        served.process = start("adapter", folder);
        for (near, _) in served.pairs.drain(..) {
            let lost = (&near).read(&mut [0; 1]).expect_err("a reset");
            assert_eq!(lost.kind(), ErrorKind::ConnectionReset);
        }
        served.more(listeners, 2);
    });
}
