//! Sends from the adapter's data cache.

use baton_bus::descriptor::{Action, Buffer, Outcome, Request, Status};
use baton_bus::link::{LinkError, Violation};
use baton_cluster::script::{LINK, Script};
use baton_host::adapter::{FileChange, OsLayer, OsLayerConfig, OsLayerConfigError};
use baton_host::{
    CoherenceConfig, FileContent, FileId, FromCache, NicCacheConfig, SocketId, Sockets,
};
use bytes::Bytes;

const BLOCK: u32 = 1024;
/// Two blocks and part of a third.
const FILE_BYTES: u64 = 2500;

fn config() -> OsLayerConfig {
    OsLayerConfig {
        nic_cache: NicCacheConfig {
            enabled: true,
            block_bytes: BLOCK,
            ..NicCacheConfig::default()
        },
        ..OsLayerConfig::default()
    }
}

fn ready(blocks: u32) -> Outcome {
    Outcome::CacheReady {
        bytes: blocks * BLOCK,
        most_inserts: 2,
    }
}

/// Creates a script with a connection and a cache of this many blocks.
fn with_cache(blocks: u32) -> (Script, SocketId) {
    let mut script = Script::new(config());
    start_cache(&mut script, blocks);
    let (socket, _) = script.open();
    (script, socket)
}

fn start_cache(script: &mut Script, blocks: u32) {
    let [init] = script.requests()[..] else {
        panic!("expected one request, for the cache");
    };
    assert_eq!(init.action, Action::CacheInit);
    script.answer(&init, Status::Ok, ready(blocks));
    script.pump();
}

fn content(offset: u64) -> FileContent {
    FileContent {
        file_len: FILE_BYTES,
        ..FileContent::new(FileId(7), offset, FILE_BYTES - offset)
    }
}

/// Sends content of a file as a server does; returns how many bytes the cache already held, and how many the server had to read.
fn send(script: &mut Script, socket: SocketId, content: FileContent) -> (u64, usize) {
    let mut calls = script.calls();
    let cached = calls.send_cached(socket, &content).expect("it is open");
    let rest = content.after(cached.taken);
    if rest.len == 0 || !cached.has_room {
        return (cached.taken, 0);
    }
    let data = Bytes::from(vec![7; rest.len as usize]);
    let taken = calls.send_file(socket, rest, data).expect("it is open");
    (cached.taken, taken)
}

/// Requests: INSERTs, SENDs from the cache, or SENDs of this many bytes from memory.
#[derive(Debug, PartialEq)]
enum Asked {
    Insert { offset: u32, len: u32 },
    Cached { offset: u32, len: u32, more: bool },
    Plain(u32),
}

fn asked(requests: &[Request]) -> Vec<Asked> {
    let asked = |request: &Request| match request.action {
        Action::CacheInsert { offset, len, .. } => Asked::Insert { offset, len },
        Action::SendCached { offset, len, more } => Asked::Cached { offset, len, more },
        Action::Send { data, .. } => Asked::Plain(data.len()),
        other => panic!("{other:?}"),
    };
    requests.iter().map(asked).collect()
}

fn answer_all(script: &mut Script, requests: &[Request]) {
    for request in requests {
        script.done(request, Status::Ok);
    }
    script.pump();
}

#[test]
fn a_block_crosses_once_and_is_then_sent_by_reference() {
    let (mut script, socket) = with_cache(8);
    assert_eq!(send(&mut script, socket, content(0)), (0, 2500));
    let requests = script.requests();
    let insert = |offset, len| Asked::Insert { offset, len };
    let cached = |offset, len, more| Asked::Cached { offset, len, more };
    // At most two INSERTs may be pending. Further blocks are sent without the cache.
    let expected = [
        insert(0, 1024),
        cached(0, 1024, true),
        insert(1024, 1024),
        cached(1024, 1024, true),
        Asked::Plain(452),
    ];
    assert_eq!(asked(&requests), expected);
    assert_eq!(
        script.free(),
        LINK.buffers - 4,
        "three hold data, one is posted"
    );
    answer_all(&mut script, &requests);
    assert_eq!(script.free(), LINK.buffers - 1);
    // The rest of a cached block and the next cached block are sent together, and then the block that is inserted.
    assert_eq!(send(&mut script, socket, content(1000)), (1048, 452));
    let requests = script.requests();
    let expected = [
        cached(1000, 1048, true),
        insert(2048, 452),
        cached(2048, 452, false),
    ];
    assert_eq!(asked(&requests), expected);
    answer_all(&mut script, &requests);
    assert_eq!(send(&mut script, socket, content(0)), (2500, 0));
    let stats = script.os.nic_cache_stats().expect("there is a cache");
    assert_eq!((stats.inserts, stats.inserted_bytes), (3, 2500));
    assert_eq!(script.os.nic_cache_blocks(), (3, 8));
    let stats = script.os.stats();
    let bytes = 2 * 1024 + 1500 + 2500;
    assert_eq!((stats.cached_sends, stats.cached_bytes), (5, bytes));
}

#[test]
fn a_new_revision_is_other_content() {
    let (mut script, socket) = with_cache(8);
    send(&mut script, socket, content(2048));
    let requests = script.requests();
    answer_all(&mut script, &requests);
    let changed = FileContent {
        revision: 1,
        ..content(2048)
    };
    assert_eq!(send(&mut script, socket, changed), (0, 452));
    let requests = script.requests();
    assert_eq!(
        asked(&requests)[0],
        Asked::Insert {
            offset: 0,
            len: 452
        }
    );
    answer_all(&mut script, &requests);
    // A transfer that began with the old revision sends the old content, and the cache keeps the new content.
    assert_eq!(send(&mut script, socket, content(2048)), (0, 452));
    let requests = script.requests();
    assert_eq!(asked(&requests), [Asked::Plain(452)]);
    answer_all(&mut script, &requests);
    assert_eq!(send(&mut script, socket, changed), (452, 0));
    assert_eq!(
        script.os.nic_cache_stats().map(|stats| stats.stale),
        Some(1)
    );
}

#[test]
fn a_reference_follows_corked_data_and_waits_for_space() {
    let config = OsLayerConfig {
        most_sends: 2,
        ..config()
    };
    let mut script = Script::new(config);
    start_cache(&mut script, 8);
    let (socket, _) = script.open();
    script.calls().set_cork(socket, true);
    script.send(socket, 100);
    assert_eq!(send(&mut script, socket, content(0)), (0, 1024));
    let first = script.requests();
    let [insert, head, cached] = first[..] else {
        panic!("{first:?}");
    };
    let Action::Send {
        data, more: true, ..
    } = head.action
    else {
        panic!("expected the corked header before the content");
    };
    assert_eq!(data.len(), 100);
    assert_eq!(
        asked(&[insert]),
        [Asked::Insert {
            offset: 0,
            len: 1024
        }]
    );
    assert_eq!(script.ready(), []);
    answer_all(&mut script, &[head, insert, cached]);
    assert_eq!(script.ready(), [baton_host::Ready::Writable(socket)]);
    let blocked = script.calls().send_cached(socket, &content(0));
    assert_eq!(
        blocked,
        Ok(FromCache {
            taken: 1024,
            has_room: true
        })
    );
}

#[test]
fn without_a_usable_cache_the_data_itself_is_sent() {
    let (mut script, socket) = with_cache(0);
    assert_eq!(send(&mut script, socket, content(0)), (0, 2500));
    let requests = script.requests();
    assert_eq!(asked(&requests), [Asked::Plain(2500)]);
    let (mut script, socket) = with_cache(8);
    send(&mut script, socket, content(2048));
    let requests = script.requests();
    script.done(&requests[0], Status::NotCached);
    script.done(&requests[1], Status::Ok);
    script.pump();
    assert_eq!(
        script.os.nic_cache_blocks(),
        (0, 0),
        "the cache is no longer used"
    );
    assert_eq!(send(&mut script, socket, content(2048)), (0, 452));
    assert_eq!(asked(&script.requests()), [Asked::Plain(452)]);
}

#[test]
fn the_cache_of_a_lost_adapter_is_forgotten() {
    let (mut script, socket) = with_cache(8);
    send(&mut script, socket, content(0));
    script.requests();
    script.host.faults().cut();
    assert_eq!(script.try_pump(), Err(LinkError::Gone));
    script.os.handle_link_lost(script.now);
    script.os.check();
    assert_eq!(script.os.nic_cache_blocks(), (0, 0));
    script.os.close(script.now, socket);
    script.reconnect();
    start_cache(&mut script, 4);
    assert_eq!(script.os.nic_cache_blocks(), (0, 4));
    assert_eq!(script.free(), LINK.buffers);
}

#[test]
fn cache_answers_must_match_their_requests() {
    for wrong in 0..3 {
        let (mut script, socket) = with_cache(8);
        send(&mut script, socket, content(2048));
        let requests = script.requests();
        let outcome = match wrong {
            0 => ready(8),
            1 => Outcome::Sent {
                len: 452,
                cumulative: false,
            },
            _ => Outcome::Received(Buffer::Memory { address: 0, len: 1 }),
        };
        script.answer(&requests[0], Status::Ok, outcome);
        let found = script.try_pump();
        let unasked = matches!(found, Err(LinkError::Violation(Violation::Unasked { .. })));
        assert!(unasked, "{wrong}: {found:?}");
    }
}

#[test]
fn impossible_parameters_are_named() {
    let refused = |change: fn(&mut NicCacheConfig)| {
        let mut config = config();
        change(&mut config.nic_cache);
        let error: OsLayerConfigError =
            OsLayer::<Bytes>::new(config).expect_err("the parameters are invalid");
        error.to_string()
    };
    let block = "expected a power of two from 512 to max_transfer_bytes = 4096";
    for (bytes, change) in [
        (
            8192,
            (|cache| cache.block_bytes = 8192) as fn(&mut NicCacheConfig),
        ),
        (1000, |cache| cache.block_bytes = 1000),
        (256, |cache| cache.block_bytes = 256),
    ] {
        assert_eq!(
            refused(change),
            format!("nic_cache.block_bytes = {bytes}: {block}")
        );
    }
}

/// Changes a file whose first two blocks are cached; returns the requests that follow, and the numbers of invalidated and updated blocks.
fn changed(coherence: CoherenceConfig, is_at_hand: bool) -> (Vec<Asked>, [u64; 2]) {
    let nic_cache = NicCacheConfig {
        coherence,
        ..config().nic_cache
    };
    let mut script = Script::new(OsLayerConfig {
        nic_cache,
        ..config()
    });
    start_cache(&mut script, 8);
    let (socket, _) = script.open();
    send(&mut script, socket, content(0));
    let requests = script.requests();
    answer_all(&mut script, &requests);
    let change = FileChange {
        file: FileId(7),
        revision: 1,
        offset: 1000,
        len: Some(1500),
    };
    let block = |offset: u64, most: u32| {
        let left = (FILE_BYTES - offset).min(most.into()) as usize;
        is_at_hand.then(|| Bytes::from(vec![8; left]))
    };
    script.calls().file_changed(&change, block);
    script.pump();
    let requests = script.requests();
    answer_all(&mut script, &requests);
    let stats = script.os.nic_cache_stats().expect("there is a cache");
    (asked(&requests), [stats.invalidated, stats.updated])
}

/// A host that is notified of changes takes each block in the directory to be current, so it must not insert older content.
#[test]
fn content_from_before_a_change_is_not_inserted_after_it() {
    let nic_cache = NicCacheConfig {
        coherence: CoherenceConfig::Eager,
        ..config().nic_cache
    };
    let mut script = Script::new(OsLayerConfig {
        nic_cache,
        ..config()
    });
    start_cache(&mut script, 8);
    let (socket, _) = script.open();
    let change = FileChange {
        file: FileId(7),
        revision: 1,
        offset: 0,
        len: Some(1),
    };
    script.calls().file_changed(&change, |_, _| None);
    assert_eq!(send(&mut script, socket, content(2048)), (0, 452));
    assert_eq!(asked(&script.requests()), [Asked::Plain(452)]);
}

#[test]
fn a_change_is_handled_as_the_protocol_says() {
    use CoherenceConfig::*;
    assert_eq!(changed(Lazy, true), (vec![], [0, 0]));
    assert_eq!(changed(Eager, true), (vec![], [2, 0]));
    assert_eq!(changed(Update, false), (vec![], [2, 0]));
    let insert = |offset, len| Asked::Insert { offset, len };
    // The third block was never cached, since at most two INSERTs may be pending.
    let updated = vec![insert(0, 1024), insert(1024, 1024)];
    assert_eq!(changed(Update, true), (updated, [0, 2]));
}

#[test]
fn adjacent_blocks_are_sent_as_one() {
    let (mut script, socket) = with_cache(16);
    let mut lens = |number, offset, len| {
        let content = FileContent::new(FileId(number), offset, len);
        send(&mut script, socket, content);
        let requests = script.requests();
        answer_all(&mut script, &requests);
        let sent = requests.iter().filter_map(|request| match request.action {
            Action::SendCached { len, .. } => Some(len),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    // The first two blocks of both files alternate, and the rest of the second file follows.
    for (number, blocks) in [
        (1, 1),
        (2, 1),
        (1, 2),
        (2, 2),
        (2, 3),
        (2, 4),
        (2, 5),
        (2, 6),
    ] {
        lens(number, 0, blocks * u64::from(BLOCK));
    }
    assert_eq!(lens(1, 0, 2048), [1024, 1024]);
    assert_eq!(lens(2, 0, 6 * 1024), [1024, 4096, 1024]);
    assert_eq!(lens(2, 1024 + 24, 3000), [3000]);
}
