//! Messages from an application to the broker, and from the broker to an application.

use arbitrary::{Arbitrary, Unstructured};
use baton_host::SelectionConfig;
use baton_live::broker::{WORDS, decode};
use baton_sockets::broker::messages::{
    self, GIVE_BACK, HISTORY, Message, PLACES, POLICY, RECLAIM, RECOVER, Recovery,
};
use baton_sockets::broker::{ApplicationPlaces, HistoryAnswer, HistoryQuery};
use baton_tcp::{Config, Moved};
use baton_wire::{Endpoint, Flow, SeqNr};
use bytes::Bytes;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Number of bytes that a socket accepts without a reader.
const MOST_BYTES: usize = 64 * 1024;

/// A well-formed message of either side.
#[derive(Debug, Arbitrary)]
struct Said {
    kind: u8,
    body: Vec<u8>,
}

/// Checks that any bytes are parsed as messages or as the end of the stream, and that well-formed messages arrive unchanged. Parses the
/// contents as their receivers do.
pub fn broker(data: &[u8]) {
    let data = &data[..data.len().min(MOST_BYTES)];
    let (application, broker) = pair();
    (&application)
        .write_all(data)
        .expect("the socket has space");
    drop(application);
    while let Ok(Some(message)) = messages::receive(&broker) {
        read(&message);
    }
    remains(data);
    let mut input = Unstructured::new(data);
    let (application, broker) = pair();
    while let Ok(Said { kind, body }) = Said::arbitrary(&mut input) {
        messages::send(&application, kind.into(), &body, &[]).expect("the socket has space");
        let message = messages::receive(&broker).expect("the message is complete");
        let message = message.expect("a message was sent");
        assert_eq!((message.kind, &message.body), (kind.into(), &body));
        assert!(message.files.is_empty());
        read(&message);
        if input.is_empty() {
            break;
        }
    }
    application.shutdown(Shutdown::Both).expect("it is open");
    assert!(
        messages::receive(&broker)
            .expect("the end of the stream")
            .is_none()
    );
}

/// Checks that any words that a dead adapter has left in memory are either a state with which the connection can continue, or rejected.
fn remains(data: &[u8]) {
    let mut words = [0; WORDS];
    let (state, data) = data.split_at(data.len().min(4 * WORDS));
    for (word, bytes) in words.iter_mut().zip(state.chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    }
    let end = |last: u8| Endpoint::new([192, 0, 2, last].into(), 80);
    let flow = Flow {
        local: end(1),
        remote: end(2),
    };
    if let Some(state) = decode(flow, &words, Bytes::copy_from_slice(data), u32::MAX) {
        let state = state.into_portable(&Config::default());
        let again = state
            .essentials()
            .expect("it is the state of a TCP connection");
        assert_eq!((again.flow, again.receive_next), (flow, SeqNr(words[5])));
    }
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("the system has sockets")
}

fn read(message: &Message) {
    let body = &message.body;
    match message.kind {
        GIVE_BACK | RECLAIM => {
            if let Ok(moved) = Moved::<Bytes>::from_bytes(body) {
                let _ = moved.state.essentials();
            }
        }
        POLICY => {
            let name = std::str::from_utf8(body);
            let _ = name.map(str::parse::<SelectionConfig>);
        }
        RECOVER => {
            let _ = serde_json::from_slice::<Recovery>(body);
        }
        PLACES => {
            let _ = serde_json::from_slice::<Vec<ApplicationPlaces>>(body);
        }
        HISTORY => {
            let _ = serde_json::from_slice::<HistoryQuery>(body);
            let _ = serde_json::from_slice::<HistoryAnswer>(body);
        }
        _ => {}
    }
}
