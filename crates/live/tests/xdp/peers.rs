//! Both ends of a veth pair, each with addresses in its own network namespace.

use crate::wire::{FAR, NEAR, leave_namespace, run};
use baton_live::port::{Offload, Offloads, PacketConfig, PacketSocket};
use baton_testkit::Pattern;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Longer than any operation takes, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The addresses of both ends.
const ENDS: [[&str; 2]; 2] = [["10.1.0.1", "10.1.0.2"], ["fd00:1::1", "fd00:1::2"]];

fn configure(name: &str, end: usize, prepare: &dyn Fn(&str)) {
    prepare(name);
    run("ip", &["link", "set", name, "up"]);
    for [addresses, length] in [[ENDS[0], ["/24"; 2]], [ENDS[1], ["/64"; 2]]] {
        let address = format!("{}{}", addresses[end], length[end]);
        run("ip", &["addr", "add", &address, "dev", name, "nodad"]);
    }
}

/// Switches offloads off, so that the kernel sends frames on this interface as they are on a wire.
pub fn switch_off(name: &str) {
    let switch_off = Offloads::of(name).switch_off(&Offload::OF_PEER);
    switch_off.expect("the interface has these offloads");
}

/// Calls `work` with listeners in another namespace, at the far end of the veth pair, one for each IP version.
pub fn with_far_listeners(work: impl FnOnce(Vec<TcpListener>)) {
    with_far_end(&switch_off, |listeners, _| work(listeners));
}

/// Like [`with_far_listeners`], but calls `prepare` with each interface before it is up, and passes a port that receives copies of all frames at the
/// far end.
pub fn with_far_end(
    prepare: &(dyn Fn(&str) + Sync),
    work: impl FnOnce(Vec<TcpListener>, PacketSocket),
) {
    thread::scope(|scope| {
        let (to_near, from_far) = channel();
        let (moved, is_moved) = channel();
        scope.spawn(move || {
            leave_namespace();
            to_near
                .send(Err(rustix::thread::gettid()))
                .expect("the other end waits");
            is_moved.recv().expect("the interface has been moved here");
            configure(FAR, 1, prepare);
            let listen = |ends: [&str; 2]| {
                let addr: std::net::IpAddr = ends[1].parse().expect("an address");
                TcpListener::bind((addr, 7)).expect("it listens")
            };
            let config = PacketConfig::default();
            let seen = PacketSocket::open(FAR, &config).expect("the test runs as root");
            to_near
                .send(Ok((ENDS.map(listen).into(), seen)))
                .expect("the other end waits");
        });
        let thread = from_far
            .recv()
            .expect("the thread starts")
            .expect_err("the thread's number");
        let thread = thread.as_raw_nonzero().to_string();
        run("ip", &["link", "set", FAR, "netns", &thread]);
        configure(NEAR, 0, prepare);
        moved.send(()).expect("the other end waits");
        let (listeners, seen) = from_far
            .recv()
            .expect("the thread continues")
            .expect("listeners");
        work(listeners, seen);
    });
}

/// Opens a connection; returns the near end and the far end.
pub fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let (far, _) = listener.accept().expect("accepted");
    for end in [&near, &far] {
        end.set_read_timeout(Some(PATIENCE))
            .expect("a valid timeout");
    }
    (near, far)
}

/// Sends `bytes` bytes and checks that they arrive.
pub fn transfer(mut from: &TcpStream, mut to: &TcpStream, bytes: usize) {
    let data = Pattern::new(0).bytes(bytes);
    thread::scope(|scope| {
        scope.spawn(|| from.write_all(&data).expect("the connection is open"));
        let mut arrived = vec![0; bytes];
        to.read_exact(&mut arrived).expect("the data arrives");
        assert!(arrived == data, "the data arrives unchanged");
    });
}
