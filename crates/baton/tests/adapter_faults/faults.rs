//! Tests in which the adapter or an application is killed, is stopped or breaks the protocol.

use crate::application::SOURCE_BYTES;
use crate::world::{KERNEL, World, echo_through, processor_time};
use baton_testkit::process::until;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// How long the adapter's processor time is measured, and how long a client waits to send data that no application reads.
const SECOND: Duration = Duration::from_secs(1);
/// Data that fits into the kernel's buffers for a peer that reads nothing.
static PIECE: [u8; 32 * 1024] = [5; 32 * 1024];

/// All tests, with their names.
pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    adapter_killed_in_mid_load,
    application_killed_and_reset,
    application_killed_and_drained,
    stopped_application_stops_only_itself,
    intruder_is_cut_off,
];

/// When the adapter is killed, all connections fail, even one that only waits for data, and nothing hangs. Once the adapter is back, the applications
/// work again.
fn adapter_killed_in_mid_load() {
    let mut world = World::new(&[]);
    let kernel = world.listen();
    let port = kernel.local_addr().expect("its address").port();
    let echo = world.application("echo", "7001");
    let reader = world.application("reader", &format!("{KERNEL}:{port}"));
    let _silent = kernel.accept().expect("the reader");
    reader.says("connected");
    // This load never ends by itself, because the client does not read the echoed data.
    let mut stream = world.connect(7001);
    let load = thread::spawn(move || {
        let piece = [1; 64 * 1024];
        stream
            .set_write_timeout(Some(SECOND))
            .expect("a valid timeout");
        while stream.write_all(&piece).is_ok() {}
    });
    until("data through the echo", || {
        world.counter("adapter.received_bytes") > 1 << 16
    });

    world.kill_adapter();
    reader.says("connection failed");
    echo.says("connection failed");
    echo.says("lost");
    load.join().expect("no panic");

    world.start_adapter(&[]);
    echo.says("attached");
    echo_through(world.connect(7001))
        .join()
        .expect("the echo works again");
}

/// An application is killed: its connections are reset, and its memory and port are free again. Another application keeps working.
fn application_killed_and_reset() {
    let world = World::new(&["--on-exit", "reset"]);
    let (mut victim, _other) = (
        world.application("echo", "7001"),
        world.application("echo", "7002"),
    );
    let mut stream = world.connect(7001);
    stream.write_all(b"one").expect("the connection is open");
    stream.read_exact(&mut [0; 3]).expect("the data is echoed");
    let going_on = echo_through(world.connect(7002));
    let (shared, pid) = (world.counter("applications.shared_bytes"), victim.pid());

    victim.kill();
    let error = stream.read(&mut [0]).expect_err("the connection is reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    world
        .adapter()
        .says(&format!("process {pid}) has detached"));
    until("the application's memory is freed", || {
        world.counter("applications.shared_bytes") == shared / 2
    });
    assert_eq!(world.counter("applications.reclaimed_bytes"), shared / 2);
    assert_eq!(world.counter("applications.left"), 1);
    let refused = world.try_connect(7001).expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    let _successor = world.application("echo", "7001");
    echo_through(world.connect(7001))
        .join()
        .expect("another application can use the port");
    going_on
        .join()
        .expect("the other application is not affected");
}

/// With `--on-exit drain`, the peer of a killed application still receives all data that the adapter holds, and then the end of the stream.
fn application_killed_and_drained() {
    let world = World::new(&["--on-exit", "drain"]);
    let (mut victim, _other) = (
        world.application("source", "7001"),
        world.application("echo", "7002"),
    );
    let mut stream = world.connect(7001);
    victim.says("all is sent");
    until("the adapter has all data", || {
        world.counter("adapter.sent_bytes") == SOURCE_BYTES as u64
    });
    let going_on = echo_through(world.connect(7002));
    victim.kill();
    let mut got = Vec::new();
    stream
        .read_to_end(&mut got)
        .expect("the stream ends without a reset");
    assert!(got == [7; SOURCE_BYTES], "{} bytes arrived", got.len());
    drop(stream);
    until(
        "the adapter has released everything of the application",
        || world.counter("adapter.orphans") == 0 && world.counter("applications.attached_now") == 1,
    );
    going_on
        .join()
        .expect("the other application is not affected");
}

/// A stopped application delays neither the other application nor the adapter.
fn stopped_application_stops_only_itself() {
    let world = World::new(&[]);
    let (slow, _other) = (
        world.application("echo", "7001"),
        world.application("echo", "7002"),
    );
    // Each connection has a buffer posted to receive into, so the adapter will have more responses than fit into the ring.
    let mut connections: Vec<TcpStream> = (0..200).map(|_| world.connect(7001)).collect();
    for stream in &mut connections {
        stream.write_all(b"one").expect("the connection is open");
        stream.read_exact(&mut [0; 3]).expect("the data is echoed");
    }
    slow.signal("STOP");
    let waiting = echo_through(connections.pop().expect("a connection"));
    for stream in &mut connections {
        stream.write_all(&PIECE).expect("the kernel takes it");
    }
    until("there are more responses than fit into the ring", || {
        world.row(slow.pid())["bus"]["responses"]["held_up"] != 0
    });
    for _ in 0..3 {
        echo_through(world.connect(7002))
            .join()
            .expect("the other application works");
    }
    assert!(!waiting.is_finished(), "the application is stopped");
    // Data that waits for the stopped application costs the adapter no processor time.
    let (start, before) = (Instant::now(), processor_time(world.adapter()));
    thread::sleep(SECOND);
    let used = processor_time(world.adapter()) - before;
    assert!(
        used < start.elapsed() / 4,
        "an idle adapter used {used:?} of processor time"
    );
    slow.signal("CONT");
    waiting.join().expect("the application continues");
    for stream in &mut connections {
        let mut back = vec![0; PIECE.len()];
        stream.read_exact(&mut back).expect("the data is echoed");
        assert!(back == PIECE, "the echoed data differs");
    }
    assert_eq!(world.counter("applications.cut_off"), 0);
}

/// The adapter disconnects an application that breaks the protocol and reports its name. The other application keeps working.
fn intruder_is_cut_off() {
    let world = World::new(&[]);
    let _other = world.application("echo", "7002");
    let going_on = echo_through(world.connect(7002));
    let intruder = world.application("intruder", "-");
    intruder.says("cut off");
    let adapter = world.adapter();
    adapter.says("was disconnected because it violated the protocol: opcode 0xff does not exist");
    assert_eq!(world.counter("applications.cut_off.malformed"), 1);
    until("the intruder is detached", || {
        world.counter("applications.attached_now") == 1
    });
    going_on
        .join()
        .expect("the other application is not affected");
}
