//! What an application tells the broker of an adapter, and the broker an application.

use arbitrary::{Arbitrary, Unstructured};
use baton_host::SelectionConfig;
use baton_sockets::broker::ApplicationPlaces;
use baton_sockets::broker::messages::{self, GIVE_BACK, Message, PLACES, POLICY};
use baton_tcp::Moved;
use bytes::Bytes;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// Bytes that a socket takes without a reader.
const MOST_BYTES: usize = 64 * 1024;

/// A message of one side, in its form.
#[derive(Debug, Arbitrary)]
struct Said {
    kind: u8,
    body: Vec<u8>,
}

/// Any bytes are messages, or the end of the stream; messages in their form arrive as they were sent. What is in them is read as their
/// receivers do.
pub fn broker(data: &[u8]) {
    let data = &data[..data.len().min(MOST_BYTES)];
    let (application, broker) = pair();
    (&application).write_all(data).expect("there is room");
    drop(application);
    while let Ok(Some(message)) = messages::receive(&broker) {
        read(&message);
    }
    let mut input = Unstructured::new(data);
    let (application, broker) = pair();
    while let Ok(Said { kind, body }) = Said::arbitrary(&mut input) {
        messages::send(&application, kind.into(), &body, None).expect("there is room");
        let message = messages::receive(&broker).expect("it is whole");
        let message = message.expect("it is there");
        assert_eq!((message.kind, &message.body), (kind.into(), &body));
        assert!(message.socket.is_none());
        read(&message);
        if input.is_empty() {
            break;
        }
    }
    application.shutdown(Shutdown::Both).expect("it is open");
    assert!(messages::receive(&broker).expect("an end").is_none());
}

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("the system has sockets")
}

fn read(message: &Message) {
    let body = &message.body;
    match message.kind {
        GIVE_BACK => {
            if let Ok(moved) = Moved::<Bytes>::from_bytes(body) {
                let _ = moved.state.essentials();
            }
        }
        POLICY => {
            let name = std::str::from_utf8(body);
            let _ = name.map(str::parse::<SelectionConfig>);
        }
        PLACES => {
            let _ = serde_json::from_slice::<Vec<ApplicationPlaces>>(body);
        }
        _ => {}
    }
}
