//! One user of the broker takes as many resources as possible. The broker serves other users as well as before.

use crate::application::open;
use crate::wire::{NEAR, on_veth};
use baton_live::broker::Broker;
use baton_sockets::broker::messages::{
    self, DONE, GIVE_BACK, MOST_STATE_BYTES, REFUSED, SUBSCRIBE,
};
use baton_sockets::broker::{ApplicationPlaces, BrokerClient};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = baton_testkit::tests![
    unfinished_messages_use_no_more_memory_than_the_limit_of_their_user,
    applications_that_do_not_answer_are_reported_and_skipped,
    a_flood_of_requests_delays_only_its_own_user,
    clients_and_subscriptions_of_a_user_are_bounded,
];

const HOSTILE: u32 = 40_001;
const OTHER: u32 = 40_002;

/// Runs `work` with a broker to which every user may connect.
fn with_broker(work: impl FnOnce(&Path) + Send) {
    on_veth(1, || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("broker");
        crate::wire::run("ip", &["address", "add", "10.79.0.2/24", "dev", NEAR]);
        let _broker = Broker::start(&path, NEAR, None).expect("XDP");
        let _adapter = open(folder.path());
        for (path, mode) in [(folder.path(), 0o755), (&*path, 0o666)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("our own file");
        }
        work(&path);
    });
}

/// Makes this thread run as `user` from now on.
fn become_user(user: u32) {
    let user = Uid::from_raw(user);
    set_thread_res_uid(user, user, user).expect("the test runs as root");
}

fn as_user<T: Send>(user: u32, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let run = || {
            become_user(user);
            work()
        };
        scope.spawn(run).join().expect("no panic")
    })
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).expect("the broker listens");
    messages::limit_waits(&stream, Duration::from_secs(30)).expect("a valid timeout");
    stream
}

fn counter(path: &Path, name: &str) -> u64 {
    let mut operator = BrokerClient::connect(path).expect("the broker listens");
    operator.counters().expect("root may read the counters")[name]
}

fn subscribe(path: &Path) -> UnixStream {
    let stream = connect(path);
    messages::send(&stream, SUBSCRIBE, &[], &[]).expect("the socket has space");
    stream
}

/// Asks the broker where connections are until it knows this number of applications.
fn places(path: &Path, applications: usize) -> Vec<ApplicationPlaces> {
    let mut client = BrokerClient::connect(path).expect("the broker listens");
    loop {
        let told = client.places().expect("the broker answers");
        if told.len() >= applications {
            return told;
        }
    }
}

/// Answers each question until the broker closes the connection.
fn answer(stream: &UnixStream) {
    while let Ok(Some(_)) = messages::receive(stream) {
        if messages::send(stream, DONE, br#"{"places":[]}"#, &[]).is_err() {
            return;
        }
    }
}

fn ask_often(path: &Path, times: u32) {
    let mut client = BrokerClient::connect(path).expect("the broker listens");
    for _ in 0..times {
        client.adapter().expect("the broker answers");
    }
}

fn unfinished_messages_use_no_more_memory_than_the_limit_of_their_user() {
    with_broker(|path| {
        let header = [
            GIVE_BACK.to_ne_bytes(),
            (MOST_STATE_BYTES as u32).to_ne_bytes(),
        ]
        .concat();
        let clients: Vec<UnixStream> =
            as_user(HOSTILE, || (0..40).map(|_| connect(path)).collect());
        let (piece, mut taken) = (vec![0; 1 << 20], 0);
        for client in &clients {
            (&*client).write_all(&header).expect("the socket has space");
            client.set_nonblocking(true).expect("a valid socket");
        }
        // Sends all but the last byte of one message, and as much of the others as the socket buffers take.
        let mut begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) {
            for client in &clients {
                let left = (MOST_STATE_BYTES - 1)
                    .saturating_sub(taken)
                    .min(piece.len());
                match (&*client).write(&piece[..left]) {
                    Ok(0) => {}
                    Ok(len) => {
                        taken += len;
                        begun = Instant::now();
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(
            counter(path, "bytes_of_user") > 0,
            "the broker stops reading the other messages"
        );
        // The broker reads another user's message of that size, and refuses it only because of its content.
        as_user(OTHER, || {
            let client = connect(path);
            let state = vec![0; MOST_STATE_BYTES];
            messages::send(&client, GIVE_BACK, &state, &[]).expect("the broker reads the message");
            let refused = messages::receive(&client)
                .expect("a whole message")
                .expect("an answer");
            assert_eq!(refused.kind, REFUSED);
            let why = String::from_utf8_lossy(&refused.body);
            assert!(why.contains("format version"), "{why}");
            ask_often(path, 100);
        });
        // The broker also disconnects clients that keep sending single bytes.
        while counter(path, "late_message") == 0 {
            for client in &clients {
                let _ = (&*client).write(&[0]);
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
}

fn applications_that_do_not_answer_are_reported_and_skipped() {
    with_broker(|path| {
        let (drips, good) = (
            as_user(HOSTILE, || subscribe(path)),
            Mutex::new(as_user(OTHER, || subscribe(path))),
        );
        let (asked, ends, is_over) = (AtomicU64::new(0), flag(), flag());
        // The broker has closed the stream of the hostile application.
        let is_closed = flag();
        thread::scope(|scope| {
            scope.spawn(|| {
                become_user(OTHER);
                loop {
                    let stream = locked(&good).try_clone().expect("a descriptor is free");
                    answer(&stream);
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    // On a busy machine the answer may take too long, and the broker closes the stream.
                    *locked(&good) = subscribe(path);
                }
            });
            scope.spawn(|| {
                let question = messages::receive(&drips).expect("a question");
                assert!(question.is_some());
                let header = [DONE.to_ne_bytes(), (1u32 << 20).to_ne_bytes()].concat();
                let write = |bytes: &[u8]| (&drips).write_all(bytes).is_ok();
                assert!(write(&header));
                // Sends single bytes until the broker closes the connection.
                while write(b" ") {
                    thread::sleep(Duration::from_millis(50));
                }
                is_closed.store(true, Ordering::Relaxed);
            });
            // While the broker waits for the hostile user's application, it answers other users.
            let asker = scope.spawn(|| {
                become_user(OTHER);
                while !ends.load(Ordering::Relaxed) {
                    // The broker may be asking this application on behalf of the other client, which asks for all applications.
                    if places(path, 1)[0].silent.is_none() {
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            while asked.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            let before = asked.load(Ordering::Relaxed);
            // The broker asks the hostile application only once.
            let mut told = Vec::new();
            while !is_closed.load(Ordering::Relaxed) {
                told.extend(places(path, 1));
            }
            ends.store(true, Ordering::Relaxed);
            // It asks until the broker knows an application.
            asker.join().expect("no panic");
            let why = "it sent no complete answer within 1 s";
            let mut silent = told.iter().filter_map(|one| one.silent.as_deref());
            assert!(silent.any(|one| one == why), "{told:?}");
            assert!(asked.load(Ordering::Relaxed) > before);
            assert!(counter(path, "bad_answer") >= 1);
            let again = places(path, 1);
            assert_eq!(
                again.len(),
                1,
                "the broker does not ask the hostile application again: {again:?}"
            );
            is_over.store(true, Ordering::Relaxed);
            let _ = locked(&good).shutdown(Shutdown::Both);
        });
    });
}

fn flag() -> AtomicBool {
    AtomicBool::new(false)
}

fn locked(stream: &Mutex<UnixStream>) -> MutexGuard<'_, UnixStream> {
    stream.lock().expect("no panic")
}

fn a_flood_of_requests_delays_only_its_own_user() {
    with_broker(|path| {
        let (ends, floods) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    become_user(HOSTILE);
                    while !ends.load(Ordering::Relaxed) {
                        ask_often(path, 100);
                        floods.fetch_add(100, Ordering::Relaxed);
                    }
                });
            }
            while floods.load(Ordering::Relaxed) < 2000 {
                thread::sleep(Duration::from_millis(1));
            }
            as_user(OTHER, || ask_often(path, 2000));
            ask_often(path, 100);
            ends.store(true, Ordering::Relaxed);
        });
        assert!(counter(path, "turns_of_user") > 0);
    });
}

fn clients_and_subscriptions_of_a_user_are_bounded() {
    with_broker(|path| {
        let is_alone = |mut stream: &UnixStream| matches!(stream.read(&mut [0; 1]), Ok(0));
        let clients: Vec<_> = as_user(HOSTILE, || (0..300).map(|_| connect(path)).collect());
        assert!(is_alone(&clients[299]), "the last client exceeds the limit");
        as_user(OTHER, || ask_often(path, 10));
        drop(clients);
        assert!(counter(path, "clients_of_user") >= 44);
        as_user(HOSTILE, || {
            // All subscriptions come from this process, which exceeds its limit with the last one.
            let subscriptions: Vec<_> = (0..5).map(|_| subscribe(path)).collect();
            let alone = subscriptions.iter().filter(|stream| {
                stream
                    .set_read_timeout(Some(Duration::from_millis(500)))
                    .expect("a valid timeout");
                is_alone(stream)
            });
            assert_eq!(alone.count(), 1);
        });
        assert_eq!(counter(path, "subscriptions_of_process"), 1);
        as_user(OTHER, || {
            let stream = subscribe(path);
            thread::scope(|scope| {
                scope.spawn(|| answer(&stream));
                assert_eq!(places(path, 1)[0].silent, None);
                let _ = stream.shutdown(Shutdown::Both);
            });
        });
    });
}
