use super::*;
use baton_wire::{Endpoint, Stage, Stages};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn endpoints() -> impl Strategy<Value = Endpoint> {
    let addrs = prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
    ];
    (addrs, any::<u16>()).prop_map(|(addr, port)| Endpoint::new(addr, port))
}

fn buffers() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (any::<u64>(), any::<u32>()).prop_map(|(address, len)| Buffer::Memory { address, len }),
        (1..=MOST_INLINE_BYTES as u16).prop_map(|len| Buffer::Inline { len }),
    ]
}

fn actions() -> impl Strategy<Value = Action> {
    let closes = prop::sample::select(vec![Close::Write, Close::Both, Close::Abort]);
    prop_oneof![
        Just(Action::Socket),
        Just(Action::PacketSocket),
        endpoints().prop_map(Action::Bind),
        any::<u32>().prop_map(|backlog| Action::Listen { backlog }),
        (any::<u32>(), 1_u16.., any::<u32>()).prop_map(|(first, count, timeout_us)| {
            Action::Accept {
                first,
                count,
                timeout_us,
            }
        }),
        endpoints().prop_map(Action::Connect),
        closes.prop_map(Action::Close),
        (
            prop::sample::select(SocketOption::ALL.to_vec()),
            any::<u32>()
        )
            .prop_map(|(option, value)| Action::SetOption { option, value }),
        Just(Action::Status),
        Just(Action::Name),
        Just(Action::Info),
        any::<u32>().prop_map(|target| Action::Cancel { target }),
        (buffers(), any::<bool>(), 0..=Stages::all().bits()).prop_map(|(data, more, times)| {
            let times = Stages::from_bits_retain(times);
            Action::Send { data, more, times }
        }),
        (any::<u64>(), any::<u32>()).prop_map(|(address, len)| Action::Receive { address, len }),
        (any::<u64>(), any::<u32>()).prop_map(|(address, len)| Action::Forward { address, len }),
        (any::<u64>(), any::<u32>(), any::<bool>())
            .prop_map(|(address, len, more)| Action::Import { address, len, more }),
        (any::<u64>(), any::<u32>()).prop_map(|(address, len)| Action::Export { address, len }),
        (any::<u32>(), any::<u32>(), any::<bool>())
            .prop_map(|(offset, len, more)| Action::SendCached { offset, len, more }),
        Just(Action::CacheInit),
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(address, len, offset)| {
            Action::CacheInsert {
                address,
                len,
                offset,
            }
        }),
    ]
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let done = [
        Opcode::Socket,
        Opcode::Bind,
        Opcode::Listen,
        Opcode::Connect,
        Opcode::Close,
        Opcode::SetOption,
        Opcode::Cancel,
        Opcode::PacketSocket,
        Opcode::Forward,
        Opcode::Import,
        Opcode::CacheInsert,
    ];
    prop_oneof![
        prop::sample::select(done.to_vec()).prop_map(Outcome::Done),
        endpoints().prop_map(Outcome::Accepted),
        prop_oneof![Just(0_u16), 2_u16..].prop_map(|count| Outcome::AcceptedBulk { count }),
        (any::<u32>(), any::<bool>())
            .prop_map(|(len, cumulative)| Outcome::Sent { len, cumulative }),
        buffers().prop_map(Outcome::Received),
        (
            any::<u32>(),
            any::<u32>(),
            any::<u16>(),
            any::<u16>(),
            any::<u16>()
        )
            .prop_map(
                |(send_room, unread, sends_waiting, receives_waiting, acceptable)| {
                    Outcome::Status(SocketInfo {
                        send_room,
                        unread,
                        sends_waiting,
                        receives_waiting,
                        acceptable,
                    })
                }
            ),
        endpoints().prop_map(Outcome::Name),
        (0..=MOST_INLINE_BYTES as u16).prop_map(|len| Outcome::Info { len }),
        Just(Outcome::PeerClosed),
        (any::<u32>(), any::<bool>()).prop_map(|(len, ended)| Outcome::Unread { len, ended }),
        Just(Outcome::Over),
        (any::<u64>(), any::<u32>(), any::<bool>())
            .prop_map(|(address, len, more)| Outcome::Exported { address, len, more }),
        (any::<u32>(), any::<u32>()).prop_map(|(bytes, most_inserts)| Outcome::CacheReady {
            bytes,
            most_inserts,
        }),
        Just(Outcome::Relief),
        any::<u32>().prop_map(|connections| Outcome::SoftLimit { connections }),
        (
            prop::sample::select(Stage::ALL.to_vec()),
            any::<u32>(),
            any::<u64>()
        )
            .prop_map(|(stage, byte, at_ns)| Outcome::Time {
                what: Moment::Reached { stage, byte },
                at_ns
            }),
        any::<u64>().prop_map(|at_ns| Outcome::Time {
            what: Moment::Arrived,
            at_ns
        }),
    ]
}

#[test]
fn a_descriptor_is_32_bytes_and_a_ring_of_128_is_a_page() {
    assert_eq!(size_of::<Descriptor>(), Descriptor::BYTES as usize);
    assert_eq!(128 * Descriptor::BYTES, 4096);
}

#[test]
fn invalid_requests_are_refused_with_a_reason() {
    let refused = |words| Request::decode(&Descriptor(words)).unwrap_err().to_string();
    assert_eq!(refused([0xff, 0, 0, 0]), "opcode 0xff does not exist");
    assert_eq!(
        refused([0x0101, 0, 0, 0]),
        "flags 0x01 are not allowed for Socket"
    );
    assert_eq!(
        refused([0x02, 0x1_0000 << 32, 0, 0]),
        "port 65536 does not exist"
    );
    assert_eq!(refused([0x04, 0, 0, 0]), "count 0 is out of bounds");
    assert_eq!(refused([0x63_0007, 0, 0, 0]), "option 99 does not exist");
    assert_eq!(
        refused([0x0410, 241 << 32, 0, 0]),
        "241 bytes of data in descriptors: expected 1 to 240"
    );
    assert_eq!(refused([0x08_0010, 0, 0, 0]), "count 8 is out of bounds");
    // A SEND from the cache cannot have inline data; CACHE INIT and INSERT have no flags at all.
    assert_eq!(
        refused([0x0413, 0, 0, 0]),
        "flags 0x04 are not allowed for SendCached"
    );
    assert_eq!(
        refused([0x0830, 0, 0, 0]),
        "flags 0x08 are not allowed for CacheInit"
    );
    assert_eq!(
        refused([0x0831, 0, 0, 0]),
        "flags 0x08 are not allowed for CacheInsert"
    );
}

#[test]
fn a_request_is_not_decoded_as_a_response() {
    let refused = Response::decode(&Descriptor([0x01, 0, 0, 0]));
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, "opcode Socket is not expected here");
    let refused = Response::decode(&Descriptor([0x0113, 0, 0, 0]));
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, "opcode SendCached is not expected here");
    let refused = Response::decode(&Descriptor([0x24, 0, 0, 3]));
    assert_eq!(refused, Err(Malformed::Stage(3)));
}

proptest! {
    #[test]
    fn requests_round_trip(socket: u32, tag: u32, action in actions()) {
        let request = Request { socket, tag, action };
        let descriptor = request.encode();
        prop_assert_eq!(Descriptor::from_bytes(&descriptor.to_bytes()), descriptor);
        prop_assert_eq!(Request::decode(&descriptor), Ok(request));
    }

    #[test]
    fn responses_round_trip(socket: u32, tag: u32, status in prop::sample::select(Status::ALL), outcome in outcomes()) {
        let response = Response { socket, tag, status, outcome };
        prop_assert_eq!(Response::decode(&response.encode()), Ok(response));
    }

    #[test]
    fn peers_round_trip(socket: u32, remote in endpoints()) {
        let peer = Peer { socket, remote };
        prop_assert_eq!(read_peer(&write_peer(peer)), Ok(peer));
    }

    #[test]
    fn inline_data_round_trips(data in prop::collection::vec(any::<u8>(), 1..=MOST_INLINE_BYTES)) {
        let action = Action::send(Buffer::Inline { len: data.len() as u16 }, false);
        let mut entry = vec![Request { socket: 1, tag: 2, action }.encode()];
        let (mut head, mut tail) = (entry[0], Vec::new());
        write_inline(&mut head, &data, &mut tail);
        entry[0] = head;
        entry.extend(tail);
        prop_assert_eq!(entry.len(), 1 + entry[0].continuations());
        let mut room = [0; MOST_INLINE_BYTES];
        prop_assert_eq!(read_inline(&entry, &mut room), Ok(&data[..]));
        prop_assert_eq!(Request::decode(&entry[0]).unwrap().action, action);
        if entry.len() > 1 {
            entry.pop();
            prop_assert_eq!(read_inline(&entry, &mut room), Err(Malformed::Truncated { missing: 1 }));
        }
    }

    /// Reading arbitrary words from the other side's ring gives a value or an error.
    #[test]
    fn decoding_any_descriptor_does_not_panic(words: [u64; 4]) {
        let descriptor = Descriptor(words);
        let _ = (Request::decode(&descriptor), Response::decode(&descriptor), read_peer(&descriptor));
        let mut room = [0; MOST_INLINE_BYTES];
        let _ = read_inline(&[descriptor], &mut room);
        prop_assert!(descriptor.continuations() <= usize::from(u16::MAX));
    }
}

proptest! {
    #[test]
    fn each_place_in_a_file_has_an_address_of_its_own(
        file in 0..FilePlace::FILES,
        offset in 0..FilePlace::BYTES,
        len: u32,
        other: u64,
    ) {
        let place = FilePlace { file, offset };
        prop_assert_eq!(FilePlace::at(place.address()), Some(place));
        let last = place.address().checked_add(u64::from(len).saturating_sub(1));
        let is_in_file = last.and_then(FilePlace::at).is_some_and(|last| last.file == file);
        prop_assert_eq!(place.has_room_for(len), is_in_file);
        prop_assert_eq!(FilePlace::at(other).map(FilePlace::address), (other >= 1 << 63).then_some(other));
    }
}
