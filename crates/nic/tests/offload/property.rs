//! Whatever applications ask for and whatever the network does: every request is answered once, every byte arrives in order,
//! every invariant holds, and nothing is left of those that are gone.

use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Buffer, Close, Outcome, SocketOption, Status};
use baton_nic::offload::Ending;
use baton_tcp::{ConnId, Event, Symbolic};
use baton_wire::{Endpoint, Span};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Sockets have numbers below this.
const NUMBERS: u32 = 12;
/// Ports at which applications listen.
const PORTS: std::ops::Range<u16> = 1000..1003;
/// Where the peer listens.
const PEER_PORT: u16 = 80;
/// Buffers of each application.
const BUFFERS: usize = 1024;

/// What may happen next.
#[derive(Clone, Debug)]
enum Step {
    Ask {
        app: usize,
        socket: Chosen,
        what: Asked,
    },
    /// SOCKET and CONNECT.
    Open {
        app: usize,
        socket: u32,
        remote: Endpoint,
    },
    PeerConnects {
        port: u16,
    },
    Peer {
        conn: usize,
        does: PeerDoes,
    },
    Turn,
    Wait {
        us: u32,
    },
    /// One application leaves and another comes in its place.
    Replace {
        app: usize,
        ending: Ending,
    },
    RefuseResponses {
        app: usize,
        refuse: bool,
    },
    DelayDma {
        app: usize,
        polls: u32,
    },
    Lose {
        percent: u32,
    },
}

/// A socket.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    /// One that there is, as far as the application knows.
    Known(usize),
    Any(u32),
}

/// What an application may ask for.
#[derive(Clone, Debug)]
enum Asked {
    Plain(Action),
    Send {
        len: u32,
        more: bool,
    },
    Receive {
        len: u32,
    },
    /// Cancels the request of so many before.
    Cancel {
        back: u32,
    },
}

/// What the peer may do with a connection.
#[derive(Clone, Debug)]
enum PeerDoes {
    Write { len: u32 },
    Read,
    Shutdown,
    Close,
    Abort,
}

fn remotes() -> impl Strategy<Value = Endpoint> {
    prop::sample::select(vec![
        Endpoint::new(PEER, PEER_PORT),
        Endpoint::new(PEER_V6, PEER_PORT),
        Endpoint::new(PEER, 9),
    ])
}

fn actions() -> impl Strategy<Value = Action> {
    let locals = (PORTS, any::<bool>()).prop_map(|(port, any_addr)| {
        let addr = if any_addr { ANY } else { ADAPTER };
        Endpoint::new(addr, port)
    });
    let options = prop::sample::select(SocketOption::ALL.to_vec());
    let values = prop::sample::select(vec![0, 1, 4096, 9000, 1 << 16]);
    prop_oneof![
        2 => Just(Action::Socket),
        2 => locals.prop_map(Action::Bind),
        2 => (0_u32..5).prop_map(|backlog| Action::Listen { backlog }),
        10 => (0..NUMBERS, 1_u16..4, prop::sample::select(vec![0, 500, 5000]))
            .prop_map(|(first, count, patience_us)| accept(first, count, patience_us)),
        1 => remotes().prop_map(Action::Connect),
        3 => prop::sample::select(vec![Close::Write, Close::Both, Close::Abort]).prop_map(Action::Close),
        2 => (options, values).prop_map(|(option, value)| set(option, value)),
        1 => Just(Action::Status),
    ]
}

fn sockets() -> impl Strategy<Value = Chosen> {
    prop_oneof![
        6 => any::<usize>().prop_map(Chosen::Known),
        1 => (0..NUMBERS).prop_map(Chosen::Any),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        4 => actions().prop_map(Asked::Plain),
        6 => (1_u32..=4096, any::<bool>()).prop_map(|(len, more)| Asked::Send { len, more }),
        6 => (1_u32..=4096).prop_map(|len| Asked::Receive { len }),
        1 => (0_u32..20).prop_map(|back| Asked::Cancel { back }),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let endings = prop::sample::select(vec![Ending::Reset, Ending::Drain]);
    let does = prop_oneof![
        4 => (1_u32..20_000).prop_map(|len| PeerDoes::Write { len }),
        3 => Just(PeerDoes::Read),
        1 => Just(PeerDoes::Shutdown),
        1 => Just(PeerDoes::Close),
        1 => Just(PeerDoes::Abort),
    ];
    prop_oneof![
        20 => (0_usize..2, sockets(), asked())
            .prop_map(|(app, socket, what)| Step::Ask { app, socket, what }),
        2 => (0_usize..2, 1..NUMBERS, remotes())
            .prop_map(|(app, socket, remote)| Step::Open { app, socket, remote }),
        6 => PORTS.prop_map(|port| Step::PeerConnects { port }),
        8 => (0_usize..20, does).prop_map(|(conn, does)| Step::Peer { conn, does }),
        8 => Just(Step::Turn),
        3 => (0_u32..400_000).prop_map(|us| Step::Wait { us }),
        1 => (0_usize..2, endings).prop_map(|(app, ending)| Step::Replace { app, ending }),
        1 => (0_usize..2, any::<bool>())
            .prop_map(|(app, refuse)| Step::RefuseResponses { app, refuse }),
        1 => (0_usize..2, 0_u32..6).prop_map(|(app, polls)| Step::DelayDma { app, polls }),
        1 => prop::sample::select(vec![0, 5, 30]).prop_map(|percent| Step::Lose { percent }),
    ]
}

/// What an application waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Plain,
    /// A CLOSE of both directions.
    Close,
    Send {
        address: u64,
    },
    Receive {
        address: u64,
    },
}

/// What a test knows of an application.
#[derive(Default)]
struct Model {
    /// Number of the application in the world.
    app: usize,
    /// Socket and kind of each request that was not answered, by tag.
    waiting: BTreeMap<u32, (u32, Waiting)>,
    /// SENDs that were answered with `Ok`: their sockets, by tag.
    sent: BTreeMap<u32, u32>,
    /// Whose bytes each socket has received, and how many.
    received: BTreeMap<u32, (u64, u64)>,
    last_tag: u32,
    /// Sockets that there may be.
    known: BTreeSet<u32>,
}

/// What a test knows of a connection at the peer.
struct PeerConn {
    id: ConnId,
    is_open: bool,
    /// What it sends has this name.
    source: u64,
    written: u64,
    read: Vec<Symbolic>,
}

struct Play {
    world: World,
    models: Vec<Model>,
    peers: Vec<PeerConn>,
}

impl Play {
    fn new(cumulative_sends: bool, most_inline: u32, level: u32) -> Self {
        let mut world = World::with(|config| {
            config.cumulative_sends = cumulative_sends;
            config.most_inline = most_inline;
            config.batching.level = level;
            config.ring_depth = 16;
            config.most_sockets = 10;
            config.most_sends = 5;
            config.most_receives = 5;
            config.most_accepts = 2;
            config.most_backlog = 4;
            config.drain_ms = 1_000;
        });
        world.attach();
        for addr in [PEER, PEER_V6] {
            world.peer_listens(Endpoint::new(addr, PEER_PORT));
        }
        let model = |app| Model {
            app,
            ..Model::default()
        };
        let mut play = Self {
            world,
            models: vec![model(0), model(1)],
            peers: Vec::new(),
        };
        for model in 0..2 {
            play.begin(model);
        }
        play
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Ask { app, socket, what } => {
                let socket = self.choose(app, socket, &what);
                self.ask(app, socket, what);
            }
            Step::Open {
                app,
                socket,
                remote,
            } => {
                self.ask(app, socket, Asked::Plain(Action::Socket));
                self.ask(app, socket, Asked::Plain(Action::Connect(remote)));
            }
            Step::PeerConnects { port } => {
                let id = self.world.peer_connects(port);
                self.meet(id);
            }
            Step::Peer { conn, does } => self.peer(conn, &does),
            Step::Turn => {
                self.world.turn();
            }
            Step::Wait { us } => self.world.wait(Span::from_us(us.into())),
            Step::Replace { app, ending } => self.replace(app, ending),
            Step::RefuseResponses { app, refuse } => self.faults(app).refuse_responses(refuse),
            Step::DelayDma { app, polls } => self.faults(app).delay_dma(polls),
            Step::Lose { percent } => self.world.loss_percent = percent,
        }
        self.absorb();
    }

    fn faults(&self, app: usize) -> baton_bus::link::Faults {
        self.world.apps[self.models[app].app].faults.clone()
    }

    /// ACCEPTs are mostly asked of the listener, socket 0, and everything else of others.
    fn choose(&self, model: usize, socket: Chosen, what: &Asked) -> u32 {
        let index = match socket {
            Chosen::Any(number) => return number,
            Chosen::Known(_) if matches!(what, Asked::Plain(Action::Accept { .. })) => return 0,
            Chosen::Known(index) => index,
        };
        let known: Vec<u32> = self.models[model].known.range(1..).copied().collect();
        let index = index.checked_rem(known.len());
        index.map_or(0, |index| known[index])
    }

    /// The application listens, as most do: socket 0.
    fn begin(&mut self, model: usize) {
        let port = PORTS.start + model as u16;
        for action in [
            Action::Socket,
            Action::Bind(Endpoint::new(ANY, port)),
            Action::Listen { backlog: 4 },
        ] {
            self.ask(model, 0, Asked::Plain(action));
        }
        self.world.run();
    }

    fn ask(&mut self, model: usize, socket: u32, what: Asked) {
        let Self { world, models, .. } = self;
        let model = &mut models[model];
        let app = model.app;
        let link = &mut world.apps[app].link;
        let next_tag = model.last_tag + 1;
        let (action, waiting) = match what {
            Asked::Plain(action) => match action {
                Action::Close(Close::Both | Close::Abort) => (action, Waiting::Close),
                _ => (action, Waiting::Plain),
            },
            Asked::Cancel { back } => {
                let target = model.last_tag.saturating_sub(back);
                (Action::Cancel { target }, Waiting::Plain)
            }
            Asked::Receive { len } => {
                let Some(address) = link.reserve() else {
                    return;
                };
                let waiting = Waiting::Receive { address };
                (Action::Receive { address, len }, waiting)
            }
            Asked::Send { len, more } => {
                // The data tells which SEND it is of.
                let source = (app as u64) << 32 | u64::from(next_tag);
                let offset = 0;
                let Ok(address) = link.place(Symbolic {
                    source,
                    offset,
                    len,
                }) else {
                    return;
                };
                let data = Buffer::Memory { address, len };
                (Action::Send { data, more }, Waiting::Send { address })
            }
        };
        match world.try_post(app, socket, action) {
            Some(tag) => {
                assert_eq!(tag, next_tag);
                model.last_tag = tag;
                match action {
                    Action::Socket => {
                        model.known.insert(socket);
                    }
                    Action::Accept { first, count, .. } => {
                        model.known.extend(first..first + u32::from(count));
                    }
                    _ => {}
                }
                model.waiting.insert(tag, (socket, waiting));
            }
            None => {
                if let Waiting::Send { address } | Waiting::Receive { address } = waiting {
                    world.apps[app].link.free(address);
                }
            }
        }
    }

    fn meet(&mut self, id: ConnId) {
        let source = 1 << 60 | self.peers.len() as u64;
        self.peers.push(PeerConn {
            id,
            is_open: true,
            source,
            written: 0,
            read: Vec::new(),
        });
    }

    fn peer(&mut self, index: usize, does: &PeerDoes) {
        let count = self.peers.len();
        let Some(conn) = self.peers.get_mut(index.checked_rem(count).unwrap_or(0)) else {
            return;
        };
        if !conn.is_open {
            return;
        }
        let (stack, id) = (&mut self.world.peer, conn.id);
        match does {
            PeerDoes::Write { len } => {
                let (source, offset, len) = (conn.source, conn.written, *len);
                let piece = Symbolic {
                    source,
                    offset,
                    len,
                };
                conn.written += stack.write(id, piece).unwrap_or(0) as u64;
            }
            PeerDoes::Read => read_all(stack, conn),
            PeerDoes::Shutdown => stack.shutdown(id),
            PeerDoes::Close => stack.close(id),
            PeerDoes::Abort => stack.abort(id),
        }
    }

    fn replace(&mut self, model: usize, ending: Ending) {
        let app = self.models[model].app;
        self.world.detach(app, ending);
        self.absorb();
        // What was answered and not heard of any more may have been sent.
        let sent = std::mem::take(&mut self.models[model].waiting);
        let sent = sent.into_iter().filter_map(|(tag, (socket, waiting))| {
            matches!(waiting, Waiting::Send { .. }).then_some((tag, socket))
        });
        let maybe_sent: BTreeMap<u32, u32> = sent.collect();
        self.check_sent(model, &maybe_sent);
        let app = self.world.attach();
        self.models[model] = Model {
            app,
            ..Model::default()
        };
        self.begin(model);
    }

    /// Takes note of everything that was told.
    fn absorb(&mut self) {
        for model in &mut self.models {
            if self.world.apps[model.app].session.is_some() {
                for heard in self.world.heard(model.app) {
                    model.hear(&mut self.world.apps[model.app], &self.peers, &heard);
                }
            }
        }
        for (id, event) in std::mem::take(&mut self.world.told) {
            match event {
                Event::Acceptable(listener) => {
                    while let Some(id) = self.world.peer.accept(listener) {
                        self.meet(id);
                    }
                }
                Event::Closed(_) => {
                    let open = self
                        .peers
                        .iter_mut()
                        .find(|conn| conn.is_open && conn.id == id);
                    if let Some(conn) = open {
                        conn.is_open = false;
                    }
                }
                _ => {}
            }
        }
    }

    /// What the peer has read of an application is whole SENDs that were answered with `Ok`, or may have been, in the order in
    /// which they were asked for, without one left out; the last may be a part.
    fn check_sent(&self, model: usize, maybe: &BTreeMap<u32, u32>) {
        let model = &self.models[model];
        for conn in &self.peers {
            let of_model = conn
                .read
                .iter()
                .filter(|piece| (piece.source >> 32) as usize == model.app);
            let mut last: Option<(u32, u32, u64)> = None;
            for piece in of_model {
                let tag = piece.source as u32;
                let socket = model.sent.get(&tag).or(maybe.get(&tag));
                let &socket = socket.expect("only what was answered with Ok was sent");
                match last {
                    Some((before, _, end)) if before == tag => assert_eq!(piece.offset, end),
                    Some((before, of, _)) => {
                        assert!(before < tag && of == socket, "one socket, in order");
                        let mut between = model.sent.range(before + 1..tag);
                        assert!(
                            between.all(|(_, &other)| other != socket),
                            "nothing is left out between {before} and {tag}"
                        );
                        assert_eq!(piece.offset, 0);
                    }
                    None => assert_eq!(piece.offset, 0),
                }
                last = Some((tag, socket, piece.offset + u64::from(piece.len)));
            }
        }
    }

    /// Everything is closed; then everything has been answered, and nothing is left.
    fn end(mut self) {
        self.world.loss_percent = 0;
        for model in 0..2 {
            self.faults(model).refuse_responses(false);
            self.faults(model).delay_dma(0);
        }
        self.world.wait(Span::from_secs(5));
        self.absorb();
        for model in 0..2 {
            for socket in 0..NUMBERS + 4 {
                let abort = Asked::Plain(Action::Close(Close::Abort));
                self.ask(model, socket, abort);
                self.world.wait(Span::from_ms(2));
                self.absorb();
            }
        }
        for index in 0..self.peers.len() {
            self.peer(index, &PeerDoes::Read);
        }
        self.world.run();
        for (index, model) in self.models.iter().enumerate() {
            assert!(model.waiting.is_empty(), "{:?} wait", model.waiting);
            self.check_sent(index, &BTreeMap::new());
            let link = &self.world.apps[model.app].link;
            assert_eq!(link.free_buffers(), BUFFERS, "all buffers came back");
        }
        assert!(self.world.adapter.sessions().all(|row| row.sockets == 0));
        for model in 0..2 {
            self.world.detach(self.models[model].app, Ending::Reset);
        }
        // Those that drain have a time for it.
        self.world.wait(Span::from_secs(2));
        self.world.adapter.check();
        assert_eq!(self.world.adapter.orphans(), 0);
        assert!(self.world.stack.is_empty());
        assert_eq!(self.world.stack.listeners().count(), 0);
        assert_eq!(self.world.adapter.poll_timeout(), None);
    }
}

impl Model {
    fn hear(&mut self, app: &mut App, peers: &[PeerConn], heard: &Heard) {
        let (response, socket) = (heard.response, heard.response.socket);
        if response.tag == 0 {
            match response.outcome {
                Outcome::PeerClosed => self.check_complete(peers, socket),
                Outcome::Over => {
                    self.received.remove(&socket);
                    self.known.remove(&socket);
                }
                other => panic!("{other:?} is no news"),
            }
            return;
        }
        let Some((of, waiting)) = self.waiting.remove(&response.tag) else {
            panic!("{response:?} answers what was not asked, or again");
        };
        assert_eq!(of, socket);
        if response.status == Status::NoSuchSocket {
            self.known.remove(&socket);
        }
        match (response.outcome, waiting) {
            (Outcome::Sent { cumulative, .. }, Waiting::Send { address }) => {
                app.link.free(address);
                if response.status == Status::Ok {
                    self.sent.insert(response.tag, socket);
                }
                if cumulative {
                    self.sent_before(app, response.tag, socket);
                }
            }
            (Outcome::Received(Buffer::Memory { len: 0, .. }), Waiting::Receive { address }) => {
                assert_ne!(response.status, Status::Ok);
                app.link.free(address);
            }
            (Outcome::Received(Buffer::Memory { address, len }), Waiting::Receive { .. }) => {
                let piece = app.link.take(address, len);
                self.take_in(socket, piece.expect("it was written"));
            }
            (Outcome::Received(Buffer::Inline { .. }), Waiting::Receive { address }) => {
                app.link.free(address);
                self.take_in(socket, heard.inline.expect("it is there"));
            }
            (Outcome::Done(_), Waiting::Close) => {
                if response.status != Status::WrongState {
                    self.received.remove(&socket);
                }
            }
            (_, Waiting::Plain) => {}
            other => panic!("{other:?} does not fit"),
        }
    }

    /// A cumulative answer stands for all earlier SENDs of the socket.
    fn sent_before(&mut self, app: &mut App, tag: u32, socket: u32) {
        let earlier: Vec<(u32, u64)> = self
            .waiting
            .range(..tag)
            .filter_map(|(&tag, &(of, waiting))| match waiting {
                Waiting::Send { address } if of == socket => Some((tag, address)),
                _ => None,
            })
            .collect();
        for (tag, address) in earlier {
            self.waiting.remove(&tag);
            self.sent.insert(tag, socket);
            app.link.free(address);
        }
    }

    /// The next bytes of one peer, or the first of another.
    fn take_in(&mut self, socket: u32, piece: Symbolic) {
        let (source, expected) = match self.received.get(&socket) {
            Some(&(source, next)) if source == piece.source => (source, next),
            _ => (piece.source, 0),
        };
        assert_eq!(piece.offset, expected, "in order, and all of it");
        let next = expected + u64::from(piece.len);
        self.received.insert(socket, (source, next));
    }

    /// The end comes after everything.
    fn check_complete(&self, peers: &[PeerConn], socket: u32) {
        if let Some(&(source, next)) = self.received.get(&socket) {
            let peer = peers.iter().find(|conn| conn.source == source);
            assert_eq!(peer.map(|conn| conn.written), Some(next));
        }
    }
}

fn read_all(stack: &mut baton_tcp::Stack<Symbolic>, conn: &mut PeerConn) {
    while let Some(piece) = stack.read(conn.id, usize::MAX) {
        stack.consume(conn.id, piece.len as usize);
        conn.read.push(piece);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_once_and_nothing_is_left(
        cumulative: bool,
        most_inline in prop::sample::select(vec![0, 100]),
        level in 1_u32..5,
        steps in prop::collection::vec(steps(), 1..400),
    ) {
        let mut play = Play::new(cumulative, most_inline, level);
        for step in steps {
            play.step(step);
        }
        play.end();
    }
}
