//! An application that means no good, at an adapter with a network behind it.

use arbitrary::{Arbitrary, Result, Unstructured};
use baton_bus::Descriptor;
use baton_bus::descriptor::{Action, Buffer, Close, Request, SocketOption};
use baton_bus::link::{Dma, DmaId};
use baton_nic::offload::{Adapter, AdapterConfig, DmaRequest, Ending, SessionId};
use baton_tcp::{Config, Event, Stack, Symbolic};
use baton_wire::{Endpoint, Flow, Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// Steps of one run at most.
const MOST_STEPS: usize = 400;
/// Rounds that one step may call forth at most.
const MOST_ROUNDS: usize = 50;
/// Sockets have numbers below this, unless the input says so in words.
const SOCKETS: u8 = 5;
/// The longest that a connection outlives its application, milliseconds.
const DRAIN_MS: u32 = 1000;
const ADAPTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Where the peer listens, and where it looks for a listener.
const PORT: u16 = 80;

/// Gives an adapter whatever stands in the input as descriptors, transfers and time. It must stay sound, and nothing may be left
/// of an application once it is cut off.
pub fn application(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(mut scene) = Scene::begin(&mut input) else {
        return;
    };
    for _ in 0..MOST_STEPS {
        let Ok(step) = input.arbitrary() else { break };
        scene.step(step);
        scene.adapter.check();
    }
    scene.end();
}

/// What may happen next.
#[derive(Debug, Arbitrary)]
enum Step {
    /// Breaks the rules: by any four words, or by a transfer that nobody has asked for.
    Break {
        how: Breach,
        is_meant: u8,
    },
    /// A descriptor that makes sense.
    Sense(Sense),
    /// What has been gathered reaches the adapter, and what it asks for is done.
    Deliver,
    /// The network does what it has to do.
    Network,
    /// The peer opens a connection.
    PeerConnects,
    /// The peer sends on all its connections, or closes them.
    PeerActs {
        len: u16,
        close: bool,
    },
    /// The application takes responses, or not.
    Take(bool),
    Wait {
        ms: u16,
    },
}

#[derive(Debug, Arbitrary)]
enum Breach {
    Words([u64; 4]),
    Dma { id: u8, len: u16, is_read: bool },
}

/// A breach ends the application, and with it all that came before: not every one is meant.
const MEANT: u8 = 8;

/// A request in bounds, more or less.
#[derive(Debug, Arbitrary)]
struct Sense {
    socket: u8,
    tag: u8,
    what: What,
}

#[derive(Debug, Arbitrary)]
enum What {
    Socket,
    Bind { port: bool },
    Listen(u8),
    Accept { first: u8, count: u8, patient: bool },
    Connect { refused: bool },
    Close(u8),
    SetOption { which: u8, value: u32 },
    Status,
    Cancel(u8),
    Send { len: u16, more: bool },
    Inline(u8),
    Receive(u16),
}

struct Scene {
    adapter: Adapter<Symbolic>,
    stack: Stack<Symbolic>,
    peer: Stack<Symbolic>,
    session: SessionId,
    now: Time,
    transfer: Vec<Descriptor>,
    /// The application takes responses.
    takes: bool,
    next_port: u16,
}

impl Scene {
    fn begin(input: &mut Unstructured<'_>) -> Result<Self> {
        let config = AdapterConfig {
            addresses: vec![ADAPTER],
            cumulative_sends: input.arbitrary()?,
            most_inline: u32::from(input.arbitrary::<u8>()? % 64),
            ring_depth: 8,
            most_sockets: 40,
            most_sends: 4,
            most_receives: 4,
            most_accepts: 3,
            most_backlog: 5,
            drain_ms: DRAIN_MS,
            ..AdapterConfig::default()
        };
        let mut adapter = Adapter::new(config).expect("right parameters");
        let mut peer = Stack::new(Config::default(), 2);
        peer.listen(Endpoint::new(PEER, PORT), 8);
        let mut scene = Self {
            session: adapter.attach().expect("it is the first"),
            adapter,
            stack: Stack::new(Config::default(), 1),
            peer,
            now: Time::ZERO + Span::from_ms(1),
            transfer: Vec::new(),
            takes: true,
            next_port: 1000,
        };
        scene.listen();
        Ok(scene)
    }

    /// The application begins as others do: socket 0 listens.
    fn listen(&mut self) {
        for what in [What::Socket, What::Bind { port: true }, What::Listen(5)] {
            let (socket, tag) = (0, 0);
            self.gather(&Sense { socket, tag, what });
        }
        self.deliver();
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Break { is_meant, .. } if is_meant >= MEANT => {}
            Step::Break {
                how: Breach::Words(words),
                ..
            } => self.transfer.push(Descriptor(words)),
            Step::Break {
                how: Breach::Dma { id, len, is_read },
                ..
            } => self.pretend(id, len, is_read),
            Step::Sense(sense) => self.gather(&sense),
            Step::Deliver => self.deliver(),
            Step::Network => self.network(),
            Step::PeerConnects => self.peer_connects(),
            Step::PeerActs { len, close } => self.peer_acts(len, close),
            Step::Take(takes) => {
                self.takes = takes;
                self.take();
            }
            Step::Wait { ms } => self.wait(ms.into()),
        }
    }

    fn wait(&mut self, ms: u64) {
        self.now += Span::from_ms(ms);
        self.stack.handle_timeouts(self.now);
        self.peer.handle_timeouts(self.now);
        self.adapter.handle_timeouts(self.now, &mut self.stack);
        self.network();
    }

    fn gather(&mut self, sense: &Sense) {
        let action = sense.what.action();
        let request = Request {
            socket: (sense.socket % SOCKETS).into(),
            tag: sense.tag.into(),
            action,
        };
        let head = request.encode();
        let continuations = head.continuations();
        self.transfer.push(head);
        // What stands there is data of some kind.
        let rest = std::iter::repeat_n(Descriptor::default(), continuations);
        self.transfer.extend(rest);
    }

    fn deliver(&mut self) {
        if self.adapter.room_for_requests(self.session) == 0 {
            return;
        }
        let requests = std::mem::take(&mut self.transfer);
        let handled =
            self.adapter
                .handle_requests(self.now, &mut self.stack, self.session, &requests);
        if handled.is_err() {
            self.cut_off();
        }
        self.network();
    }

    /// Does what the adapter asks for, until it asks for no more.
    fn serve(&mut self) {
        while let Some(request) = self.adapter.poll_dma(self.session) {
            let over = match request {
                DmaRequest::Read { id, address, len } => {
                    let (source, offset) = (3, address);
                    let data = Symbolic {
                        source,
                        offset,
                        len,
                    };
                    Dma::Read { id, data }
                }
                DmaRequest::Write { id, .. } => Dma::Written { id },
            };
            let handled = self
                .adapter
                .handle_dma(self.now, &mut self.stack, self.session, over);
            handled.expect("the link does what it is asked to do");
        }
        self.take();
    }

    fn take(&mut self) {
        let mut transfer = Vec::new();
        while self
            .adapter
            .next_transfer(self.now, self.session, &mut transfer)
        {
            let len = if self.takes { transfer.len() } else { 0 };
            self.adapter
                .transferred(self.now, self.session, len, transfer.len());
            if !self.takes {
                return;
            }
        }
    }

    fn pretend(&mut self, id: u8, len: u16, is_read: bool) {
        let (source, offset, len) = (3, 0, len.into());
        let id = DmaId(id.into());
        let data = Symbolic {
            source,
            offset,
            len,
        };
        let over = if is_read {
            Dma::Read { id, data }
        } else {
            Dma::Written { id }
        };
        let handled = self
            .adapter
            .handle_dma(self.now, &mut self.stack, self.session, over);
        assert!(handled.is_err(), "all that was asked for has been done");
        self.cut_off();
    }

    /// The application has broken the rules; another comes in its place.
    fn cut_off(&mut self) {
        let ending = Ending::Reset;
        self.adapter
            .detach(self.now, &mut self.stack, self.session, ending);
        self.adapter.check();
        while self.move_segments() | self.tell_events() {}
        assert_eq!(
            self.stack.len(),
            self.adapter.orphans(),
            "nothing is left but what it had closed itself"
        );
        assert_eq!(self.stack.listeners().count(), 0);
        self.transfer.clear();
        self.session = self.adapter.attach().expect("there is room");
        self.listen();
    }

    fn network(&mut self) {
        self.serve();
        for _ in 0..MOST_ROUNDS {
            let moved = self.move_segments();
            let told = self.tell_events();
            self.serve();
            if !moved && !told {
                break;
            }
        }
        self.stack.check();
    }

    fn move_segments(&mut self) -> bool {
        let mut did = false;
        while let Some((_, segment)) = self.stack.poll_transmit(self.now) {
            did = true;
            self.peer.handle_segment(self.now, segment);
        }
        while let Some((_, segment)) = self.peer.poll_transmit(self.now) {
            did = true;
            self.stack.handle_segment(self.now, segment);
        }
        did
    }

    fn tell_events(&mut self) -> bool {
        let mut did = false;
        while let Some((conn, event)) = self.stack.poll_event() {
            did = true;
            let is_ours = self
                .adapter
                .handle_event(self.now, &mut self.stack, conn, &event);
            assert!(is_ours, "there is nobody else");
        }
        while let Some((conn, event)) = self.peer.poll_event() {
            did = true;
            match event {
                Event::Acceptable(listener) => {
                    self.peer.accept(listener);
                }
                Event::Readable => {
                    while let Some(piece) = self.peer.read(conn, usize::MAX) {
                        self.peer.consume(conn, piece.len as usize);
                    }
                }
                _ => {}
            }
        }
        did
    }

    fn peer_connects(&mut self) {
        let local = Endpoint::new(PEER, self.next_port);
        let remote = Endpoint::new(ADAPTER, PORT);
        self.next_port = self.next_port.wrapping_add(1).max(1000);
        self.peer.connect(self.now, Flow { local, remote });
        self.network();
    }

    fn peer_acts(&mut self, len: u16, close: bool) {
        for port in 1000..self.next_port {
            let local = Endpoint::new(PEER, port);
            let remote = Endpoint::new(ADAPTER, PORT);
            let Some(conn) = self.peer.find(&Flow { local, remote }) else {
                continue;
            };
            let (source, offset, len) = (4, u64::from(port) << 32, len.into());
            let data = Symbolic {
                source,
                offset,
                len,
            };
            if close {
                self.peer.close(conn);
            } else if len > 0 {
                // It may have closed before.
                let _ = self.peer.write(conn, data);
            }
        }
        self.network();
    }

    fn end(mut self) {
        self.cut_off();
        self.wait(u64::from(DRAIN_MS) + 1);
        assert_eq!(self.adapter.orphans(), 0);
        assert_eq!(self.adapter.poll_timeout(), None);
    }
}

impl What {
    fn action(&self) -> Action {
        let address = 0x1000;
        match *self {
            Self::Socket => Action::Socket,
            Self::Bind { port } => {
                let port = if port { PORT } else { 0 };
                Action::Bind(Endpoint::new(ADAPTER, port))
            }
            Self::Listen(backlog) => Action::Listen {
                backlog: backlog.into(),
            },
            Self::Accept {
                first,
                count,
                patient,
            } => Action::Accept {
                first: (first % SOCKETS).into(),
                count: u16::from(count % 4) + 1,
                patience_us: if patient { 0 } else { 2000 },
            },
            Self::Connect { refused } => {
                let port = if refused { 9 } else { PORT };
                Action::Connect(Endpoint::new(PEER, port))
            }
            Self::Close(how) => {
                let all = [Close::Write, Close::Both, Close::Abort];
                Action::Close(all[usize::from(how) % all.len()])
            }
            Self::SetOption { which, value } => {
                let all = SocketOption::ALL;
                let option = all[usize::from(which) % all.len()];
                Action::SetOption { option, value }
            }
            Self::Status => Action::Status,
            Self::Cancel(target) => Action::Cancel {
                target: target.into(),
            },
            Self::Send { len, more } => {
                let len = buffer_len(len);
                let data = Buffer::Memory { address, len };
                Action::Send { data, more }
            }
            Self::Inline(len) => {
                let len = u16::from(len).clamp(1, 240);
                let data = Buffer::Inline { len };
                Action::Send { data, more: false }
            }
            Self::Receive(len) => {
                let len = buffer_len(len);
                Action::Receive { address, len }
            }
        }
    }
}

/// Nearly always in bounds.
fn buffer_len(len: u16) -> u32 {
    match len {
        0xff00.. => len.into(),
        _ => u32::from(len % 4097),
    }
}
