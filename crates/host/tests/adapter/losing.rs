//! Data that was kept for an adapter goes to the host's stack when the adapter is lost or does not take the connection.

use baton_bus::descriptor::{Action, Outcome, Request, Status};
use baton_bus::link::{LinkError, MemoryHost, memory_link};
use baton_cluster::script::{CLIENT, LINK, SERVER, Script};
use baton_host::adapter::{OsLayer, OsLayerConfig};
use baton_host::layer::{AdapterEnd, AdapterId, HostStack, Reached, SocketLayer};
use baton_host::{Gone, Receive, SocketId, Sockets, Unread};
use baton_tcp::{CloseReason, Config, ConnId, Essentials, ListenerId, Portable, State};
use baton_testkit::endpoint;
use baton_wire::{Flow, SeqNr, Span, Time};
use bytes::Bytes;

fn lose_link(script: &mut Script) {
    script.host.faults().cut();
    assert_eq!(script.try_pump(), Err(LinkError::Gone));
    script.os.handle_link_lost(script.now);
    script.os.check();
}

/// A stack with one connection that it recovers when the adapter is lost.
#[derive(Default)]
struct Recovering {
    accepted: bool,
    /// Whether some of the sent data is not acknowledged.
    is_busy: bool,
    /// Whether exports fail.
    keeps: bool,
    sent: Vec<u8>,
}

const FLOW: fn() -> Flow = || Flow {
    local: SERVER,
    remote: CLIENT,
};

impl HostStack<Bytes> for Recovering {
    fn accept(&mut self, _: ListenerId) -> Option<ConnId> {
        (!std::mem::replace(&mut self.accepted, true)).then_some(ConnId(0))
    }
    fn has_acceptable(&self, _: ListenerId) -> bool {
        !self.accepted
    }
    fn flow(&self, _: ConnId) -> Flow {
        FLOW()
    }
    fn receive(&mut self, _: ConnId, _: usize) -> Receive<Bytes> {
        Receive::WouldBlock
    }
    fn unread(&self, _: ConnId) -> Unread {
        Unread::default()
    }
    fn send(&mut self, _: ConnId, data: Bytes) -> Result<usize, Gone> {
        self.sent.extend_from_slice(&data);
        Ok(data.len())
    }
    fn send_space(&self, _: ConnId) -> usize {
        1 << 20
    }
    fn send_buffer(&self, _: ConnId) -> u32 {
        1 << 20
    }
    fn unacknowledged(&self, _: ConnId) -> usize {
        0
    }
    fn set_nodelay(&mut self, _: ConnId, _: bool) {}
    fn set_cork(&mut self, _: ConnId, _: bool) {}
    fn shutdown(&mut self, _: ConnId) {}
    fn close(&mut self, _: ConnId) {}
    fn abort(&mut self, _: ConnId) {}
    fn may_move(&self, _: ConnId) -> bool {
        true
    }
    fn is_at_rest(&self, _: ConnId) -> bool {
        !self.is_busy
    }
    fn settle(&mut self, _: ConnId) -> bool {
        !self.is_busy
    }
    fn export(&mut self, _: Time, _: ConnId) -> Option<Portable<Bytes>> {
        if self.keeps {
            return None;
        }
        let state = Essentials {
            flow: FLOW(),
            state: State::Established,
            send_una: SeqNr(0),
            send_next: SeqNr(0),
            send_buffer: Vec::new(),
            send_window: 10_000,
            send_window_seq: SeqNr(0),
            largest_send_window: 10_000,
            receive_next: SeqNr(7),
            receive_edge: SeqNr(7) + 20_000,
            receive_buffer: Vec::new(),
            mss: 1000,
            window_scaling: None,
            sack: true,
            timestamp: None,
            round_trip: None,
            congestion_window: None,
            slow_start_threshold: None,
        };
        Some(state.into_portable(&Config::default()))
    }
    fn import(&mut self, _: Time, _: Portable<Bytes>) -> Result<ConnId, CloseReason> {
        Err(CloseReason::Aborted)
    }
    fn recover(&mut self, _: Time, _: &Flow, _: Reached) -> Option<ConnId> {
        Some(ConnId(1))
    }
}

type End = AdapterEnd<Bytes, MemoryHost<Bytes>>;

/// A socket layer with the connection of a [`Recovering`] stack, and an adapter that can import the connection.
struct Moving {
    stack: Recovering,
    layer: SocketLayer<Bytes>,
    script: Script,
    socket: SocketId,
}

impl Moving {
    fn new() -> Self {
        let mut layer = SocketLayer::new(10, None);
        layer.set_most_kept(1 << 16);
        layer.add_listener(ListenerId(0), AdapterId(0));
        let mut script = Script::new(OsLayerConfig::default());
        script.os.keep_lost();
        let packets = script.os.packet_socket(script.now, endpoint(1, 0)).unwrap();
        let set_up = script.requests();
        let made = |it: &&Request| !matches!(it.action, Action::Receive { .. });
        (set_up.iter().filter(made)).for_each(|it| script.done(it, Status::Ok));
        script.tell(packets, Status::Ok, Outcome::SoftLimit { connections: 10 });
        drop(script.requests());
        let mut moving = Self {
            stack: Recovering::default(),
            layer,
            script,
            socket: SocketId(0),
        };
        moving.socket = moving.with_end(|now, stack, layer, ends| {
            let mut calls = layer.calls(now, stack, ends);
            calls
                .accept_on(ListenerId(0))
                .expect("a connection is pending")
        });
        moving
    }

    /// Lends the host's end of the link to `act`.
    fn with_end<R>(
        &mut self,
        act: impl FnOnce(Time, &mut Recovering, &mut SocketLayer<Bytes>, &mut [End]) -> R,
    ) -> R {
        let os = OsLayer::new(OsLayerConfig::default()).expect("the parameters are valid");
        let (link, _) = memory_link(LINK);
        let mut ends = [AdapterEnd {
            os: std::mem::replace(&mut self.script.os, os),
            link: std::mem::replace(&mut self.script.host, link),
        }];
        let outcome = act(self.script.now, &mut self.stack, &mut self.layer, &mut ends);
        let [AdapterEnd { os, link }] = ends;
        (self.script.os, self.script.host) = (os, link);
        outcome
    }

    fn hand_off(&mut self) {
        let id = self.socket;
        let begun =
            self.with_end(|now, stack, layer, ends| layer.calls(now, stack, ends).hand_off(id));
        assert_eq!(begun, Ok(()));
    }

    fn send(&mut self, data: &'static [u8]) {
        let id = self.socket;
        let sent = self.with_end(|now, stack, layer, ends| {
            let mut calls = layer.calls(now, stack, ends);
            calls.send(id, Bytes::from_static(data))
        });
        assert_eq!(sent, Ok(data.len()));
    }

    fn look_after_ms(&mut self, ms: u64) {
        self.script.now += Span::from_ms(ms);
        self.with_end(|now, stack, layer, ends| layer.handle_settling(now, stack, ends));
    }
}

/// The adapter answers IMPORT and is killed before the host reads the answer, so the host learns of both at the same time.
#[test]
fn data_kept_for_a_lost_adapter_is_sent_by_the_stack() {
    let mut moving = Moving::new();
    moving.hand_off();
    moving.send(b"kept");
    let script = &mut moving.script;
    let requests = script.requests();
    let [request] = &requests[..] else {
        panic!("expected one IMPORT, got {requests:?}");
    };
    assert!(matches!(request.action, Action::Import { .. }));
    script.answer(request, Status::Ok, Outcome::of_failed(&request.action));
    script.pump();
    lose_link(script);
    moving.with_end(|now, stack, layer, ends| layer.handle_adapters(now, stack, ends));
    assert_eq!(moving.stack.sent, b"kept");
    assert!(moving.layer.is_wholly_in_stack(moving.socket));
}

#[test]
fn data_kept_for_a_connection_that_stays_is_sent_by_the_stack() {
    let mut moving = Moving::new();
    (moving.stack.is_busy, moving.stack.keeps) = (true, true);
    moving.hand_off();
    moving.look_after_ms(100);
    moving.send(b"kept");
    assert_eq!(moving.stack.sent, b"");
    moving.stack.is_busy = false;
    moving.look_after_ms(100);
    assert_eq!(moving.stack.sent, b"kept");
    assert!(moving.layer.is_wholly_in_stack(moving.socket));
}
