//! Descriptors as they stand in a ring that somebody else has written.

use baton_bus::Descriptor;
use baton_bus::descriptor::{
    MOST_INLINE_BYTES, Request, Response, entries, read_inline, read_peer, write_peer,
};
use baton_bus::link::{embed, extract};
use baton_nic::{Attachments, Command, Event, Handle, ToHost, ToNic};
use baton_tcp::Symbolic;
use bytes::Bytes;

/// Attachments that are there when a ring is read.
const ATTACHED: u32 = 4;

/// Reads the bytes as a ring in every way there is. What makes sense means the same when it is written again, and what does not takes
/// nothing away.
pub fn descriptors(data: &[u8]) {
    let (records, _) = data.as_chunks();
    let ring: Vec<_> = records.iter().map(Descriptor::from_bytes).collect();
    for entry in entries(&ring).map_while(Result::ok) {
        socket_entry(entry);
    }
    handoff_entries(&ring);
}

fn socket_entry(entry: &[Descriptor]) {
    let head = &entry[0];
    if let Ok(request) = Request::decode(head) {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    if let Ok(response) = Response::decode(head) {
        assert_eq!(Response::decode(&response.encode()), Ok(response));
    }
    for descriptor in entry {
        if let Ok(peer) = read_peer(descriptor) {
            assert_eq!(read_peer(&write_peer(peer)), Ok(peer));
        }
    }
    let mut room = [0; MOST_INLINE_BYTES];
    let bytes = read_inline(entry, &mut room);
    let copied = extract::<Bytes>(entry);
    assert_eq!(copied.as_deref().ok(), bytes.ok());
    if let Ok(data) = extract::<Symbolic>(entry) {
        let (mut head, mut again) = (*head, Vec::new());
        embed(&data, &mut head, &mut again);
        again.insert(0, head);
        assert_eq!(extract(&again), Ok(data));
    }
}

fn handoff_entries(ring: &[Descriptor]) {
    let mut to_nic = Attachments::new(ATTACHED as usize);
    let mut to_host = Attachments::new(ATTACHED as usize);
    for number in 0..ATTACHED {
        let handle = Handle(number);
        let data = Symbolic {
            source: 0,
            offset: 0,
            len: number,
        };
        let send = Command::Send {
            handle,
            data,
            cached: None,
        };
        let sent = ToNic::Command(send).encode(&mut to_nic, &mut Vec::new());
        let received = ToHost::Event(Event::Receive { handle, data }).encode(&mut to_host);
        assert!(sent.is_ok() && received.is_ok(), "there is room");
    }
    for descriptor in ring {
        let before = to_nic.len();
        match ToNic::decode(descriptor, &mut to_nic) {
            Err(_) => assert_eq!(to_nic.len(), before),
            Ok(entry) => {
                let mut written = Vec::new();
                let encoded = entry.clone().encode(&mut to_nic, &mut written);
                encoded.expect("its room is free");
                assert_eq!(written.len(), 1, "a ring has commands one by one");
                assert_eq!(ToNic::decode(&written[0], &mut to_nic), Ok(entry));
            }
        }
        let before = to_host.len();
        match ToHost::decode(descriptor, &mut to_host) {
            Err(_) => assert_eq!(to_host.len(), before),
            Ok(entry) => {
                let written = entry
                    .clone()
                    .encode(&mut to_host)
                    .expect("its room is free");
                assert_eq!(ToHost::decode(&written, &mut to_host), Ok(entry));
            }
        }
    }
}
