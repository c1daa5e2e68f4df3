//! Descriptors in a ring that an untrusted side has written.

use baton_bus::Descriptor;
use baton_bus::descriptor::{
    MOST_INLINE_BYTES, Request, Response, entries, read_inline, read_peer, write_peer,
};
use baton_bus::link::{embed, extract};
use baton_wire::Symbolic;
use bytes::Bytes;

/// Decodes the bytes as a ring in all possible ways. Valid entries must not change when they are encoded and decoded again.
pub fn descriptors(data: &[u8]) {
    let (records, _) = data.as_chunks();
    let ring: Vec<_> = records.iter().map(Descriptor::from_bytes).collect();
    for entry in entries(&ring).map_while(Result::ok) {
        socket_entry(entry);
    }
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
