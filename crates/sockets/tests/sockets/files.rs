//! Files that the adapter reads and sends by itself.

use crate::network::{Network, Side};
use crate::{adapter, pattern};
use baton_sockets::{Adapter, FilePart, TcpListener, TcpStream};
use rustix::fs::{Advice, fadvise, fstat};
use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::AsFd;
use std::thread;
use tempfile::NamedTempFile;

/// Creates a file in a place where the adapter can read it, if the file system there allows that.
fn file(content: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
    file.write_all(content).expect("room");
    file
}

/// Sends the beginning of a file's bytes from `offset` on.
fn send(stream: &TcpStream, file: &File, offset: usize) -> Option<Result<usize>> {
    let about = fstat(file).expect("a file");
    stream.send_file(&FilePart {
        file: file.as_fd(),
        about: &about,
        offset: offset as u64,
        len: about.st_size as usize - offset,
    })
}

/// Sends a whole file. Returns `false` if the adapter cannot read it, so that there is nothing to test.
fn send_all(stream: &TcpStream, file: &File) -> bool {
    let (mut sent, len) = (0, fstat(file).expect("a file").st_size as usize);
    while sent < len {
        match send(stream, file, sent) {
            Some(taken) => sent += taken.expect("it is sent"),
            None => return false,
        }
    }
    true
}

/// Attaches to both adapters and connects them. The first stream is that of the returned adapter.
fn connected(network: &Network) -> (Adapter, TcpStream, TcpStream) {
    let (left, right) = (adapter(network, Side::Left), adapter(network, Side::Right));
    let listener = TcpListener::bind(&right, Side::Right.address(80)).expect("a free port");
    let far = TcpStream::connect(&left, Side::Right.address(80)).expect("a connection");
    let (near, _) = listener.accept().expect("a connection");
    (right, near, far)
}

#[test]
fn a_large_file_arrives_between_other_data() {
    let network = Network::start();
    let (adapter, mut near, mut far) = connected(&network);
    let content = pattern(5_000_000, 1);
    let file = file(&content);
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all).map(|_| all)
    });
    near.write_all(b"header").expect("sent");
    if !send_all(&near, file.as_file()) {
        return;
    }
    near.write_all(b"trailer").expect("sent");
    drop(near);
    let all = reader.join().expect("no panic").expect("it arrives");
    assert!(all == [b"header", &content[..], b"trailer"].concat());
    let stats = adapter.with_driver(|driver| *driver.os().stats());
    assert_eq!(stats.lent_bytes, 5_000_000);
    assert!(stats.lent_sends < 20, "{}", stats.lent_sends);
}

#[test]
fn a_file_on_the_disk_arrives() {
    let network = Network::start();
    let (_adapter, near, mut far) = connected(&network);
    let content = pattern(3_000_000, 2);
    let file = file(&content);
    file.as_file().sync_all().expect("a disk");
    fadvise(file.as_file(), 0, None, Advice::DontNeed).expect("advice is free");
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all).map(|_| all)
    });
    if send_all(&near, file.as_file()) {
        drop(near);
        let all = reader.join().expect("no panic").expect("it arrives");
        assert!(all == content);
    }
}

/// The file is cut after the call that sends it, before the adapter reads its end.
#[test]
fn a_file_that_is_cut_before_it_is_read_resets_the_connection() {
    let network = Network::start();
    let (adapter, near, mut far) = connected(&network);
    let file = file(&pattern(100_000, 3));
    network.pause(Side::Right);
    let Some(sent) = send(&near, file.as_file(), 0) else {
        return;
    };
    assert_eq!(sent.expect("it is sent"), 100_000);
    file.as_file().set_len(50_000).expect("it can be cut");
    network.go_on(Side::Right);
    let failed = far.read_to_end(&mut Vec::new());
    let error = failed.expect_err("the end is missing");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let mut failed = &near;
    assert!(failed.read(&mut [0]).is_err());
    assert!(adapter.is_attached(), "only this connection has failed");
}

#[test]
fn a_file_without_a_reader_waits_for_room() {
    let network = Network::start();
    let (_adapter, near, mut far) = connected(&network);
    let content = pattern(3_000_000, 4);
    let file = file(&content);
    near.set_nonblocking(true).expect("it can be set");
    let mut sent = 0;
    loop {
        match send(&near, file.as_file(), sent) {
            None => return,
            Some(Ok(taken)) => sent += taken,
            Some(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
    }
    assert!((1 << 20..2_500_000).contains(&sent), "{sent} bytes");
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        far.read_to_end(&mut all).map(|_| all)
    });
    near.set_nonblocking(false).expect("it can be set");
    while sent < content.len() {
        let taken = send(&near, file.as_file(), sent).expect("it is lent");
        sent += taken.expect("it is sent");
    }
    drop(near);
    let all = reader.join().expect("no panic").expect("it arrives");
    assert!(all == content);
}
