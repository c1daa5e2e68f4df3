//! Connections move out of the near kernel and back by TCP_REPAIR, without a broker.

use crate::peers::{connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::repair::{RepairError, flow_of, give_back, take};
use baton_live::xdp::{Lookup, LookupConfig, SequenceReader};
use baton_tcp::{Config, Essentials, Stack, State};
use baton_testkit::Pattern;
use baton_wire::Time;
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    an_idle_connection_leaves_and_returns,
    unread_data_moves_along,
    unacknowledged_data_keeps_a_connection_in_the_kernel,
    data_in_flight_on_an_adapter_moves_along,
    states_that_cannot_move_are_refused_with_a_reason,
];

/// Everything that is needed to move connections at the near end of the veth pair.
struct Bench {
    lookup: Lookup,
    reader: SequenceReader,
    // Without an AF_XDP socket, the guard would let all packets pass.
    _port: AfXdp,
}

fn with_bench(work: impl Fn(&Bench, &TcpListener) + Send + Sync) {
    on_veth(1, || {
        with_far_listeners(|listeners| {
            let lookup = Lookup::attach(NEAR, LookupConfig::default()).expect("it attaches");
            let port = AfXdp::with_lookup(NEAR, &AfXdpConfig::default(), &lookup);
            let bench = Bench {
                _port: port.expect("a socket"),
                lookup,
                reader: SequenceReader::new().expect("the program loads"),
            };
            for listener in &listeners {
                work(&bench, listener);
            }
        });
    });
}

impl Bench {
    fn try_take(&self, near: &TcpStream) -> Result<Essentials<Bytes>, RepairError> {
        let flow = flow_of(near.as_fd()).expect("a connected socket");
        self.lookup.insert(&flow).expect("the map has space");
        let taken = take(near.as_fd(), &flow, NEAR, &self.reader, usize::MAX);
        let (essentials, _) = taken.inspect_err(|_| drop(self.lookup.remove(&flow)))?;
        Ok(essentials)
    }

    /// Takes the connection out of the kernel, once all sent data is acknowledged.
    fn take(&self, near: &TcpStream) -> Essentials<Bytes> {
        loop {
            match self.try_take(near) {
                Ok(essentials) => return essentials,
                Err(RepairError::UnderWay) => thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("the connection cannot be taken out of the kernel: {error}"),
            }
        }
    }

    fn give_back(&self, essentials: &Essentials<Bytes>) -> TcpStream {
        let mut let_go = false;
        let is_wide = essentials.flow.local.addr.is_ipv6();
        let back = give_back(essentials, is_wide, || {
            let_go = self.lookup.remove(&essentials.flow).expect("no error");
        });
        let back = back.expect("the kernel takes the connection back");
        assert!(let_go, "packets reach the kernel again");
        // The peer does not acknowledge the byte in flight here, so Nagle's algorithm would hold small segments back.
        sockopt::set_tcp_nodelay(&back, true).expect("a valid socket");
        back.into()
    }
}

/// Binds a new socket without SO_REUSEADDR.
fn bind_to(local: SocketAddr) -> Result<(), Errno> {
    let family = match local {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket(family, SocketType::STREAM, None).expect("a socket");
    bind(socket, &local)
}

fn an_idle_connection_leaves_and_returns() {
    with_bench(|bench, listener| {
        let (mut near, far) = connect(listener);
        let (local, peer) = (near.local_addr(), near.peer_addr());
        let mut before = None;
        for _ in 0..50 {
            let essentials = bench.take(&near);
            let local = *local.as_ref().expect("an address");
            assert_eq!(
                bind_to(local),
                Err(Errno::ADDRINUSE),
                "no other socket can use the port meanwhile"
            );
            let is_later = |earlier: u32| {
                let ahead = essentials.timestamp.map(|now| now.wrapping_sub(earlier));
                ahead.is_some_and(|ahead| ahead < 60_000)
            };
            assert!(before.is_none_or(is_later), "{before:?}: {essentials:?}");
            before = essentials.timestamp;
            near = bench.give_back(&essentials);
            transfer(&near, &far, 100);
            transfer(&far, &near, 100);
        }
        assert_eq!(near.local_addr().ok(), local.ok());
        assert_eq!(near.peer_addr().ok(), peer.ok());
        // The initial congestion window is computed from the path's segment size, not from the minimum one.
        let window = bench.take(&near).congestion_window;
        assert!(window.is_some_and(|bytes| bytes > 10_000), "{window:?}");
    });
}

fn unread_data_moves_along() {
    with_bench(|bench, listener| {
        let (near, mut far) = connect(listener);
        let sent = Pattern::new(0).bytes(50_000);
        far.write_all(&sent).expect("the send buffer has space");
        while near
            .peek(&mut vec![0; sent.len()])
            .expect("the connection is open")
            < sent.len()
        {}
        let essentials = bench.take(&near);
        assert!(essentials.receive_buffer.concat() == sent);
        let mut near = bench.give_back(&essentials);
        let mut found = vec![0; sent.len()];
        near.read_exact(&mut found)
            .expect("the unread data has moved along");
        assert!(found == sent);
        transfer(&near, &far, 10_000);
    });
}

/// The peer reads nothing, so its window closes and data stays in the send buffer.
fn unacknowledged_data_keeps_a_connection_in_the_kernel() {
    with_bench(|bench, listener| {
        let (mut near, mut far) = connect(listener);
        near.set_nonblocking(true).expect("a valid socket");
        let data = vec![7; 1 << 20];
        let mut written = 0;
        while let Ok(count) = near.write(&data) {
            written += count;
        }
        let error = bench
            .try_take(&near)
            .expect_err("sent data is not acknowledged");
        assert!(matches!(error, RepairError::UnderWay), "{error}");
        let mut found = vec![0; written];
        far.read_exact(&mut found).expect("all data arrives");
        let essentials = bench.take(&near);
        assert_eq!(essentials.send_una, essentials.send_next);
        transfer(&far, &bench.give_back(&essentials), 10_000);
    });
}

/// An adapter may have to return a connection to the kernel while data is in flight.
fn data_in_flight_on_an_adapter_moves_along() {
    with_bench(|bench, listener| {
        let (near, mut far) = connect(listener);
        let state = bench.take(&near).into_portable(&Config::default());
        let mut stack = Stack::new(Config::default(), 1);
        let conn = stack.import(Time::ZERO, state).expect("a valid state");
        let data = Pattern::new(0).bytes(100_000);
        let written = stack.write(conn, Bytes::from(data.clone()));
        // The stack sends one segment, which is lost.
        stack.poll_transmit(Time::ZERO).expect("a segment");
        let essentials = stack.export(Time::ZERO, conn).essentials();
        let near = bench.give_back(&essentials.expect("the connection is open"));
        let mut found = vec![0; written.expect("the connection is open")];
        far.read_exact(&mut found).expect("all data arrives");
        assert!(found == data[..found.len()]);
        transfer(&far, &near, 10_000);
    });
}

fn states_that_cannot_move_are_refused_with_a_reason() {
    with_bench(|bench, listener| {
        let (near, far) = connect(listener);
        let mut essentials = bench.take(&near);
        essentials.state = State::CloseWait;
        let error = give_back(&essentials, false, || ()).expect_err("this state cannot move");
        assert!(error.to_string().contains("CloseWait"), "{error}");
        essentials.state = State::Established;
        let near = bench.give_back(&essentials);
        near.shutdown(Shutdown::Write)
            .expect("the connection is open");
        far.shutdown(Shutdown::Write)
            .expect("the connection is open");
        (&near)
            .read_to_end(&mut Vec::new())
            .expect("the end of the stream");
        let flow = essentials.flow;
        bench.lookup.insert(&flow).expect("the map has space");
        take(near.as_fd(), &flow, NEAR, &bench.reader, usize::MAX)
            .expect_err("both ends have closed the connection");
        bench.lookup.remove(&flow).expect("no error");
    });
}
