//! An adapter that fetches, answers and refuses at random, and is sometimes lost.

use super::Random;
use super::files::{PAGE_BYTES, pages};
use baton_bus::descriptor::{Action, Outcome, Request, Status};
use baton_bus::link::MemoryConfig;
use baton_cluster::script::Script;
use baton_host::NicCacheConfig;
use baton_host::adapter::OsLayerConfig;
use baton_wire::{Span, Symbolic};
use std::collections::{BTreeSet, VecDeque};

/// Number of blocks that fit into the adapter's cache.
const CACHED: u32 = 6;

/// Counts of a run.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    /// SENDs that were refused.
    pub refused: u32,
    /// SENDs that were refused while an earlier SEND of their socket was pending.
    pub out_of_order: u32,
    /// SENDs that were refused while an earlier INSERT was pending.
    pub refused_before_insert: u32,
    pub inserts: u32,
    pub lost: u32,
}

/// A request that the adapter has not answered, and the content of its buffer.
struct Asked {
    request: Request,
    content: Option<Symbolic>,
}

impl Asked {
    fn is_send(&self) -> bool {
        matches!(
            self.request.action,
            Action::Send { .. } | Action::SendCached { .. }
        )
    }

    fn is_insert(&self) -> bool {
        matches!(self.request.action, Action::CacheInsert { .. })
    }
}

/// The adapter and the host's half of it.
pub struct Adapter {
    pub script: Script<Symbolic>,
    asked: VecDeque<Asked>,
    pub seen: Seen,
}

impl Adapter {
    pub fn new(random: &mut Random) -> Self {
        let config = OsLayerConfig {
            most_sends: 2 + random.below(8) as u32,
            nic_cache: NicCacheConfig {
                enabled: random.percent(70),
                ..NicCacheConfig::default()
            },
            ..OsLayerConfig::default()
        };
        Self {
            script: Script::with_link(config, MemoryConfig::default()),
            asked: VecDeque::new(),
            seen: Seen::default(),
        }
    }

    /// Moves requests to the adapter.
    pub fn settle(&mut self) {
        self.script.now += Span::from_ms(1);
        loop {
            let requests = self.script.requests();
            if requests.is_empty() {
                return;
            }
            for request in requests {
                let content = self.script.fetch(&request);
                self.asked.push_back(Asked { request, content });
            }
        }
    }

    /// Returns the sources and numbers of the pages that the adapter may still fetch.
    pub fn pages(&self) -> BTreeSet<(u64, u64)> {
        let content = self.asked.iter().filter_map(|asked| asked.content);
        let pages = content.flat_map(|range| {
            let pages = pages(range.offset, range.len.into());
            pages.map(move |page| (range.source, page))
        });
        pages.collect()
    }

    /// Answers a random request if it is the first pending SEND of its socket, the first pending INSERT, or of another kind; or refuses any SEND.
    pub fn answer(&mut self, random: &mut Random) {
        if self.asked.is_empty() {
            return;
        }
        let index = random.below(self.asked.len() as u64) as usize;
        let asked = &self.asked[index];
        let socket = asked.request.socket;
        let before = || self.asked.iter().take(index);
        let sends_before = before().any(|other| other.is_send() && other.request.socket == socket);
        let inserts_before = before().any(Asked::is_insert);
        let status = match asked.request.action {
            Action::Receive { .. } => return,
            Action::Close { .. } if sends_before => return,
            Action::CacheInsert { .. } if inserts_before => return,
            Action::Send { .. } | Action::SendCached { .. } if random.percent(5) => {
                self.seen.refused += 1;
                self.seen.out_of_order += u32::from(sends_before);
                self.seen.refused_before_insert += u32::from(inserts_before);
                Status::Reset
            }
            Action::Send { .. } | Action::SendCached { .. } if sends_before => return,
            Action::SendCached { .. } if inserts_before => return,
            _ => Status::Ok,
        };
        self.seen.inserts += u32::from(asked.is_insert());
        if let Action::Close { .. } = asked.request.action {
            self.cancel_receives(socket);
            return self.answer_one(|other| other.socket == socket, Status::Ok);
        }
        let tag = asked.request.tag;
        self.answer_one(|other| other.tag == tag, status);
    }

    fn cancel_receives(&mut self, socket: u32) {
        let of_socket = |other: &Request| {
            other.socket == socket && matches!(other.action, Action::Receive { .. })
        };
        while self.asked.iter().any(|asked| of_socket(&asked.request)) {
            self.answer_one(of_socket, Status::Cancelled);
        }
    }

    /// Answers the first matching request.
    fn answer_one(&mut self, wanted: impl Fn(&Request) -> bool, status: Status) {
        let index = self.asked.iter().position(|asked| wanted(&asked.request));
        let asked = self.asked.remove(index.expect("the request is pending"));
        let request = asked.expect("the request is pending").request;
        match request.action {
            Action::CacheInit => {
                let outcome = Outcome::CacheReady {
                    bytes: CACHED * PAGE_BYTES as u32,
                    most_inserts: 4,
                };
                self.script.answer(&request, status, outcome);
            }
            _ => self.script.done(&request, status),
        }
    }

    /// Replaces the adapter by another.
    pub fn lose(&mut self) {
        self.seen.lost += 1;
        self.asked.clear();
        self.script.os.handle_link_lost(self.script.now);
        self.script.reconnect();
    }
}
