//! An application's sockets whose connections move between the kernel and an adapter, while both ends keep working.

use crate::application::{attach_with, with_application, with_application_seen};
use crate::peers::{PATIENCE, connect, transfer};
use crate::wire::{NEAR, on_veth, run};
use baton_host::adapter::MoveNews;
use baton_host::layer::Place;
use baton_host::{Decision, NotOffloaded, Selection, Threshold, View};
use baton_live::port::{PacketSocket, Port};
use baton_sockets::broker::BrokerClient;
use baton_sockets::kernel::{KernelLayer, KernelSocket};
use baton_sockets::{
    Adapter, AdapterAddress, Driver, DriverConfig, Events, Interest, Poll, TcpListener, TcpStream,
    Token,
};
use baton_testkit::Pattern;
use baton_testkit::process::until;
use baton_wire::Endpoint;
use baton_wire::Time;
use bytes::Bytes;
use etherparse::{PacketHeaders, TcpHeader, TcpOptionElement, TransportHeader};
use rustc_hash::FxHashMap;
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    a_stream_moves_at_each_write_and_nothing_is_lost,
    a_write_that_finds_the_answer_to_a_move_completes_the_move,
    the_peer_never_sees_sequence_numbers_go_back,
    the_port_of_a_connection_that_ended_on_the_adapter_is_not_reused,
    a_stream_whose_peer_has_closed_moves,
    a_stream_that_is_shut_down_for_sending_moves,
    a_stream_continues_when_the_mtu_shrinks,
    attaching_takes_less_than_a_timeout,
    a_polled_stream_moves_while_it_waits,
    a_connection_whose_bytes_do_not_arrive_continues_in_the_kernel,
    a_connection_that_ends_before_it_moves_ends_as_usual,
    a_connection_returns_with_unread_data,
    a_connection_returns_on_a_new_socket_with_its_options,
    connections_that_cannot_move_stay_and_work,
    more_connections_than_buffers_move,
    a_connection_returns_when_its_application_uses_it,
    connections_are_reported_and_returned_on_request,
    nonblocking_writes_succeed_while_a_connection_moves,
    a_stream_shared_with_another_process_is_in_the_kernel,
];

/// Port on which the peers listen.
pub const FAR_PORT: u16 = 7;
/// Number of writes of one test: each write moves the connection.
const MOVES: usize = 60;
/// Number of consecutive writes: enough for the last ones to follow the answer to a move.
const WRITES: usize = 500;
/// No move takes this long unless it has stalled.
const LONGEST_MOVE: Duration = Duration::from_secs(30);

/// Returns the number of moves of the application's connections: to the adapter, back, and failed.
pub fn moves(adapter: &Adapter) -> (u64, u64, u64) {
    let of = |layer: &KernelLayer| {
        let (stats, kernel) = (layer.layer().stats(), layer.stack().stats());
        let bad = stats.bad_states + kernel.not_given_back + kernel.ended_abnormally;
        (stats.handoffs_accepted, stats.restored, bad)
    };
    adapter.with_kernel(of).expect("it is beside the kernel")
}

/// Calls `exchange` until the application's only connection, which it writes to, is on the adapter.
pub fn until_on_adapter(adapter: &Adapter, mut exchange: impl FnMut()) {
    let place = |layer: &KernelLayer| layer.layer().states().next().map(|state| state.place);
    loop {
        match adapter.with_kernel(place).flatten() {
            Some(Place::Adapter(_)) => return,
            Some(Place::Host(_)) => exchange(),
            // The connection is moving. The thread that moves it needs the lock that `with_kernel` takes.
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Returns both ends of a connection that starts in the kernel.
pub fn opened(
    adapter: &Adapter,
    listener: &std::net::TcpListener,
) -> (TcpStream, std::net::TcpStream) {
    let near = TcpStream::connect(adapter, listener.local_addr().expect("an address"));
    let (far, _) = listener.accept().expect("a connection");
    far.set_read_timeout(Some(PATIENCE))
        .expect("a valid timeout");
    (near.expect("a connection"), far)
}

/// Echoes received data until the peer closes its direction.
pub fn echo(mut far: &std::net::TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match far.read(&mut buffer).expect("it is open") {
            0 => break,
            len => far.write_all(&buffer[..len]).expect("it is open"),
        }
    }
    far.shutdown(Shutdown::Write).expect("it is open");
}

/// Returns the bytes of one write.
fn piece(number: usize) -> Vec<u8> {
    let len = [1, 700, 1448, 5000][number % 4];
    (0..len).map(|at| (at * 7 + number) as u8).collect()
}

/// Writes a piece to a peer that echoes it, and checks the echo.
pub fn sees_it_back(mut near: &TcpStream, number: usize) {
    let data = piece(number);
    near.write_all(&data).expect("it is open");
    let mut back = vec![0; data.len()];
    near.read_exact(&mut back).expect("it is open");
    assert!(back == data, "what comes back is what was sent");
}

fn a_stream_moves_at_each_write_and_nothing_is_lost() {
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let peer = listener.local_addr().expect("it has one");
            let mut near = TcpStream::connect(adapter, peer).expect("it is open");
            let (far, from) = listener.accept().expect("it comes");
            assert_eq!(near.local_addr().expect("it has one"), from);
            assert_eq!(near.peer_addr().expect("it has one"), peer);
            thread::scope(|scope| {
                scope.spawn(|| echo(&far));
                for number in 0..MOVES {
                    sees_it_back(&near, number);
                }
                near.shutdown(Shutdown::Write).expect("it is open");
                assert_eq!(near.read(&mut [0; 8]).expect("an end"), 0);
            });
        }
        let (there, back, bad) = moves(adapter);
        // A write may happen while the connection is still moving.
        assert!(there > 10 && back > 10, "{there} there, {back} back");
        assert_eq!(bad, 0);
    });
}

/// One thread writes while another one waits for the adapter.
fn a_write_that_finds_the_answer_to_a_move_completes_the_move() {
    with_application(|adapter, listeners, _| {
        let (near, far) = opened(adapter, &listeners[0]);
        near.set_read_timeout(Some(LONGEST_MOVE))
            .expect("an option");
        thread::scope(|scope| {
            scope.spawn(|| echo(&far));
            for _ in 0..MOVES {
                let reader = scope.spawn(|| (&near).read_exact(&mut [0; WRITES]));
                for _ in 0..WRITES {
                    (&near).write_all(&[7]).expect("it is open");
                }
                let read = reader.join().expect("it ends");
                if read.is_err() {
                    far.shutdown(Shutdown::Both).expect("it is open");
                }
                read.expect("all comes back");
            }
            near.shutdown(Shutdown::Write).expect("it is open");
        });
    });
}

/// Checks the timestamps and the edges of the windows that the peer sees of a connection that moves there and back: none of them ever
/// decreases, no timestamp is ahead of time, and no segment is a reset.
fn the_peer_never_sees_sequence_numbers_go_back() {
    let cable = |work: &mut (dyn FnMut() + Send)| on_veth(1, work);
    with_application_seen(cable, |adapter, listeners, _, mut seen| {
        let began = Instant::now();
        for listener in listeners {
            let (near, far) = opened(adapter, listener);
            thread::scope(|scope| {
                scope.spawn(|| echo(&far));
                for number in 0..MOVES {
                    sees_it_back(&near, number);
                }
                near.shutdown(Shutdown::Write).expect("it is open");
                assert_eq!((&near).read(&mut [0; 8]).expect("an end"), 0);
            });
        }
        let (there, back, _) = moves(adapter);
        assert!(there > 10 && back > 10, "{there} there, {back} back");

        let mut flows: FxHashMap<u16, Seen> = FxHashMap::default();
        let mut frames = Vec::new();
        while seen_more(&mut seen, &mut frames) {
            for frame in frames.drain(..) {
                let headers = PacketHeaders::from_ethernet_slice(&frame).expect("a frame");
                if let Some(TransportHeader::Tcp(tcp)) = headers.transport
                    && tcp.destination_port == FAR_PORT
                {
                    flows.entry(tcp.source_port).or_default().see(&tcp);
                }
            }
        }
        assert_eq!(flows.len(), listeners.len());
        let longest_ms = began.elapsed().as_millis() as u32;
        for seen in flows.values() {
            assert!(seen.segments > MOVES, "{seen:?}");
            // Each move may round up by two ms.
            let most = longest_ms + 2 * (there + back) as u32;
            assert!(
                seen.last_time.wrapping_sub(seen.first_time) <= most,
                "{seen:?}, {most}"
            );
        }
    });
}

/// The kernel has forgotten the connection, which is in TIME-WAIT on the adapter. A SYN from the same port would be dropped.
fn the_port_of_a_connection_that_ended_on_the_adapter_is_not_reused() {
    with_application(|adapter, listeners, _| {
        for (port, listener) in (40_000..).zip(listeners) {
            let only = format!("net.ipv4.ip_local_port_range={port} {port}");
            run("sysctl", &["-qw", &only]);
            let peer = listener.local_addr().expect("it has one");
            let mut near = TcpStream::connect(adapter, peer).expect("it is open");
            let (mut far, _) = listener.accept().expect("it comes");
            until_on_adapter(adapter, || {
                near.write_all(b"a").expect("it is open");
                far.read_exact(&mut [0]).expect("it is open");
                far.write_all(b"b").expect("it is open");
                near.read_exact(&mut [0]).expect("it is open");
            });
            drop(near);
            assert_eq!(far.read(&mut [0]).expect("an end"), 0);
            drop(far);
            let patience = Duration::from_secs(5);
            let again = std::net::TcpStream::connect_timeout(&peer, patience);
            let error = again.expect_err("the only port is in use");
            assert_eq!(error.kind(), ErrorKind::AddrNotAvailable, "{error}");
        }
    });
}

/// Programs that never fill a buffer are not prepared for a write without buffer space.
fn nonblocking_writes_succeed_while_a_connection_moves() {
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let (mut near, far) = opened(adapter, listener);
            thread::scope(|scope| {
                scope.spawn(|| echo(&far));
                near.set_nonblocking(true).expect("it can");
                let sent: Vec<u8> = (0..MOVES)
                    .flat_map(|number| {
                        let data = [number as u8; 700];
                        assert_eq!(near.write(&data).expect("there is room"), data.len());
                        data
                    })
                    .collect();
                near.set_nonblocking(false).expect("it can");
                near.shutdown(Shutdown::Write).expect("it is open");
                let mut back = Vec::new();
                near.read_to_end(&mut back).expect("it is open");
                assert!(back == sent, "what comes back is what was sent");
            });
        }
        let (there, _, bad) = moves(adapter);
        assert!(there >= listeners.len() as u64, "{there} there");
        assert_eq!(bad, 0);
    });
}

/// Data that the adapter has received and that has not been read moves to the kernel with the connection.
fn a_connection_returns_with_unread_data() {
    const UNREAD: usize = 3000;
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let (near, mut far) = connect(listener);
            let copy = near.try_clone().expect("a descriptor");
            let stream = TcpStream::from_kernel(adapter, OwnedFd::from(copy)).expect("it is open");
            (&mut &stream).write_all(b"go").expect("it is open");
            far.read_exact(&mut [0; 2]).expect("it is open");
            let data = Pattern::new(0).bytes(UNREAD);
            far.write_all(&data).expect("it is open");
            until("data arrives", || stream.readiness().unread != 0);
            stream.begin_return();
            assert!(stream.is_returned(), "it comes back");
            let mut back = vec![0; UNREAD];
            (&mut &stream).read_exact(&mut back).expect("it is open");
            assert!(back == data, "what is read is what was sent");
        }
        let (there, back, bad) = moves(adapter);
        let connections = listeners.len() as u64;
        assert!(
            there >= connections && back >= connections,
            "{there} there, {back} back"
        );
        assert_eq!(bad, 0);
    });
}

fn seen_more(port: &mut PacketSocket, frames: &mut Vec<Bytes>) -> bool {
    port.receive(Time::ZERO, frames)
        .expect("the interface is there");
    !frames.is_empty()
}

/// A peer's view of a connection.
#[derive(Debug, Default)]
struct Seen {
    segments: usize,
    shift: u8,
    edge: u32,
    first_time: u32,
    last_time: u32,
}

impl Seen {
    fn see(&mut self, tcp: &TcpHeader) {
        assert!(!tcp.rst, "{tcp:?}");
        let mut time = None;
        for option in tcp.options_iterator() {
            match option.expect("an option") {
                TcpOptionElement::WindowScale(shift) => self.shift = shift,
                TcpOptionElement::Timestamp(value, _) => time = Some(value),
                _ => {}
            }
        }
        let time = time.expect("both ends use timestamps");
        let shift = if tcp.syn { 0 } else { self.shift };
        let edge = tcp
            .acknowledgment_number
            .wrapping_add(u32::from(tcp.window_size) << shift);
        if self.segments == 0 {
            self.first_time = time;
        } else {
            let is_later = |now: u32, before: u32| now.wrapping_sub(before) < 1 << 31;
            // A window is announced in units, and may shrink by less than one unit because of that (RFC 7323 2.4).
            let rounded = (1 << shift) - 1;
            assert!(is_later(time, self.last_time), "{self:?}: {tcp:?}");
            assert!(
                self.segments == 1 || is_later(edge.wrapping_add(rounded), self.edge),
                "{self:?}: {tcp:?}"
            );
        }
        (self.last_time, self.edge) = (time, edge);
        self.segments += 1;
    }
}

/// Data in flight on the adapter is segmented again, too. The far end sends only short segments: the near interface would drop long ones.
fn a_stream_continues_when_the_mtu_shrinks() {
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let (mut near, mut far) = opened(adapter, listener);
            let data = vec![7; 20_000];
            let mut arrived = vec![0; data.len()];
            for mtu in ["1500", "1300", "1500"] {
                run("ip", &["link", "set", NEAR, "mtu", mtu]);
                for _ in 0..MOVES / 4 {
                    near.write_all(&data).expect("it is open");
                    far.read_exact(&mut arrived).expect("it arrives");
                    assert!(arrived == data, "what arrives is what was sent");
                    far.write_all(&[1]).expect("it is open");
                    near.read_exact(&mut [0]).expect("it is open");
                }
            }
        }
        let (there, _, bad) = moves(adapter);
        assert!(there > 10, "{there}");
        assert_eq!(bad, 0);
    });
}

/// The peer continues to read after closing its direction: each write moves the connection.
fn a_stream_whose_peer_has_closed_moves() {
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let (mut near, mut far) = opened(adapter, listener);
            far.write_all(b"all there is").expect("it is open");
            far.shutdown(Shutdown::Write).expect("it is open");
            let mut all = Vec::new();
            near.read_to_end(&mut all).expect("its end");
            assert_eq!(all, b"all there is");
            for number in 0..MOVES {
                let data = piece(number);
                near.write_all(&data).expect("it is open");
                let mut arrived = vec![0; data.len()];
                far.read_exact(&mut arrived).expect("it arrives");
                assert!(arrived == data, "what arrives is what was sent");
                assert_eq!(near.read(&mut [0; 1]).expect("its end"), 0);
            }
            near.shutdown(Shutdown::Write).expect("it is open");
            assert_eq!(far.read(&mut [0; 1]).expect("its end"), 0);
        }
        let (there, back, bad) = moves(adapter);
        assert!(there > 10 && back > 10, "{there} there, {back} back");
        assert_eq!(bad, 0);
    });
}

/// A policy that hands off connections whenever something was read.
#[derive(Debug)]
struct WhenRead;

impl Selection for WhenRead {
    fn on_established(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_send(&mut self, _view: &View) -> Decision {
        Decision::Stay
    }

    fn on_receive(&mut self, _view: &View) -> Decision {
        Decision::HandOff
    }

    fn reconsiders(&self, _view: &View) -> bool {
        true
    }
}

/// The stream is shut down: its FIN is acknowledged, or is still queued behind data that waits for the peer's window.
fn a_stream_that_is_shut_down_for_sending_moves() {
    with_application(|_, listeners, path| {
        let adapter = attach_with(path, DriverConfig::default(), WhenRead);
        // Nothing moves until the application knows the adapter's limit.
        let data = Pattern::new(0).bytes(8 << 20);
        let mut there_before = 0;
        for (listener, size) in listeners
            .iter()
            .flat_map(|one| [0, 5_000, data.len()].map(|size| (one, size)))
        {
            let peer = listener.local_addr().expect("it has one");
            let mut near = TcpStream::connect(&adapter, peer).expect("it is open");
            let (mut far, _) = listener.accept().expect("it comes");
            near.set_nonblocking(true).expect("it can");
            let mut sent = 0;
            while let Ok(len @ 1..) = near.write(&data[sent..size]) {
                sent += len;
            }
            near.set_nonblocking(false).expect("it can");
            near.shutdown(Shutdown::Write).expect("it is open");
            for number in 0..MOVES {
                let data = piece(number);
                far.write_all(&data).expect("it is open");
                let mut arrived = vec![0; data.len()];
                near.read_exact(&mut arrived).expect("it arrives");
                assert!(arrived == data, "what arrives is what was sent");
            }
            let there = moves(&adapter).0;
            assert!(there > there_before, "it has moved");
            there_before = there;
            near.write(b"more").expect_err("it sends no more");
            let mut found = vec![0; sent];
            far.read_exact(&mut found).expect("it arrives");
            assert!(found == data[..sent], "what arrives is what was sent");
            assert_eq!(far.read(&mut [0; 1]).expect("its end"), 0);
            far.write_all(b"the last").expect("it is open");
            drop(far);
            let mut last = Vec::new();
            near.read_to_end(&mut last).expect("its end");
            assert_eq!(last, b"the last");
        }
        assert_eq!(moves(&adapter).2, 0);
    });
}

fn more_connections_than_buffers_move() {
    with_application(|_, listeners, path| {
        let mut config = DriverConfig::default();
        config.geometry.buffers = 8;
        let adapter = attach_with(path, config, Threshold { enqueues: 1 });
        let peer = listeners[0].local_addr().expect("it has one");
        let pairs: Vec<_> = (0..20)
            .map(|_| {
                let near = TcpStream::connect(&adapter, peer).expect("it is open");
                let (far, _) = listeners[0].accept().expect("it comes");
                (near, far)
            })
            .collect();
        thread::scope(|scope| {
            for (near, far) in &pairs {
                scope.spawn(|| echo(far));
                for number in 0..4 {
                    sees_it_back(near, number);
                }
            }
            for (near, _) in &pairs {
                near.shutdown(Shutdown::Write).expect("it is open");
            }
        });
        let (there, _, bad) = moves(&adapter);
        assert_eq!((there, bad), (pairs.len() as u64, 0));
    });
}

fn a_polled_stream_moves_while_it_waits() {
    with_application(|adapter, listeners, _| {
        let peer = listeners[0].local_addr().expect("it has one");
        let mut near = TcpStream::connect(adapter, peer).expect("it is open");
        near.set_nonblocking(true).expect("it can");
        let (far, _) = listeners[0].accept().expect("it comes");
        let poll = Poll::new(adapter);
        poll.register(&near, Token(5), Interest::READABLE | Interest::WRITABLE)
            .expect("it is not registered yet");
        thread::scope(|scope| {
            scope.spawn(|| echo(&far));
            let mut events = Events::with_capacity(4);
            let mut or_wait = |done: std::io::Result<usize>| match done {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll.poll(&mut events, Some(Duration::from_secs(60)))
                        .expect("it waits");
                    assert!(!events.is_empty(), "it is told of what comes");
                    0
                }
                done => done.expect("it is open"),
            };
            for number in 0..MOVES {
                let data = piece(number);
                let mut written = 0;
                // There is no buffer space while the connection leaves or is moving.
                while written < data.len() {
                    written += or_wait(near.write(&data[written..]));
                }
                let mut back = Vec::new();
                while back.len() < data.len() {
                    let mut buffer = [0; 2000];
                    let len = or_wait(near.read(&mut buffer));
                    back.extend_from_slice(&buffer[..len]);
                }
                assert!(back == data, "what comes back is what was sent");
            }
            drop(near);
        });
        let (there, back, bad) = moves(adapter);
        assert!(there > 10 && back > 10, "{there} there, {back} back");
        assert_eq!(bad, 0);
    });
}

/// Returns the counter of one reason why the application's connections are not on the adapter.
fn count_of(adapter: &Adapter, wanted: NotOffloaded) -> u64 {
    let of = |layer: &KernelLayer| {
        let reasons = layer.layer().stats().not_offloaded.iter();
        let counts = reasons.filter(|(why, _)| *why == wanted);
        counts.map(|(_, count)| count).sum()
    };
    adapter.with_kernel(of).expect("it is beside the kernel")
}

/// More than the receive buffer of a peer that reads nothing, but less than that plus the send buffer, bytes.
const FULL: usize = 200_000;

/// How long a connection that was selected for a move still accepts data.
const GRACE: Duration = Duration::from_millis(50);

/// Runs `work` with a connection that the policy has selected for a move and whose peer reads nothing, and with the number of bytes written
/// so far.
fn with_closed_window(
    work: impl Fn(&Adapter, TcpStream, std::net::TcpStream, usize) + Send + Sync,
) {
    with_application(|_, listeners, path| {
        for listener in listeners {
            let adapter = attach_with(path, DriverConfig::default(), WhenRead);
            let peer = listener.local_addr().expect("it has one");
            let own = std::net::TcpStream::connect(peer).expect("it is open");
            let (mut far, _) = listener.accept().expect("it comes");
            sockopt::set_socket_recv_buffer_size(&far, 4096).expect("it can");
            sockopt::set_socket_send_buffer_size(&own, FULL).expect("it can");
            let mut near = TcpStream::from_kernel(&adapter, OwnedFd::from(own)).expect("open");
            near.write_all(&vec![7; FULL]).expect("there is room");
            let mut written = FULL;
            let room = near.send_room().expect("it is open");
            assert_ne!(room, 0);
            far.write_all(b"ab").expect("it is open");
            let began = Instant::now();
            near.read_exact(&mut [0; 1]).expect("it came");
            // The connection is waiting to move. Reads continue, and so do writes for a while. New data is buffered, which leaves less
            // space; in the kernel, the reported space is all or nothing.
            while near.send_room().expect("it is open") == room {
                near.write_all(&[7]).expect("there is room");
                written += 1;
                thread::sleep(Duration::from_millis(1));
            }
            assert!(began.elapsed() > GRACE, "it goes on for a while");
            near.read_exact(&mut [0; 1]).expect("it came");
            work(&adapter, near, far, written);
            assert_eq!(moves(&adapter), (0, 0, 0));
        }
    });
}

fn a_connection_whose_bytes_do_not_arrive_continues_in_the_kernel() {
    with_closed_window(|adapter, mut near, mut far, written| {
        thread::scope(|scope| {
            let arrived = scope.spawn(|| {
                while count_of(adapter, NotOffloaded::UnderWay) == 0 {
                    thread::sleep(Duration::from_millis(10));
                }
                let mut all = Vec::new();
                far.read_to_end(&mut all).expect("its end");
                all
            });
            // The buffer has a limit. Beyond it a write waits, and wakes up when the connection stays.
            let room = near.send_room().expect("it is open");
            near.write_all(&vec![7; room]).expect("there is room");
            assert_eq!(near.send_room().expect("it is open"), 0);
            assert_eq!(count_of(adapter, NotOffloaded::UnderWay), 0);
            near.write_all(b"end").expect("it is open");
            assert_eq!(count_of(adapter, NotOffloaded::UnderWay), 1);
            drop(near);
            let arrived = arrived.join().expect("no panic");
            assert!(arrived.len() == written + room + 3 && arrived.ends_with(b"\x07end"));
        });
    });
}

/// Neither shutdown nor close waits for the peer's window.
fn a_connection_that_ends_before_it_moves_ends_as_usual() {
    with_closed_window(|adapter, mut near, mut far, written| {
        near.shutdown(Shutdown::Write).expect("it is open");
        let error = near.write(b"more").expect_err("it is shut");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let mut all = Vec::new();
        far.read_to_end(&mut all).expect("its end");
        assert_eq!(all.len(), written);
        assert_eq!(count_of(adapter, NotOffloaded::UnderWay), 0);
    });
    with_closed_window(|_, near, mut far, written| {
        drop(near);
        let mut all = Vec::new();
        far.read_to_end(&mut all).expect("its end");
        assert_eq!(all.len(), written);
    });
}

/// The options are those of the program's socket, whenever they were set.
fn a_connection_returns_on_a_new_socket_with_its_options() {
    with_application(|adapter, listeners, _| {
        for listener in listeners {
            let peer = listener.local_addr().expect("it has one");
            let own = std::net::TcpStream::connect(peer).expect("it is open");
            let (far, _) = listener.accept().expect("it comes");
            sockopt::set_socket_keepalive(&own, true).expect("it can");
            let latest = Arc::new(Mutex::new(own.try_clone().expect("a descriptor")));
            let (known, before) = (Arc::clone(&latest), moves(adapter));
            let copy = OwnedFd::from(own.try_clone().expect("a descriptor"));
            let copy = KernelSocket::followed_by(copy, move |old, new, copy| {
                let mut latest = known.lock().expect("nobody panics");
                let inode = |fd| rustix::fs::fstat(fd).expect("it is open").st_ino;
                assert_eq!(inode(latest.as_fd()), inode(old));
                assert_ne!(inode(old), inode(new));
                copy();
                *latest = new.try_clone_to_owned().expect("a descriptor").into();
            });
            let near = TcpStream::from_kernel(adapter, copy).expect("it is open");
            thread::scope(|scope| {
                scope.spawn(|| echo(&far));
                for number in 0..MOVES {
                    sees_it_back(&near, number);
                    let latest = latest.lock().expect("nobody panics");
                    let ms = 1000 + number as u32;
                    sockopt::set_tcp_user_timeout(&*latest, ms).expect("it can");
                }
                near.shutdown(Shutdown::Write).expect("it is open");
                near.set_nonblocking(false).expect("it can");
                assert_eq!((&near).read(&mut [0; 8]).expect("an end"), 0);
            });
            let (_, back, bad) = moves(adapter);
            assert!(back > before.1 + 3 && bad == 0, "{back} back, {bad} bad");
            let latest = latest.lock().expect("nobody panics");
            assert_eq!(sockopt::socket_keepalive(&*latest), Ok(true));
            let ms = 999 + MOVES as u32;
            assert_eq!(sockopt::tcp_user_timeout(&*latest), Ok(ms));
            let refused = |kernel: &KernelLayer| kernel.stack().stats().options_not_kept;
            assert_eq!(adapter.with_kernel(refused), Some(0));
        }
    });
}

/// Runs turns until there is news of a move.
fn next_move(driver: &mut Driver) -> MoveNews {
    loop {
        driver.turn();
        if let Some(news) = driver.os_mut().poll_move() {
            return news;
        }
        driver.wait(None).expect("the adapter is there");
    }
}

fn a_connection_returns_when_its_application_uses_it() {
    with_application(|_, listeners, path| {
        let address = AdapterAddress::Unix(path.join("adapter"));
        let mut driver = Driver::open(address, DriverConfig::default()).expect("it listens");
        let mut broker = BrokerClient::connect(&path.join("broker")).expect("it listens");
        let (near, far) = connect(&listeners[0]);
        let peer = near.peer_addr().expect("it has one");
        let (_, state) = broker.take(near.as_fd()).expect("it leaves");
        let (now, peer) = (driver.now(), Endpoint::new(peer.ip(), peer.port()));
        let socket = driver
            .os_mut()
            .import(now, peer, state, false)
            .expect("a number");
        assert_eq!(next_move(&mut driver), MoveNews::Imported(socket));
        // Long enough for the adapter to take note of the connection.
        thread::sleep(Duration::from_millis(300));
        let now = driver.now();
        assert!(driver.os_mut().export(now, socket), "it is there");
        assert_eq!(next_move(&mut driver), MoveNews::Exported(socket));
        let exported = driver.os_mut().take_exported(socket).expect("it came");
        // This call takes longer than the adapter waits for unresponsive applications, and reports that the connection is still away.
        let left = BrokerClient::connect(&path.join("broker"))
            .expect("it listens")
            .restore_all();
        assert_eq!(left.expect("the operator is root"), 1);
        let back = broker.give_back(&exported.state);
        let near = back.expect("it is still this application's").into();
        transfer(&near, &far, 10_000);
        transfer(&far, &near, 10_000);
    });
}

fn connections_that_cannot_move_stay_and_work() {
    with_application(|adapter, _, _| {
        let at = "127.0.0.1:0".parse().expect("an address");
        let listener = TcpListener::bind(adapter, at).expect("the kernel has a port");
        let at = listener.local_addr().expect("it has one");
        assert_ne!(at.port(), 0);
        thread::scope(|scope| {
            let accepted = scope.spawn(|| listener.accept().expect("it comes").0);
            let far = std::net::TcpStream::connect(at).expect("it listens");
            let near = accepted.join().expect("no panic");
            scope.spawn(move || echo(&far));
            for number in 0..MOVES {
                sees_it_back(&near, number);
            }
            drop(near);
        });
        assert_eq!(moves(adapter).0, 0, "loopback is not the adapter's");
        let refused = TcpStream::connect(adapter, "127.0.0.1:1".parse().expect("an address"));
        let why = refused.expect_err("nobody listens there").kind();
        assert_eq!(why, ErrorKind::ConnectionRefused);
    });
}

fn a_stream_shared_with_another_process_is_in_the_kernel() {
    with_application(|adapter, listeners, _| {
        let peer = listeners[0].local_addr().expect("it has one");
        let own = std::net::TcpStream::connect(peer).expect("it is open");
        let (mut far, _) = listeners[0].accept().expect("it comes");
        let copy = own.try_clone().expect("a descriptor");
        let mut near = TcpStream::from_kernel(adapter, OwnedFd::from(copy)).expect("it is open");
        near.begin_return();
        assert!(near.is_returned());
        for number in 0..MOVES {
            let data = piece(number);
            let mut arrived = vec![0; data.len()];
            // The other process may use the connection too.
            match number % 2 {
                0 => near.write_all(&data).expect("it is open"),
                _ => (&own).write_all(&data).expect("it is open"),
            }
            far.read_exact(&mut arrived).expect("it arrives");
            assert!(arrived == data, "what arrives is what was sent");
        }
        assert_eq!(moves(adapter).0, 0);
        // Data that the far end has sent can still be read by the other process.
        far.write_all(b"hello").expect("it is open");
        drop(near);
        let mut left = [0; 5];
        (&own).read_exact(&mut left).expect("it is open");
        assert_eq!(&left, b"hello");
    });
}

/// The adapter announces its limit immediately. On a busy machine some attempts may take longer.
fn attaching_takes_less_than_a_timeout() {
    const LONGEST_WAIT: Duration = Duration::from_millis(100);
    with_application(|_, _, path| {
        let mut attempts = [(); 20].map(|()| {
            let start = Instant::now();
            attach_with(path, DriverConfig::default(), Threshold { enqueues: 1 });
            start.elapsed()
        });
        attempts.sort();
        assert!(attempts[10] < LONGEST_WAIT, "{attempts:?}");
    });
}

fn connections_are_reported_and_returned_on_request() {
    with_application(|adapter, listeners, path| {
        let (mut near, mut far) = opened(adapter, &listeners[0]);
        let exchange = |near: &mut TcpStream, mut far: &std::net::TcpStream| {
            near.write_all(b"there").expect("it is open");
            far.read_exact(&mut [0; 5]).expect("it arrives");
            far.write_all(b"and back").expect("it is open");
            near.read_exact(&mut [0; 8]).expect("it arrives");
        };
        let mut operator = BrokerClient::connect(&path.join("broker")).expect("it listens");
        let mut place = || {
            let mut told = operator.places().expect("it knows");
            while told.is_empty() {
                // The broker may not know the application yet.
                told = operator.places().expect("it knows");
            }
            let [application] = &told[..] else {
                panic!("there is one application: {told:?}");
            };
            assert_eq!(application.pid, std::process::id());
            let [row] = &application.places[..] else {
                panic!("there is one connection: {told:?}");
            };
            (row.place.clone(), row.why.clone())
        };
        // Nothing moves until the application knows the adapter's limit.
        loop {
            match &*place().0 {
                "host" => exchange(&mut near, &far),
                "adapter" => break,
                _ => {}
            }
        }
        let left = BrokerClient::connect(&path.join("broker"))
            .expect("it listens")
            .restore_all();
        assert_eq!(left.expect("the operator is root"), 0);
        assert_eq!(place(), ("host".to_owned(), Some("restored".to_owned())));
        for _ in 0..4 {
            exchange(&mut near, &far);
        }
        // An application that waits for something else answers too.
        thread::scope(|scope| {
            scope.spawn(|| near.read(&mut [0; 1]).expect("it arrives"));
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(50));
                assert_eq!(place().0, "host", "the adapter takes no more");
            }
            far.write_all(b"!").expect("it is open");
        });
        assert_eq!(moves(adapter), (1, 1, 0));
    });
}
