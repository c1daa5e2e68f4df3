//! Connections leave the near kernel and come back, without a broker.

use crate::peers::{connect, transfer, with_far_listeners};
use crate::wire::{NEAR, on_veth};
use baton_live::port::{AfXdp, AfXdpConfig};
use baton_live::repair::{RepairError, flow_of, give_back, take};
use baton_live::xdp::{Lookup, LookupConfig, SequenceReader};
use baton_tcp::{Config, Essentials, Stack, State};
use baton_wire::Time;
use bytes::Bytes;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

pub const ALL: &[(&str, fn())] = &[
    (
        "an_idle_connection_leaves_and_returns",
        an_idle_connection_leaves_and_returns,
    ),
    ("unread_data_moves_along", unread_data_moves_along),
    (
        "unacknowledged_data_keeps_a_connection_in_the_kernel",
        unacknowledged_data_keeps_a_connection_in_the_kernel,
    ),
    (
        "data_in_flight_on_an_adapter_moves_along",
        data_in_flight_on_an_adapter_moves_along,
    ),
    (
        "states_that_cannot_move_are_refused_with_a_reason",
        states_that_cannot_move_are_refused_with_a_reason,
    ),
];

/// Everything that is needed to move connections at the near end of a cable.
struct Bench {
    lookup: Lookup,
    reader: SequenceReader,
    // Without a socket, the guard would pass everything.
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
                reader: SequenceReader::new().expect("it loads"),
            };
            for listener in &listeners {
                work(&bench, listener);
            }
        });
    });
}

impl Bench {
    fn try_take(&self, near: &TcpStream) -> Result<Essentials<Bytes>, RepairError> {
        let flow = flow_of(near.as_fd()).expect("it has a connection");
        self.lookup.insert(&flow).expect("there is room");
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
                Err(error) => panic!("it can be taken: {error}"),
            }
        }
    }

    fn give_back(&self, essentials: &Essentials<Bytes>) -> TcpStream {
        let mut let_go = false;
        let is_wide = essentials.flow.local.addr.is_ipv6();
        let back = give_back(essentials, is_wide, || {
            let_go = self.lookup.remove(&essentials.flow).expect("no error");
        });
        let back = back.expect("it can come back");
        assert!(let_go, "packets may reach it again");
        // Nothing here makes the peer acknowledge the byte in flight, for which a small segment would wait.
        sockopt::set_tcp_nodelay(&back, true).expect("an option");
        back.into()
    }
}

/// Binds a new socket without sharing its address.
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
            let local = *local.as_ref().expect("it is connected");
            assert_eq!(
                bind_to(local),
                Err(Errno::ADDRINUSE),
                "nobody gets its port"
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
        // The window is computed from segments of the path's length, and not of the minimum.
        let window = bench.take(&near).congestion_window;
        assert!(window.is_some_and(|bytes| bytes > 10_000), "{window:?}");
    });
}

fn unread_data_moves_along() {
    with_bench(|bench, listener| {
        let (near, mut far) = connect(listener);
        let sent: Vec<u8> = (0..50_000).map(|at| (at % 251) as u8).collect();
        far.write_all(&sent).expect("it fits");
        while near.peek(&mut vec![0; sent.len()]).expect("it is open") < sent.len() {}
        let essentials = bench.take(&near);
        assert!(essentials.receive_buffer.concat() == sent);
        let mut near = bench.give_back(&essentials);
        let mut found = vec![0; sent.len()];
        near.read_exact(&mut found).expect("it was there");
        assert!(found == sent);
        transfer(&near, &far, 10_000);
    });
}

/// The peer reads nothing, so that its window closes and data waits here.
fn unacknowledged_data_keeps_a_connection_in_the_kernel() {
    with_bench(|bench, listener| {
        let (mut near, mut far) = connect(listener);
        near.set_nonblocking(true).expect("an option");
        let data = vec![7; 1 << 20];
        let mut written = 0;
        while let Ok(count) = near.write(&data) {
            written += count;
        }
        let error = bench.try_take(&near).expect_err("it is not at rest");
        assert!(matches!(error, RepairError::UnderWay), "{error}");
        let mut found = vec![0; written];
        far.read_exact(&mut found).expect("all of it arrives");
        let essentials = bench.take(&near);
        assert_eq!(essentials.send_una, essentials.send_next);
        transfer(&far, &bench.give_back(&essentials), 10_000);
    });
}

/// An adapter may have to give back a connection with data in flight.
fn data_in_flight_on_an_adapter_moves_along() {
    with_bench(|bench, listener| {
        let (near, mut far) = connect(listener);
        let state = bench.take(&near).into_portable(&Config::default());
        let mut stack = Stack::new(Config::default(), 1);
        let conn = stack.import(Time::ZERO, state).expect("it is sound");
        let data: Vec<u8> = (0..100_000).map(|at| (at % 251) as u8).collect();
        let written = stack.write(conn, Bytes::from(data.clone()));
        // One segment is sent, and is lost.
        stack.poll_transmit(Time::ZERO).expect("it leaves");
        let essentials = stack.export(Time::ZERO, conn).essentials();
        let near = bench.give_back(&essentials.expect("it is open"));
        let mut found = vec![0; written.expect("it is open")];
        far.read_exact(&mut found).expect("all of it arrives");
        assert!(found == data[..found.len()]);
        transfer(&far, &near, 10_000);
    });
}

fn states_that_cannot_move_are_refused_with_a_reason() {
    with_bench(|bench, listener| {
        let (near, far) = connect(listener);
        let mut essentials = bench.take(&near);
        essentials.state = State::CloseWait;
        let error = give_back(&essentials, false, || ()).expect_err("not yet");
        assert!(error.to_string().contains("CloseWait"), "{error}");
        essentials.state = State::Established;
        let near = bench.give_back(&essentials);
        near.shutdown(Shutdown::Write).expect("it is open");
        far.shutdown(Shutdown::Write).expect("it is open");
        (&near).read_to_end(&mut Vec::new()).expect("its end");
        let flow = essentials.flow;
        bench.lookup.insert(&flow).expect("there is room");
        take(near.as_fd(), &flow, NEAR, &bench.reader, usize::MAX).expect_err("it is over");
        bench.lookup.remove(&flow).expect("no error");
    });
}
