//! INSERTs and SENDs from the cache in any order, against a model.

use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Outcome, Status};
use baton_testkit::{Random, for_each_seed, symbolic};
use baton_wire::{Payload, Span, Symbolic};
use std::collections::BTreeMap;

pub const CACHE_BYTES: u32 = 16_384;
/// Socket number of INSERTs, which belong to no socket.
const NOBODY: u32 = 99;

pub fn start(world: &mut World, app: usize) {
    let tag = world.ask(app, NOBODY, Action::CacheInit);
    let bytes = CACHE_BYTES;
    let ready = Outcome::CacheReady {
        bytes,
        most_inserts: 4,
    };
    assert_eq!(world.answers(app), [answer(NOBODY, tag, Status::Ok, ready)]);
}

/// Posts an INSERT of `data`; returns its tag.
pub fn post_insert(world: &mut World, app: usize, offset: u32, data: Symbolic) -> u32 {
    let len = data.len;
    let address = world.apps[app].link.place(data).expect("a buffer is free");
    let insert = Action::CacheInsert {
        address,
        len,
        offset,
    };
    world.post(app, NOBODY, insert)
}

fn from_cache(offset: u32, len: u32) -> Action {
    let more = false;
    Action::SendCached { offset, len, more }
}

/// Expected content of an application's cache, and expected data of its connection.
#[derive(Default)]
struct Model {
    /// Blocks, by the offset of their first byte.
    blocks: BTreeMap<u32, Symbolic>,
    stream: Vec<Symbolic>,
    expected: BTreeMap<u32, Status>,
}

impl Model {
    fn insert(&mut self, offset: u32, data: Symbolic) {
        let end = offset + data.len;
        self.blocks
            .retain(|&start, old| start + old.len <= offset || start >= end);
        self.blocks.insert(offset, data);
    }

    fn refer(&self, offset: u32, len: u32) -> Option<Vec<Symbolic>> {
        let end = offset + len;
        let parts = self.blocks.iter().filter_map(|(&start, data)| {
            let (from, to) = (start.max(offset), (start + data.len).min(end));
            (from < to).then(|| data.slice((from - start) as usize, (to - from) as usize))
        });
        let parts: Vec<_> = parts.collect();
        let found: u32 = parts.iter().map(|part| part.len).sum();
        (found == len).then_some(parts)
    }
}

fn joined(pieces: impl IntoIterator<Item = Symbolic>) -> Vec<Symbolic> {
    let mut all: Vec<Symbolic> = Vec::new();
    for piece in pieces {
        if !all.last_mut().is_some_and(|last| last.try_append(&piece)) {
            all.push(piece);
        }
    }
    all
}

/// Two applications, each with a connection, insert and send in any order, from caches and from memory, over a lossy network and a slow
/// link.
fn any_order(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut world = World::with(|config| {
        config.cache_bytes = CACHE_BYTES;
        config.most_inserts = 4;
        config.cumulative_sends = false;
    });
    let mut models = [Model::default(), Model::default()];
    let mut peers = Vec::new();
    for app in 0..2 {
        if app == 1 {
            world.attach();
        }
        let port = 80 + app as u16;
        world.listen(app, 1, port);
        peers.push(world.connection(app, 1, 2, port));
        start(&mut world, app);
    }
    world.loss_percent = 10 * random.below(2) as u32;
    let mut read = [Vec::new(), Vec::new()];
    for step in 0..150 {
        let app = random.below(2) as usize;
        let model = &mut models[app];
        let name = |len| symbolic((step << 1) | app as u64, 100 * step, len);
        let len = 1 + random.below(4096) as u32;
        let waiting = model.expected.len();
        match random.below(10) {
            0..3 if waiting < 4 => {
                let offset = 512 * random.below(24) as u32;
                model.insert(offset, name(len));
                let tag = post_insert(&mut world, app, offset, name(len));
                model.expected.insert(tag, Status::Ok);
            }
            3..6 if waiting < 100 => {
                // May span several blocks.
                let len = 1 + random.below(8192) as u32;
                let offset = random.below(u64::from(CACHE_BYTES - 8192)) as u32;
                let tag = world.post(app, 2, from_cache(offset, len));
                let found = model.refer(offset, len);
                let status = found.as_ref().map_or(Status::NotCached, |_| Status::Ok);
                model.expected.insert(tag, status);
                model.stream.extend(found.into_iter().flatten());
            }
            6 if waiting < 100 => {
                let tag = world.post_send(app, 2, name(len));
                model.expected.insert(tag, Status::Ok);
                model.stream.push(name(len));
            }
            7 => world.apps[app].faults.delay_dma(random.below(4) as u32),
            8 => world.wait(Span::from_us(1 + random.below(300_000))),
            _ => {
                for _ in 0..random.below(4) {
                    world.turn();
                }
            }
        }
        for (app, model) in models.iter_mut().enumerate() {
            for one in world.answers(app) {
                assert_eq!(model.expected.remove(&one.tag), Some(one.status), "{one:?}");
            }
            if random.percent(20) {
                read[app].extend(world.peer_reads(peers[app]));
            }
        }
    }
    world.loss_percent = 0;
    for _ in 0..40 {
        world.wait(Span::from_secs(2));
        for (app, &peer) in peers.iter().enumerate() {
            read[app].extend(world.peer_reads(peer));
        }
    }
    for (app, model) in models.iter_mut().enumerate() {
        for one in world.answers(app) {
            assert_eq!(model.expected.remove(&one.tag), Some(one.status), "{one:?}");
        }
        assert_eq!(model.expected.len(), 0, "all requests are answered");
        let stream = joined(std::mem::take(&mut read[app]));
        assert_eq!(stream, joined(std::mem::take(&mut model.stream)));
    }
    world.adapter.stats().cache_sends
}

#[test]
fn inserts_and_sends_in_any_order_send_the_right_bytes() {
    let runs = for_each_seed(300, any_order);
    if runs.len() >= 300 {
        assert!(
            runs.iter().sum::<u64>() > 300,
            "the runs send from the cache"
        );
    }
}
