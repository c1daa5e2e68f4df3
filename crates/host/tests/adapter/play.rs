//! Plays dialogues of an application, the host's half, and an adapter whose part is in the dialogue: the files in `dialogues`.
//!
//! | line | meaning |
//! |---|---|
//! | `config KEY = VALUE`, `link KEY VALUE`, `cache BYTES` | parameters of the host and of the link; a data cache with blocks of this size |
//! | `connected S` | socket S has a connection, and a posted buffer whose request is named `recv` |
//! | `connect S`, `listen S BACKLOG`, `accept S`, `accept none` | the application opens or accepts |
//! | `S CALL [= RESULT]` | a call on a socket |
//! | `> S REQUEST [as NAME]` | the next request that reaches the adapter; its name is by default its first word |
//! | `> nothing`, `> *` | no request; all requests, each named by its first word |
//! | `< NAME STATUS [RESULT]` | the adapter answers a request |
//! | `ok` | the adapter answers all requests that have no answer yet |
//! | `< S STATUS NOTICE` | the adapter notifies of something |
//! | `ready EVENT, EVENT` | all notifications for the application |
//! | `wait N us`, `wait timer`, `lose`, `forget`, `reconnect` | time passes; the link is lost, or was lost unnoticed; there is a new one |
//! | `? WHAT VALUE` | a property of the host |
//!
//! A last word `xN` stands for N equal lines. The host handles consecutive answers before anything else happens.

use baton_bus::descriptor::{
    Action, Buffer, Close, Outcome, Peer, Request, SocketInfo, SocketOption, Status, write_inline,
    write_peer,
};
use baton_bus::link::{LinkError, MemoryConfig};
use baton_cluster::script::{CLIENT, LINK, SERVER, Script, response};
use baton_host::adapter::{FileChange, ListenOptions, OsLayerConfig};
use baton_host::{
    CoherenceConfig, FileContent, FileId, Gone, NicCacheConfig, Ready, Receive, SocketId, Sockets,
};
use baton_testkit::dialogue::{Play, next_is, repeated, same, value};
use baton_testkit::endpoint;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Length of the file whose content is sent: two blocks of 1 KiB and part of a third.
const FILE_BYTES: u64 = 2500;
const FILE: FileId = FileId(7);

#[derive(Default)]
pub struct Player {
    config: String,
    link: Option<MemoryConfig>,
    cache: Option<(u32, CoherenceConfig)>,
    script: Option<Script>,
    sockets: BTreeMap<String, SocketId>,
    requests: BTreeMap<String, Request>,
    /// Requests that no line has answered.
    unanswered: Vec<Request>,
    /// Requests that have reached the adapter and that no line has expected yet.
    asked: VecDeque<Request>,
    is_answered: bool,
    /// Number of transfers at `mark`.
    marked: u64,
}

impl Play for Player {
    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        let (words, times) = repeated(words);
        match words {
            ["config", key, "=", value @ ..] => {
                self.config += &format!("{key} = {}\n", value.join(" "));
                return Ok(());
            }
            ["link", key, number] => {
                let link = self.link.get_or_insert(LINK);
                match *key {
                    "buffers" => link.buffers = value(number)?,
                    _ => link.ring_depth = value(number)?,
                }
                return Ok(());
            }
            ["cache", bytes, coherence @ ..] => {
                let coherence = match coherence {
                    ["eager"] => CoherenceConfig::Eager,
                    ["update"] => CoherenceConfig::Update,
                    _ => CoherenceConfig::Lazy,
                };
                self.cache = Some((value(bytes)?, coherence));
                return Ok(());
            }
            [">", expected @ ..] => {
                return (0..times).try_for_each(|_| self.expect(expected));
            }
            _ => {}
        }
        if !self.asked.is_empty() {
            let asked: Vec<_> = self.asked.iter().map(|one| self.describe(one)).collect();
            return Err(format!("requested before: {asked:?}"));
        }
        if let ["<", name, status, rest @ ..] = words {
            self.is_answered = true;
            return (0..times).try_for_each(|_| self.answer(name, status, rest));
        }
        if let ["?", "violation", what] = words {
            self.is_answered = false;
            let script = self.script();
            let found = script.try_pump();
            script.os.handle_link_lost(script.now);
            script.os.check();
            let is_it = matches!(&found, Err(LinkError::Violation(it)) if format!("{it:?}").starts_with(what));
            return same(&true, &is_it).map_err(|_| format!("{found:?}"));
        }
        if std::mem::take(&mut self.is_answered) {
            self.script().pump();
        }
        match words {
            ["ready", expected @ ..] => {
                let ready: Vec<_> = self.script().ready();
                let ready = ready.into_iter().map(|one| match one {
                    Ready::Acceptable => "acceptable".to_owned(),
                    Ready::Readable(socket) => format!("readable {}", self.name(socket)),
                    Ready::Writable(socket) => format!("writable {}", self.name(socket)),
                });
                let ready = ready.collect::<Vec<_>>().join(", ");
                same(&expected.join(" "), &ready)
            }
            ["?", what @ ..] => self.check(what),
            [name, call @ ..] if self.sockets.contains_key(*name) && !call.is_empty() => {
                let socket = self.sockets[*name];
                (0..times).try_for_each(|_| self.call(socket, call))
            }
            _ => self.act(words),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.script().os.check();
        same(&0, &self.asked.len()).map_err(|_| "requests remain".to_owned())
    }
}

impl Player {
    fn script(&mut self) -> &mut Script {
        self.script.get_or_insert_with(|| {
            let mut config: OsLayerConfig = toml::from_str(&self.config).expect("parameters");
            if let Some((block_bytes, coherence)) = self.cache.take() {
                config.nic_cache = NicCacheConfig {
                    enabled: true,
                    block_bytes,
                    coherence,
                    ..NicCacheConfig::default()
                };
            }
            Script::with_link(config, self.link.unwrap_or(LINK))
        })
    }

    fn name(&self, socket: SocketId) -> String {
        let mut all = self.sockets.iter();
        let found = all.find(|(_, id)| **id == socket);
        found.map_or_else(|| socket.0.to_string(), |(name, _)| name.clone())
    }

    /// Returns a request as text.
    fn describe(&self, request: &Request) -> String {
        let more = |more| if more { " more" } else { "" };
        let what = match request.action {
            Action::Socket => "socket".to_owned(),
            Action::Bind(SERVER) => "bind".to_owned(),
            Action::Listen { backlog } => format!("listen {backlog}"),
            Action::Accept { count: 1, .. } => "accept".to_owned(),
            Action::Accept {
                count, timeout_us, ..
            } => format!("accept {count} {timeout_us}"),
            Action::Connect(CLIENT) => "connect".to_owned(),
            Action::Close(Close::Both) => "close".to_owned(),
            Action::Close(Close::Write) => "shut".to_owned(),
            Action::Close(Close::Abort) => "abort".to_owned(),
            Action::SetOption { option, value } => format!("set {option:?} {value}"),
            Action::Status => "status".to_owned(),
            Action::Cancel { target } => {
                let mut all = self.requests.iter();
                let found = all.find(|(_, request)| request.tag == target);
                format!("cancel {}", found.map_or("?", |(name, _)| name))
            }
            Action::Send { data, more: is, .. } => {
                let kind = match data {
                    Buffer::Memory { .. } => "send",
                    Buffer::Inline { .. } => "inline",
                };
                format!("{kind} {}{}", data.len(), more(is))
            }
            Action::SendCached {
                offset,
                len,
                more: is,
            } => format!("cached {offset} {len}{}", more(is)),
            Action::CacheInsert { offset, len, .. } => return format!("insert {offset} {len}"),
            Action::CacheInit => return "init".to_owned(),
            Action::Receive { .. } => "recv".to_owned(),
            other => format!("{other:?}"),
        };
        format!("{} {what}", self.name(SocketId(request.socket)))
    }

    fn expect(&mut self, words: &[&str]) -> Result<(), String> {
        if self.asked.is_empty() {
            self.is_answered = false;
            self.asked = self.script().requests().into();
        }
        let (expected, name) = match words {
            [words @ .., "as", name] => (words, Some(*name)),
            words => (words, None),
        };
        if expected == ["*"] {
            for request in std::mem::take(&mut self.asked) {
                self.keep(None, request);
            }
            return Ok(());
        }
        if expected == ["nothing"] {
            let asked: Vec<_> = self.asked.iter().map(|one| self.describe(one)).collect();
            return same(&Vec::<String>::new(), &asked);
        }
        let mut asked: VecDeque<_> = self.asked.iter().map(|one| self.describe(one)).collect();
        next_is(&mut asked, expected)?;
        let request = self.asked.pop_front().expect("it was described");
        self.keep(name, request);
        Ok(())
    }

    /// Remembers a request that the adapter has received.
    fn keep(&mut self, name: Option<&str>, request: Request) {
        let text = self.describe(&request);
        let at = match request.action {
            Action::CacheInsert { .. } | Action::CacheInit => 0,
            _ => 1,
        };
        let first = text.split(' ').nth(at).expect("a word");
        let name = name.unwrap_or(first).to_owned();
        self.unanswered.push(request);
        self.requests.insert(name, request);
    }

    fn answer(&mut self, name: &str, status: &str, rest: &[&str]) -> Result<(), String> {
        let status = Status::ALL.iter().find(|it| format!("{it:?}") == status);
        let status = *status.ok_or("there is no such status")?;
        let Some(&request) = self.requests.get(name) else {
            return self.notify(name, status, rest);
        };
        self.unanswered.retain(|one| one.tag != request.tag);
        let script = self.script();
        let outcome = match (request.action, rest) {
            (_, []) => {
                script.done(&request, status);
                return Ok(());
            }
            (Action::Receive { .. }, ["inline", len]) => {
                let len = value(len)?;
                let outcome = Outcome::Received(Buffer::Inline { len });
                let mut entry = vec![response(&request, status, outcome)];
                let mut head = entry[0];
                write_inline(&mut head, &vec![3; len.into()], &mut entry);
                entry[0] = head;
                script.put(&entry);
                return Ok(());
            }
            (Action::Receive { .. }, [len]) => {
                script.deliver(&request, value(len)?);
                return Ok(());
            }
            (Action::Accept { first, .. }, ["bulk", count]) => {
                let count = value(count)?;
                let head = response(&request, status, Outcome::AcceptedBulk { count });
                let peers = (0..count).map(|at| {
                    write_peer(Peer {
                        socket: first + u32::from(at),
                        remote: endpoint(9, 1000 + at),
                    })
                });
                let entry: Vec<_> = std::iter::once(head).chain(peers).collect();
                script.put(&entry);
                return Ok(());
            }
            (_, ["received", len]) => Outcome::Received(Buffer::Memory {
                address: 0,
                len: value(len)?,
            }),
            (_, ["client"]) => Outcome::Accepted(CLIENT),
            (Action::Send { data, .. }, ["all"]) => Outcome::Sent {
                len: data.len(),
                cumulative: true,
            },
            (_, ["sent", len]) => Outcome::Sent {
                len: value(len)?,
                cumulative: false,
            },
            (_, ["room", room]) => Outcome::Status(SocketInfo {
                send_room: value(room)?,
                ..SocketInfo::default()
            }),
            (_, ["cache", bytes]) => Outcome::CacheReady {
                bytes: value(bytes)?,
                most_inserts: 2,
            },
            _ => return Err("there is no such answer".to_owned()),
        };
        script.answer(&request, status, outcome);
        Ok(())
    }

    /// Sends a notification for a socket.
    fn notify(&mut self, name: &str, status: Status, rest: &[&str]) -> Result<(), String> {
        let socket = *self.sockets.get(name).ok_or("there is no such request")?;
        let outcome = match rest {
            ["peer-closed"] => Outcome::PeerClosed,
            ["over"] => Outcome::Over,
            ["unread", len, rest @ ..] => Outcome::Unread {
                len: value(len)?,
                ended: rest == ["ended"],
            },
            _ => return Err("there is no such notice".to_owned()),
        };
        self.script().tell(socket, status, outcome);
        Ok(())
    }

    fn call(&mut self, socket: SocketId, words: &[&str]) -> Result<(), String> {
        let (words, expected) = match words.iter().position(|word| *word == "=") {
            Some(at) => (&words[..at], words[at + 1..].join(" ")),
            None => (words, String::new()),
        };
        let script = self.script();
        let (now, mut calls) = (script.now, script.os.calls(script.now, &mut script.host));
        match words {
            ["cork"] => calls.set_cork(socket, true),
            ["uncork"] => calls.set_cork(socket, false),
            ["close"] => calls.close(socket),
            ["abort"] => calls.abort(socket),
            ["resume"] => script.os.resume_receiving(now, socket),
            _ => return same(&expected, &self.result_of(socket, words)?),
        }
        Ok(())
    }

    /// Makes a call, and returns its result as text, which is empty for a success that has none.
    fn result_of(&mut self, socket: SocketId, words: &[&str]) -> Result<String, String> {
        let script = self.script();
        let (now, mut calls) = (script.now, script.os.calls(script.now, &mut script.host));
        Ok(match words {
            ["send", len] => {
                let len = value(len)?;
                match calls.send(socket, vec![7; len].into()) {
                    Ok(taken) if taken == len => String::new(),
                    Ok(taken) => taken.to_string(),
                    Err(Gone) => "gone".to_owned(),
                }
            }
            ["file" | "part", rest @ ..] => {
                let numbers = rest.iter().map(|word| value(word));
                let numbers = numbers.collect::<Result<Vec<u64>, _>>()?;
                let content = match (words[0], &numbers[..]) {
                    ("part", &[file, offset, len]) => {
                        FileContent::new(FileId(file as u32), offset, len)
                    }
                    (_, &[offset, ref revision @ ..]) => FileContent {
                        file_len: FILE_BYTES,
                        revision: revision.first().map_or(0, |number| *number as u32),
                        ..FileContent::new(FILE, offset, FILE_BYTES - offset)
                    },
                    _ => return Err("expected numbers".to_owned()),
                };
                let cached = calls.send_cached(socket, &content).expect("it is open");
                let rest = content.after(cached.taken);
                let mut taken = 0;
                if rest.len > 0 && cached.has_room {
                    let data = Bytes::from(vec![7; rest.len as usize]);
                    taken = calls.send_file(socket, rest, data).expect("it is open");
                }
                format!("{} {taken}", cached.taken)
            }
            ["receive", most] => match calls.receive(socket, value(most)?) {
                Receive::Data(data) => data.len().to_string(),
                Receive::WouldBlock => "wait".to_owned(),
                Receive::EndOfStream => "end".to_owned(),
                Receive::Gone => "gone".to_owned(),
            },
            ["shutdown"] => match calls.shutdown(socket) {
                true => String::new(),
                false => "no".to_owned(),
            },
            ["status"] => outcome(script.os.status(now, socket)),
            ["set", option, to] => {
                let mut all = SocketOption::ALL.into_iter();
                let option = all.find(|it| format!("{it:?}") == *option);
                let option = option.ok_or("there is no such option")?;
                outcome(script.os.set_option(now, socket, option, value(to)?))
            }
            ["cancel-connect"] => outcome(script.os.cancel_connect(now, socket)),
            ["cancel-receive"] => outcome(script.os.cancel_receive(now, socket)),
            _ => return Err("there is no such call".to_owned()),
        })
    }

    fn act(&mut self, words: &[&str]) -> Result<(), String> {
        let script = self.script();
        let now = script.now;
        let (name, socket) = match words {
            ["connected", name] => {
                let (socket, receive) = script.open();
                self.requests.insert("recv".to_owned(), receive);
                (name, Ok(socket))
            }
            ["connect", name] => (name, script.os.connect(now, CLIENT)),
            ["connect-fast", name, len, rest @ ..] => {
                let taken = match rest {
                    ["=", taken] => value(taken)?,
                    _ => value(len)?,
                };
                let (data, bare) = (vec![7; value(len)?].into(), rest == ["without-cookie"]);
                let opening = script.os.connect_fast_open(now, CLIENT, &data, bare);
                let (socket, got) = opening.expect("a number is free");
                same(&taken, &got)?;
                (name, Ok(socket))
            }
            ["listen", name, backlog] => (name, script.os.listen(now, SERVER, value(backlog)?)),
            ["listen-fast", name, backlog, pending] => {
                let fast_open = value(pending)?;
                let options = ListenOptions {
                    fast_open,
                    ..Default::default()
                };
                (
                    name,
                    script.os.listen_with(now, SERVER, value(backlog)?, options),
                )
            }
            ["listen-shared", name, backlog, share, pending] => {
                let options = ListenOptions {
                    fast_open: value(pending)?,
                    share: value(share)?,
                };
                (
                    name,
                    script.os.listen_with(now, SERVER, value(backlog)?, options),
                )
            }
            ["accept", "none"] => return same(&None, &script.calls().accept()),
            ["accept", name] => (
                name,
                Ok(script.calls().accept().ok_or("nothing to accept")?),
            ),
            _ => return self.pass(words),
        };
        match socket {
            Ok(socket) => {
                self.sockets.insert((*name).to_owned(), socket);
                self.script().os.check();
                Ok(())
            }
            Err(status) => same(*name, &format!("{status:?}")),
        }
    }

    /// Plays a line that is neither a call of the application nor a request of the adapter.
    fn pass(&mut self, words: &[&str]) -> Result<(), String> {
        let transfers = self.script().transfers();
        let script = self.script();
        match words {
            ["wait", "timer"] => script.now = script.os.poll_timeout().ok_or("no timer runs")?,
            ["wait", us, "us"] => script.wait(value(us)?),
            ["run"] => script.pump(),
            ["lose"] => {
                script.host.faults().cut();
                same(&Err(LinkError::Gone), &script.try_pump())?;
                script.os.handle_link_lost(script.now);
            }
            ["forget"] => script.os.handle_link_lost(script.now),
            ["reconnect"] => script.reconnect(),
            ["ok"] => {
                for request in std::mem::take(&mut self.unanswered) {
                    self.script().done(&request, Status::Ok);
                }
                self.script().pump();
            }
            ["changed", offset, len, rest @ ..] => {
                let change = FileChange {
                    file: FILE,
                    revision: 1,
                    offset: value(offset)?,
                    len: Some(value(len)?),
                };
                let is_at_hand = rest == ["at-hand"];
                script.calls().file_changed(&change, |offset, most| {
                    let left = (FILE_BYTES - offset).min(most.into()) as usize;
                    is_at_hand.then(|| Bytes::from(vec![8; left]))
                });
            }
            ["joins"] => script.host.set_joins(true),
            ["refuse-requests"] => script.host.faults().refuse_requests(true),
            ["take-requests"] => script.host.faults().refuse_requests(false),
            ["unmask"] => script.os.unmask_lazy(),
            ["mark"] => self.marked = transfers,
            _ => return Err("there is no such line".to_owned()),
        }
        self.script().os.check();
        Ok(())
    }

    fn of_socket(&mut self, property: &str, socket: SocketId) -> Result<String, String> {
        let os = &self.script().os;
        Ok(match property {
            "error" => os
                .error_of(socket)
                .map_or_else(|| "none".to_owned(), |status| format!("{status:?}")),
            "unread" => {
                let unread = os.unread(socket);
                format!("{}{}", unread.len, if unread.ended { " ended" } else { "" })
            }
            "held" => os.held(socket).to_string(),
            "unsent" => os.unsent(socket).to_string(),
            "due" => os.is_delivery_due(socket).to_string(),
            "acceptable" => os.acceptable(socket).to_string(),
            "peer" => os.peer(socket).expect("a peer").to_string(),
            "local" => os.local(socket).expect("an address").to_string(),
            _ => return Err("sockets have no such property".to_owned()),
        })
    }

    fn check(&mut self, what: &[&str]) -> Result<(), String> {
        if let [property, name, expected @ ..] = what
            && let Some(&socket) = self.sockets.get(*name)
        {
            return same(&expected.join(" "), &self.of_socket(property, socket)?);
        }
        let marked = self.marked;
        let got = match what {
            ["stat", ..] => {
                let stats = serde_json::to_value(self.script().os.stats()).expect("numbers");
                let path = what[1].split('.');
                path.fold(&stats, |stats, name| &stats[name]).to_string()
            }
            ["completion", ..] => {
                let script = self.script();
                script.pump();
                let completion = script.os.poll_completion();
                let text = completion.map(|it| format!("{:?}", it.what));
                text.unwrap_or_else(|| "none".to_owned())
            }
            ["free", _] => self.script().free().to_string(),
            ["transfers", _] => {
                self.script().pump();
                (self.script().transfers() - marked).to_string()
            }
            ["timer", _] => {
                let script = self.script();
                let timer = script.os.poll_timeout();
                timer.map_or_else(
                    || "none".to_owned(),
                    |due| format!("{}us", due.saturating_since(script.now).as_us()),
                )
            }
            ["sockets", _] => self.script().os.sockets().to_string(),
            ["outstanding", _] => self.script().os.outstanding().to_string(),
            ["lazy", _] => match self.script().os.masks_lazy() {
                true => "masked".to_owned(),
                false => "unmasked".to_owned(),
            },
            ["blocks", _] => {
                let (used, all) = self.script().os.nic_cache_blocks();
                format!("{used}/{all}")
            }
            ["cache-stat", name, _] => {
                let stats = format!("{:?}", self.script().os.nic_cache_stats());
                let value = stats.split(&format!(" {name}: ")).nth(1).unwrap_or("none");
                value
                    .split([',', ' '])
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            }
            ["empty"] => {
                self.script().pump();
                self.script().assert_empty();
                return Ok(());
            }
            _ => return Err("there is no such property".to_owned()),
        };
        let expected = match what[0] {
            "completion" => what[1..].join(" "),
            _ => what[what.len() - 1].to_owned(),
        };
        same(&expected, &got)
    }
}

fn outcome<E: std::fmt::Debug>(done: Result<(), E>) -> String {
    done.map_or_else(|error| format!("{error:?}"), |()| String::new())
}
