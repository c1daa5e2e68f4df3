//! CACHE INIT, INSERT, and SENDs from the cache.

use crate::connected;
use crate::world::*;
use baton_bus::HostLink;
use baton_bus::descriptor::{Action, Opcode, Outcome, Response, Status};
use baton_nic::adapter::Ending;
use baton_tcp::ConnId;
use baton_testkit::{Random, for_each_seed, symbolic};
use baton_wire::{Payload, Span, Symbolic};
use std::collections::BTreeMap;

pub const CACHE_BYTES: u32 = 16_384;
/// Socket number of INSERTs, which belong to no socket.
const NOBODY: u32 = 99;

/// Creates a world with a cache and a connection, socket 2. Returns the peer's end.
fn with_cache() -> (World, ConnId) {
    let (mut world, peer) = connected(World::with(|config| {
        config.cache_bytes = CACHE_BYTES;
        config.most_inserts = 4;
    }));
    start(&mut world, 0);
    (world, peer)
}

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

fn inserted(tag: u32, status: Status) -> Response {
    done(NOBODY, tag, status, Opcode::CacheInsert)
}

#[test]
fn a_send_from_the_cache_sends_what_was_inserted_before_it() {
    let (mut world, peer) = with_cache();
    world.apps[0].faults.delay_dma(3);
    let first = post_insert(&mut world, 0, 512, data(0, 1000));
    let sends = [(512, 1000), (600, 100)].map(|(offset, len)| {
        let tag = world.post(0, 2, from_cache(offset, len));
        sent(2, tag, Status::Ok, len)
    });
    // Later data in the stream waits for the SENDs from the cache. Later INSERTs at the same place do not change what these SENDs send.
    let between = world.post_send(0, 2, data(5000, 10));
    let second = post_insert(&mut world, 0, 0, data(7000, 2000));
    let last = world.post(0, 2, from_cache(0, 2000));
    world.run();
    let expected = [
        inserted(first, Status::Ok),
        sends[0],
        sends[1],
        sent(2, between, Status::Ok, 10),
        inserted(second, Status::Ok),
        sent(2, last, Status::Ok, 2000),
    ];
    let mut responses = world.answers(0);
    responses.sort_by_key(|response| response.tag);
    assert_eq!(responses, expected);
    let stream = [
        data(0, 1000),
        data(88, 100),
        data(5000, 10),
        data(7000, 2000),
    ];
    assert_eq!(world.peer_reads(peer), stream);
    let stats = world.adapter.stats();
    assert_eq!((stats.cache_inserts, stats.cache_inserted_bytes), (2, 3000));
    assert_eq!((stats.cache_sends, stats.cache_sent_bytes), (3, 3100));
    let row = world.adapter.sessions().next().expect("an application");
    assert_eq!((row.cache_bytes, row.cached_bytes), (CACHE_BYTES, 2000));
}

#[test]
fn a_new_block_does_not_change_data_that_tcp_has_not_sent() {
    let (mut world, peer) = with_cache();
    world.is_cut = true;
    post_insert(&mut world, 0, 0, data(0, 4096));
    world.ask(0, 2, from_cache(0, 4096));
    post_insert(&mut world, 0, 0, data(9000, 4096));
    world.ask(0, 2, from_cache(0, 4096));
    world.ask(0, NOBODY, Action::CacheInit);
    assert!(world.answers(0).iter().all(|one| one.status == Status::Ok));
    world.is_cut = false;
    world.wait(Span::from_secs(5));
    assert_eq!(world.peer_reads(peer), [data(0, 4096), data(9000, 4096)]);
}

#[test]
fn invalid_references_are_refused_with_a_reason() {
    let (mut world, peer) = with_cache();
    post_insert(&mut world, 0, 0, data(0, 1000));
    world.run();
    world.answers(0);
    for (offset, len, status) in [
        (0, 1001, Status::NotCached),
        (1024, 1, Status::NotCached),
        (CACHE_BYTES, 1, Status::OutsideCache),
        (u32::MAX, 4096, Status::OutsideCache),
        (0, 0, Status::BadValue),
    ] {
        let tag = world.ask(0, 2, from_cache(offset, len));
        assert_eq!(world.answers(0), [sent(2, tag, status, len)]);
    }
    for (offset, len, status) in [
        (1, 100, Status::BadValue),
        (CACHE_BYTES - 512, 513, Status::OutsideCache),
    ] {
        let tag = post_insert(&mut world, 0, offset, data(0, len));
        world.run();
        assert_eq!(world.answers(0), [inserted(tag, status)]);
    }
    let tag = world.ask(0, 77, from_cache(0, 10));
    assert_eq!(world.answers(0), [sent(77, tag, Status::NoSuchSocket, 10)]);
    world.apps[0].faults.delay_dma(3);
    let tags = [(); 5].map(|()| post_insert(&mut world, 0, 0, data(0, 10)));
    world.run();
    let statuses: BTreeMap<u32, Status> = world
        .answers(0)
        .iter()
        .map(|one| (one.tag, one.status))
        .collect();
    assert_eq!(statuses[&tags[4]], Status::TooManyRequests);
    assert_eq!(statuses[&tags[3]], Status::Ok);
    assert_eq!(world.peer_reads(peer), []);
    assert_eq!(world.adapter.stats().by_status.get(Status::NotCached), 2);
}

#[test]
fn without_a_cache_nothing_can_be_sent_from_it() {
    let (mut world, _) = connected(World::new());
    let tag = world.ask(0, NOBODY, Action::CacheInit);
    let Outcome::CacheReady { bytes: 0, .. } = world.answers(0)[0].outcome else {
        panic!("{tag}: expected that there is no cache");
    };
    let insert = post_insert(&mut world, 0, 0, data(0, 10));
    let send = world.ask(0, 2, from_cache(0, 10));
    let expected = [
        inserted(insert, Status::NoCache),
        sent(2, send, Status::NoCache, 10),
    ];
    assert_eq!(world.answers(0), expected);
}

#[test]
fn each_application_has_its_own_cache_which_ends_with_it() {
    let (mut world, peer) = with_cache();
    let other = world.attach();
    start(&mut world, other);
    post_insert(&mut world, other, 0, data(0, 4096));
    world.run();
    let tag = world.ask(0, 2, from_cache(0, 4096));
    assert_eq!(
        world.answers(0),
        [sent(2, tag, Status::NotCached, 4096)],
        "the block is in the other application's cache"
    );
    world.apps[other].faults.delay_dma(3);
    post_insert(&mut world, other, 4096, data(0, 4096));
    world.turn();
    world.detach(other, Ending::Reset);
    world.run();
    assert_eq!(world.adapter.sessions().count(), 1);
    assert_eq!(world.peer_reads(peer), []);
}

#[test]
fn a_connection_may_end_while_its_send_waits_for_an_insert() {
    let (mut world, peer) = with_cache();
    world.apps[0].faults.delay_dma(50);
    let insert = post_insert(&mut world, 0, 0, data(0, 4096));
    let send = world.post(0, 2, from_cache(0, 4096));
    world.turn();
    world.peer.abort(peer);
    world.run();
    let mut responses = world.answers(0);
    responses.sort_by_key(|response| response.tag);
    let expected = [
        over(2, Status::Reset),
        inserted(insert, Status::Ok),
        sent(2, send, Status::Reset, 4096),
    ];
    assert_eq!(responses, expected);
}

// --- any order, against a model ---

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
