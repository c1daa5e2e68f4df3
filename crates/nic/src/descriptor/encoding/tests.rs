use super::*;
use crate::cache::CacheReference;
use crate::descriptor::{
    CacheCommand, Command, Control, Event, Handle, MainMemory, PacketInParts, Part, PartFlags,
    Refusal,
};
use baton_bus::descriptor::{Action, Opcode, Request};
use baton_tcp::{CloseReason, PathError, Stack, Symbolic};
use baton_wire::{Endpoint, Flow, Time};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

/// A segment, and the state of the connection that sent it.
fn opened(port: u16) -> (Segment<Symbolic>, Box<Portable<Symbolic>>) {
    let endpoint = |host, port| Endpoint::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port);
    let flow = Flow {
        local: endpoint(1, port),
        remote: endpoint(2, 80),
    };
    let mut stack = Stack::new(baton_tcp::Config::default(), 1);
    let conn = stack.connect(Time::ZERO, flow).unwrap();
    let (_, segment) = stack.poll_transmit(Time::ZERO).unwrap();
    let state = stack.export(Time::ZERO, conn);
    (segment, Box::new(state))
}

fn segments() -> impl Strategy<Value = Segment<Symbolic>> {
    (1..50_000_u16, prop::option::of(data())).prop_map(|(port, data)| Segment {
        payload: data.into_iter().collect(),
        ..opened(port).0
    })
}

fn states() -> impl Strategy<Value = Box<Portable<Symbolic>>> {
    (1..50_000_u16).prop_map(|port| opened(port).1)
}

fn data() -> impl Strategy<Value = Symbolic> {
    (any::<u64>(), any::<u64>(), 1_u32..100_000).prop_map(|(source, offset, len)| Symbolic {
        source,
        offset,
        len,
    })
}

fn handles() -> impl Strategy<Value = Handle> {
    any::<u32>().prop_map(Handle)
}

fn references() -> impl Strategy<Value = Option<CacheReference>> {
    let some = (any::<u32>(), any::<u32>());
    prop::option::of(some.prop_map(|(offset, generation)| CacheReference { offset, generation }))
}

fn runs() -> impl Strategy<Value = Vec<CachedRun>> {
    let run = (any::<u32>(), references());
    prop::collection::vec(
        run.prop_map(|(len, cached)| CachedRun { len, cached }),
        0..4,
    )
}

fn controls() -> impl Strategy<Value = Control> {
    prop_oneof![
        Just(Control::Shutdown),
        Just(Control::Close),
        Just(Control::Abort),
        any::<bool>().prop_map(Control::NoDelay),
        any::<bool>().prop_map(Control::Cork),
    ]
}

fn refusals() -> impl Strategy<Value = Refusal> {
    prop::sample::select(vec![
        Refusal::SoftLimit,
        Refusal::HardLimit,
        Refusal::Memory,
        Refusal::State,
        Refusal::Duplicate,
    ])
}

fn reasons() -> impl Strategy<Value = CloseReason> {
    let paths = prop_oneof![
        any::<u16>().prop_map(|mtu| PathError::FragmentationNeeded { mtu }),
        prop::sample::select(vec![
            PathError::HostUnreachable,
            PathError::NetUnreachable,
            PathError::PortUnreachable,
            PathError::ProtocolUnreachable,
            PathError::AdminProhibited,
            PathError::TimeExceeded,
            PathError::ParameterProblem,
        ]),
    ];
    let others = vec![
        CloseReason::Normal,
        CloseReason::Reset,
        CloseReason::Refused,
        CloseReason::TimedOut,
        CloseReason::Aborted,
    ];
    prop_oneof![
        prop::sample::select(others),
        paths.prop_map(CloseReason::Unreachable)
    ]
}

fn parts() -> impl Strategy<Value = PartFlags> {
    (any::<bool>(), any::<bool>()).prop_map(|(first, last)| PartFlags { first, last })
}

fn commands() -> impl Strategy<Value = Command<Symbolic>> {
    prop_oneof![
        (handles(), states(), runs()).prop_map(|(handle, state, cached)| Command::Handoff {
            handle,
            state,
            cached
        }),
        handles().prop_map(|handle| Command::Restore { handle }),
        (handles(), data(), references()).prop_map(|(handle, data, cached)| Command::Send {
            handle,
            data,
            cached
        }),
        (handles(), any::<u32>()).prop_map(|(handle, len)| Command::PostReceive { handle, len }),
        (handles(), any::<u32>()).prop_map(|(handle, len)| Command::Received { handle, len }),
        (handles(), controls()).prop_map(|(handle, control)| Command::Control { handle, control }),
        (handles(), segments()).prop_map(|(handle, segment)| Command::Forward { handle, segment }),
        handles().prop_map(|handle| Command::Release { handle }),
    ]
}

fn cache_commands() -> impl Strategy<Value = CacheCommand<Symbolic>> {
    let memory = prop_oneof![
        segments().prop_map(MainMemory::Headers),
        data().prop_map(MainMemory::Data)
    ];
    prop_oneof![
        Just(CacheCommand::Init),
        (data(), any::<u32>(), any::<u32>()).prop_map(|(data, offset, generation)| {
            CacheCommand::Insert {
                data,
                offset,
                generation,
            }
        }),
        (memory, parts()).prop_map(|(part, flags)| CacheCommand::AppendMemory { part, flags }),
        (any::<u32>(), any::<u32>(), parts())
            .prop_map(|(offset, len, flags)| CacheCommand::AppendCache { offset, len, flags }),
    ]
}

fn packets_in_parts() -> impl Strategy<Value = PacketInParts<Symbolic>> {
    let part = prop_oneof![
        data().prop_map(Part::Memory),
        (any::<u32>(), any::<u32>()).prop_map(|(offset, len)| Part::Cache { offset, len }),
    ];
    let parts = prop::collection::vec(part, 0..5);
    (segments(), parts).prop_map(|(segment, parts)| {
        let mut packet = PacketInParts::new(segment);
        parts.into_iter().for_each(|part| packet.push(part));
        packet
    })
}

/// The entries that come out of a ring into which `entry` went.
fn one_by_one(entry: ToNic<Symbolic>) -> Vec<ToNic<Symbolic>> {
    match entry {
        ToNic::Parts(packet) => packet.into_commands().map(ToNic::Cache).collect(),
        entry => vec![entry],
    }
}

fn to_nic() -> impl Strategy<Value = ToNic<Symbolic>> {
    prop_oneof![
        segments().prop_map(ToNic::Packet),
        packets_in_parts().prop_map(ToNic::Parts),
        commands().prop_map(ToNic::Command),
        cache_commands().prop_map(ToNic::Cache),
    ]
}

fn events() -> impl Strategy<Value = Event<Symbolic>> {
    let result = prop_oneof![Just(Ok(())), (refusals(), states()).prop_map(Err::<(), _>)];
    prop_oneof![
        (handles(), result).prop_map(|(handle, result)| Event::Handoff { handle, result }),
        (handles(), states()).prop_map(|(handle, state)| Event::Restored { handle, state }),
        (handles(), data()).prop_map(|(handle, data)| Event::Receive { handle, data }),
        (handles(), any::<u32>()).prop_map(|(handle, len)| Event::Acknowledged { handle, len }),
        handles().prop_map(|handle| Event::PeerClosed { handle }),
        (handles(), reasons()).prop_map(|(handle, reason)| Event::Closed { handle, reason }),
        handles().prop_map(|handle| Event::Relief { handle }),
        any::<u32>().prop_map(Event::SoftLimit),
        any::<u32>().prop_map(Event::Memory),
        any::<u32>().prop_map(Event::CacheReady),
        Just(Event::Reset),
    ]
}

fn to_host() -> impl Strategy<Value = ToHost<Symbolic>> {
    prop_oneof![
        segments().prop_map(ToHost::Packet),
        events().prop_map(ToHost::Event),
        any::<u32>().prop_map(ToHost::Sent),
    ]
}

#[test]
fn requests_of_sockets_are_refused_by_name() {
    let mut attachments = Attachments::<Symbolic>::new(1);
    let request = Request {
        socket: 1,
        tag: 2,
        action: Action::Status,
    };
    let descriptor = request.encode();
    let wrong = Violation::Malformed(Malformed::Direction(Opcode::Status));
    assert_eq!(ToNic::decode(&descriptor, &mut attachments), Err(wrong));
    assert_eq!(ToHost::decode(&descriptor, &mut attachments), Err(wrong));
    // And the other way round, by those who serve sockets.
    let init = ToNic::<Symbolic>::Cache(CacheCommand::Init);
    let mut ring = Vec::new();
    init.encode(&mut attachments, &mut ring).unwrap();
    let descriptor = ring[0];
    let wrong = Malformed::Direction(Opcode::CacheInit);
    assert_eq!(Request::decode(&descriptor), Err(wrong));
    let wrong = Violation::Malformed(wrong);
    assert_eq!(ToHost::decode(&descriptor, &mut attachments), Err(wrong));
}

#[test]
fn numbers_of_nothing_are_refused() {
    let mut attachments = Attachments::<Symbolic>::new(1);
    let mut refused = |opcode, from_adapter, kind, len| {
        let fields = Fields {
            kind,
            len,
            ..Fields::new(opcode, from_adapter)
        };
        let result = match from_adapter {
            true => ToHost::decode(&fields.encode(), &mut attachments).map(drop),
            false => ToNic::decode(&fields.encode(), &mut attachments).map(drop),
        };
        assert_eq!(
            result,
            Err(Violation::Malformed(Malformed::Count(kind))),
            "{opcode:?}"
        );
    };
    refused(Opcode::Control, false, 7, 0);
    refused(Opcode::AppendCache, false, 4, 0);
    refused(Opcode::AppendMemory, false, 8, 0);
    refused(Opcode::HandoffSend, false, 2, 0);
    refused(Opcode::Handoff, true, 6, 0);
    refused(Opcode::Closed, true, 13, 0);
    refused(Opcode::Closed, true, 5, 0x1_0000);
}

#[test]
fn an_attachment_is_taken_once_and_only_as_what_it_is() {
    let mut attachments = Attachments::new(1);
    let data = Symbolic {
        source: 1,
        offset: 2,
        len: 3,
    };
    let receive = || {
        ToHost::Event(Event::Receive {
            handle: Handle(4),
            data,
        })
    };
    let descriptor = receive().encode(&mut attachments).unwrap();
    assert!(attachments.is_full());
    assert_eq!(receive().encode(&mut attachments), Err(receive()));
    let short = ToHost::<Symbolic>::Sent(1).encode(&mut attachments);
    assert!(short.is_ok(), "it needs no room");
    // The address belongs to data of this length, not to a packet, nor to more data.
    let fields = Fields::decode(&descriptor).unwrap();
    let packet = Fields {
        opcode: Opcode::Packet,
        ..fields
    };
    let longer = Fields {
        len: fields.len + 1,
        ..fields
    };
    let elsewhere = Fields {
        address: fields.address + 1,
        ..fields
    };
    for wrong in [packet, longer, elsewhere] {
        let result = ToHost::decode(&wrong.encode(), &mut attachments);
        assert!(matches!(result, Err(Violation::Range { .. })), "{wrong:?}");
        assert_eq!(attachments.len(), 1);
    }
    assert_eq!(ToHost::decode(&descriptor, &mut attachments), Ok(receive()));
    assert!(attachments.is_empty());
    // Another takes its place; the old address does not lead to it.
    receive().encode(&mut attachments).unwrap();
    assert!(ToHost::decode(&descriptor, &mut attachments).is_err());
    assert_eq!(attachments.len(), 1);
}

proptest! {
    #[test]
    fn entries_for_the_nic_survive(entry in to_nic()) {
        let (needed, commands) = (entry.attachments(), entry.commands());
        let mut ring = Vec::new();
        if needed > 0 {
            let refused = entry.clone().encode(&mut Attachments::new(needed - 1), &mut ring);
            prop_assert_eq!((refused, ring.len()), (Err(entry.clone()), 0));
        }
        let mut attachments = Attachments::new(needed);
        entry.clone().encode(&mut attachments, &mut ring).unwrap();
        prop_assert_eq!((attachments.len(), ring.len()), (needed, commands));
        prop_assert!(ring.iter().all(|descriptor| descriptor.continuations() == 0));
        let read: Result<Vec<_>, _> =
            ring.iter().map(|descriptor| ToNic::decode(descriptor, &mut attachments)).collect();
        prop_assert_eq!(read, Ok(one_by_one(entry)));
        prop_assert!(attachments.is_empty());
    }

    #[test]
    fn entries_for_the_host_survive(entry in to_host()) {
        let mut attachments = Attachments::new(1);
        let descriptor = entry.clone().encode(&mut attachments).unwrap();
        prop_assert_eq!(descriptor.continuations(), 0);
        prop_assert_eq!(attachments.is_full(), entry.is_long());
        prop_assert_eq!(ToHost::decode(&descriptor, &mut attachments), Ok(entry));
        prop_assert!(attachments.is_empty());
    }

    /// Whatever stands in a ring, reading it gives an entry or an error, and takes no attachment with an error.
    #[test]
    fn nothing_panics(words: [u64; 4], kept in data()) {
        let mut attachments = Attachments::new(1);
        let send = ToNic::Command(Command::Send { handle: Handle(0), data: kept, cached: None });
        send.encode(&mut attachments, &mut Vec::new()).unwrap();
        let descriptor = Descriptor(words);
        if ToNic::decode(&descriptor, &mut attachments).is_err() {
            prop_assert_eq!(attachments.len(), 1);
        }
        let before = attachments.len();
        if ToHost::decode(&descriptor, &mut attachments).is_err() {
            prop_assert_eq!(attachments.len(), before);
        }
    }
}
