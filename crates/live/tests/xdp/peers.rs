//! Both ends of a cable, each with addresses in its own namespace.

use crate::wire::{FAR, NEAR, leave_namespace, run};
use baton_live::port::{Offload, Offloads, PacketConfig, PacketSocket};
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

/// Makes the kernel send frames on this interface such as a wire carries.
pub fn switch_off(name: &str) {
    let switch_off = Offloads::of(name).switch_off(&Offload::OF_PEER);
    switch_off.expect("it can");
}

/// Calls `work` with listeners in another namespace, at the far end of the cable, one for each IP version.
pub fn with_far_listeners(work: impl FnOnce(Vec<TcpListener>)) {
    with_far_end(&switch_off, |listeners, _| work(listeners));
}

/// Like [`with_far_listeners`], but calls `prepare` with each end before it is up, and passes a port that sees all frames at the far end.
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
            is_moved.recv().expect("the cable comes");
            configure(FAR, 1, prepare);
            let listen = |ends: [&str; 2]| {
                let addr: std::net::IpAddr = ends[1].parse().expect("an address");
                TcpListener::bind((addr, 7)).expect("it listens")
            };
            let config = PacketConfig::default();
            let seen = PacketSocket::open(FAR, &config).expect("root may");
            to_near
                .send(Ok((ENDS.map(listen).into(), seen)))
                .expect("the other end waits");
        });
        let thread = from_far
            .recv()
            .expect("it starts")
            .expect_err("its number first");
        let thread = thread.as_raw_nonzero().to_string();
        run("ip", &["link", "set", FAR, "netns", &thread]);
        configure(NEAR, 0, prepare);
        moved.send(()).expect("the other end waits");
        let (listeners, seen) = from_far.recv().expect("it goes on").expect("listeners");
        work(listeners, seen);
    });
}

/// Opens a connection; returns the near end and the far end.
pub fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(listener.local_addr().expect("it has one")).expect("connected");
    let (far, _) = listener.accept().expect("accepted");
    for end in [&near, &far] {
        end.set_read_timeout(Some(PATIENCE)).expect("a time");
    }
    (near, far)
}

/// Sends `bytes` bytes and checks that they arrive.
pub fn transfer(mut from: &TcpStream, mut to: &TcpStream, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| from.write_all(&data).expect("it is sent"));
        let mut arrived = vec![0; bytes];
        to.read_exact(&mut arrived).expect("it arrives");
        assert!(arrived == data, "what arrives is what was sent");
    });
}
