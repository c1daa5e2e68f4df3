//! The kernel alone: a client's stack on one side, the test in the place of the NIC on the other.

use baton_bus::handoff::{Command, Control, Event, Handle, Refusal, ToHost, ToNic};
use baton_host::{
    Config, DropReason, FileContent, Kernel, Mode, NicId, NoMeter, NotOffloaded, Ready, Receive,
    SelectionConfig, SocketId, Sockets,
};
use baton_tcp::{CloseReason, ConnId, Portable, Stack};
use baton_testkit::endpoint;
use baton_wire::{Flow, Span, Symbolic, Time};

const CLIENT_DATA: u64 = 1;
const SERVER_DATA: u64 = 2;

fn data(source: u64, offset: u64, len: u32) -> Symbolic {
    Symbolic {
        source,
        offset,
        len,
    }
}

struct Bench {
    kernel: Kernel<Symbolic>,
    client: Stack<Symbolic>,
    now: Time,
    commands: Vec<Command<Symbolic>>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let mut kernel = Kernel::new(config, baton_tcp::Config::default(), 1);
        kernel.listen(endpoint(1, 80));
        kernel.attach_nic(endpoint(1, 80).addr, u32::MAX);
        let client = Stack::new(baton_tcp::Config::default(), 2);
        Self {
            kernel,
            client,
            now: Time::ZERO,
            commands: Vec::new(),
        }
    }

    fn with_selection(selection: SelectionConfig) -> Self {
        Self::new(Config {
            selection,
            ..Config::default()
        })
    }

    /// Packets go to and fro until there are none; commands are kept.
    fn run(&mut self) {
        loop {
            let mut idle = true;
            while let Some((_, segment)) = self.client.poll_transmit(self.now) {
                idle = false;
                self.event(ToHost::Packet(segment));
            }
            while let Some((_, descriptor)) = self.kernel.poll_descriptor() {
                idle = false;
                match descriptor {
                    ToNic::Packet(segment) => {
                        self.client.handle_segment(self.now, segment);
                        self.event(ToHost::Sent(1));
                    }
                    ToNic::Command(command) => self.commands.push(command),
                    ToNic::Parts(_) | ToNic::Cache(_) => panic!("there is no cache"),
                }
            }
            if idle {
                return;
            }
            self.now += Span::from_us(10);
        }
    }

    fn event(&mut self, item: ToHost<Symbolic>) {
        self.kernel
            .handle_upcall(self.now, NicId(0), item, &mut NoMeter);
        self.kernel.check();
    }

    fn nic(&mut self, event: Event<Symbolic>) {
        self.event(ToHost::Event(event));
    }

    fn connect(&mut self, port: u16) -> ConnId {
        let flow = Flow {
            local: endpoint(2, port),
            remote: endpoint(1, 80),
        };
        let conn = self
            .client
            .connect(self.now, flow)
            .expect("a new four-tuple");
        self.run();
        conn
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Sockets<Symbolic>) -> T) -> T {
        let mut meter = NoMeter;
        let result = call(&mut self.kernel.sockets(self.now, &mut meter));
        self.kernel.check();
        result
    }

    fn accept(&mut self) -> SocketId {
        self.call(|sockets| sockets.accept()).expect("a connection")
    }

    fn wait(&mut self) -> Vec<Ready> {
        let mut ready = Vec::new();
        self.kernel.wait(&mut NoMeter, &mut ready, 100);
        self.kernel.check();
        ready
    }

    fn write_client(&mut self, conn: ConnId, offset: u64, len: u32) {
        assert_eq!(
            self.client.write(conn, data(CLIENT_DATA, offset, len)),
            Ok(len as usize)
        );
        self.run();
    }

    /// What the client has received.
    fn read_client(&mut self, conn: ConnId) -> Option<Symbolic> {
        self.client.read(conn, usize::MAX)
    }

    fn take_handoff(&mut self) -> (Handle, Box<Portable<Symbolic>>) {
        match self.commands.remove(0) {
            Command::Handoff { handle, state, .. } => (handle, state),
            other => panic!("a handoff is expected, not {other:?}"),
        }
    }

    fn count(&self, reason: NotOffloaded) -> u64 {
        self.kernel
            .stats()
            .not_offloaded
            .get(&reason)
            .copied()
            .unwrap_or(0)
    }
}

#[test]
fn data_goes_both_ways_and_closing_frees_everything() {
    let mut bench = Bench::with_selection(SelectionConfig::Never);
    let buffers = bench.kernel.buffers_in_use();
    let conn = bench.connect(1000);
    assert_eq!(bench.wait(), [Ready::Acceptable]);
    assert_eq!(
        bench.wait(),
        [Ready::Acceptable],
        "as long as there are any"
    );
    let socket = bench.accept();
    assert!(!bench.kernel.has_ready());
    bench.write_client(conn, 0, 5000);
    assert_eq!(bench.wait(), [Ready::Readable(socket)]);
    assert_eq!(bench.wait(), [], "once per change");
    assert_eq!(bench.call(|s| s.unread(socket)).len, 5000);
    assert_eq!(
        bench.call(|s| s.receive(socket, 2000)),
        Receive::Data(data(CLIENT_DATA, 0, 2000))
    );
    assert_eq!(
        bench.call(|s| s.receive(socket, 9000)),
        Receive::Data(data(CLIENT_DATA, 2000, 3000))
    );
    assert_eq!(bench.call(|s| s.receive(socket, 1)), Receive::WouldBlock);
    assert_eq!(
        bench.call(|s| s.send(socket, data(SERVER_DATA, 0, 10_000))),
        Ok(10_000)
    );
    bench.run();
    assert_eq!(bench.read_client(conn), Some(data(SERVER_DATA, 0, 10_000)));
    bench.client.consume(conn, 10_000);
    bench.client.close(conn);
    bench.run();
    assert_eq!(bench.wait(), [Ready::Readable(socket)]);
    assert!(bench.call(|s| s.unread(socket)).ended);
    assert_eq!(bench.call(|s| s.receive(socket, 1)), Receive::EndOfStream);
    bench.call(|s| s.close(socket));
    bench.run();
    assert_eq!(bench.kernel.socket_ids().count(), 0);
    assert_eq!(
        bench.kernel.buffers_in_use(),
        buffers,
        "all buffers came back"
    );
    assert_eq!(
        (bench.kernel.stats().opened, bench.kernel.stats().closed),
        (1, 1)
    );
    assert_eq!(bench.count(NotOffloaded::Policy), 1);
}

#[test]
fn a_writer_is_woken_when_there_is_room() {
    let mut bench = Bench::with_selection(SelectionConfig::Never);
    let conn = bench.connect(1000);
    let socket = bench.accept();
    let limit = baton_tcp::Config::default().send_buffer;
    let all = data(SERVER_DATA, 0, 2 * limit);
    assert_eq!(bench.call(|s| s.send(socket, all)), Ok(limit as usize));
    assert_eq!(bench.wait(), []);
    bench.run();
    assert_eq!(bench.wait(), [Ready::Writable(socket)]);
    assert_eq!(bench.wait(), [], "once");
    let received = bench.read_client(conn).expect("data");
    assert_eq!((received.source, received.offset), (SERVER_DATA, 0));
    assert!(received.len > limit / 2);
}

#[test]
fn a_full_accept_queue_leaves_connections_to_the_stack() {
    let mut bench = Bench::new(Config {
        backlog: 2,
        selection: SelectionConfig::Never,
        ..Config::default()
    });
    let conns: Vec<_> = (1000..1004).map(|port| bench.connect(port)).collect();
    for &conn in &conns {
        bench.write_client(conn, 0, 100);
    }
    assert_eq!(bench.kernel.connections().host, 2, "only two have sockets");
    for _ in 0..4 {
        let socket = bench.accept();
        let unread = bench.call(|s| s.unread(socket));
        assert_eq!(unread.len, 100, "what came before the socket is there");
        assert_eq!(bench.wait()[..].last(), Some(&Ready::Readable(socket)));
    }
    assert_eq!(bench.call(|s| s.accept()), None);
}

#[test]
fn what_comes_during_a_handoff_is_passed_on_in_order() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let conn = bench.connect(1000);
    let socket = bench.accept();
    let (handle, state) = bench.take_handoff();
    assert_eq!(state.flow.local, endpoint(1, 80));
    bench.write_client(conn, 0, 300);
    bench.call(|s| {
        assert_eq!(s.send(socket, data(SERVER_DATA, 0, 50)), Ok(50));
        s.set_cork(socket, true);
        s.set_cork(socket, false);
        assert_eq!(
            s.send_file(
                socket,
                FileContent::new(baton_host::FileId(1), 0, 9),
                data(SERVER_DATA, 50, 9)
            ),
            Ok(9)
        );
    });
    bench.run();
    assert_eq!(bench.commands, [], "nothing before the answer");
    bench.nic(Event::Handoff {
        handle,
        result: Ok(()),
    });
    bench.run();
    let post = bench.commands.pop();
    assert!(
        matches!(post, Some(Command::PostReceive { .. })),
        "{post:?}"
    );
    let kinds: Vec<_> = bench.commands.iter().map(kind).collect();
    assert_eq!(
        kinds,
        ["forward", "send 0+50", "control Cork(false)", "send 50+9"]
    );
    assert_eq!(bench.kernel.mode(socket), Some(Mode::Offloaded(handle)));
    assert_eq!(bench.kernel.not_offloaded(socket), None);
}

fn kind(command: &Command<Symbolic>) -> String {
    match command {
        Command::Forward { .. } => "forward".into(),
        Command::Send { data, .. } => format!("send {}+{}", data.offset, data.len),
        Command::Control { control, .. } => format!("control {control:?}"),
        Command::Received { len, .. } => format!("received {len}"),
        Command::Restore { .. } => "restore".into(),
        Command::Release { .. } => "release".into(),
        Command::PostReceive { .. } => "post".into(),
        Command::Handoff { .. } => "handoff".into(),
    }
}

#[test]
fn a_refused_connection_goes_on_as_if_nothing_had_been_tried() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let conn = bench.connect(1000);
    let socket = bench.accept();
    let (handle, state) = bench.take_handoff();
    bench.write_client(conn, 0, 300);
    assert_eq!(
        bench.call(|s| s.send(socket, data(SERVER_DATA, 0, 50))),
        Ok(50)
    );
    bench.nic(Event::Handoff {
        handle,
        result: Err((Refusal::Memory, state)),
    });
    bench.run();
    assert_eq!(
        bench.kernel.not_offloaded(socket),
        Some(NotOffloaded::RefusedMemory)
    );
    assert_eq!(
        bench.call(|s| s.receive(socket, 999)),
        Receive::Data(data(CLIENT_DATA, 0, 300))
    );
    assert_eq!(bench.read_client(conn), Some(data(SERVER_DATA, 0, 50)));
    for _ in 0..9 {
        bench
            .call(|s| s.send(socket, data(SERVER_DATA, 50, 10)))
            .expect("an open connection");
    }
    bench.run();
    assert_eq!(bench.commands, [], "the first refusal is final");
    // The NIC is known to be short of memory until it says otherwise.
    bench.connect(1001);
    assert_eq!(
        (bench.commands.len(), bench.count(NotOffloaded::Memory)),
        (0, 1)
    );
    bench.nic(Event::Memory(3));
    bench.connect(1002);
    assert_eq!(bench.take_handoff().0, handle, "handles are dense");
}

#[test]
fn a_nic_known_to_be_full_is_not_asked() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    bench.nic(Event::SoftLimit(1));
    bench.connect(1000);
    let first = bench.accept();
    assert_eq!(bench.commands.len(), 1);
    bench.connect(1001);
    let second = bench.accept();
    assert_eq!(bench.commands.len(), 1);
    assert_eq!(bench.kernel.not_offloaded(first), None);
    assert_eq!(
        bench.kernel.not_offloaded(second),
        Some(NotOffloaded::SoftLimit)
    );
    bench.nic(Event::SoftLimit(9));
    bench
        .call(|s| s.send(second, data(SERVER_DATA, 0, 9)))
        .expect("an open connection");
    bench.run();
    assert_eq!(bench.commands.len(), 1, "it had its chance");
    bench.connect(1002);
    assert_eq!(bench.commands.len(), 2, "another has its own");
}

#[test]
fn a_threshold_counts_pages_of_files() {
    let mut bench = Bench::with_selection(SelectionConfig::Threshold { enqueues: 4 });
    let conn = bench.connect(1000);
    let socket = bench.accept();
    bench
        .call(|s| s.send(socket, data(SERVER_DATA, 0, 250)))
        .expect("open");
    let file = baton_host::FileId(7);
    bench
        .call(|s| {
            s.send_file(
                socket,
                FileContent::new(file, 0, 8192),
                data(SERVER_DATA, 250, 8192),
            )
        })
        .expect("open");
    bench.run();
    assert_eq!(bench.commands, [], "three enqueues");
    bench
        .call(|s| {
            s.send_file(
                socket,
                FileContent::new(file, 8192, 5000),
                data(SERVER_DATA, 8442, 5000),
            )
        })
        .expect("open");
    bench.run();
    let (_, state) = bench.take_handoff();
    let last = state.send_buffer.last().expect("what was just sent");
    assert_eq!(
        last.offset + u64::from(last.len),
        13_442,
        "the data goes with the connection"
    );
    assert!(bench.read_client(conn).is_some());
}

/// An offloaded connection and its handle.
fn offloaded(bench: &mut Bench) -> (ConnId, SocketId, Handle, Box<Portable<Symbolic>>) {
    let conn = bench.connect(1000);
    let socket = bench.accept();
    let (handle, state) = bench.take_handoff();
    bench.nic(Event::Handoff {
        handle,
        result: Ok(()),
    });
    bench.run();
    bench.commands.clear();
    (conn, socket, handle, state)
}

#[test]
fn the_bypass_forwards_calls_and_events() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let (_, socket, handle, _) = offloaded(&mut bench);
    bench.nic(Event::Receive {
        handle,
        data: data(CLIENT_DATA, 0, 40_000),
    });
    bench.nic(Event::PeerClosed { handle });
    assert_eq!(bench.wait(), [Ready::Readable(socket)]);
    bench.run();
    let posted: Vec<_> = bench.commands.drain(..).map(|c| kind(&c)).collect();
    assert_eq!(posted, ["post"], "used receive buffers are replaced");
    assert_eq!(
        bench.call(|s| s.receive(socket, 100)),
        Receive::Data(data(CLIENT_DATA, 0, 100))
    );
    bench.call(|s| s.receive(socket, usize::MAX));
    assert_eq!(bench.call(|s| s.receive(socket, 1)), Receive::EndOfStream);
    let file = baton_host::FileId(1);
    assert_eq!(
        bench.call(|s| s.send(socket, data(SERVER_DATA, 0, 250))),
        Ok(250)
    );
    assert_eq!(
        bench.call(|s| s.send_file(socket, FileContent::new(file, 0, 5000), data(3, 0, 5000))),
        Ok(5000)
    );
    bench.call(|s| s.close(socket));
    bench.run();
    let kinds: Vec<_> = bench.commands.drain(..).map(|c| kind(&c)).collect();
    let expected = [
        "received 40000",
        "send 0+250",
        "send 0+4096",
        "send 4096+904",
        "control Close",
    ];
    assert_eq!(kinds, expected);
    bench.nic(Event::Acknowledged { handle, len: 5250 });
    bench.nic(Event::Closed {
        handle,
        reason: CloseReason::Normal,
    });
    bench.run();
    assert_eq!(bench.commands, [Command::Release { handle }]);
    assert_eq!(bench.kernel.socket_ids().count(), 0);
    bench.nic(Event::PeerClosed { handle });
    assert_eq!(
        bench.kernel.stats().drops.get(&DropReason::StaleEvent),
        Some(&1)
    );
}

#[test]
fn a_packet_for_the_nic_never_meets_the_listener() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let (conn, _, handle, _) = offloaded(&mut bench);
    bench.write_client(conn, 0, 10);
    // A second incarnation of the client opens the same four-tuple.
    bench.client = Stack::new(baton_tcp::Config::default(), 3);
    bench.connect(1000);
    let kinds: Vec<_> = bench.commands.drain(..).map(|c| kind(&c)).collect();
    assert_eq!(kinds, ["forward", "forward"]);
    assert_eq!(bench.kernel.connections().host, 0);
    assert_eq!(bench.kernel.connections().offloaded, 1);
    bench.nic(Event::Closed {
        handle,
        reason: CloseReason::Reset,
    });
    assert_eq!(bench.kernel.stats().closed_abnormally, 1);
}

#[test]
fn a_restored_connection_goes_on_with_what_was_kept() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let (conn, socket, handle, state) = offloaded(&mut bench);
    bench.nic(Event::Relief { handle });
    bench.run();
    assert_eq!(
        bench
            .commands
            .drain(..)
            .map(|c| kind(&c))
            .collect::<Vec<_>>(),
        ["restore"]
    );
    assert!(
        !bench.kernel.restore(socket, &mut NoMeter),
        "it is on its way"
    );
    bench.write_client(conn, 0, 200);
    assert_eq!(
        bench.call(|s| s.send(socket, data(SERVER_DATA, 0, 70))),
        Ok(70)
    );
    assert_eq!(bench.kernel.connections().restoring, 1);
    bench.nic(Event::Restored { handle, state });
    bench.run();
    assert_eq!(bench.commands, [], "the NIC has forgotten it");
    assert_eq!(
        bench.kernel.not_offloaded(socket),
        Some(NotOffloaded::Restored)
    );
    assert_eq!(
        bench.call(|s| s.receive(socket, 999)),
        Receive::Data(data(CLIENT_DATA, 0, 200))
    );
    assert_eq!(bench.read_client(conn), Some(data(SERVER_DATA, 0, 70)));
    let stats = bench.kernel.stats();
    assert_eq!(
        (stats.reliefs, stats.restores_attempted, stats.restored),
        (1, 1, 1)
    );
}

#[test]
fn a_connection_that_ends_on_its_way_back_is_over() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    let (_, socket, handle, _) = offloaded(&mut bench);
    assert!(bench.kernel.restore(socket, &mut NoMeter));
    assert_eq!(
        bench.call(|s| s.send(socket, data(SERVER_DATA, 0, 70))),
        Ok(70)
    );
    bench.nic(Event::Closed {
        handle,
        reason: CloseReason::Reset,
    });
    bench.run();
    assert_eq!(bench.wait(), [Ready::Readable(socket)]);
    assert_eq!(bench.call(|s| s.receive(socket, 1)), Receive::Gone);
    assert!(
        bench
            .call(|s| s.send(socket, data(SERVER_DATA, 70, 1)))
            .is_err()
    );
    bench.call(|s| s.close(socket));
    assert_eq!(bench.kernel.socket_ids().count(), 0);
    assert_eq!(
        bench.commands.iter().map(kind).collect::<Vec<_>>(),
        ["restore", "release"]
    );
}

#[test]
fn a_restore_asked_for_during_a_handoff_follows_it() {
    let mut bench = Bench::with_selection(SelectionConfig::Fcfs);
    bench.connect(1000);
    let socket = bench.accept();
    let (handle, _) = bench.take_handoff();
    assert!(bench.kernel.restore(socket, &mut NoMeter));
    bench.call(|s| s.close(socket));
    bench.nic(Event::Handoff {
        handle,
        result: Ok(()),
    });
    bench.run();
    let kinds: Vec<_> = bench.commands.iter().map(kind).collect();
    assert_eq!(kinds, ["control Close", "post", "restore"]);
    assert!(matches!(
        bench.commands[0],
        Command::Control {
            control: Control::Close,
            ..
        }
    ));
    assert_eq!(bench.kernel.mode(socket), Some(Mode::Restoring(handle)));
}
