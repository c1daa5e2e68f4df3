use super::*;
use crate::descriptor::{
    Action, Buffer, MOST_INLINE_BYTES, Malformed, Request, Response, entries, whole_entries,
};
use baton_wire::{Payload, Symbolic};
use bytes::Bytes;
use proptest::prelude::*;

const NOW: Time = Time::ZERO;

fn small() -> MemoryConfig {
    MemoryConfig {
        ring_depth: 4,
        buffers: 2,
        buffer_bytes: 64,
    }
}

fn pair() -> (MemoryHost<Bytes>, MemoryAdapter<Bytes>) {
    memory_link(small())
}

fn status(tag: u32) -> Descriptor {
    Request {
        socket: 1,
        tag,
        action: Action::Status,
    }
    .encode()
}

/// Encodes a SEND with inline data.
fn immediate<D: Inline>(data: &D) -> Vec<Descriptor> {
    let len = data.len() as u16;
    let action = Action::send(Buffer::Inline { len }, false);
    let (socket, tag) = (1, 2);
    let mut head = Request {
        socket,
        tag,
        action,
    }
    .encode();
    let mut tail = Vec::new();
    embed(data, &mut head, &mut tail);
    std::iter::once(head).chain(tail).collect()
}

fn range(result: Result<(), LinkError>) -> bool {
    matches!(result, Err(LinkError::Violation(Violation::Range { .. })))
}

#[test]
fn rings_take_whole_entries_up_to_their_depth() {
    let (mut host, mut adapter) = pair();
    let long = immediate(&Bytes::from(vec![1; 48]));
    assert_eq!(long.len(), 2);
    let requests = [&[status(1)], &long[..], &long[..]].concat();
    assert_eq!(
        host.put(NOW, &requests),
        Ok(3),
        "the last entry is whole or not there"
    );
    let mut got = Vec::new();
    adapter.get(NOW, 2, &mut got).unwrap();
    assert_eq!(got, requests[..1], "the second entry does not fit into two");
    adapter.get(NOW, 1, &mut got).unwrap();
    assert_eq!(got, requests[..3], "an entry that is too long comes alone");
    adapter.get(NOW, 9, &mut got).unwrap();
    assert_eq!(got.len(), 3);
    assert_eq!(adapter.put(NOW, &[status(1); 6]), Ok(4));
    got.clear();
    host.get(NOW, &mut got).unwrap();
    assert_eq!(got.len(), 4);
}

#[test]
fn pieces_share_a_buffer_where_they_may() {
    let (mut host, mut adapter) = pair();
    let address = host.place(Bytes::from_static(b"head, ")).unwrap();
    let body = Bytes::from_static(b"body");
    assert!(!host.append(address, 6, &body), "not by itself");
    host.set_joins(true);
    assert!(!host.append(address, 5, &body), "there is no gap");
    assert!(host.append(address, 6, &body));
    assert!(!host.append(address, 10, &vec![0; 55].into()), "too long");
    adapter.read(NOW, DmaId(1), address, 10).unwrap();
    let (id, data) = (DmaId(1), Bytes::from_static(b"head, body"));
    assert_eq!(adapter.poll_dma(NOW), Ok(Some(Dma::Read { id, data })));
}

#[test]
fn data_crosses_both_ways_in_the_order_of_the_calls() {
    let (mut host, mut adapter) = pair();
    let sent = host.place(Bytes::from_static(b"hello, adapter")).unwrap();
    let received = host.reserve().unwrap();
    assert_eq!(host.free_buffers(), 0);
    assert!(host.reserve().is_none());
    assert!(host.place(Bytes::from_static(b"no room")).is_err());
    adapter.read(NOW, DmaId(1), sent + 7, 7).unwrap();
    adapter
        .write(NOW, DmaId(2), received, Bytes::from_static(b"hello, host"))
        .unwrap();
    let data = Bytes::from_static(b"adapter");
    assert_eq!(
        adapter.poll_dma(NOW),
        Ok(Some(Dma::Read { id: DmaId(1), data }))
    );
    assert_eq!(
        adapter.poll_dma(NOW),
        Ok(Some(Dma::Written { id: DmaId(2) }))
    );
    assert_eq!(adapter.poll_dma(NOW), Ok(None));
    assert_eq!(host.take(received, 5).unwrap(), "hello");
    host.free(sent);
    assert_eq!(host.free_buffers(), 2);
    assert!(host.take(received, 5).is_err(), "it has been taken");
}

#[test]
fn symbolic_pieces_join_in_a_buffer() {
    let (mut host, mut adapter) = memory_link::<Symbolic>(small());
    let all = Symbolic {
        source: 9,
        offset: 100,
        len: 64,
    };
    let buffer = host.reserve().unwrap();
    adapter
        .write(NOW, DmaId(1), buffer, all.slice(0, 20))
        .unwrap();
    adapter
        .write(NOW, DmaId(2), buffer + 20, all.slice(20, 44))
        .unwrap();
    while adapter.poll_dma(NOW).unwrap().is_some() {}
    assert_eq!(host.take(buffer, 64), Ok(all));
}

#[test]
fn only_lent_buffers_can_be_read_or_written() {
    let (mut host, mut adapter) = pair();
    let data = || Bytes::from_static(b"0123456789");
    let sent = host.place(data()).unwrap();
    let received = host.reserve().unwrap();
    let id = DmaId(0);
    assert!(
        range(adapter.read(NOW, id, sent, 11)),
        "more than was placed"
    );
    assert!(range(adapter.read(NOW, id, received, 1)), "not to be read");
    assert!(
        range(adapter.write(NOW, id, sent, data())),
        "not to be written"
    );
    assert!(
        range(adapter.write(NOW, id, received + 60, data())),
        "beyond the end"
    );
    assert!(range(adapter.read(NOW, id, 0, 1)), "before all buffers");
    assert!(
        range(adapter.read(NOW, id, u64::MAX, u32::MAX)),
        "behind all buffers"
    );
    assert!(host.take(received, 1).is_err(), "nothing has been written");
    assert!(host.place(Bytes::from(vec![0; 65])).is_err(), "too long");
    // The host frees the buffer while it is being read.
    adapter.read(NOW, id, sent, 10).unwrap();
    host.free(sent);
    host.place(data()).unwrap();
    assert!(range(adapter.poll_dma(NOW).map(drop)));
}

#[test]
fn violations_are_found_by_both_ends() {
    let (mut host, mut adapter) = pair();
    let faults = host.faults();
    faults.refuse_requests(true);
    assert_eq!(host.put(NOW, &[status(1)]), Ok(0));
    faults.refuse_requests(false);
    faults.refuse_responses(true);
    assert_eq!(host.put(NOW, &[status(1)]), Ok(1));
    assert_eq!(adapter.put(NOW, &[status(1)]), Ok(0));
    faults.delay_dma(2);
    let sent = host.place(Bytes::from_static(b"slow")).unwrap();
    adapter.read(NOW, DmaId(3), sent, 4).unwrap();
    assert_eq!(adapter.poll_dma(NOW), Ok(None));
    assert_eq!(adapter.poll_dma(NOW), Ok(None));
    assert!(adapter.poll_dma(NOW).unwrap().is_some());
    drop(adapter);
    assert_eq!(host.put(NOW, &[status(2)]), Err(LinkError::Gone));
    let (mut host, mut adapter) = pair();
    adapter.faults().cut();
    assert_eq!(host.get(NOW, &mut Vec::new()), Err(LinkError::Gone));
    assert_eq!(adapter.poll_dma(NOW), Err(LinkError::Gone));
}

#[test]
fn an_entry_without_its_end_is_a_violation() {
    let (mut host, mut adapter) = pair();
    let entry = immediate(&Bytes::from(vec![1; 48]));
    let mut all = entries(&entry[..1]);
    let missing = 1;
    assert_eq!(all.next(), Some(Err(Malformed::Truncated { missing })));
    assert_eq!(all.next(), None);
    assert_eq!(
        host.put(NOW, &entry[..1]),
        Ok(0),
        "half an entry is not taken"
    );
    adapter.get(NOW, 4, &mut Vec::new()).unwrap();
}

#[test]
fn crossings_are_counted_at_both_ends() {
    let (host, adapter) = pair();
    let (mut host, mut adapter) = (Counted::new(host), Counted::new(adapter));
    let inline = immediate(&Bytes::from(vec![1; 40]));
    let sent = host.place(Bytes::from_static(b"0123456789")).unwrap();
    let received = host.reserve().unwrap();
    host.put(NOW, &[&[status(1)], &inline[..]].concat())
        .unwrap();
    let mut got = Vec::new();
    adapter.get(NOW, 9, &mut got).unwrap();
    adapter.get(NOW, 9, &mut got).unwrap();
    adapter.read(NOW, DmaId(1), sent, 10).unwrap();
    let data = Bytes::from_static(b"abc");
    adapter
        .write(NOW, DmaId(2), received, data.clone())
        .unwrap();
    assert!(range(adapter.write(NOW, DmaId(3), sent, data)));
    while adapter.poll_dma(NOW).unwrap().is_some() {}
    assert_eq!(adapter.put(NOW, &[status(1); 5]), Ok(4));
    assert_eq!(
        adapter.put(NOW, &[status(1)]),
        Ok(0),
        "no room, no crossing"
    );
    host.get(NOW, &mut got).unwrap();
    let traffic = *adapter.traffic();
    let account = traffic.account;
    assert_eq!(
        (account.to_nic.crossings, account.to_host.crossings),
        (2, 2)
    );
    assert_eq!(account.to_nic.bytes.descriptor, 3 * 32 - 40);
    assert_eq!(account.to_nic.bytes.content, 40 + 10);
    assert_eq!(account.to_host.bytes.event, 4 * 32);
    assert_eq!(account.to_host.bytes.content, 3);
    assert_eq!(
        (traffic.requests.largest, traffic.responses.largest),
        (3, 4)
    );
    // The host sees the same transfers of descriptors, and only inline data.
    let account = host.traffic().account;
    assert_eq!(
        (account.to_nic.crossings, account.to_host.crossings),
        (1, 1)
    );
    assert_eq!(account.to_nic.bytes.content, 40);
    assert_eq!(host.traffic().requests, traffic.requests);
    assert_eq!(host.traffic().responses, traffic.responses);
}

proptest! {
    #[test]
    fn inline_bytes_are_stored_in_descriptors(data in prop::collection::vec(any::<u8>(), 1..=MOST_INLINE_BYTES)) {
        let data = Bytes::from(data);
        prop_assert_eq!(extract::<Bytes>(&immediate(&data)), Ok(data));
    }

    /// Symbolic data of any length fits, and takes as many descriptors as real bytes would.
    #[test]
    fn inline_symbolic_data_is_stored_in_descriptors(source: u64, offset in 0..u64::MAX / 2, len in 1..=MOST_INLINE_BYTES as u32) {
        let data = Symbolic { source, offset, len };
        let entry = immediate(&data);
        prop_assert_eq!(entry.len(), immediate(&Bytes::from(vec![0; len as usize])).len());
        prop_assert_eq!(extract::<Symbolic>(&entry), Ok(data));
    }

    /// Splitting an arbitrary transfer into entries loses nothing and never panics.
    #[test]
    fn transfers_are_cut_into_entries(words in prop::collection::vec(any::<[u64; 4]>(), 0..40), most in 0_usize..50) {
        let transfer: Vec<_> = words.into_iter().map(Descriptor).collect();
        let (mut whole, mut limited) = (0, 0);
        for entry in entries(&transfer).map_while(Result::ok) {
            prop_assert_eq!(entry.len(), 1 + entry[0].continuations());
            whole += entry.len();
            if whole <= most {
                limited = whole;
            }
            let _ = (Request::decode(&entry[0]), Response::decode(&entry[0]), extract::<Symbolic>(entry), extract::<Bytes>(entry));
        }
        prop_assert_eq!(whole_entries(&transfer, most), limited);
    }
}
