//! Plays dialogues between applications and the adapter, with a peer on the network: the files in `dialogues`.
//!
//! | line | meaning |
//! |---|---|
//! | `config KEY = VALUE` | a parameter of the adapter or, with `tcp.` before it, of its TCP |
//! | `listening` | socket 1 listens on port 80 |
//! | `connected P` | socket 1 listens, and socket 2 is its connection to the peer's end P |
//! | `attach`, `app N` | attaches another application; the lines that follow are about application N |
//! | `> SOCKET REQUEST [as NAME]` | posts a request; its name is by default its first word |
//! | `< NAME STATUS RESULT` | the next response, to this request |
//! | `< SOCKET STATUS NOTICE` | the next response, which nobody has requested |
//! | `< *` | all responses so far |
//! | `peer P ACTION` | the peer acts, or has noticed something |
//! | `run`, `turn N`, `wait N us`, `cut`, `heal` | time passes or not; segments arrive or not |
//! | `? WHAT VALUE` | a property of the adapter |
//!
//! Data is written as `OFFSET+LENGTH`. A last word `xN` stands for N equal lines, with consecutive data. Everything runs until it is idle
//! before a response is expected or anything is checked, except after `turn`. All responses must be expected.

use crate::world::*;
use baton_bus::descriptor::{Action, Buffer, Close, Moment, Outcome, SocketOption, Status};
use baton_bus::{Descriptor, HostLink};
use baton_nic::adapter::{AdapterConfig, AttachError, Ending, OnBoardMemory};
use baton_tcp::{CloseReason, Config, ConnId, Event, FastOpen, FastOpenListening, ListenerId};
use baton_testkit::dialogue::{Play, next_is, repeated, same, value};
use baton_wire::{Endpoint, Flow, Span, Stages, Symbolic};
use std::collections::{BTreeMap, VecDeque};

/// Value at `Time::ZERO` of the clock that an application shares with the adapter after `clock`.
const EPOCH_NS: u64 = 5_000_000_000;

/// A request that was posted.
struct Asked {
    name: String,
    socket: u32,
    action: Action,
}

#[derive(Default)]
pub struct Player {
    /// Parameters of the adapter and of its TCP as TOML.
    config: [String; 2],
    /// Parameters that files cannot have.
    special: Vec<(String, u32)>,
    world: Option<World>,
    app: usize,
    /// Requests, by application and tag.
    asked: BTreeMap<(usize, u32), Asked>,
    /// The peer's ends of connections, with their names and addresses.
    conns: Vec<(String, ConnId, Endpoint)>,
    listeners: BTreeMap<String, ListenerId>,
    /// Whether something was done since the world was last run.
    is_busy: bool,
    /// Responses that no line has expected yet, by application.
    said: Vec<VecDeque<String>>,
    /// Number of segments that the peer had received at `mark`.
    marked: usize,
}

impl Play for Player {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let (words, times) = repeated(words);
        match words {
            ["config", key, "=", value @ ..] => return self.configure(key, &value.join(" ")),
            ["<", "*"] => {
                self.settle();
                self.said.iter_mut().for_each(VecDeque::clear);
                return Ok(());
            }
            ["<", expected @ ..] => {
                self.settle();
                let app = self.app;
                return (0..times).try_for_each(|_| next_is(&mut self.said[app], expected));
            }
            ["app", number] => {
                self.app = value(number)?;
                return Ok(());
            }
            _ => self.nothing_unexpected()?,
        }
        match words {
            [">", socket, rest @ ..] => {
                let socket = match *socket {
                    "last" => u32::MAX,
                    socket => value(socket)?,
                };
                (0..times).try_for_each(|index| self.request(socket, rest, index as u64))
            }
            ["peer", name, action, rest @ ..] => self.peer(name, action, rest),
            ["?", what @ ..] => self.check(what),
            _ => self.act(words),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.settle();
        self.nothing_unexpected()
    }
}

impl Player {
    fn configure(&mut self, key: &str, text: &str) -> Result<(), String> {
        if matches!(key, "reports_unread" | "cache_bytes" | "memory_kib") {
            self.special.push((key.to_owned(), value(text)?));
            return Ok(());
        }
        let (which, key) = match key.strip_prefix("tcp.") {
            Some(key) => (1, key),
            None => (0, key),
        };
        self.config[which] += &format!("{key} = {text}\n");
        Ok(())
    }

    fn create(&self) -> World {
        let [adapter, tcp] = &self.config;
        let mut config: AdapterConfig = toml::from_str(adapter).expect("parameters");
        let tcp = toml::from_str(tcp).expect("parameters of TCP");
        for (key, value) in &self.special {
            match &**key {
                "reports_unread" => config.reports_unread = *value > 0,
                "cache_bytes" => config.cache_bytes = *value,
                _ => {
                    config.memory = Some(OnBoardMemory {
                        kib: *value,
                        connection_bytes: 1024,
                    });
                }
            }
        }
        if config.addresses.is_empty() {
            config.addresses = vec![ADAPTER, ADAPTER_V6];
        }
        World::with_tcp(|of| *of = config, tcp)
    }

    fn world(&mut self) -> &mut World {
        if self.world.is_none() {
            self.world = Some(self.create());
            self.said.push(VecDeque::new());
        }
        self.world.as_mut().expect("it was created")
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            self.world().run();
        }
        self.collect();
    }

    /// Takes the responses that have arrived.
    fn collect(&mut self) {
        for app in 0..self.world().apps.len() {
            for received in self.world().received(app) {
                let text = self.describe(app, received);
                self.said[app].push_back(text);
            }
        }
    }

    fn nothing_unexpected(&self) -> Result<(), String> {
        match self.said.iter().all(VecDeque::is_empty) {
            true => Ok(()),
            false => Err(format!("not expected before: {:?}", self.said)),
        }
    }

    /// Returns a response as text. Data is taken out of its buffer.
    fn describe(&mut self, app: usize, received: Received) -> String {
        let response = received.response;
        let asked = self.asked.get(&(app, response.tag));
        let subject = match asked {
            Some(asked) => {
                assert_eq!(asked.socket, response.socket);
                let failed = Outcome::of_failed(&asked.action);
                if matches!(response.status, Status::NoSuchSocket | Status::WrongState) {
                    assert_eq!(response.outcome, failed);
                }
                match (response.outcome, asked.action) {
                    (Outcome::Done(_), _) => assert_eq!(response.outcome, failed),
                    (
                        Outcome::Received(Buffer::Memory { address, .. }),
                        Action::Receive { address: of, .. },
                    ) => assert_eq!(address, of),
                    _ => {}
                }
                asked.name.clone()
            }
            None => response.socket.to_string(),
        };
        let details = self.details(app, &received);
        let said = format!("{subject} {:?} {details}", response.status);
        said.trim_end().to_owned()
    }

    /// Returns the result of a request, or what a notice says, as text.
    fn details(&mut self, app: usize, received: &Received) -> String {
        let response = received.response;
        let world = self.world.as_mut().expect("it was created");
        let conns = &self.conns;
        let name_of = |remote: Endpoint| {
            let found = conns.iter().rfind(|(.., local)| *local == remote);
            found.map_or_else(|| remote.to_string(), |(name, ..)| name.clone())
        };
        match response.outcome {
            Outcome::Done(_) => String::new(),
            Outcome::Accepted(remote) => name_of(remote),
            Outcome::AcceptedBulk { .. } => {
                let peers = received.peers.iter();
                let peers = peers.map(|at| format!("{}:{}", at.socket, name_of(at.remote)));
                ["bulk".to_owned()]
                    .into_iter()
                    .chain(peers)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Outcome::Sent { len, cumulative } => {
                format!("{len}{}", if cumulative { " all" } else { "" })
            }
            Outcome::Received(Buffer::Memory { len: 0, .. }) => String::new(),
            Outcome::Received(Buffer::Memory { .. }) => text(&world.take(app, response.outcome)),
            Outcome::Received(Buffer::Inline { .. }) => {
                format!("inline {}", text(received.inline.as_ref().expect("data")))
            }
            Outcome::Status(info) => [
                ("room", info.send_room),
                ("unread", info.unread),
                ("sends", info.sends_waiting.into()),
                ("receives", info.receives_waiting.into()),
                ("acceptable", info.acceptable.into()),
            ]
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{name}={count}"))
            .collect::<Vec<_>>()
            .join(" "),
            Outcome::Name(local) => local.to_string(),
            Outcome::PeerClosed => "peer-closed".to_owned(),
            Outcome::Over => "over".to_owned(),
            Outcome::Unread { len, ended } => {
                format!("unread {len}{}", if ended { " ended" } else { "" })
            }
            Outcome::Time { what, at_ns } => {
                let at_us = (at_ns - EPOCH_NS) / 1000;
                match what {
                    Moment::Reached { stage, byte } => format!("{stage:?} {byte} at {at_us}us"),
                    Moment::Arrived => format!("arrived at {at_us}us"),
                }
            }
            Outcome::CacheReady {
                bytes,
                most_inserts,
            } => format!("cache {bytes} {most_inserts}"),
            other => format!("{other:?}"),
        }
    }

    /// Posts a request, the one with this index of several.
    fn request(&mut self, socket: u32, words: &[&str], index: u64) -> Result<(), String> {
        let (words, name) = match words {
            [words @ .., "as", name] => (words, *name),
            words => (words, words[0]),
        };
        self.is_busy = true;
        let app = self.app;
        let action = self.action_of(words, index)?;
        let world = self.world();
        let tag = match words {
            ["inline", data] => world.post_inline(app, socket, piece(data)?),
            _ => world.post(app, socket, action),
        };
        let name = name.to_owned();
        let asked = Asked {
            name,
            socket,
            action,
        };
        self.asked.insert((app, tag), asked);
        Ok(())
    }

    /// Returns the action of a request.
    fn action_of(&mut self, words: &[&str], index: u64) -> Result<Action, String> {
        let target = |name: &str| {
            let mut all = self.asked.iter().rev();
            let found = all.find(|((of, _), asked)| *of == self.app && asked.name == name);
            found.map_or_else(|| value(name), |((_, tag), _)| Ok(*tag))
        };
        Ok(match words {
            ["socket"] => Action::Socket,
            ["packet-socket"] => Action::PacketSocket,
            ["bind", local] => Action::Bind(endpoint(local)?),
            ["listen", backlog] => Action::Listen {
                backlog: value(backlog)?,
            },
            ["accept", first] => accept(number(first)?, 1, 0),
            ["accept", first, count] => accept(number(first)?, value(count)?, 0),
            ["accept", first, count, us] => accept(number(first)?, value(count)?, value(us)?),
            ["connect", remote] => Action::Connect(endpoint(remote)?),
            ["close"] => close(),
            ["shut"] => Action::Close(Close::Write),
            ["abort"] => Action::Close(Close::Abort),
            ["set", option, to] => set(option_of(option)?, number(to)?),
            ["status"] => Action::Status,
            ["name"] => Action::Name,
            ["info"] => Action::Info,
            ["cancel", name] => Action::Cancel {
                target: target(name)?,
            },
            _ => return self.action_with_data(words, index),
        })
    }

    /// Returns the action of a request with data or a buffer, the one with this index of several.
    fn action_with_data(&mut self, words: &[&str], index: u64) -> Result<Action, String> {
        let app = self.app;
        let world = self.world();
        let mut place = |text: &str| {
            let mut data = piece(text)?;
            data.offset += index * u64::from(data.len);
            let address = world.apps[app].link.place(data);
            let address = address.map_err(|_| "no buffer is free")?;
            Ok::<_, String>((address, data.len))
        };
        Ok(match words {
            ["send", data, rest @ ..] => {
                let (address, len) = place(data)?;
                Action::send(Buffer::Memory { address, len }, rest == ["more"])
            }
            ["send-from", address, len] => {
                let (address, len) = (value(address)?, value(len)?);
                Action::send(Buffer::Memory { address, len }, false)
            }
            ["send-timed", data, stages @ ..] => {
                let (address, len) = place(data)?;
                let stages = stages.iter().filter_map(|name| Stages::from_name(name));
                Action::Send {
                    data: Buffer::Memory { address, len },
                    more: false,
                    times: stages.collect(),
                }
            }
            ["inline", data] => {
                let data = piece(data)?;
                Action::send(
                    Buffer::Inline {
                        len: data.len as u16,
                    },
                    false,
                )
            }
            ["recv", len] => Action::Receive {
                address: world.apps[app].link.reserve().ok_or("no buffer is free")?,
                len: value(len)?,
            },
            ["recv-into", address, len] => Action::Receive {
                address: value(address)?,
                len: value(len)?,
            },
            ["forward", data] => {
                let (address, len) = place(data)?;
                Action::Forward { address, len }
            }
            ["cached", offset, len, rest @ ..] => Action::SendCached {
                offset: number(offset)?,
                len: value(len)?,
                more: rest == ["more"],
            },
            ["cache-init"] => Action::CacheInit,
            ["insert", offset, data] => {
                let (address, len) = place(data)?;
                let offset = value(offset)?;
                Action::CacheInsert {
                    address,
                    len,
                    offset,
                }
            }
            _ => return Err("no such request".to_owned()),
        })
    }

    fn name(&mut self, name: &str, conn: ConnId) {
        let local = self.world().peer.flow(conn).local;
        self.conns.push((name.to_owned(), conn, local));
    }

    fn peer(&mut self, name: &str, action: &str, rest: &[&str]) -> Result<(), String> {
        match (action, rest) {
            ("connects", [to]) => {
                let to = endpoint(to)?;
                let conn = self.world().peer_connects_to(to);
                self.name(name, conn);
                self.is_busy = true;
                return Ok(());
            }
            ("connects-fast", [port, data]) => {
                let (port, data) = (value(port)?, piece(data)?);
                let flow = Flow {
                    local: Endpoint::new(PEER, port),
                    remote: Endpoint::new(ADAPTER, 80),
                };
                let World { now, peer, .. } = self.world();
                let conn = peer.connect_fast_open(*now, flow, &Config::default(), FastOpen::Cookie);
                let conn = conn.ok_or("the four-tuple is in use")?;
                assert_eq!(peer.write(conn, data), Ok(data.len as usize));
                self.name(name, conn);
                self.is_busy = true;
                return Ok(());
            }
            ("takes-fast-open", []) => {
                let rules = FastOpenListening {
                    pending: 5,
                    without_cookie: false,
                };
                let listener = self.listeners[name];
                self.world().peer.set_fast_open(listener, rules);
                return Ok(());
            }
            ("listens", [at]) => {
                let at = endpoint(at)?;
                let listener = self.world().peer_listens(at);
                self.listeners.insert(name.to_owned(), listener);
                return Ok(());
            }
            ("accepts", [listener]) => {
                self.settle();
                let listener = self.listeners[*listener];
                let conn = self.world().peer_accepts(listener);
                self.name(name, conn);
                return Ok(());
            }
            _ => {}
        }
        self.peer_acts(name, action, rest)
    }

    /// Lets the peer act on a connection.
    fn peer_acts(&mut self, name: &str, action: &str, rest: &[&str]) -> Result<(), String> {
        let found = self.conns.iter().rfind(|(of, ..)| of == name);
        let &(_, conn, _) = found.ok_or("the peer has no such end")?;
        match (action, rest) {
            ("writes", [data]) => {
                let data = piece(data)?;
                let written = self.world().peer.write(conn, data);
                assert_eq!(written, Ok(data.len as usize));
            }
            ("sees-port", [from, to]) => {
                let port = self.world().peer.flow(conn).remote.port;
                let is_between = (value(from)?..=value(to)?).contains(&port);
                return same(&true, &is_between);
            }
            ("sends-one", []) => {
                let World {
                    now, peer, stack, ..
                } = self.world();
                let (_, segment) = peer.poll_transmit(*now).ok_or("it sends nothing")?;
                stack.handle_segment(*now, segment);
            }
            ("shuts", []) => self.world().peer.shutdown(conn),
            ("closes", []) => self.world().peer.close(conn),
            ("aborts", []) => self.world().peer.abort(conn),
            ("reads", expected) => {
                self.settle();
                let got: Vec<String> = self.world().peer_reads(conn).iter().map(text).collect();
                self.collect();
                let expected = if expected == ["nothing"] {
                    &[]
                } else {
                    expected
                };
                return same(&expected.join(" "), &got.join(" "));
            }
            ("notices" | "misses", [what]) => {
                self.settle();
                let event = match *what {
                    "end" => Event::PeerClosed,
                    "reset" => Event::Closed(CloseReason::Reset),
                    "close" => Event::Closed(CloseReason::Normal),
                    "data" => Event::Readable,
                    _ => return Err("no such event".to_owned()),
                };
                let noticed = self.world().peer_was_notified(conn, &event);
                return same(&(action == "notices"), &noticed);
            }
            _ => return Err("the peer cannot do this".to_owned()),
        }
        self.is_busy = true;
        Ok(())
    }

    fn act(&mut self, words: &[&str]) -> Result<(), String> {
        let app = self.app;
        match words {
            ["listening"] => self.world().listen(0, 1, 80),
            ["connected", name] => {
                self.world().listen(app, 1, 80);
                let conn = self.world().connection(app, 1, 2, 80);
                self.name(name, conn);
            }
            ["attach", "refused"] => {
                let refused = self.world().adapter.attach();
                return same(&true, &matches!(refused, Err(AttachError::TooMany(_))));
            }
            ["attach"] => {
                self.world().attach();
                self.said.push(VecDeque::new());
            }
            ["detach", how] => {
                self.settle();
                let ending = match *how {
                    "drain" => Ending::Drain,
                    _ => Ending::Reset,
                };
                self.world().detach(app, ending);
                self.is_busy = true;
            }
            _ => return self.pass(words),
        }
        Ok(())
    }

    /// Lets time pass, or changes what happens then.
    fn pass(&mut self, words: &[&str]) -> Result<(), String> {
        let app = self.app;
        match words {
            ["run"] => {
                self.is_busy = true;
                self.settle();
            }
            ["turn", count] => {
                for _ in 0..value(count)? {
                    self.world().turn();
                }
                self.is_busy = false;
                self.collect();
            }
            ["wait", count, unit] => {
                let count = value(count)?;
                let span = match *unit {
                    "us" => Span::from_us(count),
                    "ms" => Span::from_ms(count),
                    _ => Span::from_secs(count),
                };
                self.world().wait(span);
                self.is_busy = false;
                self.collect();
            }
            ["cut"] => self.world().is_cut = true,
            ["heal"] => self.world().is_cut = false,
            ["refuse-responses"] => self.world().apps[app].faults.refuse_responses(true),
            ["take-responses"] => self.world().apps[app].faults.refuse_responses(false),
            ["garbage"] => {
                let World { now, apps, .. } = self.world();
                let garbage = Descriptor([0xff, 0, 0, 0]);
                assert_eq!(apps[app].link.put(*now, &[garbage]), Ok(1));
            }
            ["violation", words @ ..] => {
                let world = self.world();
                let error = world.pump(app).expect_err("it violates the protocol");
                world.detach(app, Ending::Reset);
                self.is_busy = false;
                let is_it = format!("{error} {error:?}").contains(&words.join(" "));
                return same(&true, &is_it).map_err(|_| format!("{error:?}"));
            }
            ["dma", polls] => self.world().apps[app].faults.delay_dma(value(polls)?),
            ["clock"] => {
                let session = self.world().apps[app].session.expect("it is attached");
                self.world().adapter.set_epoch(session, EPOCH_NS);
            }
            ["mark"] => {
                self.settle();
                self.marked = self.world().to_peer;
            }
            _ => return Err("no such line".to_owned()),
        }
        Ok(())
    }

    /// Returns a parameter of the connection whose other end the peer has, or what the peer knows of that end.
    fn of_connection(&mut self, of: &str, name: &str, field: &str) -> Result<String, String> {
        let conn = self.conns.iter().rfind(|(known, ..)| known == name);
        let &(_, conn, _) = conn.ok_or("the peer has no such end")?;
        let world = self.world();
        let all = match of {
            "config" => {
                let own = world.stack.find(&world.peer.flow(conn).reversed());
                serde_json::to_value(world.stack.config_of(own.expect("it is open")))
            }
            _ => serde_json::to_value(world.peer.info(world.now, conn)),
        };
        Ok(all.expect("numbers and names")[field].to_string())
    }

    fn check(&mut self, what: &[&str]) -> Result<(), String> {
        self.settle();
        let marked = self.marked;
        if let [of @ ("config" | "peer-info"), name, field, expected] = what {
            return same(*expected, &*self.of_connection(of, name, field)?);
        }
        let world = self.world();
        let got = match what {
            ["stat", name, _] => {
                let stats = serde_json::to_value(world.adapter.stats()).expect("numbers");
                let stat = name.split('.').fold(&stats, |stats, name| &stats[name]);
                stat.to_string()
            }
            ["waits", "responses", _] => {
                let row = world.adapter.sessions().next().expect("an application");
                assert!(row.is_held_up);
                row.responses_waiting.to_string()
            }
            ["room", _] => {
                let session = world.apps[0].session.expect("it is attached");
                world.adapter.room_for_requests(session).to_string()
            }
            ["tcp-stat", name, _] => {
                let stats = serde_json::to_value(world.stack.stats()).expect("numbers");
                stats[name].to_string()
            }
            ["responses", status, _] => {
                let counts = world.adapter.stats().by_status;
                let mut counts = counts.iter();
                let count = counts.find(|(of, _)| format!("{of:?}") == *status);
                count.map_or(0, |(_, count)| count).to_string()
            }
            ["packet", ..] => {
                let packet = world.adapter.poll_packet();
                let packet = packet.map(|packet| {
                    assert!(packet.to_wire);
                    packet.parts.iter().map(text).collect::<Vec<_>>().join(" ")
                });
                let got = packet.unwrap_or_else(|| "none".to_owned());
                return same(&what[1..].join(" "), &got);
            }
            ["socket", number, _] => {
                let session = world.apps[0].session.expect("it is attached");
                let mut rows = world.adapter.sockets(&world.stack, session);
                let row = rows.find(|row| row.number.to_string() == *number);
                row.expect("there is this socket").state.to_string()
            }
            ["cached", _] => {
                let row = world.adapter.sessions().next().expect("an application");
                format!("{}/{}", row.cached_bytes, row.cache_bytes)
            }
            ["applications", _] => world.adapter.sessions().count().to_string(),
            ["orphans", _] => world.adapter.orphans().to_string(),
            ["connections", _] => world.stack.len().to_string(),
            ["segments", _] => (world.to_peer - marked).to_string(),
            ["sockets", _] => {
                let row = world.adapter.sessions().next();
                row.map_or(0, |row| row.sockets).to_string()
            }
            ["timer", _] => match world.adapter.poll_timeout() {
                Some(due) => format!("{}us", due.saturating_since(world.now).as_us()),
                None => "none".to_owned(),
            },
            _ => return Err("no such property".to_owned()),
        };
        same(&what[what.len() - 1].to_owned(), &got)
    }
}

fn text(data: &Symbolic) -> String {
    assert_eq!(data.source, crate::world::data(0, 0).source);
    format!("{}+{}", data.offset, data.len)
}

fn piece(text: &str) -> Result<Symbolic, String> {
    let (offset, len) = text.split_once('+').ok_or("expected OFFSET+LENGTH")?;
    Ok(data(value(offset)?, value(len)?))
}

fn number(text: &str) -> Result<u32, String> {
    match text {
        "max" => Ok(u32::MAX),
        text => value(text),
    }
}

fn option_of(name: &str) -> Result<SocketOption, String> {
    let mut all = SocketOption::ALL.into_iter();
    all.find(|option| format!("{option:?}") == name)
        .ok_or_else(|| format!("there is no option {name}"))
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let (addr, port) = text.rsplit_once(':').ok_or("expected ADDRESS:PORT")?;
    let addr = match addr {
        "adapter" => ADAPTER,
        "adapter6" => ADAPTER_V6,
        "peer" => PEER,
        "peer6" => PEER_V6,
        "any" => ANY,
        addr => value(addr)?,
    };
    Ok(Endpoint::new(addr, value(port)?))
}
