//! Applications that exit, stop or violate the protocol, while another application works. In tests of `baton-iolib`, processes at both ends
//! of a link are killed; in tests of `baton-sockets`, adapters are lost.

use super::*;
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::{Ready, Receive, SocketId, Sockets};
use baton_nic::adapter::Ending;
use baton_tcp::{ConnId, Stack};
use baton_testkit::Pattern;
use baton_testkit::process::TIMEOUT;
use bytes::Bytes;
use std::time::Instant;

/// Data that fits into the buffers of both ends while nobody reads.
const PIECE_BYTES: usize = 32 * 1024;

/// An application that echoes all data that arrives at a port.
struct Echo {
    os: OsLayer<Bytes>,
    link: ShmHost,
    /// Received data that still has to be sent back.
    unsent: BTreeMap<SocketId, Bytes>,
}

impl Echo {
    fn new(desk: &mut Desk, port: u16) -> Self {
        let link = desk.attach().expect("there is room");
        let mut os = OsLayer::new(OsLayerConfig::default()).expect("the parameters are valid");
        let local = Endpoint::new([10, 9, 0, 2].into(), port);
        let listener = os.listen(desk.server.now(), local, 256);
        listener.expect("the first socket");
        Self {
            os,
            link,
            unsent: BTreeMap::new(),
        }
    }

    fn turn(&mut self, now: Time) {
        let pumped = self.os.pump(now, &mut self.link);
        pumped.expect("the adapter is there");
        while let Some(ready) = self.os.next_ready() {
            match ready {
                Ready::Acceptable => {
                    while let Some(id) = self.os.calls(now, &mut self.link).accept() {
                        self.echo(now, id);
                    }
                }
                Ready::Readable(id) | Ready::Writable(id) => self.echo(now, id),
            }
        }
    }

    fn echo(&mut self, now: Time, id: SocketId) {
        let mut calls = self.os.calls(now, &mut self.link);
        loop {
            if let Some(mut data) = self.unsent.remove(&id) {
                let taken = calls.send(id, data.clone()).expect("a connection");
                if taken < data.len() {
                    self.unsent.insert(id, data.split_off(taken));
                    return;
                }
            }
            match calls.receive(id, PIECE_BYTES) {
                Receive::Data(data) => drop(self.unsent.insert(id, data)),
                Receive::WouldBlock => return,
                end => panic!("{end:?}: the peer does not close"),
            }
        }
    }
}

impl Desk {
    /// Returns the peer's TCP.
    fn peer(&mut self) -> &mut Stack<Bytes> {
        self.client.host_mut().stack_mut()
    }

    /// Lets the peer connect to a port of the adapter from the next free port.
    fn connect(&mut self, port: u16) -> ConnId {
        let now = self.client.now();
        let connect = |from| {
            let flow = Flow {
                local: Endpoint::new([10, 9, 0, 1].into(), from),
                remote: Endpoint::new([10, 9, 0, 2].into(), port),
            };
            self.peer().connect(now, flow)
        };
        (4000..).find_map(connect).expect("a free port")
    }

    /// Runs the applications, the adapter and the peer until `holds` returns true.
    fn until(&mut self, apps: &mut [Echo], mut holds: impl FnMut(&mut Self) -> bool) {
        let limit = Instant::now() + TIMEOUT;
        while !holds(self) {
            assert!(Instant::now() < limit, "it never holds");
            let now = self.server.now();
            apps.iter_mut().for_each(|app| app.turn(now));
            self.turn();
            self.peer_turn();
        }
    }

    /// Lets the peer write data, which is the same for each connection.
    fn write(&mut self, apps: &mut [Echo], conn: ConnId, len: usize) {
        let mut data = Bytes::from(Pattern::new(0).bytes(len));
        self.until(apps, |desk| {
            let taken = desk.peer().write(conn, data.clone()).unwrap_or(0);
            drop(data.split_to(taken));
            data.is_empty()
        });
    }

    /// Lets the peer read `len` bytes, and checks that they are what it wrote.
    fn read(&mut self, apps: &mut [Echo], conn: ConnId, len: usize) {
        let mut read = 0;
        self.until(apps, |desk| {
            while let Some(piece) = desk.peer().read(conn, usize::MAX) {
                desk.peer().consume(conn, piece.len());
                Pattern::new(0).check(read as u64, &piece);
                read += piece.len();
            }
            read == len
        });
    }

    /// Lets the peer of an application write data and read its echo.
    fn echo_through(&mut self, apps: &mut [Echo], conn: ConnId) {
        for _ in 0..20 {
            self.write(apps, conn, PIECE_BYTES);
            self.read(apps, conn, PIECE_BYTES);
        }
    }

    /// Waits until the peer reports the event `what` of a connection. Returns the connection's events so far.
    fn peer_notices(&mut self, apps: &mut [Echo], conn: ConnId, what: &Event) -> Vec<Event> {
        let mut events = Vec::new();
        self.until(apps, |desk| {
            while let Some((of, event)) = desk.peer().poll_event() {
                events.extend((of == conn).then_some(event));
            }
            events.contains(what)
        });
        events
    }
}

#[test]
fn connections_of_an_application_that_exits_are_reset() {
    for firmware in both_ways() {
        let mut desk = Desk::with(2, firmware);
        let mut apps = Vec::from([7001, 7002].map(|port| Echo::new(&mut desk, port)));
        let [lost, kept] = [7001, 7002].map(|port| desk.connect(port));
        desk.echo_through(&mut apps, lost);
        desk.echo_through(&mut apps, kept);
        let shared = desk.counters()["applications.shared_bytes"];

        drop(apps.remove(0));
        let reset = Event::Closed(CloseReason::Reset);
        desk.peer_notices(&mut apps, lost, &reset);
        let counters = desk.counters();
        assert_eq!(counters["applications.shared_bytes"], shared / 2);
        assert_eq!(counters["applications.reclaimed_bytes"], shared / 2);
        assert_eq!(counters["applications.left"], 1);
        assert_eq!(desk.server.host().stack().listeners().count(), 1);
        desk.echo_through(&mut apps, kept);

        apps.push(Echo::new(&mut desk, 7001));
        let conn = desk.connect(7001);
        desk.echo_through(&mut apps, conn);
    }
}

/// The peer of an application that exits still receives all data that the adapter holds, and then the end of the stream.
#[test]
fn connections_of_an_application_that_exits_are_drained_if_that_is_configured() {
    let mut desk = Desk::configured(|config| config.on_exit = Ending::Drain);
    let mut apps = Vec::from([7001, 7002].map(|port| Echo::new(&mut desk, port)));
    let [lost, kept] = [7001, 7002].map(|port| desk.connect(port));
    let len = 12 * PIECE_BYTES;
    desk.write(&mut apps, lost, len);
    desk.until(&mut apps, |desk| {
        desk.counters()["adapter.sent_bytes"] == len as u64
    });
    desk.echo_through(&mut apps, kept);
    let arrived = desk.peer().readable_len(lost);
    assert!(arrived < len, "the adapter holds some of it");
    drop(apps.remove(0));
    desk.until(&mut apps, |desk| desk.counters()["applications.left"] == 1);
    desk.read(&mut apps, lost, len);
    let events = desk.peer_notices(&mut apps, lost, &Event::PeerClosed);
    let is_end = |event: &Event| matches!(event, Event::Closed(_));
    assert!(!events.iter().any(is_end), "{events:?}");
    desk.peer().close(lost);
    desk.until(&mut apps, |desk| {
        let counters = desk.counters();
        counters["adapter.orphans"] == 0 && counters["applications.attached_now"] == 1
    });
    desk.echo_through(&mut apps, kept);
}

/// A stopped application delays neither another application nor the adapter.
#[test]
fn a_stopped_application_stops_only_itself() {
    let mut desk = Desk::new(2);
    let mut apps = [7001, 7002].map(|port| Echo::new(&mut desk, port));
    // Each connection has buffers posted to receive into, so the adapter will have more responses than fit into the ring.
    let slow: Vec<ConnId> = (0..200).map(|_| desk.connect(7001)).collect();
    for &conn in &slow {
        desk.write(&mut apps, conn, 3);
        desk.read(&mut apps, conn, 3);
    }
    let others = &mut apps[1..];
    for &conn in &slow {
        desk.write(others, conn, PIECE_BYTES);
    }
    desk.until(others, |desk| {
        let snapshot = Snapshot::take(&desk.server, &desk.service);
        snapshot.applications[0].bus.responses.held_up > 0
    });
    let conn = desk.connect(7002);
    desk.echo_through(others, conn);
    // Data that waits for the stopped application costs the adapter no processor time.
    desk.until(others, |desk| {
        !desk.service.was_busy() && desk.service.prepare_to_sleep()
    });
    assert!(!desk.is_woken());
    desk.awake();
    for &conn in &slow {
        desk.read(&mut apps, conn, PIECE_BYTES);
    }
    assert_eq!(desk.counters()["applications.cut_off"], 0);
}

#[test]
fn an_application_that_violates_the_protocol_is_cut_off() {
    let mut desk = Desk::new(2);
    let mut apps = [Echo::new(&mut desk, 7002)];
    let kept = desk.connect(7002);
    desk.echo_through(&mut apps, kept);
    let mut intruder = desk.attach().expect("there is room");
    ask(&mut intruder, Descriptor([0xff, 0, 0, 0]));
    desk.until(&mut apps, |desk| {
        desk.counters()["applications.attached_now"] == 1
    });
    let later = Time::ZERO + Span::from_secs(1);
    assert_eq!(intruder.get(later, &mut Vec::new()), Err(LinkError::Gone));
    let notices = desk.notices();
    let why = "was disconnected because it violated the protocol: opcode 0xff does not exist";
    assert!(notices[2].contains(why), "{notices:?}");
    assert_eq!(desk.counters()["applications.cut_off.malformed"], 1);
    desk.echo_through(&mut apps, kept);
}
